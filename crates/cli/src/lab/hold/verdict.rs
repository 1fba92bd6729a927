//! The limits of the largest connection of a way, from counters.

use std::fmt::Write as _;
use std::time::Duration;

use linkmodel::{LinkConfig, Path, Queue, RateSource};
use pump::DirectionStats;
use serde::Serialize;
use units::{CountedBytes, named};

use super::words::{bits, buffers, percent, size, time, wrapped};
use super::{Flow, Seen, Way};

named! {
    /// Which way data went.
    pub enum Direction: "direction" {
        /// From the client to the server.
        Up = "up",
        /// From the server to the client.
        Down = "down",
    }
}

named! {
    /// A limit that held a connection back.
    pub enum Cause: "cause" {
        /// The window that the receiver announced.
        ReceiveWindow = "receive-window",
        /// The sender's socket buffer.
        SendBuffer = "send-buffer",
        /// The path's queue was full, or `CoDel` dropped.
        Queue = "queue",
        /// Frames that the path lost at random.
        Loss = "loss",
        /// Outages of the link.
        Outage = "outage",
        /// The emulator: lost frames, or sent them late.
        Emulator = "emulator",
        /// The congestion window was still small when the transfer ended.
        CongestionWindow = "congestion-window",
        /// The program offered no more.
        Program = "program",
    }
}

/// A limit in words, with the figures that were counted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reason {
    /// The limit.
    pub cause: Cause,
    /// The figures, and what to do.
    pub text: String,
}

/// Utilisation of a way, and its limits.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Held {
    /// Which way.
    pub direction: Direction,
    /// Seconds in which data was to be sent or under way.
    pub active_seconds: f64,
    /// Bits per second in this time, of the bytes that the path's rate counts.
    pub bits_per_second: f64,
    /// The path's rate; null where it has none.
    pub rate_bits_per_second: Option<f64>,
    /// Bytes of the path's rate in one round trip; null without a rate.
    pub bandwidth_delay_bytes: Option<f64>,
    /// Limits of the connection that delivered most, the strongest first; empty where the path was full.
    pub reasons: Vec<Reason>,
}

/// Least bytes and time of a transfer that is judged: a shorter one cannot fill a path.
const LEAST_BYTES: u64 = 100_000;
const LEAST_TIME: Duration = Duration::from_millis(300);
/// Share of the rate from which on a path is full: headers of acknowledgements, gaps of recovery.
const FULL: f64 = 0.9;
/// Share of a connection's time from which on a limit is named.
const NAMED: f64 = 0.1;
/// Share of the round trip by which frames may leave late.
const LATE: f64 = 0.1;

/// Returns the limits of each way's largest connection; ways without a transfer of some length are left out.
pub fn held(seen: &Seen, path: &Path, stats: Option<&pump::Stats>) -> Vec<Held> {
    let round_trip = path.round_trip().duration();
    let ways = [
        (Direction::Down, &seen.down, &path.backward, stats.map(|stats| &stats.backward)),
        (Direction::Up, &seen.up, &path.forward, stats.map(|stats| &stats.forward)),
    ];
    let judged = ways.into_iter().filter_map(|(direction, way, link, counted)| {
        let flow = way.largest()?;
        let is_long = flow.info.bytes_acknowledged >= LEAST_BYTES && way.active >= LEAST_TIME;
        is_long.then(|| Facts { direction, way, flow, link, counted, round_trip }.judge())
    });
    judged.collect()
}

/// All that is known of one way.
struct Facts<'a> {
    direction: Direction,
    way: &'a Way,
    flow: &'a Flow,
    link: &'a LinkConfig,
    counted: Option<&'a DirectionStats>,
    round_trip: Duration,
}

impl Facts<'_> {
    fn judge(&self) -> Held {
        let active_seconds = self.way.active.as_secs_f64();
        let bits_per_second = self.bytes() * 8.0 / active_seconds;
        let (rate, product) = (self.rate(), self.product());
        let is_full = rate.is_some_and(|rate| bits_per_second >= FULL * rate);
        Held {
            direction: self.direction,
            active_seconds,
            bits_per_second,
            rate_bits_per_second: rate,
            bandwidth_delay_bytes: product,
            reasons: if is_full { Vec::new() } else { self.reasons() },
        }
    }

    /// The path's rate in bit/s.
    fn rate(&self) -> Option<f64> {
        Some(match self.link.rate.as_ref()? {
            RateSource::Fixed(rate) => rate.bits_per_second() as f64,
            RateSource::Trace(trace) => trace.mean(),
        })
    }

    /// Bytes of the rate in a round trip, the connection's own where the path has none.
    fn product(&self) -> Option<f64> {
        Some(self.rate()? / 8.0 * self.round_trip().as_secs_f64())
    }

    /// The round trip without queue: the path's delays, or what the kernel saw at least where these are less.
    fn round_trip(&self) -> Duration {
        let least = self.flow.info.min_rtt.unwrap_or_default();
        if self.round_trip.is_zero() { least } else { self.round_trip }
    }

    /// Bytes that the path delivered, as its rate counts them; payload where nothing was counted.
    fn bytes(&self) -> f64 {
        let Some(counted) = self.counted else {
            let all = self.way.flows.values().map(|flow| flow.info.bytes_acknowledged);
            return all.sum::<u64>() as f64;
        };
        let delivered = counted.link.delivered;
        let of_frame = match self.link.rate.as_ref() {
            Some(RateSource::Fixed(rate)) => match rate.counted() {
                CountedBytes::Ethernet => 0.0,
                CountedBytes::Ip => -14.0,
                CountedBytes::Wire => 24.0,
            },
            Some(RateSource::Trace(_)) => -14.0,
            None => 0.0,
        };
        delivered.bytes as f64 + of_frame * delivered.frames as f64
    }

    fn reasons(&self) -> Vec<Reason> {
        let mut limits = vec![self.receive_window(), self.send_buffer()];
        // The larger share first.
        limits.sort_by(|a, b| {
            let share = |one: &Option<(f64, Reason)>| one.as_ref().map_or(0.0, |(share, _)| *share);
            share(b).total_cmp(&share(a))
        });
        let mut reasons: Vec<Reason> =
            limits.into_iter().flatten().map(|(_, reason)| reason).collect();
        reasons.extend(self.drops());
        reasons.extend(self.emulator());
        // Frames lost by the emulator are no property of the path.
        reasons.sort_by_key(|reason| reason.cause != Cause::Emulator || !self.lost_in_emulator());
        if reasons.is_empty() {
            reasons.push(self.nothing_held());
        }
        reasons
    }

    fn share(&self, part: Duration) -> Option<f64> {
        let busy = self.flow.info.busy.as_secs_f64();
        let share = if busy > 0.0 { part.as_secs_f64() / busy } else { 0.0 };
        (share >= NAMED).then_some(share)
    }

    /// ", and the path holds 125 kB in a round trip of 50 ms".
    fn needed(&self) -> String {
        let Some(product) = self.product() else { return String::new() };
        format!("; the path holds {} in a round trip of {}", size(product), time(self.round_trip()))
    }

    fn receive_window(&self) -> Option<(f64, Reason)> {
        let share = self.share(self.flow.info.receive_window_limited)?;
        let mut text = format!(
            "receive window for {:.0} % of its time: {} at most{}",
            share * 100.0,
            size(f64::from(self.flow.window)),
            self.needed()
        );
        text += &buffers(
            ("receive buffer", self.flow.receive_buffer),
            ("net.ipv4.tcp_rmem", self.way.most_receive_buffer),
            "does the program set SO_RCVBUF, or read slowly?",
            self.product(),
        );
        Some((share, Reason { cause: Cause::ReceiveWindow, text }))
    }

    fn send_buffer(&self) -> Option<(f64, Reason)> {
        let share = self.share(self.flow.info.send_buffer_limited)?;
        let mut text =
            format!("send buffer for {:.0} % of its time{}", share * 100.0, self.needed());
        text += &buffers(
            ("send buffer", self.flow.send_buffer),
            ("net.ipv4.tcp_wmem", self.way.most_send_buffer),
            "does the program set SO_SNDBUF?",
            self.product(),
        );
        Some((share, Reason { cause: Cause::SendBuffer, text }))
    }

    fn emulator(&self) -> Option<Reason> {
        let counted = self.counted?;
        let lost = emulators_loss(counted);
        let late = Duration::from_nanos(counted.release_error.p90_ns);
        let is_late = late.as_secs_f64() > LATE * self.round_trip().as_secs_f64().max(0.001);
        let text = match (lost, is_late) {
            (0, false) => return None,
            (0, true) => format!("emulator: one frame in ten left {} late or more", time(late)),
            (lost, _) => format!("emulator: it lost {lost} frames itself"),
        };
        let text = text + "; lower the rate, or stop other programs";
        Some(Reason { cause: Cause::Emulator, text })
    }

    fn lost_in_emulator(&self) -> bool {
        self.counted.is_some_and(|counted| emulators_loss(counted) > 0)
    }

    /// Drops of the path.
    fn drops(&self) -> Vec<Reason> {
        let Some(counted) = self.counted else { return Vec::new() };
        let dropped = counted.link.dropped;
        let received = (counted.link.received.frames as f64).max(1.0);
        let share = |frames: u64| frames as f64 / received;
        let mut reasons = Vec::new();
        let queued = dropped.queue_full.frames + dropped.codel.frames;
        if queued > 0 {
            let text = self.queue_text(queued, share(queued));
            reasons.push(Reason { cause: Cause::Queue, text });
        }
        if dropped.loss.frames > 0 {
            let text = self.loss_text(dropped.loss.frames, share(dropped.loss.frames));
            reasons.push(Reason { cause: Cause::Loss, text });
        }
        if dropped.outage.frames > 0 {
            let text = format!("outages: {} frames lost in them", dropped.outage.frames);
            reasons.push(Reason { cause: Cause::Outage, text });
        }
        // The larger loss comes first.
        if dropped.loss.frames > queued {
            reasons.sort_by_key(|reason| reason.cause != Cause::Loss);
        }
        reasons
    }

    fn queue_text(&self, frames: u64, share: f64) -> String {
        let mut text = format!("queue: it dropped {frames} frames ({})", percent(share));
        let frame = 1514.0;
        let room = match self.link.queue {
            Queue::Packets(packets) => Some(f64::from(packets) * frame),
            Queue::Bytes(bytes) => Some(bytes.0 as f64),
            Queue::Unlimited | Queue::Codel(_) => None,
        };
        match (room, self.product()) {
            (Some(room), Some(product)) if room < product => {
                let _ = write!(
                    text,
                    "; it holds {}{}; a --queue of {:.0} packets holds as much",
                    size(room),
                    self.needed(),
                    (product / frame).ceil()
                );
            }
            (Some(room), _) => {
                let _ = write!(text, "; it holds {}{}", size(room), self.needed());
            }
            (None, _) => text += ", as CoDel does to keep delay short",
        }
        text
    }

    fn loss_text(&self, frames: u64, share: f64) -> String {
        let mut text = format!("loss: the path lost {frames} frames ({})", percent(share));
        let (segment, rtt) = (f64::from(self.flow.info.send_mss), self.flow.info.rtt);
        // Mathis, Semke, Mahdavi and Ott, "The Macroscopic Behavior of the TCP Congestion Avoidance Algorithm" (1997).
        let seconds = rtt.as_secs_f64();
        if segment > 0.0 && seconds > 0.0 && share > 0.0 {
            let bound = segment * 8.0 / seconds * (1.5 / share).sqrt();
            let _ = write!(
                text,
                "; Reno reaches about {} at this loss and a round trip of {} (Mathis 1997)",
                bits(bound),
                time(rtt)
            );
        }
        text
    }

    /// Names the congestion window or the program, where no limit was counted.
    fn nothing_held(&self) -> Reason {
        let window = self.flow.congestion_window as f64;
        match self.product() {
            Some(product) if window > 0.0 && window < product => Reason {
                cause: Cause::CongestionWindow,
                text: format!(
                    "congestion window: it reached {}{}; let the transfer run longer",
                    size(window),
                    self.needed()
                ),
            },
            _ => Reason {
                cause: Cause::Program,
                text: "program: no buffer, window, queue or loss held it; it offered no more"
                    .to_owned(),
            },
        }
    }
}

/// Frames that the emulator lost, and no path.
const fn emulators_loss(counted: &DirectionStats) -> u64 {
    let pump = counted.pump;
    pump.ring_full + pump.too_long + pump.no_buffer + pump.refused
}

impl Held {
    /// Lines of at most `width` columns.
    pub fn text(&self, width: usize) -> String {
        let name = match self.direction {
            Direction::Up => "client to server",
            Direction::Down => "server to client",
        };
        let rate = self.rate_bits_per_second;
        let filled = rate.map(|rate| (rate, self.bits_per_second / rate * 100.0));
        let head = match filled {
            Some((rate, share)) if self.reasons.is_empty() => {
                format!("{name}: the path was full, {share:.0} % of {}", bits(rate))
            }
            Some((rate, share)) => format!(
                "{name}: {} of {} ({share:.0} %) while data was under way. What held it:",
                bits(self.bits_per_second),
                bits(rate)
            ),
            None => format!(
                "{name}: {} while data was under way; no rate is set. What held it:",
                bits(self.bits_per_second)
            ),
        };
        let mut text = wrapped(&head, "", width);
        for reason in &self.reasons {
            text += &wrapped(&reason.text, "  ", width);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use conn::TcpInfo;
    use linkmodel::{LinkConfig, Tally};

    /// 20 Mbit/s and 50 ms, which hold 125 kB.
    fn path() -> Path {
        let rate: units::Rate = "20mbit".parse().unwrap();
        Path::symmetric("50ms".parse().unwrap()).with_rate(rate)
    }

    /// Ten seconds of a download at a rate in Mbit/s.
    fn download(mbit: u64) -> (Seen, pump::Stats) {
        let bytes = mbit * 10_000_000 / 8;
        let info = TcpInfo {
            bytes_acknowledged: bytes * 95 / 100,
            busy: Duration::from_secs(10),
            send_mss: 1448,
            rtt: Duration::from_millis(52),
            min_rtt: Some(Duration::from_millis(50)),
            ..TcpInfo::default()
        };
        let flow = Flow {
            info,
            send_buffer: 87_040,
            receive_buffer: 131_072,
            window: 65_160,
            congestion_window: 400_000,
        };
        let down = Way {
            active: Duration::from_secs(10),
            flows: [(1, flow)].into(),
            most_send_buffer: Some(4_194_304),
            most_receive_buffer: Some(6_291_456),
        };
        let mut stats = pump::Stats::default();
        let tally = Tally { frames: bytes / 1514, bytes };
        stats.backward.link.received = tally;
        stats.backward.link.delivered = tally;
        (Seen { down, up: Way::default() }, stats)
    }

    fn with_flow(seen: &mut Seen, change: impl FnOnce(&mut Flow)) {
        change(seen.down.flows.get_mut(&1).unwrap());
    }

    fn judged(seen: &Seen, path: &Path, stats: &pump::Stats) -> Held {
        let mut all = held(seen, path, Some(stats));
        assert_eq!(all.len(), 1);
        let only = all.remove(0);
        let text = only.text(80);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        only
    }

    fn causes(held: &Held) -> Vec<Cause> {
        held.reasons.iter().map(|reason| reason.cause).collect()
    }

    #[test]
    fn a_full_path_has_no_reason() {
        let (seen, mut stats) = download(19);
        // Drops belong to a full path: the sender found its end.
        stats.backward.link.dropped.queue_full.frames = 30;
        let held = judged(&seen, &path(), &stats);
        assert_eq!(causes(&held), []);
        assert!(held.text(80).contains("the path was full, 95 % of 20.0 Mbit/s"));
    }

    #[test]
    fn buffers_are_named_by_their_share_of_time_and_beside_what_the_path_holds() {
        let (mut seen, stats) = download(9);
        with_flow(&mut seen, |flow| {
            flow.info.receive_window_limited = Duration::from_millis(9400);
        });
        let held = judged(&seen, &path(), &stats);
        assert_eq!(causes(&held), [Cause::ReceiveWindow]);
        let text = &held.reasons[0].text;
        for part in
            ["94 %", "65 kB at most", "the path holds 125 kB in a round trip of 50 ms", "SO_RCVBUF"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
        // A kernel that allows less than the path holds twice.
        seen.down.most_receive_buffer = Some(200_000);
        let held = judged(&seen, &path(), &stats);
        assert!(held.reasons[0].text.contains("allows 200 kB: raise it to 250 kB"), "{held:?}");
        with_flow(&mut seen, |flow| {
            flow.info.send_buffer_limited = Duration::from_millis(9600);
        });
        let held = judged(&seen, &path(), &stats);
        assert_eq!(causes(&held), [Cause::SendBuffer, Cause::ReceiveWindow]);
    }

    #[test]
    fn a_queue_that_is_too_short_is_named_with_the_packets_it_needs() {
        let (seen, mut stats) = download(12);
        stats.backward.link.dropped.queue_full.frames = 120;
        let path = path().with_queue(Queue::Packets(10));
        let held = judged(&seen, &path, &stats);
        assert_eq!(causes(&held), [Cause::Queue]);
        let text = &held.reasons[0].text;
        assert!(
            text.contains("dropped 120 frames (1.2 %)") && text.contains("it holds 15 kB"),
            "{text}"
        );
        assert!(text.contains("a --queue of 83 packets"), "{text}");
    }

    #[test]
    fn loss_is_named_with_what_reno_reaches() {
        let (seen, mut stats) = download(3);
        stats.backward.link.dropped.loss.frames = 25;
        stats.backward.link.dropped.queue_full.frames = 1;
        let held = judged(&seen, &path(), &stats);
        assert_eq!(causes(&held), [Cause::Loss, Cause::Queue]);
        // 1448 * 8 / 52 ms * sqrt(1.5 / 1 %) = 2.7 Mbit/s.
        assert!(held.reasons[0].text.contains("about 2.7 Mbit/s"), "{held:?}");
    }

    #[test]
    fn the_emulator_is_named_where_it_lost_or_was_late() {
        let (seen, mut stats) = download(9);
        stats.backward.release_error.p90_ns = 30_000_000;
        assert_eq!(causes(&judged(&seen, &path(), &stats)), [Cause::Emulator]);
        stats.backward.link.dropped.queue_full.frames = 3;
        let held = judged(&seen, &path(), &stats);
        assert_eq!(causes(&held), [Cause::Queue, Cause::Emulator]);
        stats.backward.release_error.p90_ns = 100_000;
        stats.backward.pump.ring_full = 7;
        let held = judged(&seen, &path(), &stats);
        assert_eq!(causes(&held), [Cause::Emulator, Cause::Queue]);
        assert!(held.reasons[0].text.contains("lost 7 frames itself"), "{held:?}");
    }

    #[test]
    fn where_nothing_was_counted_the_window_or_the_program_is_named() {
        let (mut seen, stats) = download(9);
        assert_eq!(causes(&judged(&seen, &path(), &stats)), [Cause::Program]);
        with_flow(&mut seen, |flow| flow.congestion_window = 60_000);
        let held = judged(&seen, &path(), &stats);
        assert_eq!(causes(&held), [Cause::CongestionWindow]);
        assert!(held.reasons[0].text.contains("it reached 60 kB"), "{held:?}");
    }

    #[test]
    fn short_transfers_are_not_judged_and_a_path_without_rate_has_no_share() {
        let (mut seen, stats) = download(9);
        let path = Path { backward: LinkConfig { rate: None, ..path().backward }, ..path() };
        let held = judged(&seen, &path, &stats);
        assert_eq!(held.bandwidth_delay_bytes, None);
        assert!(held.text(80).contains("no rate is set"));
        seen.down.active = Duration::from_millis(200);
        assert_eq!(super::held(&seen, &path, Some(&stats)), []);
        assert_eq!(super::held(&Seen::default(), &path, None), []);
    }
}
