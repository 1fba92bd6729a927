//! What a completed connection gives.

use std::net::SocketAddr;
use std::time::Duration;

use crate::cpu::CpuScope;
use crate::quic::QuicInfo;
use crate::tcp::{SynData, TcpInfo};
use crate::{Failure, Timeline};

/// Bytes of the response that are kept; the rest is only counted.
pub const KEPT_RESPONSE: usize = 4096;

/// One completed connection, as the client saw it.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// This side's address and port: with `remote` it names the connection in a capture.
    pub local: SocketAddr,
    /// The server's address and port.
    pub remote: SocketAddr,
    /// When each step happened.
    pub timeline: Timeline,
    /// What TLS says; `None` for plain TCP.
    pub facts: Option<tls::Facts>,
    /// The server's certificates (DER), the leaf first; QUIC only, and none when resumed.
    pub chain: Vec<Vec<u8>>,
    /// Tickets that arrived, oldest first; over QUIC only the newest.
    pub tickets: Vec<tls::Ticket>,
    /// CPU time spent on it.
    pub cpu: Duration,
    /// What `cpu` covers.
    pub cpu_scope: CpuScope,
    /// CPU time inside the TLS library until the first response byte was read; `None` where it is
    /// not told apart.
    pub crypto: Option<Duration>,
    /// What became of data in the SYN: by TCP Fast Open, or by SSLmTCP.
    pub syn_data: SynData,
    /// Bytes given to TCP before the SYN-ACK: with Fast Open and SSLmTCP, those that ride in the SYN.
    pub syn_bytes: usize,
    /// Whether the request went out as early data first. Whether that was accepted, `facts` say.
    pub early_request: bool,
    /// The response, its first [`KEPT_RESPONSE`] bytes.
    pub response: Vec<u8>,
    /// Bytes of response read.
    pub response_len: usize,
    /// Writes to TCP: one a flight.
    pub writes: u32,
    /// How many of them the kernel took only in part, so that the flight was more than one write.
    pub partial_writes: u32,
    /// TCP_INFO at the end of the exchange, before FIN, or what our own TCP says in its terms; `None`
    /// for QUIC.
    pub tcp: Option<TcpInfo>,
    /// QUIC's counters at the end of the exchange; `None` for TCP.
    pub quic: Option<QuicInfo>,
}

impl Outcome {
    /// Whether the request was read by the server as early data.
    #[must_use]
    pub fn early_data_accepted(&self) -> bool {
        let accepted = |facts: &tls::Facts| facts.early_data == tls::EarlyData::Accepted;
        self.early_request && self.facts.as_ref().is_some_and(accepted)
    }

    /// Whether an earlier session was resumed.
    #[must_use]
    pub fn resumed(&self) -> bool {
        self.facts.as_ref().is_some_and(|facts| facts.resumed)
    }
}

/// What a study keeps of a connection: completed or not.
pub type Attempt = Result<Outcome, Failure>;
