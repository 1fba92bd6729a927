//! The gateway between Debian's curl, openssl and nginx, over emulated links; and how it ends.
//!
//! Entering the lab re-executes the program and wants a process without threads, so that libtest
//! cannot run these: every test is a process of its own, `--scenario NAME`. A test that cannot run
//! here says SKIPPED and why.

mod carry;
mod ending;
mod harness;
mod peers;
mod redirect;
mod refusals;
mod rounds;
#[path = "../support/mod.rs"]
mod support;
mod world;

use harness::Test;

fn main() -> std::process::ExitCode {
    let tests: Vec<Test> =
        [refusals::tests(), carry::tests(), peers::tests(), redirect::tests(), ending::tests()]
            .concat();
    harness::main(&tests)
}
