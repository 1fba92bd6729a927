//! SSLmTCP on links: our stacks and the kernel's, in namespaces, and outside judges.

mod common;
mod links;

fn main() -> std::process::ExitCode {
    lab_test::main(&links::tests())
}
