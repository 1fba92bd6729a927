//! Captures of living interfaces, and rights that are given up.

mod live;
mod privileges;

fn main() -> std::process::ExitCode {
    lab_test::main(&[live::tests(), privileges::tests()].concat())
}
