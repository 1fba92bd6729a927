//! Whether a QUIC connection is limited by congestion control: quinn does not say what it holds unsent, but tells its
//! congestion controller what it sends, and when it could have sent more.
//!
//! Where quinn has a datagram to send that wants acknowledgement and may leave by all windows of flow control, it asks
//! the controller for its window. If it sends nothing upon that, what is under way and this datagram do not fit in, or
//! the pacer, which is told the window, says that it is too early.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use conn::now;
use quinn::ConnectionStats;
use quinn::congestion::{Controller, ControllerFactory, ControllerMetrics};
use quinn_proto::RttEstimator;
use tokio::sync::Notify;
use units::Time;

use crate::TcpLimit;
use crate::tcp_stalls::Look;

/// Builds controllers that are watched.
pub(crate) struct Watched(pub(crate) Arc<dyn ControllerFactory + Send + Sync>);

impl ControllerFactory for Watched {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        let inner = Arc::clone(&self.0).build(now, current_mtu);
        let (mtu, shared) = (current_mtu.into(), Arc::default());
        Box::new(Flight { inner, mtu, in_flight: 0, busy_at: None, shared })
    }
}

/// A congestion controller that is watched.
pub(crate) struct Flight {
    inner: Box<dyn Controller>,
    /// Bytes of a datagram.
    mtu: u64,
    /// Bytes that are on their way, about: acknowledgements count until those of the next one are known.
    in_flight: u64,
    /// When it last sent data, or would have but for congestion control.
    busy_at: Option<Instant>,
    shared: Arc<Shared>,
}

/// What copies of a controller share.
#[derive(Default)]
struct Shared {
    /// Whether quinn has asked for the window since it last sent, or heard of what it had sent.
    asked: AtomicBool,
    /// Told when it asks, which it does before it sends.
    active: Arc<Notify>,
}

/// The controller of a connection, as it is now.
fn of(quic: &quinn::Connection) -> Option<Box<Flight>> {
    quic.congestion_state().into_any().downcast().ok()
}

/// What keeps a connection's data back: congestion control, if anything that is not flow control. `None` while there is
/// nothing to send, nor much under way: what flow control allows, quinn has sent or asks the window for.
pub(crate) fn look(quic: &quinn::Connection) -> Option<Look> {
    let flight = of(quic)?;
    let is_held = flight.is_held();
    let has_work = (is_held || flight.is_under_way()) && quic.close_reason().is_none();
    let limit = is_held.then_some(TcpLimit::CongestionWindow);
    has_work.then(|| Look { round_trip: quic.rtt(), limit })
}

/// What is told (`notify_waiters`) when a connection sends or would.
pub(crate) fn writes(quic: &quinn::Connection) -> Option<Arc<Notify>> {
    Some(Arc::clone(&of(quic)?.shared.active))
}

/// quinn's counters. The window is among them: it is not asked for to send something.
pub(crate) fn stats(quic: &quinn::Connection) -> ConnectionStats {
    let before = of(quic).map(|flight| (flight.is_held(), flight.shared));
    let stats = quic.stats();
    if let Some((is_held, shared)) = before {
        shared.asked.store(is_held, Ordering::Relaxed);
    }
    stats
}

/// Up to when a connection had data that it might send, as far as flow control goes.
pub(crate) fn busy_until(quic: &quinn::Connection) -> Option<Time> {
    let (instant, time) = (Instant::now(), now());
    let busy = of(quic)?.busy_until(instant)?;
    Some(time - instant.saturating_duration_since(busy))
}

impl Flight {
    /// Whether there is a datagram to send that congestion control holds back.
    fn is_held(&self) -> bool {
        self.shared.asked.load(Ordering::Relaxed)
    }

    /// Whether data are: acknowledgements, which are counted too, are never acknowledged themselves.
    fn is_under_way(&self) -> bool {
        self.in_flight >= self.mtu / 2
    }

    fn answered(&self) {
        self.shared.asked.store(false, Ordering::Relaxed);
    }

    /// Up to when the sender is known to have had data that it might send by its windows of flow control.
    fn busy_until(&self, now: Instant) -> Option<Instant> {
        let is_full = self.in_flight + self.mtu > self.inner.window();
        if is_full { Some(now) } else { self.busy_at }
    }
}

impl Controller for Flight {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.answered();
        self.in_flight += bytes;
        // Less is an acknowledgement, or an update of a window.
        if bytes >= self.mtu / 2 {
            self.busy_at = Some(now);
        }
        self.inner.on_sent(now, bytes, last_packet_number);
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        self.inner.on_ack(now, sent, bytes, app_limited, rtt);
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        largest_packet_num_acked: Option<u64>,
    ) {
        // If it still has something to send, quinn asks again at once.
        self.answered();
        self.in_flight = in_flight;
        if !app_limited {
            self.busy_at = Some(now);
        }
        self.inner.on_end_acks(now, in_flight, app_limited, largest_packet_num_acked);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        self.in_flight = self.in_flight.saturating_sub(lost_bytes);
        self.inner.on_congestion_event(now, sent, is_persistent_congestion, lost_bytes);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.mtu = new_mtu.into();
        self.inner.on_mtu_update(new_mtu);
    }

    fn window(&self) -> u64 {
        self.shared.asked.store(true, Ordering::Relaxed);
        self.shared.active.notify_waiters();
        self.inner.window()
    }

    fn metrics(&self) -> ControllerMetrics {
        self.inner.metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        let Flight { mtu, in_flight, busy_at, .. } = *self;
        let (inner, shared) = (self.inner.clone_box(), Arc::clone(&self.shared));
        Box::new(Flight { inner, mtu, in_flight, busy_at, shared })
    }

    fn initial_window(&self) -> u64 {
        self.inner.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::Congestion;

    #[test]
    fn a_sender_is_busy_while_its_window_is_full_or_it_sends() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let built = Congestion::Reno.controller(Some(3600)).build(start, 1200);
        let mut flight = built.into_any().downcast::<Flight>().unwrap();
        assert_eq!(flight.busy_until(at(1)), None);
        flight.on_sent(at(2), 1200, 0);
        flight.on_sent(at(3), 40, 1);
        assert_eq!(flight.busy_until(at(9)), Some(at(2)));
        flight.on_sent(at(4), 2400, 3);
        assert_eq!(flight.busy_until(at(9)), Some(at(9)));
        // It had nothing more to send; then it had.
        flight.on_end_acks(at(10), 1200, true, Some(1));
        assert_eq!(flight.busy_until(at(20)), Some(at(4)));
        flight.on_end_acks(at(11), 0, false, Some(3));
        assert_eq!(flight.busy_until(at(20)), Some(at(11)));
        let copy = flight.clone_box().into_any().downcast::<Flight>().unwrap();
        assert_eq!(copy.busy_until(at(20)), Some(at(11)));
        // An acknowledgement is nothing that an answer is waited for.
        assert!(!flight.is_under_way());
        flight.on_sent(at(12), 40, 4);
        assert!(!flight.is_under_way());
        flight.on_sent(at(13), 1200, 5);
        assert!(flight.is_under_way());
    }

    #[test]
    fn data_are_held_back_from_a_question_for_the_window_until_something_is_sent() {
        let start = Instant::now();
        let built = Congestion::Reno.controller(Some(3600)).build(start, 1200);
        let mut flight = built.into_any().downcast::<Flight>().unwrap();
        assert!(!flight.is_held());
        // What is said of it asks for nothing.
        let _ = (flight.metrics(), flight.initial_window(), flight.busy_until(start));
        assert!(!flight.is_held());
        assert_eq!(flight.window(), 3600);
        assert!(flight.is_held());
        flight.on_sent(start, 1200, 0);
        assert!(!flight.is_held());
        // The next one does not fit; a copy says so too.
        flight.window();
        let copy = flight.clone_box().into_any().downcast::<Flight>().unwrap();
        assert!(flight.is_held() && copy.is_held());
        flight.on_end_acks(start, 0, false, Some(0));
        assert!(!flight.is_held() && !copy.is_held());
    }
}
