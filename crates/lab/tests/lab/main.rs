//! The lab, tried on the real kernel.

mod beliefs;
mod captures;
mod devices;
mod frames;
mod lifecycle;
mod link_options;
mod links;
mod programs;
mod rights;
mod support;

fn main() -> std::process::ExitCode {
    let tests = [
        links::tests(),
        link_options::tests(),
        devices::tests(),
        programs::tests(),
        captures::tests(),
        beliefs::tests(),
        lifecycle::tests(),
        rights::tests(),
    ];
    lab_test::main(&tests.concat())
}
