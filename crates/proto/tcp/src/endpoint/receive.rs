//! Packets in: to their connection, to a listener, or nowhere (RFC 9293 §3.10.7).

use units::{SeqNumber, Time};
use wire::tcp::{Flags, OptionList};

use super::time_wait::Waited;
use super::{Endpoint, MAX_REPLIES, Stray};
use crate::config::SynWithData;
use crate::connection::{Accepted, Connection, Context, HalfOpen, Reply};
use crate::event::ListenerId;
use crate::icmp::{self, Reported};
use crate::segment::{Outgoing, Segment};
use crate::{Checksum, Ignored};

/// SYN cookies are accepted for so long after the last was sent (RFC 4987 §3.6).
const COOKIES_LIVE: std::time::Duration = std::time::Duration::from_secs(128);

impl Endpoint {
    /// Takes one whole IP packet: a segment, or an ICMP error about one of ours. Never panics, whatever it holds.
    ///
    /// # Errors
    /// Why it was ignored. It may have drawn an answer all the same.
    pub fn handle_packet(
        &mut self,
        now: Time,
        packet: &[u8],
        checksum: Checksum,
    ) -> Result<(), Ignored> {
        let segment = match Segment::parse(packet, checksum) {
            Ok(segment) => segment,
            Err(Ignored::NotTcp) => return self.take_icmp(now, packet),
            Err(ignored) => {
                self.counters.bad_checksums += u64::from(ignored == Ignored::Checksum);
                return Err(ignored);
            }
        };
        self.counters.segments_in += 1;
        let tuple = (segment.local, segment.remote);
        if let Some(index) = self.table.find(&tuple) {
            return self.give_to_connection(now, index, &segment);
        }
        let listener = self.listener_of(&segment);
        let beyond = match self.give_to_time_wait(now, &tuple, &segment, listener.is_some()) {
            Waited::Taken(result) => return result,
            Waited::Over { used } => Some(used),
            Waited::Unknown => None,
        };
        match listener {
            Some(listener) => self.give_to_listener(now, listener, &segment, beyond),
            None => {
                self.reset(&segment);
                Err(Ignored::NoConnection)
            }
        }
    }

    fn take_icmp(&mut self, now: Time, packet: &[u8]) -> Result<(), Ignored> {
        match icmp::parse(packet)? {
            Reported::PathMtu(reported) => self.set_path_mtu(now, reported),
            Reported::Error(reported) => self.report_icmp_error(now, reported),
        }
    }

    fn give_to_connection(
        &mut self,
        now: Time,
        index: u32,
        segment: &Segment<'_>,
    ) -> Result<(), Ignored> {
        let spare = self.spare();
        let Some(connection) = self.table.at_mut(index) else { return Err(Ignored::NoConnection) };
        let context = Context {
            config: &self.config,
            destinations: &mut self.destinations,
            counters: &mut self.counters,
            spare,
        };
        let result = connection.handle(now, segment, context);
        self.touch(now, index);
        if result? == Reply::Reset {
            self.reset(segment);
        }
        Ok(())
    }

    fn listener_of(&self, segment: &Segment<'_>) -> Option<ListenerId> {
        let local = segment.local;
        let mut any = None;
        for (id, listener) in &self.listeners {
            if listener.local.port() != local.port() {
                continue;
            }
            if listener.local.ip() == local.ip() {
                return Some(*id);
            }
            let same_family = listener.local.is_ipv4() == local.is_ipv4();
            if listener.local.ip().is_unspecified() && same_family {
                any = Some(*id);
            }
        }
        any
    }

    /// RFC 9293 §3.10.7.2
    fn give_to_listener(
        &mut self,
        now: Time,
        listener: ListenerId,
        segment: &Segment<'_>,
        beyond: Option<SeqNumber>,
    ) -> Result<(), Ignored> {
        if segment.is(Flags::RST) {
            return Err(Ignored::Unacceptable);
        }
        if segment.ack.is_some() {
            return self.redeem_syn_cookie(now, listener, segment);
        }
        // SYN and FIN together make no sense, and no SYN begins nothing.
        if !segment.is(Flags::SYN) || segment.is(Flags::FIN) {
            return Err(Ignored::Unacceptable);
        }
        self.begin(now, listener, segment, beyond)
    }

    /// A SYN for a listener.
    fn begin(
        &mut self,
        now: Time,
        listener: ListenerId,
        segment: &Segment<'_>,
        beyond: Option<SeqNumber>,
    ) -> Result<(), Ignored> {
        let mut accepted = self.judge(listener, segment);
        accepted.beyond = beyond;
        let no_room = self.table.len() >= self.config.max_connections;
        accepted.with_data =
            accepted.with_data && !no_room && self.admit_with_data(now, accepted.validated);
        let plain_full = self.counters.half_open_plain >= self.config.max_half_open_plain;
        if no_room || (!accepted.with_data && plain_full) {
            self.send_syn_cookie(now, segment, accepted.give);
            return Err(Ignored::NoRoom);
        }
        let mut connection =
            Connection::accept(now, segment, &accepted, &self.config, &self.secrets);
        connection.half_open = Some(match (accepted.with_data, accepted.validated) {
            (false, _) => HalfOpen::Plain,
            (true, false) => HalfOpen::WithData,
            (true, true) => HalfOpen::Validated,
        });
        let count = match accepted.with_data {
            true => &mut self.counters.half_open_with_data,
            false => &mut self.counters.half_open_plain,
        };
        *count += 1;
        self.counters.passive_opens += 1;
        self.counters.opens_with_data += u64::from(accepted.with_data);
        let id = self.table.insert(connection);
        if accepted.with_data {
            self.opened_with_data.push_back((now, id));
        }
        self.counters.connections = self.table.len();
        self.touch(now, id.index);
        Ok(())
    }

    /// What becomes of a SYN by the listener's options.
    fn judge(&mut self, listener: ListenerId, segment: &Segment<'_>) -> Accepted {
        let mut accepted =
            Accepted { listener, with_data: false, validated: false, give: None, beyond: None };
        let Some(listener) = self.listeners.get(&listener) else {
            return accepted;
        };
        let options = listener.options;
        let backlogged = listener.waiting.len() >= options.backlog;
        let mut forged = false;
        let (server, client) = (segment.local.ip(), segment.remote.ip());
        if let (true, Some(option)) = (options.cookies, segment.options.fast_open) {
            let cookie = self.secrets.fast_open_cookie(server, client);
            if option.cookie == cookie {
                accepted.validated = true;
                self.counters.fast_open_cookies_accepted += 1;
            } else {
                // RFC 7413 §4.1.2: a request, or a cookie of old: then the data are not taken
                forged = !option.cookie.is_empty();
                accepted.give = Some(cookie).filter(|_| !option.experimental);
            }
        }
        if !segment.payload.is_empty() {
            let syn = SynWithData {
                segment_len: segment.segment_len,
                payload: segment.payload,
                remote: segment.remote,
            };
            accepted.with_data = !backlogged && !forged && (options.admit)(&syn);
        }
        accepted
    }

    /// No room is left: the SYN-ACK's sequence number says all that is to be kept (RFC 4987 §3.6).
    fn send_syn_cookie(&mut self, now: Time, segment: &Segment<'_>, give: Option<[u8; 8]>) {
        let tuple = (segment.local, segment.remote);
        let mss = segment.options.mss.unwrap_or(536);
        let cookie = self.secrets.syn_cookie(now, tuple, segment.seq, mss);
        let ip = crate::segment::ip_header_len(segment.local.ip()) as u16;
        let outgoing = Outgoing {
            local: segment.local,
            remote: segment.remote,
            seq: cookie,
            ack: Some(segment.seq + 1),
            flags: Flags::SYN,
            window: u16::MAX,
            options: OptionList {
                mss: Some(self.config.mtu.saturating_sub(ip + 20)),
                ..OptionList::default()
            },
            identification: cookie.0 as u16,
        };
        self.counters.syn_cookies_sent += 1;
        self.cookies_until = now + COOKIES_LIVE;
        self.push(outgoing, give);
    }

    /// An ACK for a listener: of a SYN cookie, or of nothing.
    fn redeem_syn_cookie(
        &mut self,
        now: Time,
        listener: ListenerId,
        segment: &Segment<'_>,
    ) -> Result<(), Ignored> {
        let tuple = (segment.local, segment.remote);
        let ours = segment.ack.unwrap_or_default() - 1;
        let valid = now < self.cookies_until
            && !segment.is(Flags::SYN)
            && self.table.len() < self.config.max_connections;
        let mss = valid
            .then(|| self.secrets.check_syn_cookie(now, tuple, segment.seq - 1, ours))
            .flatten();
        let Some(mss) = mss else {
            self.reset(segment);
            return Err(Ignored::NoConnection);
        };
        self.counters.syn_cookies_accepted += 1;
        let connection = Connection::accept_cookie(now, segment, (listener, mss), &self.config);
        let id = self.table.insert(connection);
        self.counters.connections = self.table.len();
        self.give_to_connection(now, id.index, segment)
    }

    /// RST for a segment of no connection (RFC 9293 §3.10.7.1).
    fn reset(&mut self, segment: &Segment<'_>) {
        if segment.is(Flags::RST) || !self.config.resets {
            return;
        }
        let (seq, ack) = match segment.ack {
            Some(ack) => (ack, None),
            None => (SeqNumber(0), Some(segment.seq + segment.sequence_len())),
        };
        let outgoing = Outgoing {
            local: segment.local,
            remote: segment.remote,
            seq,
            ack,
            flags: Flags::RST,
            window: 0,
            options: OptionList::default(),
            identification: 0,
        };
        self.push_reset(Some(outgoing));
    }

    pub(super) fn push(&mut self, outgoing: Outgoing<'static>, cookie: Option<[u8; 8]>) {
        if self.replies.len() < MAX_REPLIES {
            self.replies.push_back(Stray { outgoing, cookie });
        }
    }
}
