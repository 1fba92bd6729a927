//! The data planes from outside: examples of the standards, and what a hostile peer may try.

mod common;
mod esp;
mod macsec;
mod mka;
mod sizes;
mod wireguard;
