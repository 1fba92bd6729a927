//! How connections begin, and the segments of the handshake.

use wire::tcp::{Flags, OptionList};

use super::*;
use crate::destinations::Destinations;
use crate::info::{Counters, Transmit};
use crate::recovery::RecoveryConfig;
use crate::secrets::Secrets;
use crate::segment::{Outgoing, Segment};

/// What the peer's SYN offered.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Offered {
    mss: Option<u16>,
    window_scale: Option<u8>,
    sack: bool,
    timestamps: Option<u32>,
}

impl Offered {
    pub(super) fn of(options: &OptionList<'_>) -> Self {
        Offered {
            mss: options.mss,
            window_scale: options.window_scale,
            sack: options.sack_permitted,
            timestamps: options.timestamps.map(|(value, _)| value),
        }
    }
}

/// A connection to be begun by this side.
#[derive(Debug)]
pub(crate) struct Opening {
    pub local: SocketAddr,
    pub remote: SocketAddr,
    pub options: crate::ConnectOptions,
    pub black_hole: bool,
    pub cookie: Option<Cookie>,
}

/// How a SYN is taken by a listener.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Accepted {
    pub listener: ListenerId,
    /// Its data are taken, and an answer is awaited.
    pub with_data: bool,
    /// It came with a valid cookie.
    pub validated: bool,
    /// The cookie to give.
    pub give: Option<[u8; 8]>,
    /// The first sequence number that an earlier connection of these addresses has not used, if it is
    /// remembered: ours is beyond it (RFC 9293 §3.6.1).
    pub beyond: Option<SeqNumber>,
}

/// Sequence numbers between two connections of the same addresses, as in Linux.
const INCARNATIONS_APART: u32 = 65_537;

/// The later of two sequence numbers (RFC 9293 §3.4).
fn later(one: SeqNumber, other: SeqNumber) -> SeqNumber {
    if one.distance(other) >= 0 { one } else { other }
}

/// The shift that lets a window of `limit` bytes be told (RFC 7323 §2.3).
fn window_shift(limit: usize) -> u8 {
    (0..14).find(|shift| limit >> shift <= usize::from(u16::MAX)).unwrap_or(14)
}

impl Connection {
    fn new(local: SocketAddr, remote: SocketAddr, iss: SeqNumber, config: &Config) -> Self {
        let ip = ip_header_len(local.ip()) as u16;
        let default_mss = if local.is_ipv4() { 536 } else { 1220 };
        let mut connection = Connection {
            state: State::Closed,
            local,
            remote,
            listener: None,
            owned: false,
            released: false,
            pending: Pending::default(),
            closed: None,
            queued: false,
            reported: false,
            scheduled: None,
            offered: false,
            half_open: None,
            orphan: false,
            held: Memory::default(),
            iss,
            irs: SeqNumber(0),
            path_mtu: config.mtu.max(ip + 20 + 64),
            // RFC 9293 §3.7.1: if no MSS option comes.
            peer_mss: default_mss,
            mss: usize::from(default_mss),
            segment: usize::from(default_mss),
            timestamps: false,
            sack: false,
            send_shift: 0,
            receive_shift: 0,
            timestamp_offset: 0,
            ts_recent: 0,
            ts_recent_at: Time::ZERO,
            send: SendBuffer::new(config.send_buffer),
            fin: false,
            fin_acked: false,
            receive: ReceiveBuffer::new(config.first_window()),
            tuning: receive::Tuning::default(),
            peer_fin: None,
            peer_fin_seen: false,
            recovery: Recovery::new(&RecoveryConfig::default()),
            window_end: 0,
            window: 0,
            max_window: 0,
            wl1: 0,
            wl2: 0,
            advertised: 0,
            last_ack_sent: 0,
            ack: AckState { quick: QUICK_ACKS, ..AckState::default() },
            timers: Timers::default(),
            last_received: Time::ZERO,
            handshake: None,
            syn_data: SynData::None,
            syn_bytes: 0,
            syn_ack_bytes: 0,
            syn_segment_len: 0,
            syn_retransmissions: 0,
            identification: iss.0 as u16,
            send_ahead: config.send_ahead,
            write_blocked: false,
            abort_pending: false,
            last_ack_due: false,
            icmp_error: None,
        };
        connection.update_mss();
        connection
    }

    fn handshake(config: &Config) -> Box<Handshake> {
        Box::new(Handshake {
            due: true,
            sent: 0,
            sent_at: Time::ZERO,
            again_at: None,
            rto: config.initial_rto,
            answer_by: None,
            syn_data: 0,
            if_refused: IfRefused::Resend,
            hold_ack: Duration::ZERO,
            bare: false,
            ask_cookie: false,
            cookie: None,
            received: 0,
            spent: 0,
            validated: true,
            offered: Offered::default(),
            simultaneous: false,
        })
    }

    /// A connection that begins with our SYN (RFC 9293 §3.10.1).
    pub(crate) fn open(now: Time, opening: Opening, config: &Config, secrets: &Secrets) -> Self {
        let Opening { local, remote, options, black_hole, cookie } = opening;
        let iss = secrets.initial_sequence(now, local, remote);
        let mut this = Connection::new(local, remote, iss, config);
        this.state = State::SynSent;
        this.owned = true;
        this.timestamp_offset = secrets.timestamp_offset(local, remote);
        this.last_received = now;
        let mut handshake = Self::handshake(config);
        handshake.if_refused = options.if_refused;
        handshake.hold_ack = options.hold_ack;
        // A path that is known to fail is not asked.
        handshake.ask_cookie = options.fast_open_cookie && !black_hole;
        handshake.cookie = cookie;
        handshake.bare = black_hole;
        let data = options.syn_data;
        let fits = this.syn_room(config, &handshake).min(data.len());
        handshake.syn_data = this.send.write(data.get(..fits).unwrap_or_default());
        if !data.is_empty() {
            this.syn_data = if black_hole { SynData::BlackHole } else { SynData::Pending };
        }
        let withdrawn = black_hole && options.if_refused == IfRefused::Withdraw;
        if withdrawn {
            this.send.withdraw(handshake.syn_data as u64);
            handshake.syn_data = 0;
            this.pending.add(Pending::REFUSED);
        } else {
            this.send.write(data.get(fits..).unwrap_or_default());
        }
        this.handshake = Some(handshake);
        this
    }

    /// Bytes of data that fit into our SYN beside its options.
    fn syn_room(&self, config: &Config, handshake: &Handshake) -> usize {
        let options = self.syn_options(Time::ZERO, config, handshake, handshake.cookie.as_ref());
        let options = options.padded_len();
        let headers = ip_header_len(self.local.ip()) + 20 + options;
        usize::from(self.path_mtu).saturating_sub(headers)
    }

    /// A connection that begins with a peer's SYN (RFC 9293 §3.10.7.2).
    pub(crate) fn accept(
        now: Time,
        segment: &Segment<'_>,
        accepted: &Accepted,
        config: &Config,
        secrets: &Secrets,
    ) -> Self {
        let (local, remote) = (segment.local, segment.remote);
        let iss = secrets.initial_sequence(now, local, remote);
        let iss = accepted.beyond.map_or(iss, |used| later(iss, used + INCARNATIONS_APART));
        let mut this = Connection::new(local, remote, iss, config);
        this.state = State::SynReceived;
        this.listener = Some(accepted.listener);
        this.irs = segment.seq;
        this.timestamp_offset = secrets.timestamp_offset(local, remote);
        this.last_received = now;
        this.syn_segment_len = segment.segment_len;
        let mut handshake = Self::handshake(config);
        handshake.offered = Offered::of(&segment.options);
        handshake.validated = accepted.validated;
        handshake.received = segment.packet_len;
        handshake.cookie = accepted.give.and_then(|cookie| Cookie::new(&cookie));
        this.negotiate(now, handshake.offered, config);
        // The window in a SYN is never scaled (RFC 7323 §2.2).
        this.take_window(u32::from(segment.window), 0, 0);
        if accepted.with_data {
            handshake.due = false;
            handshake.answer_by = Some(now + config.answer_patience);
            let most = config.own_receive_memory();
            this.syn_bytes = this.receive.insert(0, segment.payload, most).accepted;
            this.syn_data = SynData::Accepted;
            this.pending.add(Pending::INCOMING);
        } else if !segment.payload.is_empty() {
            this.syn_data = SynData::Refused;
        }
        this.handshake = Some(handshake);
        this
    }

    /// A connection opened by the ACK of a SYN cookie (RFC 4987 §3.6): what its SYN offered is lost.
    pub(crate) fn accept_cookie(
        now: Time,
        segment: &Segment<'_>,
        (listener, mss): (ListenerId, u16),
        config: &Config,
    ) -> Self {
        let iss = segment.ack.unwrap_or_default() - 1;
        let mut this = Connection::new(segment.local, segment.remote, iss, config);
        this.listener = Some(listener);
        this.irs = segment.seq - 1;
        this.last_received = now;
        this.negotiate(now, Offered { mss: Some(mss), ..Offered::default() }, config);
        this.take_window(u32::from(segment.window), 0, 0);
        this.advertised = u64::from(u16::MAX).min(this.receive.window() as u64);
        this.state = State::Established;
        this.pending.add(Pending::INCOMING);
        this.pending.add(Pending::ESTABLISHED);
        this
    }

    /// Settles the options, the peer's SYN being known.
    pub(super) fn negotiate(&mut self, now: Time, offered: Offered, config: &Config) {
        self.peer_mss = offered.mss.unwrap_or(self.peer_mss).max(64);
        self.sack = config.sack && offered.sack;
        if let (true, Some(value)) = (config.timestamps, offered.timestamps) {
            self.timestamps = true;
            self.ts_recent = value;
            self.ts_recent_at = now;
        }
        if let (true, Some(shift)) = (config.window_scale, offered.window_scale) {
            // RFC 7323 §2.3: more than 14 counts as 14
            self.send_shift = shift.min(14);
            self.receive_shift = window_shift(config.receive_buffer);
        }
        self.update_mss();
        self.recovery = Recovery::new(&RecoveryConfig {
            mss: self.segment,
            congestion: config.congestion,
            sack: self.sack,
            timestamp_tick: Duration::from_millis(1),
            initial_rto: config.initial_rto,
            min_rto: config.min_rto,
            max_rto: config.max_rto,
            ..RecoveryConfig::default()
        });
    }

    pub(super) fn negotiate_from(&mut self, now: Time, options: &OptionList<'_>, config: &Config) {
        self.negotiate(now, Offered::of(options), config);
    }

    fn syn_options<'a>(
        &self,
        now: Time,
        config: &Config,
        handshake: &Handshake,
        cookie: Option<&'a Cookie>,
    ) -> OptionList<'a> {
        let is_answer = self.state == State::SynReceived;
        let agreed = |ours: bool, theirs: bool| ours && (!is_answer || theirs);
        let ip = ip_header_len(self.local.ip()) as u16;
        let offered = &handshake.offered;
        let cookie = match (is_answer, cookie.map(Cookie::as_slice)) {
            (_, Some(cookie)) => Some(cookie),
            (false, None) if handshake.ask_cookie => Some(&[][..]),
            _ => None,
        };
        // RFC 7413 §4.2.1: sent again, neither SYN nor SYN-ACK has the option.
        let first = if is_answer { handshake.sent == 0 } else { !handshake.bare };
        let fast_open = cookie.filter(|_| first);
        let echo = if is_answer { self.ts_recent } else { 0 };
        OptionList {
            mss: Some(config.mtu.saturating_sub(ip + 20)),
            window_scale: agreed(config.window_scale, offered.window_scale.is_some())
                .then(|| window_shift(config.receive_buffer)),
            sack_permitted: agreed(config.sack, offered.sack),
            timestamps: agreed(config.timestamps, offered.timestamps.is_some())
                .then(|| (self.timestamp(now), echo)),
            fast_open: fast_open.map(|cookie| wire::tcp::FastOpen { cookie, experimental: false }),
            ..OptionList::default()
        }
    }

    /// Server: what the client's address may still be sent, in bytes of IP packets.
    pub(super) fn budget(&self) -> usize {
        match &self.handshake {
            Some(handshake) if !handshake.validated => handshake
                .received
                .saturating_mul(AMPLIFICATION_LIMIT)
                .saturating_sub(handshake.spent),
            _ => usize::MAX,
        }
    }

    pub(super) fn spend(&mut self, bytes: usize) {
        if let Some(handshake) = &mut self.handshake {
            handshake.spent = handshake.spent.saturating_add(bytes);
        }
    }

    /// The SYN or SYN-ACK, if one is due.
    pub(super) fn transmit_handshake(
        &mut self,
        now: Time,
        config: &Config,
        buffer: &mut [u8],
    ) -> Option<Transmit> {
        let mut handshake = self.handshake.take()?;
        let transmit = if handshake.due {
            handshake.due = false;
            self.emit_handshake(now, config, &mut handshake, buffer)
        } else {
            None
        };
        self.handshake = Some(handshake);
        if let Some(transmit) = &transmit {
            self.spend(transmit.len);
        }
        transmit
    }

    fn emit_handshake(
        &mut self,
        now: Time,
        config: &Config,
        handshake: &mut Handshake,
        buffer: &mut [u8],
    ) -> Option<Transmit> {
        let is_answer = self.state == State::SynReceived;
        let cookie = handshake.cookie;
        let options = self.syn_options(now, config, handshake, cookie.as_ref());
        let headers = ip_header_len(self.local.ip()) + 20 + options.padded_len();
        let budget = if handshake.validated {
            usize::MAX
        } else {
            handshake.received.saturating_mul(AMPLIFICATION_LIMIT).saturating_sub(handshake.spent)
        };
        let wanted = self.handshake_data(handshake, is_answer);
        let room = usize::from(self.path_mtu).min(budget).checked_sub(headers);
        // RFC 6691 §2: the peer's MSS counts no options.
        let segment = usize::from(self.peer_mss).saturating_sub(options.padded_len());
        let most = segment.min(budget.saturating_sub(headers + SYN_ACK_RESERVE));
        // RFC 9293 §3.8.6: no more than the SYN's window takes.
        let most = most.min(self.window as usize);
        let wanted = if is_answer { wanted.min(most) } else { wanted };
        // The timer runs on even if the budget allows no SYN-ACK: the client's next SYN adds to it.
        self.note_handshake_sent(now, config, handshake);
        let data = wanted.min(room?);
        let window = self.receive.window().min(usize::from(u16::MAX));
        let outgoing = Outgoing {
            local: self.local,
            remote: self.remote,
            seq: self.iss,
            ack: is_answer.then(|| self.receive_sequence(self.receive_next())),
            flags: Flags::SYN,
            window: window as u16,
            options,
            identification: self.identification,
        };
        self.identification = self.identification.wrapping_add(1);
        let send = &self.send;
        let transmit = outgoing.emit(buffer, data, usize::MAX, |into| {
            let _ = send.copy(0, into);
        })?;
        self.advertised = self.receive.next().saturating_add(window as u64);
        self.last_ack_sent = self.receive_next();
        if is_answer {
            self.syn_ack_bytes = self.syn_ack_bytes.max(data);
            if data > 0 && self.recovery.next() == 0 {
                self.recovery.on_sent(now, 0..data as u64, false);
            }
        } else if data > 0 {
            self.syn_bytes = self.syn_bytes.max(data);
        }
        Some(transmit)
    }

    fn handshake_data(&self, handshake: &Handshake, is_answer: bool) -> usize {
        if is_answer {
            let taken = self.syn_data == SynData::Accepted && !handshake.simultaneous;
            // Sent again it is bare, and its data follow: the path may drop those with data.
            let first = handshake.sent == 0;
            if taken && first { self.send.len() } else { 0 }
        } else if handshake.bare {
            0
        } else {
            handshake.syn_data
        }
    }

    fn note_handshake_sent(&mut self, now: Time, config: &Config, handshake: &mut Handshake) {
        if handshake.sent > 0 {
            self.syn_retransmissions = self.syn_retransmissions.saturating_add(1);
        } else {
            handshake.sent_at = now;
        }
        handshake.sent = handshake.sent.saturating_add(1);
        handshake.again_at = Some(now + handshake.rto);
        let _ = config;
    }

    /// Server: the application's answer to a SYN with data is written, or it has none.
    pub(crate) fn answer(&mut self) {
        if let Some(handshake) = &mut self.handshake
            && handshake.answer_by.take().is_some()
        {
            handshake.due = true;
        }
    }

    /// Client: what the SYN-ACK says of the SYN's data; `taken` bytes of them are acknowledged.
    pub(super) fn settle_syn_data(
        &mut self,
        now: Time,
        taken: u64,
        destinations: &mut Destinations,
        counters: &mut Counters,
    ) {
        let Some(handshake) = &self.handshake else { return };
        if handshake.syn_data == 0 || self.syn_data == SynData::BlackHole {
            return;
        }
        // With SYNs that cross, the SYN-ACK counts as sent and says nothing of the path.
        let (sent_bare, again) = (handshake.bare && !handshake.simultaneous, handshake.sent > 1);
        let if_refused = handshake.if_refused;
        if taken > 0 {
            self.syn_data = SynData::Accepted;
            destinations.forget_black_hole(self.remote.ip());
            // The round trip of data on a SYN that was sent once is the SYN's.
            let sent_at = if again { now } else { handshake.sent_at };
            self.recovery.on_sent(sent_at, 0..taken, false);
            return;
        }
        self.syn_data = SynData::Refused;
        counters.syn_data_refused += 1;
        // The SYN with data had no answer and the bare one has: RFC 7413 §4.1.3.1
        if sent_bare && again {
            destinations.remember_black_hole(now, self.remote.ip());
            counters.black_holes += 1;
        }
        if if_refused == IfRefused::Withdraw {
            // What did not fit into the SYN goes too: the stream begins anew.
            self.send.withdraw(self.send.end());
            self.pending.add(Pending::REFUSED);
        }
    }
}
