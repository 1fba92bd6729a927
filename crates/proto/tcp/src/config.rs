//! What an endpoint, a connection and a listener are told.

use std::net::SocketAddr;
use std::time::Duration;

use crate::congestion::Congestion;

/// How an [`Endpoint`](crate::Endpoint) behaves. The default suits an Internet host.
#[derive(Debug, Clone)]
pub struct Config {
    /// Largest IP packet in bytes that the link takes; at least 576 with IPv4, 1280 with IPv6.
    pub mtu: u16,
    /// Largest IP packet in bytes that the device takes to cut into segments itself; 0 for none.
    pub max_super_segment: usize,
    /// Most bytes in a connection's send buffer. Memory is taken on demand.
    pub send_buffer: usize,
    /// Bytes that may be written beyond what was sent, or a congestion window's if that is more; `None`:
    /// as many as [`Config::send_buffer`] holds. What is written is in order, and nothing more urgent
    /// gets past it: so Linux tunes a send buffer to twice the congestion window, and takes
    /// TCP_NOTSENT_LOWAT.
    pub send_ahead: Option<usize>,
    /// Bytes of its send buffer that are each connection's own, whatever the others hold; at least 1.
    pub send_initial: usize,
    /// Bytes that all send buffers together may take beside [`Config::send_initial`]. No connection takes
    /// more than half of what is left, so that one whose peer does not read leaves some to the others.
    pub send_memory: usize,
    /// Most bytes in a connection's receive buffer, and so in its window. Memory is taken on demand.
    pub receive_buffer: usize,
    /// The window that a connection begins with, in bytes. It grows with what the application reads
    /// in a round trip, up to [`Config::receive_buffer`]: a peer that has sent nothing yet is not
    /// promised more. Twice of it is each connection's to hold, whatever the others do.
    pub receive_initial: usize,
    /// Bytes that all connections together may hold of what was received, beside what is each
    /// one's own ([`Config::receive_initial`]). As it runs out windows stop to grow and are told no
    /// larger than half of what is left; once it is used up, segments for which there is no memory
    /// are dropped and sent again by the peer.
    pub receive_memory: usize,
    /// Which congestion control.
    pub congestion: Congestion,
    /// Whether small segments wait while data are unacknowledged (RFC 9293 §3.7.4, RFC 1122 §4.2.3.4).
    pub nagle: bool,
    /// How long an acknowledgment may wait (RFC 9293 §3.8.6.3: below 0.5 s).
    pub delayed_ack: Duration,
    /// Whether and when an idle peer is asked whether it is there (RFC 9293 §3.8.4).
    pub keep_alive: Option<KeepAlive>,
    /// How long TIME-WAIT lasts (RFC 9293 §3.6.1: 2 MSL; Linux's 60 s).
    pub time_wait: Duration,
    /// How long FIN-WAIT-2 waits for the peer's FIN once the application is gone.
    pub fin_wait: Duration,
    /// How long a connection may go on once the application is gone, beside a second for every
    /// [`Config::orphan_rate`] bytes that it has yet to send. It is reset then, whatever the peer
    /// acknowledges meanwhile.
    pub orphan_wait: Duration,
    /// Bytes per second that the peer of such a connection is to take at least, so that what it is
    /// sent can arrive whole; at least 1. With the default 4 MiB may take 256 s.
    pub orphan_rate: usize,
    /// Most connections whose application is gone and that have data to send; beyond it the oldest
    /// are reset (Linux: tcp_max_orphans).
    pub max_orphans: usize,
    /// Retransmission timeout before the first sample (RFC 6298 §2.1).
    pub initial_rto: Duration,
    /// Least retransmission timeout. RFC 6298 §2.4 says 1 s, Linux 200 ms, and so do we.
    pub min_rto: Duration,
    /// Largest retransmission timeout (RFC 6298 §2.5: 60 s or more).
    pub max_rto: Duration,
    /// Times that a SYN is sent again before the attempt is given up.
    pub syn_retries: u32,
    /// Times that a SYN-ACK is sent again.
    pub syn_ack_retries: u32,
    /// Timeouts in a row after which a connection is given up (RFC 9293 §3.8.3).
    pub retries: u32,
    /// Whether selective acknowledgments are offered (RFC 2018).
    pub sack: bool,
    /// Whether timestamps are offered (RFC 7323).
    pub timestamps: bool,
    /// Whether window scaling is offered (RFC 7323).
    pub window_scale: bool,
    /// How long the SYN-ACK to a SYN with data waits for [`Endpoint::answer`](crate::Endpoint::answer).
    pub answer_patience: Duration,
    /// Most connections, half-open ones included.
    pub max_connections: usize,
    /// Most half-open connections whose SYN carried data that were taken. Those that a RST ended are
    /// counted for [`Config::reset_counted`] more, since a forger can send it (RFC 7413 §5.1).
    pub max_half_open_with_data: usize,
    /// How long a half-open connection with data that a RST ended keeps its place (Linux: 60 s).
    pub reset_counted: Duration,
    /// SYNs with data that are taken in a second from addresses that are not validated, with up to
    /// a second's worth saved up. Beyond it a SYN's data are not taken, which costs the client a
    /// round trip and the server nothing: a TLS server makes a signature for each that is.
    ///
    /// The default costs a tenth of a core with ECDSA P-256 (some 0.2 ms for a handshake) and less
    /// than half of one with RSA-2048 (some 0.8 ms).
    pub unvalidated_rate: u32,
    /// Most half-open connections of ordinary SYNs; beyond it SYN cookies answer (RFC 4987 §3.6).
    pub max_half_open_plain: usize,
    /// Most connections in TIME-WAIT; the oldest make room.
    pub max_time_wait: usize,
    /// How long a destination whose path dropped a SYN with data gets bare ones (RFC 7413 §4.1.3.1); at most 10 s
    /// where the one before got through.
    pub black_hole_memory: Duration,
    /// Destinations that are remembered, for black holes and cookies each.
    pub max_destinations: usize,
    /// Whether a segment of no connection is answered by RST (RFC 9293 §3.10.7.1). Off where the
    /// kernel owns the address too.
    pub resets: bool,
}

/// When an idle peer is asked whether it is there (RFC 9293 §3.8.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeepAlive {
    /// Idle time before the first probe.
    pub idle: Duration,
    /// Time between probes.
    pub interval: Duration,
    /// Probes without an answer before the connection is given up.
    pub probes: u32,
}

impl Config {
    /// The window that a connection begins with.
    pub(crate) fn first_window(&self) -> usize {
        self.receive_initial.min(self.receive_buffer)
    }

    /// Bytes of receive memory that are each connection's own.
    pub(crate) fn own_receive_memory(&self) -> usize {
        2 * self.first_window()
    }
}

impl Default for Config {
    fn default() -> Self {
        Config {
            mtu: 1500,
            max_super_segment: 0,
            send_buffer: 4 << 20,
            send_ahead: None,
            send_initial: 64 << 10,
            send_memory: 256 << 20,
            receive_buffer: 6 << 20,
            receive_initial: 64 << 10,
            receive_memory: 256 << 20,
            congestion: Congestion::Cubic,
            nagle: false,
            delayed_ack: Duration::from_millis(40),
            keep_alive: None,
            time_wait: Duration::from_secs(60),
            fin_wait: Duration::from_secs(60),
            orphan_wait: Duration::from_secs(60),
            orphan_rate: 16 << 10,
            max_orphans: 1024,
            initial_rto: Duration::from_secs(1),
            min_rto: Duration::from_millis(200),
            max_rto: Duration::from_secs(120),
            syn_retries: 6,
            syn_ack_retries: 5,
            retries: 15,
            sack: true,
            timestamps: true,
            window_scale: true,
            answer_patience: Duration::from_millis(200),
            max_connections: 1 << 20,
            max_half_open_with_data: 1024,
            reset_counted: Duration::from_secs(60),
            unvalidated_rate: 500,
            max_half_open_plain: 4096,
            max_time_wait: 16_384,
            black_hole_memory: Duration::from_secs(3600),
            max_destinations: 4096,
            resets: true,
        }
    }
}

/// What becomes of the SYN's data if the peer acknowledges the SYN alone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum IfRefused {
    /// They are sent again as the stream's first bytes, as with Fast Open (RFC 7413 §4.2.2).
    #[default]
    Resend,
    /// They are taken out of the stream, which the application begins anew.
    Withdraw,
}

/// How a connection is opened.
#[derive(Debug, Clone)]
pub struct ConnectOptions {
    /// The stream's first bytes, to ride in the SYN. Empty: an ordinary SYN. What the SYN cannot
    /// hold follows after the handshake.
    pub syn_data: Vec<u8>,
    /// What becomes of them if the peer does not take them.
    pub if_refused: IfRefused,
    /// Whether a Fast Open cookie is asked for, and used (RFC 7413).
    pub fast_open_cookie: bool,
    /// How long the ACK of a SYN-ACK with data waits for data to ride on.
    pub hold_ack: Duration,
}

impl Default for ConnectOptions {
    fn default() -> Self {
        ConnectOptions {
            syn_data: Vec::new(),
            if_refused: IfRefused::Resend,
            fast_open_cookie: false,
            hold_ack: Duration::from_millis(25),
        }
    }
}

/// A SYN that carries data, as [`ListenOptions::admit`] sees it.
#[derive(Debug, Clone, Copy)]
pub struct SynWithData<'a> {
    /// TCP segment length in bytes: IP total length less the IP header (document §4.2).
    pub segment_len: usize,
    /// The SYN's data.
    pub payload: &'a [u8],
    /// Who sent it, by its own word.
    pub remote: SocketAddr,
}

/// How a listener treats those who come.
#[derive(Debug, Clone, Copy)]
pub struct ListenOptions {
    /// Connections that wait for [`Endpoint::accept`](crate::Endpoint::accept) at most.
    pub backlog: usize,
    /// Whether the data of a SYN are taken; if not, only its SYN is acknowledged.
    pub admit: fn(&SynWithData<'_>) -> bool,
    /// Whether Fast Open cookies are issued and accepted (RFC 7413).
    pub cookies: bool,
}

impl Default for ListenOptions {
    /// Takes no data from SYNs.
    fn default() -> Self {
        ListenOptions { backlog: 1024, admit: |_| false, cookies: false }
    }
}
