//! The link study: what MACsec, IPsec and WireGuard cost on a path over an MPLS L2VPN, in bytes, delay per hop,
//! delay under load and throughput; after Ahn and Shin, "Performance Evaluation of MACSec for Host Mobility" (2019).
//!
//! | module | what |
//! |---|---|
//! | `point`, `plan` | what is varied, and what is measured of it |
//! | `job`, `measure` | paths stood up one after the other, trials over each |
//! | `sample`, `summary` | a trial as a sample; what samples come to |
//! | `present`, `tables`, `pictures` | the answer and its evidence |
//! | `mtu_table` | MTUs and segment sizes to set, computed |
//! | `published`, `advice`, `means` | the paper's figures beside ours, what to change, what a figure means |
#![forbid(unsafe_code)]

mod advice;
mod between;
mod job;
mod means;
mod measure;
mod mtu_table;
mod pictures;
mod plan;
mod point;
mod present;
mod protocol;
mod published;
mod sample;
mod study;
mod summary;
mod tables;

pub use job::workers;
pub use plan::Plan;
pub use point::{Backend, Choice, Gateway, Network, Offered, Point, Protocol, Ways};
pub use study::LinkStudy;
