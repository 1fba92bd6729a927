//! Loading a server that does its work.

use std::time::Duration;

use crate::support::{Manner, Seen, options, run, serve, serve_with};
use load::{Close, Control, Options, Pace};
use tls::{Group, Version};

#[test]
fn full_handshakes_are_counted_on_both_sides() {
    let server = serve(Manner::Answers);
    let report = run(&options(&server));
    assert_eq!((report.completed, report.failed, report.requests), (20, 0, 20), "{report:#?}");
    assert_eq!((report.handshakes.full, report.handshakes.resumed), (20, 0));
    assert_eq!(Seen::count(&server.seen.full), 20);
    assert_eq!(Seen::count(&server.seen.requests), 20);
    assert_eq!(report.agreed.len(), 1);
    assert_eq!(report.agreed[0].version, "TLS 1.3");
    assert_eq!(report.agreed[0].suite, "TLS_AES_128_GCM_SHA256");
    assert_eq!(report.agreed[0].group.as_deref(), Some("x25519"));
    let latency = &report.latency;
    for summary in [latency.tcp_connect, latency.tls_full, latency.first_byte, latency.total] {
        assert_eq!(summary.count, 20);
        assert!(Some(summary.min_us) <= summary.p50_us && summary.p50_us <= summary.max_us);
    }
    // The parts are in the whole.
    assert!(latency.total.max_us >= latency.tls_full.max_us, "{latency:#?}");
    assert!(report.cpu.seconds > 0.0 && report.bytes_in > 0 && report.bytes_out > 0);
}

#[test]
fn resumption_is_proven_by_both_sides() {
    for version in [Version::Tls13, Version::Tls12] {
        let server = serve_with(Manner::Answers, |config| {
            config.groups = vec![Group::X25519, Group::Secp256r1];
        });
        let mut options = options(&server);
        options.versions = vec![version];
        options.resume = 1.0;
        let report = run(&options);
        // One at a time: only the first has no ticket.
        let handshakes = report.handshakes;
        assert_eq!((handshakes.full, handshakes.resumed), (1, 19), "{version}: {report:#?}");
        assert_eq!((handshakes.wanted_resumed, handshakes.without_ticket), (20, 1), "{version}");
        assert_eq!(handshakes.declined, 0, "{version}");
        assert_eq!(Seen::count(&server.seen.resumed), 19, "{version}");
        assert_eq!((report.latency.tls_full.count, report.latency.tls_resumed.count), (1, 19));
    }
}

#[test]
fn the_mix_is_what_was_asked_for() {
    let server = serve(Manner::Answers);
    let mut options = options(&server);
    options.resume = 0.25;
    let report = run(&options);
    // Every fourth, and by then there is a ticket.
    assert_eq!((report.handshakes.full, report.handshakes.resumed), (15, 5), "{report:#?}");
    assert_eq!(Seen::count(&server.seen.resumed), 5);
}

#[test]
fn a_server_without_tickets_is_said_to_have_none() {
    let server = serve_with(Manner::Answers, |config| config.tickets = false);
    let mut options = options(&server);
    options.resume = 1.0;
    let report = run(&options);
    assert_eq!((report.completed, report.handshakes.resumed), (20, 0), "{report:#?}");
    assert_eq!(report.handshakes.without_ticket, 20);
}

#[test]
fn several_requests_share_a_connection() {
    let server = serve(Manner::Answers);
    let mut options = options(&server);
    options.get("server.test", "/", 5);
    let report = run(&options);
    assert_eq!((report.completed, report.requests), (20, 100), "{report:#?}");
    assert_eq!(Seen::count(&server.seen.connections), 20);
    assert_eq!(report.latency.first_byte.count, 100);
    assert_eq!(report.short_connections, 0);
}

#[test]
fn a_handshake_alone_is_enough() {
    for resume in [0.0, 1.0] {
        let server = serve(Manner::Answers);
        let mut options = options(&server);
        options.request = None;
        options.resume = resume;
        let report = run(&options);
        assert_eq!((report.completed, report.requests), (20, 0), "{report:#?}");
        let resumed = if resume > 0.0 { 19 } else { 0 };
        assert_eq!(report.handshakes.resumed, resumed, "{report:#?}");
    }
}

#[test]
fn versions_groups_and_suites_are_pinned() {
    let server = serve(Manner::Answers);
    let check = |change: fn(&mut Options), version: &str, suite: &str, group: &str| {
        let mut options = options(&server);
        options.count = Some(3);
        change(&mut options);
        let report = run(&options);
        let agreed = &report.agreed[0];
        let found = (agreed.version.as_str(), agreed.suite.as_str(), agreed.group.as_deref());
        assert_eq!((report.completed, found), (3, (version, suite, Some(group))));
    };
    let aes = "TLS_AES_128_GCM_SHA256";
    check(|options| options.groups = vec![Group::Secp256r1], "TLS 1.3", aes, "secp256r1");
    let suite = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256";
    check(|options| options.versions = vec![Version::Tls12], "TLS 1.2", suite, "x25519");
    // A group that the server has not, then one that it has: a HelloRetryRequest, once.
    let mut options = options(&server);
    options.groups = vec![Group::X25519MlKem768, Group::Secp256r1];
    let report = run(&options);
    assert_eq!(report.completed, 20, "{report:#?}");
    let retries: u64 =
        report.agreed.iter().filter(|a| a.hello_retry_request).map(|a| a.count).sum();
    assert_eq!(retries, 1, "the group is remembered: {:#?}", report.agreed);
}

#[test]
fn each_way_to_close_completes() {
    for close in [Close::Fin, Close::Reset, Close::Notify, Close::Server] {
        let server = serve(Manner::Answers);
        let mut options = options(&server);
        options.close = close;
        options.connections = 4;
        let report = run(&options);
        assert_eq!((report.completed, report.failed), (20, 0), "{close:?}: {report:#?}");
    }
}

#[test]
fn source_addresses_are_used_in_turn() {
    let server = serve(Manner::Answers);
    let mut options = options(&server);
    options.sources = ["127.0.0.2", "127.0.0.3"].map(|ip| ip.parse().unwrap()).to_vec();
    let report = run(&options);
    assert_eq!(report.completed, 20, "{report:#?}");
    let peers = server.seen.peers.lock().unwrap();
    for source in &options.sources {
        assert_eq!(peers.iter().filter(|peer| peer.ip() == *source).count(), 10, "{source}");
    }
}

#[test]
fn an_open_loop_starts_what_is_due_and_no_more() {
    let server = serve(Manner::Answers);
    let mut options = options(&server);
    options.pace = Pace::Open { rate: 400.0 };
    options.connections = 64;
    options.threads = 3;
    options.count = None;
    options.duration = Some(Duration::from_millis(500));
    let report = run(&options);
    assert_eq!(report.started + report.not_started, 200, "{report:#?}");
    assert_eq!(report.completed, report.started, "{report:#?}");
    assert_eq!(report.latency.start_delay.count, report.started);
    // From when it was due, so never less than the delay of the start.
    assert!(report.latency.total.max_us >= report.latency.start_delay.max_us);
}

#[test]
fn a_stall_is_in_the_latency_of_an_open_loop() {
    // One connection at a time to a server that never answers: the first start is made, the others
    // stay due, and are said to be.
    let server = serve(Manner::Silent);
    let mut options = options(&server);
    options.pace = Pace::Open { rate: 1000.0 };
    options.count = None;
    options.duration = Some(Duration::from_millis(300));
    options.timeout = Duration::from_millis(100);
    let report = run(&options);
    assert_eq!(report.completed, 0);
    assert_eq!(report.started + report.not_started, 300, "{report:#?}");
    assert!(
        report.latency.start_delay.max_us >= Some(100_000.0),
        "{:#?}",
        report.latency.start_delay
    );
}

#[test]
fn the_ramp_is_left_out_of_latencies() {
    let server = serve(Manner::Answers);
    let mut options = options(&server);
    options.pace = Pace::Open { rate: 200.0 };
    options.connections = 16;
    options.count = None;
    options.duration = Some(Duration::from_millis(600));
    options.ramp = Duration::from_millis(200);
    let report = run(&options);
    // Half of the rate in the ramp: 20, then 80.
    assert_eq!(report.started + report.not_started, 100, "{report:#?}");
    assert_eq!(report.in_ramp, 20, "{report:#?}");
    assert_eq!(report.latency.total.count, report.completed - 20, "{report:#?}");
}

#[test]
fn many_connections_on_many_threads_add_up() {
    let server = serve(Manner::Answers);
    let mut options = options(&server);
    options.connections = 40;
    options.threads = 4;
    options.count = Some(403);
    options.resume = 0.5;
    let report = run(&options);
    assert_eq!((report.completed, report.failed), (403, 0), "{report:#?}");
    assert_eq!(Seen::count(&server.seen.connections), 403);
    assert_eq!(Seen::count(&server.seen.resumed), report.handshakes.resumed);
}

#[test]
fn what_was_measured_is_kept_when_stopped() {
    let server = serve(Manner::Answers);
    let mut options = options(&server);
    options.count = None;
    options.duration = Some(Duration::from_secs(3600));
    let control = Control::default();
    let stop = control.clone();
    let report = load::run_with(&options, &control, |at| {
        if at.completed >= 5 {
            stop.stop();
        }
    })
    .unwrap();
    assert!(report.interrupted && report.completed >= 5, "{report:#?}");
    assert_eq!(report.started, report.completed + report.failed + report.unfinished);
    assert!(report.elapsed_seconds < 3600.0);
}

#[test]
fn a_report_is_read_back_as_written() {
    let server = serve(Manner::Answers);
    let report = run(&options(&server));
    let text = serde_json::to_string(&report).unwrap();
    let read: load::Report = serde_json::from_str(&text).unwrap();
    // Parts of a second may differ in their last digit.
    assert_eq!((read.handshakes, &read.agreed), (report.handshakes, &report.agreed));
    assert_eq!((read.completed, read.latency.total.count), (20, 20));
    assert_eq!(read.latency.total.max_us, report.latency.total.max_us);
}
