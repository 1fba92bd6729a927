//! The study on the real kernel: what it says of a connection is what happened. And outside judges:
//! tshark reads our captures, OpenSSL's command line is our peer; what they see must be what the
//! study says.

mod common;
mod fallbacks;
mod hindered;
mod loss;
mod openssl;
mod queue;
mod resume;
mod round_trips;
mod views;
mod wireshark;

fn main() -> std::process::ExitCode {
    if std::env::args().nth(1).as_deref() == Some(resume::HOST) {
        return resume::host();
    }
    let tests = [
        views::tests(),
        round_trips::tests(),
        fallbacks::tests(),
        hindered::tests(),
        loss::tests(),
        queue::tests(),
        resume::tests(),
        wireshark::tests(),
        openssl::tests(),
    ];
    lab_test::main(&tests.concat())
}
