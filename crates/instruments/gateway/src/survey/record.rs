//! What one connection of a survey came to: a line of JSON.

use serde::{Deserialize, Serialize};
use units::named;

/// The schema of a line.
pub const RECORD_SCHEMA: u32 = 1;

named! {
    /// How a connection is begun.
    pub enum Way: "way" {
        /// TCP as ever: the question follows the handshake.
        Plain = "plain",
        /// The question rides in the SYN, without Fast Open's option: as SSLmTCP does.
        SynData = "syn-data",
        /// The question rides in the SYN beside a Fast Open cookie (RFC 7413).
        FastOpen = "fast-open",
    }
}

named! {
    /// What became of data on a SYN or SYN+ACK.
    pub enum Fate: "fate" {
        /// They came, unchanged.
        Carried = "carried",
        /// The segment came, without all of its data: something took them out, or did not let them in.
        Stripped = "stripped",
        /// The segment did not come; without data it did.
        Dropped = "dropped",
        /// They came, and not as they were sent.
        Changed = "changed",
        /// There was no connection, or it broke.
        Failed = "failed",
        /// None were sent.
        NotSent = "not-sent",
    }
}

/// One connection of a survey.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The version of the record's form: [`RECORD_SCHEMA`].
    pub schema: u32,
    /// When it began, in milliseconds since 1970.
    pub at_unix_ms: u64,
    /// What the user calls the network that was asked from; empty if nothing.
    pub network: String,
    /// The server, as the user named it.
    pub server: String,
    /// The server's TCP port.
    pub port: u16,
    /// How it was begun.
    pub way: Way,
    /// Bytes of data that were to ride on the SYN; of `plain` those that followed the handshake.
    pub syn_bytes: u16,
    /// Bytes of data that were wanted on the SYN+ACK.
    pub syn_ack_bytes: u16,
    /// What became of those on the SYN.
    pub syn: Fate,
    /// What became of those on the SYN+ACK.
    pub syn_ack: Fate,
    /// Until the SYN was answered, in milliseconds; null without an answer.
    pub connect_ms: Option<f64>,
    /// SYNs that were sent again.
    pub syn_retransmissions: u32,
    /// Why there was no connection, or it broke; null otherwise.
    pub failure: Option<String>,
}

impl Record {
    /// Whether everything came that was sent on the SYN and, if wanted, on the SYN+ACK.
    #[must_use]
    pub fn survived(&self) -> bool {
        let good = |fate| matches!(fate, Fate::Carried | Fate::NotSent);
        good(self.syn) && good(self.syn_ack)
    }
}
