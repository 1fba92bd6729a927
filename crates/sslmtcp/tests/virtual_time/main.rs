//! Client, server and path in virtual time, without sockets: two TCP endpoints with a carrier on
//! each connection. Times are exact.

#[path = "../common/mod.rs"]
mod common;
mod host;
mod profiles;
mod sweep;
