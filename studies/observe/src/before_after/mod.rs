//! Two sets of records, before a change and after it: what got worse for clients, and how sure that is.
//!
//! A [`Side`] takes the records of each, in bounded memory; [`compare`] says what lies between, group by
//! group: all, each version, each version and class, each client network, each server name. Compared are
//! one time of those handshakes that completed, the share of resumptions among these, and the share of
//! failures among all.
//!
//! # How sure
//! Times are compared by the Hodges-Lehmann shift and the Mann-Whitney test on a fair draw of each
//! group's handshakes, shares by Newcombe's interval and Fisher's test. A verdict needs a change by the
//! threshold at least, and a false discovery rate of at most 5 % over everything that is compared: with
//! hundreds of networks, some change by chance. Connections of one client are not independent of each
//! other, so that intervals are somewhat too narrow where a few clients make most of the connections.
//!
//! # What it cannot tell
//! Whether the server or the clients changed. The clients' round-trip times are compared beside: where
//! they moved, so did who came, or from where.

mod drawn;
mod judge;
mod present;
mod side;
#[cfg(test)]
mod tests;

pub use judge::{Asked, Changed, Compared, Measure, compare};
pub use side::{Bounds, Group, Side, Timed};
