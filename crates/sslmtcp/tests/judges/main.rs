//! Outside judges of SSLmTCP: tshark reads what is on the wire, `openssl s_client` and curl are
//! ordinary peers of the listener.

mod captures;
#[path = "../../../tcpio/tests/kernel/harness.rs"]
mod harness;
mod ordinary;
#[path = "../../../tcpio/tests/kernel/peers.rs"]
mod peers;
mod service;

fn main() -> std::process::ExitCode {
    let mut tests = Vec::new();
    tests.extend(captures::tests());
    tests.extend(ordinary::tests());
    harness::main("-p sslmtcp --test judges", &tests)
}
