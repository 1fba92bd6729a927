//! Stacks on the real kernel: in namespaces, against each other and against its TCP.

mod kernel;
mod net;

fn main() -> std::process::ExitCode {
    lab_test::main(&[net::tests(), kernel::tests()].concat())
}
