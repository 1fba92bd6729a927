//! Exact exchanges: what is sent when, for acknowledgments as the RFCs' examples have them.

use super::*;
use proptest::prelude::*;

const MSS: u64 = 1000;
const MS: Duration = Duration::from_millis(1);
const OPEN: u64 = 1 << 40;

fn at(millis: u64) -> Time {
    Time::from_millis(1000 + millis)
}

fn sender(sack: bool) -> Recovery {
    let config = RecoveryConfig {
        mss: MSS as usize,
        sack,
        congestion: Congestion::NewReno,
        ..RecoveryConfig::default()
    };
    let mut sender = Recovery::new(&config);
    sender.on_handshake_rtt(at(0), 100 * MS);
    sender
}

fn stream(end: u64) -> Stream {
    Stream { end, peer_window_end: OPEN, max_len: MSS as usize }
}

/// Sends all that may go and lists it: `+a` new data, `-a` a retransmission, `?a` a probe, where
/// `a` is the number of the segment.
fn send(sender: &mut Recovery, now: Time, stream: Stream) -> String {
    let mut sent = Vec::new();
    while let Some(next) = sender.poll(now, stream) {
        let sign = if next.probe {
            '?'
        } else if next.retransmission {
            '-'
        } else {
            '+'
        };
        sent.push(format!("{sign}{}", next.range.start / MSS));
        sender.on_sent(now, next.range, next.retransmission);
        sender.board.check();
    }
    sent.join(" ")
}

/// An acknowledgment in segments.
fn ack(sender: &mut Recovery, now: Time, cumulative: u64, blocks: &[(u64, u64)]) -> Acked {
    let sack: Vec<_> = blocks.iter().map(|block| block.0 * MSS..block.1 * MSS).collect();
    let ack =
        Ack { cumulative: cumulative * MSS, sack: &sack, rtt_echo: None, window_changed: false };
    let acked = sender.on_ack(now, &ack);
    sender.board.check();
    acked
}

#[test]
fn the_initial_window_is_ten_segments() {
    let mut sender = sender(true);
    assert_eq!(send(&mut sender, at(0), stream(OPEN)), "+0 +1 +2 +3 +4 +5 +6 +7 +8 +9");
    assert_eq!(sender.in_flight(), 10 * MSS);
}

#[test]
fn data_of_the_syn_give_no_sample() {
    // They are told only when the SYN-ACK takes them.
    let mut sender = sender(true);
    sender.on_sent(at(100), 0..MSS, false);
    assert_eq!(ack(&mut sender, at(100), 1, &[]).newly_acked, MSS);
    assert_eq!(sender.smoothed_rtt(), Some(100 * MS));
    assert_eq!(sender.min_rtt(), Some(100 * MS));
    assert_eq!(sender.next_timeout(), None);
}

#[test]
fn slow_start_adds_what_is_acknowledged() {
    let mut sender = sender(true);
    send(&mut sender, at(0), stream(OPEN));
    let acked = ack(&mut sender, at(100), 2, &[]);
    assert_eq!(acked, Acked { newly_acked: 2 * MSS, is_duplicate: false, in_recovery: false });
    assert_eq!(send(&mut sender, at(100), stream(OPEN)), "+10 +11 +12 +13");
}

#[test]
fn three_segments_delivered_beyond_a_gap_start_the_recovery() {
    // RFC 8985 §6.2 step 4: without reordering seen, three suffice at once.
    let mut sender = sender(true);
    send(&mut sender, at(0), stream(10 * MSS));
    ack(&mut sender, at(100), 0, &[(1, 2)]);
    ack(&mut sender, at(100), 0, &[(1, 3)]);
    assert_eq!(send(&mut sender, at(100), stream(10 * MSS)), "");
    assert!(ack(&mut sender, at(100), 0, &[(1, 4)]).in_recovery);
    assert_eq!(send(&mut sender, at(100), stream(10 * MSS)), "-0");
    assert_eq!(sender.slow_start_threshold(), Some(5 * MSS));
    assert_eq!(sender.retransmissions(), 1);
}

#[test]
fn a_gap_with_fewer_waits_a_quarter_round_trip() {
    // RFC 8985 §6.2 step 5: 100 ms and the reordering window of 25 ms after the transmission.
    let mut sender = sender(true);
    send(&mut sender, at(0), stream(2 * MSS));
    ack(&mut sender, at(100), 0, &[(1, 2)]);
    assert_eq!(sender.next_timeout(), Some(at(125)));
    assert_eq!(sender.handle_timeout(at(124)), Fired::None);
    assert_eq!(sender.handle_timeout(at(125)), Fired::Reordering);
    assert_eq!(send(&mut sender, at(125), stream(2 * MSS)), "-0");
    assert!(!ack(&mut sender, at(225), 2, &[]).in_recovery);
    assert_eq!(sender.next_timeout(), None);
}

#[test]
fn a_lost_retransmission_is_seen_without_a_timeout() {
    let mut sender = sender(true);
    send(&mut sender, at(0), stream(OPEN));
    for high in 2..=9 {
        ack(&mut sender, at(100), 0, &[(1, high)]);
    }
    assert!(send(&mut sender, at(100), stream(OPEN)).starts_with("-0 +10"));
    // Segment 10 went after the retransmission and arrived; the retransmission did not.
    ack(&mut sender, at(200), 0, &[(1, 11)]);
    assert!(send(&mut sender, at(200), stream(OPEN)).starts_with("-0"));
}

#[test]
fn proportional_rate_reduction_sends_one_for_two_at_half() {
    // RFC 9937 §6.2 with ssthresh = RecoverFS / 2: ten delivered let five go.
    let mut sender = sender(true);
    send(&mut sender, at(0), stream(OPEN));
    let mut sent = Vec::new();
    for high in 2..=10 {
        ack(&mut sender, at(100), 0, &[(1, high)]);
        let now = send(&mut sender, at(100), stream(OPEN));
        sent.extend(now.split_whitespace().map(str::to_owned));
    }
    // One more lets limited transmit have two before the loss is known (RFC 3042).
    assert_eq!(sent.first().map(String::as_str), Some("+10"));
    assert!(sent.contains(&"-0".to_owned()));
    assert_eq!(sender.slow_start_threshold(), Some(5 * MSS));
    assert!(sender.in_flight() <= 6 * MSS, "{sent:?}");
    ack(&mut sender, at(200), 12, &[]);
    assert_eq!(sender.congestion_window(), 5 * MSS);
}

#[test]
fn the_tail_is_probed_after_two_round_trips() {
    // RFC 8985 §7.2 and §7.3
    let mut sender = sender(true);
    assert_eq!(send(&mut sender, at(0), stream(3 * MSS)), "+0 +1 +2");
    assert_eq!(sender.next_timeout(), Some(at(202)));
    assert_eq!(sender.handle_timeout(at(202)), Fired::TailProbe);
    assert_eq!(send(&mut sender, at(202), stream(3 * MSS)), "?2");
    // The probe shows that the first two arrived and the last did not.
    ack(&mut sender, at(302), 2, &[]);
    ack(&mut sender, at(303), 3, &[]);
    assert_eq!(sender.next_timeout(), None);
    assert_eq!(sender.timeouts_in_row(), 0);
}

#[test]
fn a_probe_of_new_data_when_there_are_some() {
    let mut sender = sender(true);
    send(&mut sender, at(0), stream(OPEN));
    assert_eq!(sender.handle_timeout(at(202)), Fired::TailProbe);
    assert_eq!(send(&mut sender, at(202), stream(OPEN)), "?10");
}

#[test]
fn a_probe_that_repaired_a_loss_reduces_the_window() {
    // RFC 8985 §7.4.2
    for (duplicate, reduced) in [(false, true), (true, false)] {
        let mut sender = sender(true);
        send(&mut sender, at(0), stream(3 * MSS));
        sender.handle_timeout(at(202));
        assert_eq!(send(&mut sender, at(202), stream(3 * MSS)), "?2");
        ack(&mut sender, at(302), 3, if duplicate { &[(2, 3)] } else { &[] });
        send(&mut sender, at(303), stream(4 * MSS));
        ack(&mut sender, at(403), 4, &[]);
        assert_eq!(sender.slow_start_threshold().is_some(), reduced);
    }
}

#[test]
fn the_timeout_sends_the_first_segment_and_backs_off() {
    let mut sender = sender(false);
    send(&mut sender, at(0), stream(4 * MSS));
    assert_eq!(sender.next_timeout(), Some(at(300))); // 100 + max(200, 4 * 50)
    assert_eq!(sender.handle_timeout(at(300)), Fired::Retransmission);
    assert_eq!(send(&mut sender, at(300), stream(4 * MSS)), "-0");
    assert_eq!(sender.congestion_window(), MSS);
    assert_eq!(sender.next_timeout(), Some(at(900)));
    assert_eq!(sender.handle_timeout(at(900)), Fired::Retransmission);
    assert_eq!(sender.timeouts_in_row(), 2);
    assert_eq!(send(&mut sender, at(900), stream(4 * MSS)), "-0");
    ack(&mut sender, at(1000), 1, &[]);
    assert_eq!(sender.timeouts_in_row(), 0);
    assert_eq!(send(&mut sender, at(1000), stream(4 * MSS)), "-1 -2");
}

#[test]
fn without_sack_three_duplicates_and_partial_acknowledgments() {
    // RFC 6582 §3.2: segments 0 and 4 are lost.
    let mut sender = sender(false);
    send(&mut sender, at(0), stream(10 * MSS));
    for duplicate in 1..=8 {
        assert!(ack(&mut sender, at(100), 0, &[]).is_duplicate);
        let expected = if duplicate == 3 { "-0" } else { "" };
        assert_eq!(send(&mut sender, at(100), stream(10 * MSS)), expected);
    }
    assert!(ack(&mut sender, at(200), 4, &[]).in_recovery);
    assert_eq!(send(&mut sender, at(200), stream(10 * MSS)), "-4");
    assert!(!ack(&mut sender, at(300), 10, &[]).in_recovery);
    assert_eq!(sender.congestion_window(), 5 * MSS);
}

#[test]
fn an_acknowledgment_that_changes_the_window_is_no_duplicate() {
    let mut sender = sender(false);
    send(&mut sender, at(0), stream(10 * MSS));
    for _ in 0..5 {
        let ack = Ack { cumulative: 0, sack: &[], rtt_echo: None, window_changed: true };
        assert!(!sender.on_ack(at(100), &ack).is_duplicate);
    }
    assert_eq!(send(&mut sender, at(100), stream(10 * MSS)), "");
}

#[test]
fn a_timestamp_older_than_the_retransmission_takes_the_timeout_back() {
    // RFC 3522 §3.2: the acknowledgment answers what was sent at 0 ms.
    let mut sender = sender(true);
    send(&mut sender, at(0), stream(10 * MSS));
    sender.handle_timeout(at(202));
    send(&mut sender, at(202), stream(10 * MSS));
    let rto = sender.next_timeout().unwrap();
    assert_eq!(sender.handle_timeout(rto), Fired::Retransmission);
    assert_eq!(send(&mut sender, rto, stream(10 * MSS)), "-0");
    let now = rto + MS;
    let rtt_echo = Some(now.saturating_since(at(0)));
    let ack = Ack { cumulative: MSS, sack: &[], rtt_echo, window_changed: false };
    assert!(!sender.on_ack(now, &ack).in_recovery);
    assert_eq!(sender.slow_start_threshold(), None);
    assert!(sender.congestion_window() >= 10 * MSS);
    assert_eq!(send(&mut sender, now, stream(10 * MSS)), "");
}

#[test]
fn forward_progress_takes_the_timeout_back_without_timestamps() {
    // RFC 5682 §3.1: after the retransmission, new data; then data sent once are acknowledged.
    let mut sender = sender(true);
    send(&mut sender, at(0), stream(OPEN));
    sender.handle_timeout(at(202));
    send(&mut sender, at(202), stream(OPEN));
    let rto = sender.next_timeout().unwrap();
    sender.handle_timeout(rto);
    assert_eq!(send(&mut sender, rto, stream(OPEN)), "-0");
    ack(&mut sender, rto + MS, 1, &[]);
    assert_eq!(send(&mut sender, rto + MS, stream(OPEN)), "+11 +12");
    assert!(!ack(&mut sender, rto + 2 * MS, 2, &[]).in_recovery);
    assert_eq!(sender.slow_start_threshold(), None);
}

#[test]
fn a_timeout_that_was_needed_stays() {
    let mut sender = sender(true);
    send(&mut sender, at(0), stream(OPEN));
    sender.handle_timeout(at(202));
    send(&mut sender, at(202), stream(OPEN));
    let rto = sender.next_timeout().unwrap();
    sender.handle_timeout(rto);
    assert_eq!(send(&mut sender, rto, stream(OPEN)), "-0");
    ack(&mut sender, rto + 100 * MS, 1, &[]);
    assert_eq!(send(&mut sender, rto + 100 * MS, stream(OPEN)), "+11 +12");
    // The new data arrived, and nothing that was sent before the timeout.
    assert!(ack(&mut sender, rto + 200 * MS, 1, &[(11, 12)]).in_recovery);
    assert!(send(&mut sender, rto + 200 * MS, stream(OPEN)).starts_with("-1"));
    assert_eq!(sender.slow_start_threshold(), Some(5 * MSS));
}

#[test]
fn duplicates_of_all_retransmissions_take_the_recovery_back() {
    // RFC 3708 §2
    let mut sender = sender(true);
    send(&mut sender, at(0), stream(10 * MSS));
    ack(&mut sender, at(100), 0, &[(1, 4)]);
    assert_eq!(send(&mut sender, at(100), stream(10 * MSS)), "-0");
    ack(&mut sender, at(110), 10, &[]); // the original, late
    assert_eq!(sender.congestion_window(), 5 * MSS);
    ack(&mut sender, at(200), 10, &[(0, 1)]);
    assert_eq!(sender.slow_start_threshold(), None);
    assert!(sender.congestion_window() >= 10 * MSS);
}

#[test]
fn a_duplicate_widens_the_reordering_window() {
    // RFC 8985 §6.2 step 4: half of the least round-trip time instead of a quarter
    let mut sender = sender(true);
    send(&mut sender, at(0), stream(10 * MSS));
    ack(&mut sender, at(100), 0, &[(1, 4)]);
    send(&mut sender, at(100), stream(10 * MSS));
    ack(&mut sender, at(110), 10, &[]);
    ack(&mut sender, at(200), 10, &[(0, 1)]);
    assert_eq!(send(&mut sender, at(300), stream(12 * MSS)), "+10 +11");
    ack(&mut sender, at(400), 10, &[(11, 12)]);
    assert_eq!(sender.next_timeout(), Some(at(450)));
}

#[test]
fn news_of_one_acknowledgment_is_no_reordering() {
    // The acknowledgment that told of segment 2 alone was lost.
    let mut sender = sender(true);
    send(&mut sender, at(0), stream(10 * MSS));
    ack(&mut sender, at(100), 0, &[(5, 6), (2, 3)]);
    assert!(!sender.rack.reordering_seen());
    // Segment 4 comes after segment 5.
    ack(&mut sender, at(101), 0, &[(4, 6), (2, 3)]);
    assert!(sender.rack.reordering_seen());
}

#[test]
fn blocks_beyond_what_was_sent_are_passed_over() {
    let mut sender = sender(true);
    send(&mut sender, at(0), stream(10 * MSS));
    ack(&mut sender, at(100), 0, &[(5, 1000), (3, 3), (7, 2)]);
    assert_eq!(sender.in_flight(), 10 * MSS);
    assert_eq!(ack(&mut sender, at(100), 1000, &[]).newly_acked, 10 * MSS);
}

#[test]
fn new_data_go_with_the_first_duplicates() {
    // RFC 3042
    for sack in [true, false] {
        let mut sender = sender(sack);
        send(&mut sender, at(0), stream(OPEN));
        ack(&mut sender, at(100), 0, if sack { &[(1, 2)] } else { &[] });
        assert_eq!(send(&mut sender, at(100), stream(OPEN)), "+10");
        ack(&mut sender, at(100), 0, if sack { &[(1, 3)] } else { &[] });
        assert_eq!(send(&mut sender, at(100), stream(OPEN)), "+11");
    }
}

#[test]
fn a_peer_that_forgets_what_it_had_gets_all_again() {
    // RFC 2018 §8
    let mut sender = sender(true);
    send(&mut sender, at(0), stream(4 * MSS));
    ack(&mut sender, at(100), 0, &[(0, 4)]); // it has the first, yet does not acknowledge it
    assert_eq!(sender.in_flight(), 0);
    let rto = sender.next_timeout().unwrap();
    assert_eq!(sender.handle_timeout(rto), Fired::Retransmission);
    assert_eq!(send(&mut sender, rto, stream(4 * MSS)), "-0");
    ack(&mut sender, rto + 100 * MS, 1, &[]);
    assert_eq!(send(&mut sender, rto + 100 * MS, stream(4 * MSS)), "-1 -2");
}

#[test]
fn an_idle_connection_begins_anew_and_holds_nothing() {
    // RFC 5681 §4.1
    let mut sender = sender(true);
    let mut acked = 0;
    for round in 0..4 {
        send(&mut sender, at(round * 100), stream(OPEN));
        acked = sender.next() / MSS;
        for segment in sender.acknowledged() / MSS + 1..=acked {
            ack(&mut sender, at(round * 100 + 100), segment, &[]);
        }
    }
    assert_eq!(sender.congestion_window(), 160 * MSS);
    assert_eq!(sender.board.heap_bytes(), 0);
    assert_eq!(sender.next_timeout(), None);
    let end = (acked + 100) * MSS;
    assert_eq!(send(&mut sender, at(10_000), stream(end)).split(' ').count(), 10);
}

#[test]
fn the_peers_window_bounds_new_data_and_retransmissions() {
    let mut sender = sender(true);
    let narrow = Stream { end: OPEN, peer_window_end: 3_500, max_len: MSS as usize };
    assert_eq!(send(&mut sender, at(0), narrow), "+0 +1 +2"); // no silly half segment
    assert_eq!(sender.hold(), Some(Hold::PeerWindow));
    ack(&mut sender, at(100), 3, &[]);
    assert_eq!(send(&mut sender, at(100), narrow), "+3"); // nothing else is on the way
    ack(&mut sender, at(200), 3, &[]);
    let all = Ack { cumulative: 3_500, sack: &[], rtt_echo: None, window_changed: false };
    sender.on_ack(at(300), &all);
    assert_eq!(send(&mut sender, at(300), narrow), "");
    assert!(sender.is_blocked_by_window());
    assert_eq!(sender.next_timeout(), None);
}

#[test]
fn a_smaller_path_sends_again_without_a_smaller_window() {
    let mut sender = sender(true);
    send(&mut sender, at(0), stream(2 * MSS));
    sender.on_path_mtu_reduced(500);
    let smaller = Stream { max_len: 500, ..stream(2 * MSS) };
    assert_eq!(send(&mut sender, at(10), smaller), "-0 -0 -1 -1");
    assert_eq!(sender.slow_start_threshold(), None);
}

#[derive(Debug, Clone)]
enum Step {
    Send { max_len: usize, window: u64 },
    Ack { cumulative: u64, sack: Vec<(u64, u64)>, rtt_echo: Option<u64>, window_changed: bool },
    Wait(u64),
    Timeout,
    Mss(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let block = prop_oneof![(0..60_000_u64, 0..5_000_u64), (any::<u64>(), any::<u64>())]
        .prop_map(|(start, len)| (start, start.saturating_add(len)));
    prop_oneof![
        4 => (1..70_000_usize, 0..80_000_u64).prop_map(|(max_len, window)| Step::Send { max_len, window }),
        6 => (
            prop_oneof![0..60_000_u64, any::<u64>()],
            prop::collection::vec(block, 0..6),
            prop::option::of(any::<u64>()),
            any::<bool>(),
        ).prop_map(|(cumulative, sack, rtt_echo, window_changed)|
            Step::Ack { cumulative, sack, rtt_echo, window_changed }),
        2 => (0..400_000_000_u64).prop_map(Step::Wait),
        2 => Just(Step::Timeout),
        1 => (0..2_000_usize).prop_map(Step::Mss),
    ]
}

proptest! {
    /// No sequence of acknowledgments, however false, breaks the sums or the windows.
    #[test]
    fn hostile_acknowledgments_break_nothing(
        steps in prop::collection::vec(step(), 1..150),
        sack: bool,
    ) {
        let mut sender = sender(sack);
        let mut now = at(0);
        for step in steps {
            match step {
                Step::Send { max_len, window } => {
                    let edge = sender.acknowledged() + window;
                    let stream = Stream { end: 60_000, peer_window_end: edge, max_len };
                    for _ in 0..200 {
                        let Some(next) = sender.poll(now, stream) else { break };
                        prop_assert!(next.range.end <= edge.min(60_000));
                        prop_assert!(!next.range.is_empty());
                        prop_assert!(next.range.end - next.range.start <= max_len as u64);
                        sender.on_sent(now, next.range, next.retransmission);
                        prop_assert!(next.probe || sender.in_flight() <= sender.congestion_window());
                    }
                }
                Step::Ack { cumulative, sack, rtt_echo, window_changed } => {
                    let sack: Vec<_> = sack.into_iter().map(|block| block.0..block.1).collect();
                    let rtt_echo = rtt_echo.map(Duration::from_nanos);
                    sender.on_ack(now, &Ack { cumulative, sack: &sack, rtt_echo, window_changed });
                }
                Step::Wait(nanos) => now += Duration::from_nanos(nanos),
                Step::Timeout => {
                    if let Some(at) = sender.next_timeout() {
                        now = now.max(at);
                        prop_assert_ne!(sender.handle_timeout(now), Fired::None);
                    }
                }
                Step::Mss(mss) => sender.set_mss(mss),
            }
            sender.board.check();
            prop_assert!(sender.acknowledged() <= sender.next());
        }
    }
}

#[test]
fn acknowledgments_of_every_second_byte_do_not_fill_the_memory() {
    let mut sender = sender(true);
    sender.set_mss(100_000);
    send(&mut sender, at(0), Stream { max_len: 100_000, ..stream(100_000) });
    for first in (1..99_990_u64).step_by(8) {
        let sack =
            [first..first + 1, first + 2..first + 3, first + 4..first + 5, first + 6..first + 7];
        sender.on_ack(
            at(100),
            &Ack { cumulative: 0, sack: &sack, rtt_echo: None, window_changed: false },
        );
    }
    sender.board.check();
    assert!(sender.board.heap_bytes() <= 1 << 20, "{}", sender.board.heap_bytes());
    sender.on_ack(
        at(200),
        &Ack { cumulative: 100_000, sack: &[], rtt_echo: None, window_changed: false },
    );
    assert_eq!(sender.board.heap_bytes(), 0);
}
