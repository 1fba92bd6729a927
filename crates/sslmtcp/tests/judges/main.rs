//! Outside judges of SSLmTCP: tshark reads what is on the wire, `openssl s_client` and curl are
//! ordinary peers of the listener.

mod captures;
mod flood;
#[path = "../../../tcpio/tests/kernel/harness.rs"]
mod harness;
mod ordinary;
#[path = "../../../tcpio/tests/kernel/pattern.rs"]
mod pattern;
#[path = "../../../tcpio/tests/kernel/peers.rs"]
mod peers;
#[path = "../../../tcpio/tests/kernel/segments.rs"]
mod segments;
mod service;
#[path = "../../../tcpio/tests/kernel/syn_flood.rs"]
mod syn_flood;

fn main() -> std::process::ExitCode {
    let mut tests = Vec::new();
    tests.extend(captures::tests());
    tests.extend(ordinary::tests());
    tests.extend(flood::tests());
    harness::main("-p sslmtcp --test judges", &tests)
}
