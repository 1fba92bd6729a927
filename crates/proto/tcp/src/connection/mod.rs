//! One connection (RFC 9293 §3.3.2), as the endpoint drives it.
//!
//! | file | what |
//! |---|---|
//! | `open` | how a connection begins, and the segments of its handshake |
//! | `simultaneous` | SYNs that cross |
//! | `input` | segments in (RFC 9293 §3.10.7) |
//! | `output` | segments out |
//! | `receive` | what is received and read, and how the window grows with it |
//! | `send` | what is written, and how far ahead |
//! | `icmp` | messages of routers and hosts about packets of ours |
//! | `timers` | what happens when nothing comes |
//!
//! Offsets are those of the streams: 0 is the byte behind SYN.

mod icmp;
mod input;
mod open;
mod output;
mod receive;
mod send;
mod simultaneous;
mod timers;

use std::net::SocketAddr;
use std::time::Duration;

use units::{SeqNumber, Time};

use crate::config::{Config, IfRefused};
use crate::destinations::Cookie;
use crate::event::{CloseReason, ListenerId, StreamError};
use crate::info::{IcmpKind, Info, State, SynData};
use crate::receive_buffer::ReceiveBuffer;
use crate::recovery::Recovery;
use crate::segment::ip_header_len;
use crate::send_buffer::SendBuffer;
use crate::time_wait::Final;

pub(crate) use input::{Context, Reply};
pub(crate) use open::{Accepted, Opening};

/// Bytes that a half-open connection takes beside the data of its SYN and its answer (at most
/// 32 KiB).
pub const HALF_OPEN_BYTES: usize = size_of::<Connection>() + size_of::<Handshake>() + 256;

/// Bytes of a timestamps option with its padding (RFC 7323 §3).
const TIMESTAMPS_LEN: usize = 12;
/// The server sends at most so many times what it received before the address is validated
/// (RFC 9000 §8.1).
const AMPLIFICATION_LIMIT: usize = 3;
/// Of these, so many bytes are kept for bare SYN-ACKs sent again: with its data alone lost and nothing to
/// say, a client would wait for ever (RFC 9002 §6.2.2.1 has QUIC's case).
const SYN_ACK_RESERVE: usize = 3 * 60;
/// Bytes that wait to be sent to an address that is not validated, at most.
pub(crate) const MAX_UNVALIDATED: usize = 32 << 10;
/// MSS of a peer that tells none (RFC 9293 §3.7.1).
const DEFAULT_MSS: usize = 536;
/// No segments are cut smaller, whatever the peer's MSS.
const LEAST_MSS: usize = 64;
/// Segments that are acknowledged at once at the start, when the peer's window is small.
const QUICK_ACKS: u8 = 16;
/// Least time between two ACKs for segments that carry nothing and are not acceptable
/// (RFC 5961 §7).
const CHALLENGE_INTERVAL: Duration = Duration::from_millis(100);

/// Events that wait to be polled, as a set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Pending(u8);

impl Pending {
    pub(crate) const INCOMING: Pending = Pending(1);
    pub(crate) const REFUSED: Pending = Pending(2);
    pub(crate) const CONNECTED: Pending = Pending(4);
    pub(crate) const ESTABLISHED: Pending = Pending(8);
    pub(crate) const READABLE: Pending = Pending(16);
    pub(crate) const WRITABLE: Pending = Pending(32);
    pub(crate) const FINISHED: Pending = Pending(64);
    pub(crate) const CLOSED: Pending = Pending(128);

    pub(crate) fn add(&mut self, other: Pending) {
        self.0 |= other.0;
    }

    /// Takes the first in the order above.
    pub(crate) fn take(&mut self) -> Option<Pending> {
        let lowest = self.0 & self.0.wrapping_neg();
        self.0 &= !lowest;
        (lowest != 0).then_some(Pending(lowest))
    }

    pub(crate) fn has(self, other: Pending) -> bool {
        self.0 & other.0 != 0
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// Where the handshake of a connection is; gone once it is over.
#[derive(Debug, Clone)]
struct Handshake {
    /// SYN or SYN-ACK is to be sent.
    due: bool,
    /// Times that it was sent.
    sent: u32,
    sent_at: Time,
    /// When it is sent again.
    again_at: Option<Time>,
    rto: Duration,
    /// Server, after a SYN with data: until when the SYN-ACK waits for the answer.
    answer_by: Option<Time>,
    /// Client: bytes of the stream that the SYN carried.
    syn_data: usize,
    if_refused: IfRefused,
    hold_ack: Duration,
    /// Client: nothing rides in the SYN from now on.
    bare: bool,
    /// Client: a Fast Open cookie is asked for, and what is known of one. Server: the one to give.
    ask_cookie: bool,
    cookie: Option<Cookie>,
    /// Server: bytes received and sent before the client's address is validated.
    received: usize,
    spent: usize,
    validated: bool,
    /// What the peer's SYN offered, in SYN-RECEIVED.
    offered: open::Offered,
    simultaneous: bool,
}

/// As what a half-open connection is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HalfOpen {
    /// Its SYN's data, if any, were not taken.
    Plain,
    /// Its SYN's data were taken.
    WithData,
    /// They were, with a Fast Open cookie that validates the address.
    Validated,
}

impl HalfOpen {
    /// Whether the SYN's data were taken.
    pub(crate) fn is_with_data(self) -> bool {
        self != HalfOpen::Plain
    }
}

/// Bytes of memory, for what was received and for what is to be sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Memory {
    pub receive: usize,
    pub send: usize,
}

/// What is to be acknowledged, and when.
#[derive(Debug, Clone, Copy, Default)]
struct AckState {
    now: bool,
    /// Full segments since the last acknowledgment.
    segments: u32,
    by: Option<Time>,
    /// The ACK of a SYN-ACK with data waits for the application's flight.
    held: bool,
    quick: u8,
    last_challenge: Option<Time>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Timers {
    /// Zero-window probe (RFC 9293 §3.8.6.1), and how many went unanswered.
    persist: Option<Time>,
    probes: u32,
    backoff: u32,
    probe_due: bool,
    keep_alive: Option<Time>,
    keep_alive_probes: u32,
    keep_alive_due: bool,
    /// FIN-WAIT-2 of a released connection.
    fin_wait: Option<Time>,
    /// A released connection is reset then.
    orphan: Option<Time>,
}

/// A connection. About 1 kB, and what its buffers hold.
#[derive(Debug)]
pub(crate) struct Connection {
    pub state: State,
    pub local: SocketAddr,
    pub remote: SocketAddr,
    pub listener: Option<ListenerId>,
    /// The application has it.
    pub owned: bool,
    /// The application is done with it.
    pub released: bool,
    pub pending: Pending,
    pub closed: Option<CloseReason>,
    /// The endpoint's: in the queue of those who may have something to send; in that of events;
    /// earliest entry in the timer heap.
    pub queued: bool,
    pub reported: bool,
    pub scheduled: Option<Time>,
    /// Put before accept().
    pub offered: bool,
    /// Counted as half-open.
    pub half_open: Option<HalfOpen>,
    /// Counted as an orphan.
    pub orphan: bool,
    /// What it holds, as it was counted last.
    pub held: Memory,
    iss: SeqNumber,
    irs: SeqNumber,
    /// Largest IP packet to the peer, and the payload of a full segment by that and the peer's MSS.
    path_mtu: u16,
    peer_mss: u16,
    mss: usize,
    /// Payload of the segments that are sent: less than `mss` if the peer's windows are small.
    segment: usize,
    timestamps: bool,
    sack: bool,
    send_shift: u8,
    receive_shift: u8,
    timestamp_offset: u32,
    /// TS.Recent (RFC 7323 §4.3) and when it was set.
    ts_recent: u32,
    ts_recent_at: Time,
    send: SendBuffer,
    /// The application has closed its direction.
    fin: bool,
    fin_acked: bool,
    receive: ReceiveBuffer,
    tuning: receive::Tuning,
    peer_fin: Option<u64>,
    peer_fin_seen: bool,
    recovery: Recovery,
    /// Peer's window: its right edge as an offset, its size, and the largest ever seen.
    window_end: u64,
    window: u32,
    max_window: u32,
    wl1: u64,
    wl2: u64,
    /// Right edge that we have advertised, as an offset.
    advertised: u64,
    /// RCV.NXT as the last ACK said.
    last_ack_sent: u64,
    ack: AckState,
    timers: Timers,
    last_received: Time,
    handshake: Option<Box<Handshake>>,
    syn_data: SynData,
    syn_bytes: usize,
    syn_ack_bytes: usize,
    syn_segment_len: usize,
    syn_retransmissions: u32,
    identification: u16,
    /// [`Config::send_ahead`].
    send_ahead: Option<usize>,
    write_blocked: bool,
    /// Data came for an application that is gone: the endpoint resets.
    pub abort_pending: bool,
    /// A last ACK is owed: of the FIN that ended the connection.
    pub last_ack_due: bool,
    /// The last ICMP error that ended nothing (RFC 9293 §3.9.2.2), until the peer is heard again.
    icmp_error: Option<IcmpKind>,
}

/// Largest segment worth sending to a peer whose windows never exceeded `window` bytes: half of it, so that the peer
/// has room for another when it has read one. A receiver whose buffer holds no two segments may tell a closed window
/// for good (RFC 9293 §3.8.6.2.2). Windows of a default MSS or less are used whole, as Linux does.
fn largest_worth(window: u32) -> usize {
    match window as usize {
        0 => usize::MAX,
        window @ ..=DEFAULT_MSS => window.max(LEAST_MSS),
        window => window / 2,
    }
}

impl Connection {
    /// SND.UNA as an offset in the stream.
    fn una(&self) -> u64 {
        self.recovery.acknowledged()
    }

    /// Offset behind the last byte to be sent, FIN included.
    fn send_end(&self) -> u64 {
        self.send.end().saturating_add(u64::from(self.fin))
    }

    /// RCV.NXT as an offset; the peer's FIN counts once all before it is here.
    fn receive_next(&self) -> u64 {
        self.receive.next().saturating_add(u64::from(self.peer_fin_seen))
    }

    fn send_sequence(&self, offset: u64) -> SeqNumber {
        self.iss + 1 + offset as u32
    }

    fn receive_sequence(&self, offset: u64) -> SeqNumber {
        self.irs + 1 + offset as u32
    }

    /// The offset that `seq` has in the peer's stream, taken as near to RCV.NXT; -1 is its SYN.
    fn receive_offset(&self, seq: SeqNumber) -> i64 {
        let next = self.receive_next();
        let distance = seq.distance(self.receive_sequence(next));
        (next as i64).saturating_add(i64::from(distance))
    }

    /// The offset that `ack` has in our stream, taken as near to SND.UNA; -1 acknowledges nothing.
    fn ack_offset(&self, ack: SeqNumber) -> i64 {
        let una = self.una();
        let distance = ack.distance(self.send_sequence(una));
        (una as i64).saturating_add(i64::from(distance))
    }

    /// The payload of a full segment, less the options in each.
    fn update_mss(&mut self) {
        let ip = ip_header_len(self.local.ip());
        let by_path = usize::from(self.path_mtu).saturating_sub(ip + 20);
        let options = if self.timestamps { TIMESTAMPS_LEN } else { 0 };
        self.mss = by_path.min(usize::from(self.peer_mss)).saturating_sub(options).max(LEAST_MSS);
        self.segment = self.mss.min(largest_worth(self.max_window));
    }

    /// After the peer has told a larger window than ever.
    fn update_segment(&mut self) {
        let segment = self.mss.min(largest_worth(self.max_window));
        if segment != self.segment {
            self.segment = segment;
            self.recovery.set_mss(segment);
        }
    }

    /// TSval for `now` (RFC 7323 §5.4: a tick of 1 ms).
    fn timestamp(&self, now: Time) -> u32 {
        ((now.as_nanos() / 1_000_000) as u32).wrapping_add(self.timestamp_offset)
    }

    /// Whether the application's data may go out and the peer's be taken.
    pub(crate) fn is_synchronised(&self) -> bool {
        !matches!(self.state, State::SynSent | State::SynReceived | State::Closed)
    }

    /// What its buffers hold.
    pub(crate) fn memory(&self) -> Memory {
        Memory { receive: self.receive.held(), send: self.send.held() }
    }

    /// FIN after what is queued (RFC 9293 §3.10.4).
    pub(crate) fn shutdown(&mut self) {
        if self.fin || self.closed.is_some() {
            return;
        }
        match self.state {
            State::Established => self.state = State::FinWait1,
            State::CloseWait => self.state = State::LastAck,
            // In SYN-SENT and SYN-RECEIVED the FIN waits for the handshake (RFC 9293 §3.10.4).
            _ => {}
        }
        self.fin = true;
    }

    /// The connection is over; its buffers of what was to be sent are of no use any more.
    pub(crate) fn close(&mut self, reason: CloseReason) {
        if self.closed.is_some() {
            return;
        }
        if self.state != State::TimeWait {
            self.state = State::Closed;
        }
        self.closed = Some(reason);
        self.send.acknowledge(self.send.end());
        self.handshake = None;
        self.timers = Timers::default();
        self.ack = AckState::default();
        self.pending.add(Pending::CLOSED);
    }

    /// The application is done with it. Bytes that it has not read are lost, which a RST tells the peer
    /// (RFC 9293 §3.6.1, SHLD-3).
    pub(crate) fn release(&mut self, now: Time, config: &Config) {
        self.released = true;
        let unread = self.receive.readable() > 0;
        self.receive.discard();
        if unread && self.closed.is_none() {
            self.abort_pending = true;
            return;
        }
        if self.state == State::SynSent && self.send.len() == 0 {
            self.close(CloseReason::Aborted);
        }
        self.shutdown();
        if self.state == State::FinWait2 {
            self.timers.fin_wait = Some(now + config.fin_wait);
        }
        if self.closed.is_none() {
            let seconds = self.send.len() / config.orphan_rate.max(1);
            self.timers.orphan =
                Some(now + config.orphan_wait + Duration::from_secs(seconds as u64));
        }
    }

    /// Whether the handshake of a passive open is under way.
    pub(crate) fn is_half_open(&self) -> bool {
        self.state == State::SynReceived && self.closed.is_none()
    }

    /// Whether its application is gone and its time is over.
    pub(crate) fn is_overdue(&self, now: Time) -> bool {
        self.closed.is_none() && self.timers.orphan.is_some_and(|at| at <= now)
    }

    /// Whether its application is gone and it has data to send.
    pub(crate) fn is_orphan(&self) -> bool {
        self.released && self.closed.is_none() && self.send.len() > 0
    }

    /// Over, with nothing left to read.
    pub(crate) fn is_done_unread(&self) -> bool {
        self.closed.is_some() && self.receive.readable() == 0
    }

    /// Whether nothing of it need be kept.
    pub(crate) fn is_done(&self) -> bool {
        self.closed.is_some() && (self.released || !self.owned)
    }

    pub(crate) fn info(&self) -> Info {
        let awaits = self.handshake.as_ref().filter(|_| self.state == State::SynSent);
        Info {
            state: self.state,
            local: self.local,
            remote: self.remote,
            syn_data: self.syn_data,
            syn_bytes: self.syn_bytes,
            syn_ack_bytes: self.syn_ack_bytes,
            syn_segment_len: self.syn_segment_len,
            segment_size: self.segment,
            smoothed_rtt: self.recovery.smoothed_rtt(),
            rto: awaits.map_or(self.recovery.rto(), |handshake| handshake.rto),
            congestion_window: self.recovery.congestion_window(),
            in_flight: self.recovery.in_flight(),
            unsent: self.unsent(),
            hold: self.hold(),
            icmp_error: self.icmp_error,
            retransmissions: self.recovery.retransmissions(),
            syn_retransmissions: self.syn_retransmissions,
            bytes_acked: self.una().min(self.send.end()),
            bytes_received: self.receive.next(),
        }
    }

    pub(crate) fn retransmissions(&self) -> u64 {
        self.recovery.retransmissions()
    }

    /// What TIME-WAIT has to know.
    pub(crate) fn final_numbers(&self) -> Final {
        Final {
            send_next: self.send_sequence(self.recovery.next()),
            receive_next: self.receive_sequence(self.receive_next()),
            timestamp: self.timestamps.then_some(self.ts_recent),
            window: self.window_field(),
        }
    }
}
