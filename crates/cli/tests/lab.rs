//! The program on emulated links, entered by the test itself.

mod gateway;
mod support;

fn main() -> std::process::ExitCode {
    lab_test::main(&gateway::tests())
}
