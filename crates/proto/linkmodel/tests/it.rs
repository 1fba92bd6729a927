//! The link model from outside.

mod common;
mod config;
mod drive;
mod exact;
mod middlebox;
mod properties;
