//! OpenSSL, over buffers in memory.

mod client;
mod context;
mod fault;
mod ffi;
mod pipe;
mod server;
mod session;

pub(crate) use client::Client;
pub(crate) use fault::library as failed;
pub(crate) use ffi::{key_name, make_key};
pub(crate) use server::Server;
