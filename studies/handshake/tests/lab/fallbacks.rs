//! A connection that fell back is counted, and timed, as what it was.

use handshake::{Bench, Fault, Plan, label, value};
use record::{Outcome, Sample};
use tls::Library;

use crate::common::{intended, measure_on, name, nanos, sweep, text, textbook, with};
use lab_test::net::sleeping;
use lab_test::{Test, TestResult};

pub fn tests() -> Vec<Test> {
    vec![
        Test::inside("a_ticket_that_the_server_does_not_know_makes_a_full_handshake", new_server),
        Test::inside("fast_open_refused_makes_an_ordinary_handshake", no_fast_open),
    ]
}

const RTT: u64 = 20_000_000;

/// Measures these modes while `fault` happens to each, and compares what they were counted as.
fn fall_back(fault: Fault, library: Library, modes: &[(&str, &str)]) -> TestResult {
    let names: Vec<&str> = modes.iter().map(|(mode, _)| *mode).collect();
    let sweep = with(sweep(&names, "20ms", 2), "library", &[library.name()]);
    let mut plan = Plan::new(vec![sweep])?;
    plan.seed = 31;
    let mut bench = Bench::new(sleeping(plan.seed))?;
    bench.inject(fault);
    let samples = measure_on(&mut bench, &plan)?;
    assert_eq!(samples.len(), 2 * modes.len());
    for sample in &samples {
        let expected = modes.iter().find(|(mode, _)| *mode == intended(sample));
        counted_as(sample, expected.map_or("", |(_, actual)| actual));
    }
    let summary = handshake::summarise(samples, 1)?;
    let mut rows: Vec<String> = summary.rows.iter().map(|row| row.key.mode.to_string()).collect();
    let mut actual: Vec<&str> = modes.iter().map(|(_, actual)| *actual).collect();
    rows.sort();
    actual.sort_unstable();
    actual.dedup();
    assert_eq!(rows, actual);
    assert_eq!(summary.fell_back.len(), modes.len());
    assert!(summary.fell_back.iter().all(|(_, count)| *count == 2));
    Ok(())
}

fn counted_as(sample: &Sample, actual: &str) {
    let name = name(sample);
    assert_eq!(sample.outcome, Outcome::Completed, "{name}");
    assert_eq!(text(sample, label::VIEWS), label::AGREE, "{name}");
    assert_eq!(text(sample, label::ACTUAL), actual, "{name}");
    let (ready, response) = textbook(actual);
    assert_eq!(sample.values[value::SPEC_READY], ready as f64, "{name}");
    // The request that counted is the one that was answered.
    assert!(nanos(sample, value::READY) >= ready * RTT, "{name}");
    assert!(nanos(sample, value::RESPONSE) >= response * RTT, "{name}");
}

fn new_server() -> TestResult {
    let over_tcp = [
        ("tcp+tls12-resumed", "tcp+tls12"),
        ("tcp+tls13-resumed", "tcp+tls13"),
        ("tcp+tls13-0rtt", "tcp+tls13"),
        ("tfo+tls13-0rtt", "tfo+tls13"),
    ];
    let ours = [("usertcp+tls13-0rtt", "usertcp+tls13"), ("sslmtcp-0rtt", "sslmtcp-tls13")];
    let over_tcp = [over_tcp.as_slice(), &ours].concat();
    fall_back(Fault::NewServer, Library::OpenSsl, &over_tcp)?;
    let with_quic = [over_tcp.as_slice(), &[("quic-0rtt", "quic")]].concat();
    fall_back(Fault::NewServer, Library::Rustls, &with_quic)
}

fn no_fast_open() -> TestResult {
    let modes = [
        ("tfo", "tcp"),
        ("tfo+tls12", "tcp+tls12"),
        ("tfo+tls13", "tcp+tls13"),
        ("tfo+tls13-0rtt", "tcp+tls13-0rtt"),
        ("tfo-nocookie", "tcp"),
        ("tfo-nocookie+tls13-resumed", "tcp+tls13-resumed"),
    ];
    fall_back(Fault::NoFastOpen, Library::OpenSsl, &modes)
}
