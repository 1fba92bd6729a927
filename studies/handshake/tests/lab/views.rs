//! Client's timer, server's log and capture at the client agree.

use handshake::{Plan, label, value};
use record::{Outcome, Sample};

use crate::common::{intended, measure, name, nanos, sweep, text, textbook, with};
use lab_test::{Test, TestResult};

pub fn tests() -> Vec<Test> {
    vec![
        Test::inside("the_three_views_agree_in_every_mode", every_mode),
        Test::inside("the_three_views_agree_with_rustls", rustls),
    ]
}

const RTT_MS: u64 = 20;
const RTT: u64 = RTT_MS * 1_000_000;

fn every_mode() -> TestResult {
    let mut plan = Plan::new(vec![sweep(&["all"], "20ms", 2)])?;
    plan.seed = 11;
    let samples = measure(&plan)?;
    assert_eq!(samples.len(), 32 * 2);
    samples.iter().for_each(agrees);
    Ok(())
}

fn rustls() -> TestResult {
    let sweep = with(sweep(&["all"], "20ms", 1), "library", &["rustls"]);
    let mut plan = Plan::new(vec![sweep])?;
    plan.seed = 12;
    let samples = measure(&plan)?;
    // Without RSA key exchange, which rustls does not have.
    assert_eq!(samples.len(), 32 - 5);
    samples.iter().for_each(agrees);
    Ok(())
}

/// What must hold of a connection over a link without loss that never delivers early.
fn agrees(sample: &Sample) {
    let name = name(sample);
    let mode = intended(sample);
    assert_eq!(sample.outcome, Outcome::Completed, "{name}");
    assert_eq!(text(sample, label::VIEWS), label::AGREE, "{name}");
    assert_eq!(text(sample, label::ACTUAL), mode, "{name}");

    let (ready, response) = textbook(mode);
    let counts = (sample.values[value::SPEC_READY], sample.values[value::SPEC_RESPONSE]);
    assert_eq!(counts, (ready as f64, response as f64), "{name}");

    // A frame is never early, so that n round trips take n x RTT at least.
    let client = nanos(sample, value::RESPONSE);
    assert!(nanos(sample, value::READY) >= ready * RTT, "{name}");
    assert!(client >= response * RTT, "{name}");
    let after_ready = nanos(sample, value::READY) + nanos(sample, value::THINK);
    assert!(client >= after_ready + (response - ready) * RTT, "{name}");
    causes_precede_effects_on_the_wire(sample, mode, &name);
    tcp_says_the_same(sample, mode, &name);
}

fn causes_precede_effects_on_the_wire(sample: &Sample, mode: &str, name: &str) {
    // CLOCK_REALTIME, that stamps frames, may run off CLOCK_MONOTONIC by 500 ppm (adjtimex).
    let slower = |nanos: u64| nanos - nanos / 2_000;
    let (ready, response) = textbook(mode);
    if mode.starts_with("quic") {
        return;
    }
    // Frames lie between the client's first call and the last byte that it read.
    let client = nanos(sample, value::RESPONSE);
    let wire_response = nanos(sample, value::WIRE_RESPONSE);
    assert!(slower(wire_response) <= client, "{name}");
    assert!(wire_response >= slower(response * RTT), "{name}");
    let wire_request = nanos(sample, value::WIRE_REQUEST);
    assert!(wire_request >= slower(ready * RTT), "{name}");
    assert!(wire_response - wire_request >= slower((response - ready) * RTT), "{name}");
    if mode.contains("tls") || mode.starts_with("sslmtcp") {
        // From the ClientHello read to the client's Finished read: a round trip, and one more where
        // the client speaks twice in between.
        let full12 = mode.ends_with("tls12") || mode.ends_with("tls12-rsa");
        let speaks_twice = u64::from(mode.ends_with("hrr"));
        let trips = if full12 { 1 } else { 1 + speaks_twice };
        assert!(nanos(sample, value::SERVER_HANDSHAKE) >= trips * RTT, "{name}");
    }
}

/// TCP_INFO on data in the SYN, or what our TCP says of it, for every sample.
fn tcp_says_the_same(sample: &Sample, mode: &str, name: &str) {
    let expected = match mode.split('+').next() {
        Some("tfo" | "tfo-nocookie" | "sslmtcp-paper" | "sslmtcp-tls13" | "sslmtcp-0rtt") => {
            "acknowledged"
        }
        Some("tcp" | "usertcp") => "notsent",
        _ => "",
    };
    assert_eq!(text(sample, label::SYN_DATA), expected, "{name}");
    // It never is connected in less than a round trip either.
    if !mode.starts_with("quic") {
        assert!(nanos(sample, value::CONNECT) >= RTT, "{name}");
    }
}
