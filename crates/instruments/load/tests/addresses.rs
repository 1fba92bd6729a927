//! A server with several addresses.

use std::net::SocketAddr;

use load::Error;

use crate::support::{Manner, options, run, serve};

#[test]
fn an_address_that_does_not_answer_is_passed_over() {
    let server = serve(Manner::Answers);
    let mut options = options(&server);
    let dead = SocketAddr::from(([127, 0, 0, 77], server.address.port()));
    let first = SocketAddr::new("::1".parse().unwrap(), server.address.port());
    options.addresses = vec![first, dead, server.address];
    let report = run(&options);
    assert_eq!((report.completed, report.failed), (20, 0), "{report:#?}");
    assert_eq!(report.address, server.address.to_string());
    assert_eq!(report.tried.len(), 2, "{:?}", report.tried);
    assert!(report.tried.iter().all(|tried| !tried.problem.is_empty()));
}

#[test]
fn addresses_that_are_far_are_not_loaded() {
    let server = serve(Manner::Answers);
    let mut options = options(&server);
    options.addresses = vec![([192, 0, 2, 1], 443).into(), server.address];
    let report = run(&options);
    assert_eq!((report.completed, report.address), (20, server.address.to_string()));
    options.addresses.pop();
    let error = load::run(&options, &load::Control::default()).unwrap_err();
    assert!(matches!(error, Error::Remote(_)), "{error}");
}
