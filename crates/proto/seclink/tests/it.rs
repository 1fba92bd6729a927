//! The data planes from outside: examples of the standards, and what a hostile peer may try.

mod attack;
mod common;
mod esp;
mod macsec;
mod mka;
mod mtu;
mod nonces;
mod paths;
mod sizes;
mod transport;
mod wireguard;
