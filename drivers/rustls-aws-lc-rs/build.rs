//! Tells the driver what it is made of.

include!("../rustls-shim/locked.rs");

fn main() {
    tell(&["rustls", "aws-lc-rs"]);
}
