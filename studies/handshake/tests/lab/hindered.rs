//! Middleboxes that do not tolerate data on a SYN, and ordinary servers: every mode still gets its answer,
//! by the round trips of ordinary TCP and TLS.

use handshake::{Plan, label, summarise, value};
use record::{Outcome, Sample};
use study::Sweep;

use crate::common::{intended, measure, name, nanos, number, sweep, text, textbook, with};
use lab_test::{Test, TestResult};

pub fn tests() -> Vec<Test> {
    vec![
        Test::inside("stripped_syn_data_cost_no_more_than_ordinary_tcp_and_tls", stripped),
        Test::inside("dropped_syn_data_cost_a_timer_once", dropped),
        Test::inside("an_ordinary_server_is_spoken_to_as_usual", plain_server),
    ]
}

const RTT: u64 = 20_000_000;
/// RFC 6298 §2.1: the first timer of a SYN.
const TIMER: u64 = 1_000_000_000;

/// What SSLmTCP falls back to.
const OURS: [(&str, &str); 3] = [
    ("sslmtcp-paper", "usertcp+tls12-rsa"),
    ("sslmtcp-tls13", "usertcp+tls13"),
    ("sslmtcp-0rtt", "usertcp+tls13-0rtt"),
];
/// What Fast Open falls back to.
const KERNELS: [(&str, &str); 2] =
    [("tfo+tls13", "tcp+tls13"), ("tfo+tls13-0rtt", "tcp+tls13-0rtt")];

/// Measures these modes on such a path, and returns the samples with what each should have been.
fn fall_back(
    modes: &[(&'static str, &'static str)],
    change: impl Fn(Sweep) -> Sweep,
) -> TestResult<Vec<(Sample, &'static str)>> {
    let names: Vec<&str> = modes.iter().map(|(mode, _)| *mode).collect();
    let mut plan = Plan::new(vec![change(sweep(&names, "20ms", 2))])?;
    plan.seed = 81;
    let samples = measure(&plan)?;
    let summary = summarise(samples.clone(), 1)?;
    // Falling back is what is asked for here.
    assert!(summary.fell_back.is_empty(), "{:?}", summary.fell_back);
    assert!(summary.rows.iter().all(|row| !row.key.is_unhindered()));
    let expected = |sample: &Sample| {
        let mode = intended(sample).to_owned();
        modes.iter().find(|(tried, _)| *tried == mode).map_or("", |(_, actual)| *actual)
    };
    Ok(samples.into_iter().map(|sample| (expected(&sample), sample)).map(|(e, s)| (s, e)).collect())
}

/// What must hold of a connection that fell back to `actual` after `late` nanoseconds in vain.
fn fell_back(sample: &Sample, actual: &str, late: u64) {
    let name = name(sample);
    assert_eq!(sample.outcome, Outcome::Completed, "{name}");
    assert_eq!(text(sample, label::VIEWS), label::AGREE, "{name}");
    assert_eq!(text(sample, label::ACTUAL), actual, "{name}");
    let (ready, response) = textbook(actual);
    assert_eq!(number(sample, value::SPEC_READY), ready as f64, "{name}");
    assert_eq!(number(sample, value::SPEC_RESPONSE), response as f64, "{name}");
    assert!(nanos(sample, value::READY) >= late + ready * RTT, "{name}");
    assert!(nanos(sample, value::RESPONSE) >= late + response * RTT, "{name}");
}

fn stripped() -> TestResult {
    let modes = [OURS.as_slice(), &KERNELS].concat();
    for (sample, actual) in
        fall_back(&modes, |sweep| with(sweep, "middlebox", &["strip-syn-data"]))?
    {
        fell_back(&sample, actual, 0);
        // Nothing waited for a timer: the SYN+ACK said that the data are to be sent again.
        assert!(nanos(&sample, value::CONNECT) < TIMER, "{}", name(&sample));
    }
    Ok(())
}

fn dropped() -> TestResult {
    let modes = [OURS.as_slice(), &KERNELS].concat();
    // One mode at a time: what is remembered of a peer whose SYNs with data got through before is forgotten after ten
    // seconds, and each timer takes one of them.
    let mut samples = Vec::new();
    for mode in &modes {
        samples.extend(fall_back(std::slice::from_ref(mode), |sweep| {
            let sweep = with(sweep, "middlebox", &["drop-syn-data"]);
            with(sweep, "visit", &["first", "remembered"])
        })?);
    }
    // What remembers is measured twice.
    assert_eq!(samples.len(), 2 * (2 * OURS.len() + KERNELS.len()));
    for (sample, actual) in samples {
        let remembered = sample.point.get("visit").is_some_and(|visit| visit == "remembered");
        fell_back(&sample, actual, if remembered { 0 } else { TIMER });
        if remembered {
            // RFC 7413 §4.1.3.1: a bare SYN at once, which nothing drops.
            assert_eq!(number(&sample, value::RETRANSMITTED), 0.0, "{}", name(&sample));
            assert!(!sample.values.contains_key(value::SYN_BYTES), "{}", name(&sample));
        }
    }
    Ok(())
}

fn plain_server() -> TestResult {
    let controls = [
        ("usertcp+tls12-rsa", "usertcp+tls12-rsa"),
        ("usertcp+tls13", "usertcp+tls13"),
        ("tcp+tls13", "tcp+tls13"),
    ];
    let modes = [OURS.as_slice(), &KERNELS, &controls].concat();
    for (sample, actual) in fall_back(&modes, |sweep| with(sweep, "peer", &["plain"]))? {
        fell_back(&sample, actual, 0);
        assert!(nanos(&sample, value::CONNECT) < TIMER, "{}", name(&sample));
    }
    Ok(())
}
