//! What a run says of connections that were given up, cut short, or failed all alike.

use std::net::TcpListener;
use std::time::Duration;

use load::{Kind, Options, Pace, Stage};

use crate::support::{Manner, Tls, options, options_of, read_request, run, serve, serve_custom};

#[test]
fn connections_given_up_count_as_longer_than_the_limit() {
    // Every fourth gets no answer: the 90th percentile lies above the limit.
    let server = serve_custom(Tls::default(), |stream, number| {
        read_request(stream)?;
        if number % 4 == 3 {
            return read_request(stream);
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    });
    let mut options = options_of(&server);
    options.connections = 64;
    options.pace = Pace::Open { rate: 200.0 };
    options.count = Some(40);
    options.timeout = Duration::from_secs(2);
    let report = run(&options);
    let total = report.latency.total;
    assert_eq!(report.failed, total.censored, "{report:#?}");
    assert!(total.censored >= 10 && total.count + total.censored == 40, "{report:#?}");
    assert!(total.longer_than_us >= Some(2e6), "{total:?}");
    assert_eq!((total.p90_us, total.p99_us, total.max_us), (None, None, None), "{total:?}");
    assert_eq!(report.latency.first_byte.censored, total.censored, "{report:#?}");
    assert_eq!(report.latency.tls_full.censored, 0, "{report:#?}");
}

#[test]
fn starts_that_were_never_made_count_as_longer() {
    let server = serve(Manner::Silent);
    let mut options = options(&server);
    options.pace = Pace::Open { rate: 1000.0 };
    options.count = None;
    options.duration = Some(Duration::from_millis(300));
    options.timeout = Duration::from_millis(100);
    let report = run(&options);
    assert!(report.not_started > 0, "{report:#?}");
    assert_eq!(report.latency.total.censored, 300, "{report:#?}");
    assert_eq!(report.latency.total.p50_us, None);
    // Each that started waited for the handshake.
    assert_eq!(report.latency.tls_full.censored, report.started, "{report:#?}");
}

#[test]
fn a_run_in_which_all_fails_alike_ends_early() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut options = Options::new(address, "server.test");
    options.trust = tls::Trust::Insecure;
    options.get("server.test", "/", 1);
    // An hour, if it did not.
    options.duration = Some(Duration::from_secs(3600));
    let report = run(&options);
    let stopped = report.stopped_early.as_ref().expect("it ends early");
    assert_eq!((stopped.stage, stopped.kind), (Stage::Connect, Kind::Refused), "{stopped:?}");
    assert!(!report.interrupted && report.completed == 0, "{report:#?}");

    // A certificate that is not trusted.
    let server = serve(Manner::Answers);
    options.addresses = vec![server.address];
    options.trust = tls::Trust::Roots(serve(Manner::Answers).identity.roots());
    for rate in [None, Some(100.0)] {
        options.pace = rate.map_or(Pace::Closed, |rate| Pace::Open { rate });
        let report = run(&options);
        let stopped = report.stopped_early.as_ref().expect("it ends early");
        assert_eq!((stopped.stage, stopped.kind), (Stage::Tls, Kind::Certificate), "{stopped:?}");
    }
    // Over HTTP/2 nothing is requested at all.
    options.get_http2("server.test", "/", 4, None);
    let report = run(&options);
    assert!(report.stopped_early.is_some() && report.requests == 0, "{report:#?}");
}

#[test]
fn a_mixture_does_not_end_a_run() {
    let server = serve_custom(Tls::default(), |stream, number| {
        read_request(stream)?;
        let status = if number % 2 == 0 { "404 Not Found" } else { "403 Forbidden" };
        write!(stream, "HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n")
    });
    let mut options = options_of(&server);
    options.count = None;
    options.duration = Some(Duration::from_millis(1500));
    let report = run(&options);
    assert_eq!((report.completed, report.stopped_early.is_none()), (0, true), "{report:#?}");
    // Nor does a server that is busy.
    let server = serve(Manner::Says("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"));
    options.addresses = vec![server.address];
    options.trust = tls::Trust::Roots(server.identity.roots());
    let report = run(&options);
    assert_eq!((report.completed, report.stopped_early.is_none()), (0, true), "{report:#?}");
}

#[test]
fn a_server_that_closes_between_requests_is_said() {
    // It does not say so beforehand.
    let server = serve_custom(Tls::default(), |stream, _| {
        read_request(stream)?;
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    });
    let mut options = options_of(&server);
    options.get("server.test", "/", 4);
    options.count = Some(5);
    let report = run(&options);
    assert_eq!((report.completed, report.failed), (5, 0), "{report:#?}");
    assert_eq!((report.short_connections, report.requests), (5, 5), "{report:#?}");
}

#[test]
fn responses_are_read_as_clients_read_them() {
    let long =
        format!("HTTP/1.1 200 OK\r\nX: {}\r\nContent-Length: 2\r\n\r\nok", "a".repeat(100_000));
    for text in [
        "HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nok",
        "HTTP/1.1 200 OK\nContent-Length: 2\n\nok",
        "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;a=b\r\nok\r\n0\r\nA: b\r\n\r\n",
        &long,
    ] {
        let text = text.to_owned();
        let server =
            serve_custom(Tls::default(), move |stream, _| crate::support::answer(stream, &text));
        let mut options = options_of(&server);
        options.get("server.test", "/", 3);
        options.count = Some(2);
        let report = run(&options);
        assert_eq!((report.completed, report.requests), (2, 6), "{report:#?}");
    }
}
