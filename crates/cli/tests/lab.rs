//! The program on emulated links, entered by the test itself; and its report in a browser of the lab.

mod gateway;
mod live;
mod look;
mod support;

fn main() -> std::process::ExitCode {
    lab_test::main(&[gateway::tests(), live::tests(), look::tests()].concat())
}
