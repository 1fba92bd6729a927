//! SSLmTCP on links: our stacks and the kernel's, in namespaces.

#[path = "../common/mod.rs"]
mod common;
mod fallbacks;
#[path = "../../../tcpio/tests/kernel/harness.rs"]
mod harness;
#[path = "../../../tcpio/tests/kernel/peers.rs"]
mod peers;
mod profiles;
mod streams;
mod talk;

fn main() -> std::process::ExitCode {
    let mut tests = Vec::new();
    tests.extend(profiles::tests());
    tests.extend(fallbacks::tests());
    tests.extend(streams::tests());
    harness::main("-p sslmtcp --test net", &tests)
}
