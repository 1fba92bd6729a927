//! The link model from outside.

mod common;
mod config;
mod exact;
mod middlebox;
mod properties;
