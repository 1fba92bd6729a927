//! Outside judges: tshark reads our captures, OpenSSL's command line is our peer. What they see must be
//! what the study says.

#[path = "../common/mod.rs"]
mod common;
mod openssl;
mod wireshark;

fn main() -> std::process::ExitCode {
    common::run("judges", &[wireshark::tests(), openssl::tests()].concat())
}
