//! HTTP/2: requests at once on connections that stay open.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use load::{Close, Kind, Pace, Stage};
use wire::http2::FrameType;

use crate::support::{Custom, Frames, Stream, Tls, options_http2, run, serve_custom};

/// A server that answers every request at once.
fn answering(tls: bool) -> Custom {
    let tls = Tls { off: !tls, alpn: vec!["h2"], ..Tls::default() };
    serve_custom(tls, |stream, _| answer_all(stream))
}

fn answer_all(stream: &mut dyn Stream) -> std::io::Result<()> {
    let mut frames = Frames::begin(stream, &[])?;
    loop {
        let stream = frames.request()?;
        frames.answer(stream)?;
    }
}

#[test]
fn requests_share_connections_with_and_without_tls() {
    for tls in [true, false] {
        for close in [Close::Fin, Close::Reset, Close::Notify] {
            let server = answering(tls);
            let mut options = options_http2(&server, 8, tls);
            options.connections = 2;
            options.count = Some(100);
            options.close = close;
            let report = run(&options);
            assert_eq!((report.requests, report.requests_failed), (100, 0), "{report:#?}");
            assert_eq!((report.started, report.completed), (2, 2), "{report:#?}");
            assert_eq!(server.connections.load(Ordering::SeqCst), 2);
            assert_eq!((report.http.as_str(), report.streams), ("2", Some(8)));
            let latency = report.latency;
            assert_eq!((latency.total.count, latency.first_byte.count), (100, 100));
            assert_eq!(latency.tcp_connect.count, 2, "{latency:#?}");
            assert_eq!(latency.tls_full.count, if tls { 2 } else { 0 });
        }
    }
}

#[test]
fn an_open_loop_counts_from_when_requests_were_due() {
    let server = answering(true);
    let mut options = options_http2(&server, 16, true);
    options.connections = 4;
    options.threads = 2;
    options.count = None;
    options.pace = Pace::Open { rate: 400.0 };
    options.duration = Some(Duration::from_millis(500));
    let report = run(&options);
    assert_eq!(report.requests + report.not_started, 200, "{report:#?}");
    assert_eq!(report.latency.start_delay.count, report.requests, "{report:#?}");
    assert_eq!(report.latency.total.count + report.latency.total.censored, 200, "{report:#?}");
    assert!(report.latency.total.max_us >= report.latency.start_delay.max_us);
}

#[test]
fn a_stall_is_in_the_latency_of_an_open_loop() {
    // The first request is answered after half a second, and those behind it wait.
    let tls = Tls { off: true, ..Tls::default() };
    let server = serve_custom(tls, |stream, _| {
        let mut frames = Frames::begin(stream, &[])?;
        let first = frames.request()?;
        std::thread::sleep(Duration::from_millis(500));
        frames.answer(first)?;
        loop {
            let stream = frames.request()?;
            frames.answer(stream)?;
        }
    });
    let mut options = options_http2(&server, 1, false);
    options.pace = Pace::Open { rate: 100.0 };
    options.count = Some(40);
    let report = run(&options);
    assert_eq!(report.requests, 40, "{report:#?}");
    // The second was due 10 ms after the first.
    assert!(report.latency.start_delay.max_us >= Some(400_000.0), "{report:#?}");
    assert!(report.latency.total.p50_us >= Some(200_000.0), "{report:#?}");
}

#[test]
fn the_ramp_is_left_out_but_for_connections_that_stay() {
    let server = answering(true);
    let mut options = options_http2(&server, 4, true);
    options.connections = 4;
    options.count = None;
    options.pace = Pace::Open { rate: 200.0 };
    options.duration = Some(Duration::from_millis(600));
    options.ramp = Duration::from_millis(200);
    let report = run(&options);
    assert_eq!(report.in_ramp, 20, "{report:#?}");
    assert_eq!(report.requests + report.not_started, 100, "{report:#?}");
    assert_eq!(report.latency.total.count, report.requests - 20, "{report:#?}");
    assert_eq!(report.latency.tls_full.count, report.handshakes.full, "{report:#?}");
    assert_eq!(report.handshakes.full, 4, "{report:#?}");
}

#[test]
fn a_connection_ends_after_its_requests() {
    let server = answering(true);
    let mut options = options_http2(&server, 4, true);
    options.requests_per_connection = 10;
    options.count = Some(30);
    options.resume = 1.0;
    let report = run(&options);
    assert_eq!((report.requests, report.completed), (30, 3), "{report:#?}");
    assert_eq!((report.handshakes.full, report.handshakes.resumed), (1, 2), "{report:#?}");
    assert_eq!(report.short_connections, 0);
}

#[test]
fn a_server_that_says_goodbye_loses_nothing() {
    // After three answers, with more requests under way.
    let server = serve_custom(Tls { off: true, ..Tls::default() }, |stream, _| {
        let mut frames = Frames::begin(stream, &[])?;
        let mut last = 0;
        for _ in 0..3 {
            last = frames.request()?;
            frames.answer(last)?;
        }
        let payload = [last.to_be_bytes(), [0; 4]].concat();
        frames.send(FrameType::GOAWAY, 0, 0, &payload)?;
        // What comes yet is read, so that nothing is reset.
        while frames.request().is_ok() {}
        Ok(())
    });
    for open in [false, true] {
        let mut options = options_http2(&server, 5, false);
        options.count = Some(12);
        if open {
            options.pace = Pace::Open { rate: 10_000.0 };
        }
        let report = run(&options);
        assert_eq!((report.requests, report.requests_failed), (12, 0), "{report:#?}");
        assert!(report.requests_retried > 0 && report.short_connections >= 3, "{report:#?}");
        assert_eq!(report.failed, 0, "{report:#?}");
        assert_eq!(report.latency.total.count, 12, "{report:#?}");
    }
}

#[test]
fn failures_of_requests_are_their_own() {
    let server = serve_custom(Tls { off: true, ..Tls::default() }, |stream, _| {
        let mut frames = Frames::begin(stream, &[])?;
        loop {
            let stream = frames.request()?;
            match stream / 2 % 4 {
                0 => frames.send(FrameType::HEADERS, 5, stream, &[0x8e])?,
                1 => frames.send(FrameType::RST_STREAM, 0, stream, &[0, 0, 0, 2])?,
                2 => frames.send(FrameType::DATA, 1, stream, b"no head")?,
                _ => frames.answer(stream)?,
            }
        }
    });
    let mut options = options_http2(&server, 3, false);
    options.count = Some(40);
    let report = run(&options);
    assert_eq!((report.requests, report.requests_failed), (10, 30), "{report:#?}");
    assert_eq!((report.completed, report.failed), (1, 0), "{report:#?}");
    let of = |kind: Kind| {
        let one = report.request_failures.iter().find(|one| one.kind == kind).unwrap();
        (one.detail.clone(), one.count)
    };
    assert_eq!(of(Kind::Status), ("500".to_owned(), 10));
    assert_eq!(of(Kind::StreamReset), ("INTERNAL_ERROR".to_owned(), 10));
    assert_eq!(of(Kind::Http2).1, 10);
}

#[test]
fn a_request_that_takes_too_long_is_given_up_alone() {
    let server = serve_custom(Tls { off: true, ..Tls::default() }, |stream, _| {
        let mut frames = Frames::begin(stream, &[])?;
        let slow = frames.request()?;
        loop {
            let stream = frames.request()?;
            assert_ne!(stream, slow);
            frames.answer(stream)?;
        }
    });
    let mut options = options_http2(&server, 2, false);
    options.count = Some(2000);
    options.timeout = Duration::from_millis(700);
    options.pace = Pace::Open { rate: 1500.0 };
    let report = run(&options);
    assert_eq!((report.requests, report.requests_failed), (1999, 1), "{report:#?}");
    assert_eq!(report.request_failures[0].kind, Kind::Timeout);
    assert_eq!((report.latency.total.censored, report.completed), (1, 1), "{report:#?}");
    assert_eq!(report.latency.first_byte.censored, 1, "{report:#?}");
}

#[test]
fn a_connection_that_falls_silent_is_given_up() {
    let served = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&served);
    let server = serve_custom(Tls { off: true, ..Tls::default() }, move |stream, number| {
        let mut frames = Frames::begin(stream, &[])?;
        loop {
            let stream = frames.request()?;
            if number > 0 || count.fetch_add(1, Ordering::SeqCst) < 5 {
                frames.answer(stream)?;
            }
        }
    });
    let mut options = options_http2(&server, 2, false);
    options.count = Some(20);
    options.timeout = Duration::from_millis(300);
    let report = run(&options);
    assert_eq!(report.requests + report.requests_failed, 20, "{report:#?}");
    assert!((2..=4).contains(&report.requests_failed), "{report:#?}");
    let failure = &report.failures[0];
    assert_eq!((failure.stage, failure.kind), (Stage::Response, Kind::Timeout), "{failure:?}");
    assert_eq!(report.latency.total.censored, report.requests_failed, "{report:#?}");
}

#[test]
fn a_server_without_http2_is_named() {
    let cases: [(Custom, bool, &str); 4] = [
        (serve_custom(Tls::default(), |stream, _| answer_all(stream)), true, "ALPN"),
        (
            serve_custom(Tls { off: true, ..Tls::default() }, |stream, _| {
                stream.read_exact(&mut [0; 24])?;
                stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")?;
                while stream.read(&mut [0; 4096])? > 0 {}
                Ok(())
            }),
            false,
            "HTTP/1.1",
        ),
        (
            serve_custom(Tls { off: true, ..Tls::default() }, |stream, _| {
                let mut frames = Frames::begin(stream, &[])?;
                frames.request()?;
                frames.send(FrameType::GOAWAY, 0, 0, &[0, 0, 0, 0, 0, 0, 0, 11])?;
                while frames.request().is_ok() {}
                Ok(())
            }),
            false,
            "ENHANCE_YOUR_CALM",
        ),
        (
            serve_custom(Tls { off: true, ..Tls::default() }, |stream, _| {
                let mut frames = Frames::begin(stream, &[])?;
                let stream = frames.request()?;
                frames.send(FrameType::HEADERS, 5, stream, &[0x80])?;
                while frames.request().is_ok() {}
                Ok(())
            }),
            false,
            "HPACK",
        ),
    ];
    for (server, tls, says) in &cases {
        let mut options = options_http2(server, 2, *tls);
        options.count = Some(4);
        let report = run(&options);
        assert_eq!((report.requests, report.completed), (0, 0), "{says}: {report:#?}");
        let failure = &report.failures[0];
        assert_eq!(failure.kind, Kind::Http2, "{says}: {failure:?}");
        assert!(failure.detail.contains(says), "{failure:?} does not say {says}");
    }
}

#[test]
fn nobody_listens_and_a_counted_run_ends() {
    let server = answering(false);
    let mut options = options_http2(&server, 2, false);
    options.count = Some(6);
    drop(server);
    for open in [false, true] {
        if open {
            options.pace = Pace::Open { rate: 1000.0 };
        }
        let report = run(&options);
        assert_eq!((report.requests, report.requests_failed), (0, 6), "{report:#?}");
        assert_eq!(report.failures[0].kind, Kind::Refused, "{report:#?}");
    }
}
