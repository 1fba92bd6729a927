//! What enters the lab: paths out of our engine.

mod own;

use std::process::ExitCode;

fn main() -> ExitCode {
    lab_test::main(&own::tests())
}
