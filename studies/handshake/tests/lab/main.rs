//! The study on the real kernel: what it says of a connection is what happened.

#[path = "../common/mod.rs"]
mod common;
mod fallbacks;
mod hindered;
mod loss;
mod resume;
mod round_trips;
mod views;

fn main() -> std::process::ExitCode {
    let tests = [
        views::tests(),
        round_trips::tests(),
        fallbacks::tests(),
        hindered::tests(),
        loss::tests(),
        resume::tests(),
    ];
    common::run("lab", &tests.concat())
}
