//! Client, server and path without sockets: two carriers, or two TCP endpoints with a carrier on
//! each connection in virtual time. Times are exact.

mod carrier;
mod host;
mod profiles;
mod sweep;
