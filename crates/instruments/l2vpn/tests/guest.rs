//! What needs a guest: paths of the kernel's features, and our planes against the kernel's.

mod judges;

use std::process::ExitCode;

use host::Registry;

fn main() -> ExitCode {
    guest::init_if_guest(|| Registry::new().with(judges::Judge));
    lab_test::main(&judges::tests())
}
