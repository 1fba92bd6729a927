//! Loading a server that does not do its work: every failure is data, by its kind.

use std::time::Duration;

use crate::support::{Manner, options, run, serve, serve_with};
use load::{Error, Kind, Options, Report, Stage};
use tls::{Group, Trust, Version};

/// All connections must fail in this one way.
fn all_fail(report: &Report, stage: Stage, kind: Kind, says: &str) {
    assert_eq!(report.completed, 0, "{report:#?}");
    assert_eq!(report.failures.len(), 1, "{report:#?}");
    let failure = &report.failures[0];
    assert_eq!((failure.stage, failure.kind), (stage, kind), "{failure:?}");
    assert!(failure.detail.contains(says), "{failure:?} does not say {says}");
}

/// Few connections, so that the pauses after failures are few.
fn few(options: Options) -> Options {
    Options { count: Some(3), ..options }
}

#[test]
fn a_wrong_root_is_refused() {
    let server = serve(Manner::Answers);
    let other = serve(Manner::Answers);
    let mut options = few(options(&server));
    options.trust = Trust::Roots(other.identity.roots());
    all_fail(&run(&options), Stage::Tls, Kind::Certificate, "UnknownIssuer");
    options.trust = Trust::Insecure;
    assert_eq!(run(&options).completed, 3);
}

#[test]
fn a_wrong_name_is_refused() {
    let server = serve(Manner::Answers);
    let mut options = few(options(&server));
    options.server_name = "other.test".to_owned();
    all_fail(&run(&options), Stage::Tls, Kind::Certificate, "not valid for name");
}

#[test]
fn nobody_listens() {
    let server = serve(Manner::Answers);
    let options = few(options(&server));
    drop(server);
    all_fail(&run(&options), Stage::Connect, Kind::Refused, "refused");
}

#[test]
fn nothing_in_common_is_an_alert() {
    let server = serve_with(Manner::Answers, |config| config.groups = vec![Group::Secp256r1]);
    let mut options = few(options(&server));
    options.groups = vec![Group::X25519];
    options.versions = vec![Version::Tls13];
    let report = run(&options);
    assert_eq!(report.completed, 0);
    assert_eq!((report.failures[0].stage, report.failures[0].kind), (Stage::Tls, Kind::Alert));
}

#[test]
fn silence_is_a_timeout() {
    let server = serve(Manner::Silent);
    let mut options = few(options(&server));
    options.timeout = Duration::from_millis(60);
    all_fail(&run(&options), Stage::Tls, Kind::Timeout, "in time");
}

#[test]
fn rubbish_is_no_tls() {
    let server = serve(Manner::Rubbish);
    all_fail(&run(&few(options(&server))), Stage::Tls, Kind::Protocol, "");
}

#[test]
fn responses_are_judged() {
    for (text, kind, says) in [
        ("HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n", Kind::Status, "503"),
        ("hello\r\n\r\n", Kind::Response, "status line"),
        ("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", Kind::Response, "Content-Length"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort", Kind::ClosedEarly, "whole"),
    ] {
        let server = serve(Manner::Says(text));
        all_fail(&run(&few(options(&server))), Stage::Response, kind, says);
    }
}

#[test]
fn an_end_without_close_notify_may_be_a_cut() {
    let text = "HTTP/1.0 200 OK\r\n\r\nuntil the end";
    let server = serve(Manner::Says(text));
    assert_eq!(run(&few(options(&server))).completed, 3);
    let server = serve(Manner::BreaksOff(text));
    let report = run(&few(options(&server)));
    all_fail(&report, Stage::Response, Kind::ClosedEarly, "close_notify");
}

#[test]
fn fewer_requests_than_asked_for_are_counted() {
    let server =
        serve(Manner::Says("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"));
    let mut options = few(options(&server));
    options.get("server.test", "/", 4);
    let report = run(&options);
    assert_eq!((report.completed, report.short_connections, report.requests), (3, 3, 3));
}

#[test]
fn a_server_that_dies_midway_leaves_both_kinds() {
    let server = serve(Manner::DiesAfter(10));
    let mut options = options(&server);
    options.count = Some(14);
    let report = run(&options);
    assert_eq!((report.completed, report.failed), (10, 4), "{report:#?}");
    assert!(
        report.failures.iter().all(|f| matches!(f.kind, Kind::Refused | Kind::Reset)),
        "{report:#?}"
    );
}

#[test]
fn a_server_that_closes_at_once_is_named() {
    let server = serve(Manner::Closes);
    let report = run(&few(options(&server)));
    assert_eq!(report.completed, 0, "{report:#?}");
    assert!(
        report.failures.iter().all(|f| matches!(f.kind, Kind::ClosedEarly | Kind::Reset)),
        "{report:#?}"
    );
}

#[test]
fn a_run_that_cannot_be_is_refused_before_it_starts() {
    let server = serve(Manner::Answers);
    let refused = |change: fn(&mut Options)| {
        let mut options = options(&server);
        change(&mut options);
        load::run(&options, &load::Control::default()).unwrap_err()
    };
    assert!(matches!(
        refused(|options| options.addresses = vec![([192, 0, 2, 1], 443).into()]),
        Error::Remote(_)
    ));
    assert!(matches!(
        refused(|options| options.server_name = "not a name".to_owned()),
        Error::ServerName(_)
    ));
    assert!(matches!(refused(|options| options.trust = Trust::Roots(Vec::new())), Error::Trust(_)));
    assert_eq!(server.seen.connections.load(std::sync::atomic::Ordering::SeqCst), 0);
}
