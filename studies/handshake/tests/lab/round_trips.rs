//! Round trips counted: at an RTT of 600 ms, far above any compute, the whole RTTs in a measured time
//! are the round trips that the handshake took. A count, not a speed. (A longer RTT would come near the
//! first retransmission timers, of 1 s.)

use handshake::{Mode, Plan, label, value};
use record::{Outcome, Sample};
use study::Sweep;

use crate::common::{intended, measure, name, nanos, sweep, text, textbook, with};
use lab_test::{Test, TestResult};

pub fn tests() -> Vec<Test> {
    vec![
        Test::inside("every_mode_takes_its_specified_round_trips", every_mode),
        Test::inside("sizes_cost_the_round_trips_that_they_should", sizes),
    ]
}

const RTT: &str = "600ms";
const RTT_NANOS: u64 = 600_000_000;

/// Measures each of these sweeps in a lab of its own, all at once.
fn in_lanes(lanes: Vec<Vec<Sweep>>) -> TestResult<Vec<Sample>> {
    let lane = |(number, sweeps): (usize, Vec<Sweep>)| {
        std::thread::spawn(move || {
            let mut plan = Plan::new(sweeps).map_err(|error| error.to_string())?;
            plan.seed = 20 + number as u64;
            measure(&plan).map_err(|error| error.to_string())
        })
    };
    let threads: Vec<_> = lanes.into_iter().enumerate().map(lane).collect();
    let mut samples = Vec::new();
    for thread in threads {
        samples.extend(thread.join().map_err(|_| "a lane panicked")??);
    }
    Ok(samples)
}

/// Round trips until ready and until the response, counted by the client's clock.
fn counted(sample: &Sample) -> (u64, u64) {
    assert_eq!(sample.outcome, Outcome::Completed, "{}", name(sample));
    assert_eq!(text(sample, label::VIEWS), label::AGREE, "{}", name(sample));
    let whole = |name| nanos(sample, name) / RTT_NANOS;
    (whole(value::READY), whole(value::RESPONSE))
}

fn specified(sample: &Sample) -> (u64, u64) {
    (sample.values[value::SPEC_READY] as u64, sample.values[value::SPEC_RESPONSE] as u64)
}

/// The samples without a retransmission. The path loses nothing, so that a retransmission is a timer
/// that ran out while the machine stood still; what it delays is no count of round trips. Each is
/// shown, and more than one in eight would be more than a busy machine explains.
fn undisturbed(samples: Vec<Sample>) -> Vec<Sample> {
    let most = samples.len() / 8;
    let calm = |sample: &Sample| sample.values.get(value::RETRANSMITTED) == Some(&0.0);
    let (calm, disturbed): (Vec<_>, Vec<_>) = samples.into_iter().partition(calm);
    for sample in &disturbed {
        println!("not counted, for it has a retransmission: {}", name(sample));
    }
    assert!(disturbed.len() <= most, "{} samples have retransmissions", disturbed.len());
    calm
}

fn every_mode() -> TestResult {
    let modes: Vec<String> = Mode::all().iter().map(Mode::to_string).collect();
    let lanes = modes.chunks(2).map(|modes| {
        let modes: Vec<&str> = modes.iter().map(String::as_str).collect();
        vec![sweep(&modes, RTT, 1)]
    });
    let samples = in_lanes(lanes.collect())?;
    assert_eq!(samples.len(), modes.len());
    for sample in &undisturbed(samples) {
        let mode = intended(sample);
        assert_eq!(text(sample, label::ACTUAL), mode, "{}", name(sample));
        assert_eq!(specified(sample), textbook(mode), "{}", name(sample));
        assert_eq!(counted(sample), textbook(mode), "{}", name(sample));
    }
    Ok(())
}

fn sizes() -> TestResult {
    let post_quantum = |modes: &[&str]| with(sweep(modes, RTT, 1), "group", &["x25519mlkem768"]);
    let long_chain =
        |modes: &[&str]| with(with(sweep(modes, RTT, 1), "key", &["rsa-4096"]), "chain", &["3"]);
    let samples = in_lanes(vec![
        vec![post_quantum(&["tcp+tls13", "tfo+tls13"])],
        vec![post_quantum(&["tfo-nocookie+tls13", "tfo+tls13-0rtt"])],
        vec![post_quantum(&["quic", "quic-0rtt"])],
        vec![post_quantum(&["sslmtcp-tls13", "sslmtcp-0rtt"])],
        vec![long_chain(&["sslmtcp-paper", "sslmtcp-tls13", "sslmtcp-0rtt"])],
        vec![long_chain(&["tcp+tls13", "tfo+tls13", "tcp+tls12"])],
        vec![long_chain(&["quic", "quic-0rtt"])],
    ])?;
    let expected = |sample: &Sample| match (sample.point["group"].as_str(), intended(sample)) {
        // The ClientHello does not fit one SYN: Fast Open gains nothing.
        ("x25519mlkem768", "tcp+tls13" | "tfo+tls13" | "tfo-nocookie+tls13") => (2, 3),
        ("x25519mlkem768", "sslmtcp-tls13") => (2, 3),
        // The request may be given at once, and goes with the rest of the hello.
        ("x25519mlkem768", "tfo+tls13-0rtt" | "sslmtcp-0rtt") => (0, 2),
        ("x25519mlkem768", mode) => textbook(mode),
        // The server's flight is more than three times what came from a client not yet validated
        // (RFC 9000 §8.1); TCP's initial window holds it (RFC 6928 §2). Resumed, no chain is sent.
        (_, "quic" | "sslmtcp-tls13") => (2, 3),
        (_, "sslmtcp-paper") => (3, 4),
        (_, mode) => textbook(mode),
    };
    assert_eq!(samples.len(), 16);
    for sample in &undisturbed(samples) {
        assert_eq!(counted(sample), expected(sample), "{}", name(sample));
        assert_eq!(specified(sample), expected(sample), "{}", name(sample));
    }
    Ok(())
}
