//! When a sender's TCP or QUIC had bytes to send and did not send them while nothing waited at the bottleneck, and
//! what kept it: the same rule as of flow-control windows, one layer below. QUIC has flow control itself, whose stalls
//! are [`crate::stalls`]': here it is its congestion control alone.

use std::cell::RefCell;
use std::convert::Infallible;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use conn::TcpInfo;
use serde::Serialize;
use tokio::sync::Notify;
use units::Time;

use crate::Bottleneck;
use crate::task::Task;

/// How often a sender is looked at while it has something to send: so many times in a round trip, within these bounds.
/// An interval is wrong by one step at most at either end; too early and too late are as frequent. A look takes some
/// 2 us of CPU time, waking up for it 10: all senders are looked at in the same moments.
const LOOKS: u32 = 64;
const STEPS: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(8)];

/// A power of two, in milliseconds.
fn step(round_trip: Duration) -> Duration {
    let [least, most] = STEPS;
    let step = (round_trip / LOOKS).clamp(least, most).as_millis();
    Duration::from_millis(1 << step.ilog2())
}

/// How long until the next multiple of `step`.
fn until_next(now: Time, step: Duration) -> Duration {
    let step = step.as_nanos() as u64;
    Duration::from_nanos(step - now.as_nanos() % step)
}

/// Most intervals kept of one connection.
const MAX_STALLS: usize = 4096;

units::named! {
    /// What keeps TCP from sending, or QUIC.
    pub enum TcpLimit: "limit of TCP" {
        /// The window that the peer announced (RFC 9293 §3.8).
        ReceiveWindow = "receive-window",
        /// The congestion window (RFC 5681, of QUIC RFC 9002 §7), or the pace at which the kernel or QUIC sends.
        CongestionWindow = "congestion-window",
        /// TCP's send buffer: all that is in it was sent and is not acknowledged, and it takes no more.
        SendBuffer = "send-buffer",
    }
}

/// An interval in which a connection's TCP or QUIC had bytes to send, sent none, and nothing waited at the bottleneck.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct TcpStall {
    /// From when.
    pub from: Time,
    /// Until when.
    pub to: Time,
    /// Why.
    pub limit: TcpLimit,
}

/// What one look at a sender says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Look {
    /// Its smoothed round trip.
    pub(crate) round_trip: Duration,
    /// What keeps bytes back, where there are any.
    pub(crate) limit: Option<TcpLimit>,
}

impl Look {
    /// The kernel's TCP; `None` if it has nothing to send. `writer_waits`: for room in the socket.
    pub(crate) fn of_kernel(info: &TcpInfo, writer_waits: bool) -> Option<Look> {
        let limit = Some(limit(info, writer_waits)?);
        Some(Look { round_trip: info.rtt, limit })
    }

    /// Our TCP, which says itself what holds it back; `None` if it has nothing to send, nor to send again.
    pub(crate) fn of_user_tcp(info: &tcp::Info) -> Option<Look> {
        let limit = info.hold.map(|hold| match hold {
            tcp::Hold::PeerWindow => TcpLimit::ReceiveWindow,
            tcp::Hold::CongestionWindow => TcpLimit::CongestionWindow,
            tcp::Hold::SendBuffer => TcpLimit::SendBuffer,
        });
        let has_work = limit.is_some() || info.unsent > 0 || info.in_flight > 0;
        has_work.then(|| Look { round_trip: info.smoothed_rtt.unwrap_or_default(), limit })
    }
}

/// What keeps the bytes of a socket back, where there are any: its own, or those of a writer that it made wait.
fn limit(info: &TcpInfo, writer_waits: bool) -> Option<TcpLimit> {
    if info.unsent == 0 {
        return writer_waits.then_some(TcpLimit::SendBuffer);
    }
    // The kernel sends no part of a segment while others are under way (RFC 9293 §3.8.6.2.1).
    let is_full = |window: u32| info.in_flight() + u64::from(info.send_mss) > u64::from(window);
    let is_shut = info.send_window.is_some_and(is_full);
    Some(if is_shut { TcpLimit::ReceiveWindow } else { TcpLimit::CongestionWindow })
}

/// What is known of a connection's stalls so far.
#[derive(Debug, Default)]
struct Seen {
    is_watched: bool,
    /// When it was last looked at, and what kept it then.
    last: Option<(Time, TcpLimit)>,
    stalls: Vec<TcpStall>,
}

impl Seen {
    /// What is so now. Since the last look its limit held, but for the time in which the bottleneck was busy.
    fn look(&mut self, now: Time, limit: Option<TcpLimit>, busy_until: Time) {
        if let Some((then, limit)) = self.last.take() {
            self.note(TcpStall { from: then.max(busy_until), to: now, limit });
        }
        self.last = limit.map(|limit| (now, limit));
    }

    /// An interval, as one with the last if it goes on from there.
    fn note(&mut self, stall: TcpStall) {
        if stall.from >= stall.to {
            return;
        }
        let is_full = self.stalls.len() >= MAX_STALLS;
        match self.stalls.last_mut() {
            Some(last) if (last.to, last.limit) == (stall.from, stall.limit) => last.to = stall.to,
            _ if is_full => {}
            _ => self.stalls.push(stall),
        }
    }
}

/// The stalls of one connection's TCP or QUIC.
#[derive(Debug, Default)]
pub(crate) struct TcpStalls(RefCell<Seen>);

impl TcpStalls {
    /// Looks for ever. `look`: `None` while there is nothing to send; then nothing is done until `written` tells of more.
    async fn watch(
        &self,
        bottleneck: &Bottleneck,
        written: &Notify,
        look: impl Fn() -> Option<Look>,
    ) -> Infallible {
        self.0.borrow_mut().is_watched = true;
        let [mut pause, _] = STEPS;
        loop {
            // What is written from here on is told.
            let more = written.notified();
            let seen = look();
            let limit = seen.and_then(|look| look.limit);
            self.0.borrow_mut().look(conn::now(), limit, bottleneck.waits_until());
            match seen {
                Some(look) => pause = step(look.round_trip),
                None => more.await,
            }
            tokio::time::sleep(until_next(conn::now(), pause)).await;
        }
    }

    /// Looks until the task is dropped: it is one of its own, so that a look wakes nothing else. Without a bottleneck that
    /// says when packets wait nobody can tell whether TCP waits or the link is busy. `look` is `None` while there is
    /// nothing to send; then nobody looks until `written` tells of more.
    pub(crate) fn watching(
        self: &Rc<Self>,
        bottleneck: &Bottleneck,
        written: Arc<Notify>,
        look: impl Fn() -> Option<Look> + 'static,
    ) -> Task {
        let (stalls, bottleneck) = (Rc::clone(self), bottleneck.clone());
        Task::spawn(async move { match stalls.watch(&bottleneck, &written, look).await {} })
    }

    /// What was seen; `None` if nobody looked.
    pub(crate) fn stalls(&self) -> Option<Vec<TcpStall>> {
        let seen = self.0.borrow();
        seen.is_watched.then(|| seen.stalls.clone())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn at(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    fn stall(from: u64, to: u64, limit: TcpLimit) -> TcpStall {
        TcpStall { from: at(from), to: at(to), limit }
    }

    #[test]
    fn a_stall_lasts_from_look_to_look_without_the_time_in_which_the_bottleneck_is_busy() {
        use TcpLimit::{CongestionWindow as Congestion, ReceiveWindow as Receive};
        let mut seen = Seen::default();
        seen.look(at(10), Some(Receive), at(0));
        seen.look(at(11), Some(Receive), at(0));
        seen.look(at(12), Some(Congestion), at(0));
        seen.look(at(13), None, at(0));
        seen.look(at(14), Some(Receive), at(0));
        // The queue was busy for half of it, then for all of it, then until later than now.
        seen.look(at(16), Some(Receive), at(15));
        seen.look(at(17), Some(Receive), at(17));
        seen.look(at(18), Some(Receive), at(30));
        seen.look(at(40), None, at(30));
        let expected = [
            stall(10, 12, Receive),
            stall(12, 13, Congestion),
            stall(15, 16, Receive),
            stall(30, 40, Receive),
        ];
        assert_eq!(seen.stalls, expected);
    }

    #[test]
    fn a_long_round_trip_is_looked_at_as_often_as_a_short_one() {
        let of = |ms| step(Duration::from_millis(ms));
        let ms = Duration::from_millis;
        let steps = [of(0), of(64), of(128), of(300), of(5000)];
        assert_eq!(steps, [ms(1), ms(1), ms(2), ms(4), ms(8)]);
    }

    #[test]
    fn looks_of_all_steps_meet() {
        let of = |micros, step| until_next(Time::from_micros(micros), Duration::from_millis(step));
        let micros = Duration::from_micros;
        assert_eq!(
            [of(0, 4), of(3_900, 4), of(4_000, 4)],
            [micros(4000), micros(100), micros(4000)]
        );
        assert_eq!([of(6_500, 1), of(6_500, 8)], [micros(500), micros(1500)]);
    }

    #[tokio::test]
    async fn nobody_looks_while_there_is_nothing_to_send() {
        let (looks, work) = (Cell::new(0), Cell::new(false));
        let look = || {
            looks.set(looks.get() + 1);
            work.get().then_some(Look { round_trip: Duration::ZERO, limit: None })
        };
        let (stalls, written) = (TcpStalls::default(), Notify::new());
        let bottleneck = Bottleneck::new(|| at(0));
        let moment = || tokio::time::sleep(Duration::from_millis(20));
        let script = async {
            moment().await;
            assert_eq!(looks.get(), 1);
            work.set(true);
            written.notify_waiters();
            while looks.get() < 5 {
                moment().await;
            }
            work.set(false);
            let before = looks.get();
            while looks.get() == before {
                moment().await;
            }
            moment().await;
            assert_eq!(looks.get(), before + 1);
        };
        tokio::select! {
            () = script => {}
            never = stalls.watch(&bottleneck, &written, look) => match never {},
        }
        assert_eq!(stalls.stalls(), Some(Vec::new()));
    }

    #[test]
    fn intervals_are_bounded() {
        let mut seen = Seen::default();
        for turn in 0..10_000 {
            seen.look(at(2 * turn), (turn % 2 == 0).then_some(TcpLimit::SendBuffer), at(0));
        }
        assert_eq!(seen.stalls.len(), MAX_STALLS);
    }

    #[test]
    fn the_limit_is_the_first_that_holds() {
        let info = |unsent, send_window| TcpInfo {
            unsent,
            send_mss: 1000,
            bytes_sent: 60_500,
            bytes_sent_again: 500,
            // It counts the SYN.
            bytes_acknowledged: 30_001,
            send_window,
            ..TcpInfo::default()
        };
        assert_eq!(limit(&info(0, Some(0)), false), None);
        assert_eq!(limit(&info(0, Some(0)), true), Some(TcpLimit::SendBuffer));
        let full = Some(TcpLimit::ReceiveWindow);
        let open = Some(TcpLimit::CongestionWindow);
        for (window, expected) in
            [(Some(30_000), full), (Some(30_998), full), (Some(30_999), open), (None, open)]
        {
            assert_eq!(limit(&info(1, window), true), expected, "{window:?}");
        }
    }
}
