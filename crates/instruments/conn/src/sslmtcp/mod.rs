//! One connection over our own TCP, whose handshake may carry the TLS handshake (SSLmTCP): the
//! same steps, outcomes and logs as over the kernel's.

mod client;
pub mod facts;
mod server;

pub(crate) use client::connect;
pub(crate) use server::{listen, serve};
