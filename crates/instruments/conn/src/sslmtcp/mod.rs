//! One connection over our own TCP, whose handshake may carry the TLS handshake (SSLmTCP): the
//! same steps, outcomes and logs as [`crate::tcp`] has.

mod client;
mod facts;
mod server;

pub use client::{ClientPlan, connect};
pub use server::{Server, ServerPlan};
