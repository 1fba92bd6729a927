//! The crate from outside, without a lab.

mod wireshark;
