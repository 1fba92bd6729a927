//! Messages of routers and hosts about packets of ours (RFC 9293 §3.9.2.2).

use super::*;
use crate::destinations::Destinations;

impl Connection {
    /// Whether a quoted sequence number is of a segment that is under way (RFC 5927 §4.1).
    fn is_under_way(&self, sequence: SeqNumber) -> bool {
        let offset = self.ack_offset(sequence);
        match &self.handshake {
            Some(handshake) if sequence == self.iss => handshake.sent > 0,
            _ => offset >= self.una() as i64 && offset < self.recovery.next() as i64,
        }
    }

    /// Takes an ICMP error about the segment at `sequence`; returns false if that is not under way.
    ///
    /// A hard error ends an attempt to open. In any later state it is kept as a soft one, since a forger needs no
    /// more than a sequence number for it (RFC 5927 §5.2).
    pub(crate) fn take_icmp_error(
        &mut self,
        now: Time,
        sequence: SeqNumber,
        kind: IcmpKind,
        destinations: &mut Destinations,
    ) -> bool {
        if self.closed.is_some() || !self.is_under_way(sequence) {
            return false;
        }
        self.icmp_error = Some(kind);
        if kind.is_hard() && !self.is_synchronised() {
            if let Some(handshake) = &self.handshake
                && handshake.ask_cookie
                && !handshake.bare
            {
                // RFC 7413 §4.1.3.1
                destinations.remember_refusal(now, self.remote);
            }
            self.close(CloseReason::Unreachable(kind));
        }
        true
    }

    /// The reason for giving up: silence, or what ICMP has told of it.
    pub(super) fn give_up(&mut self) {
        self.close(match self.icmp_error {
            Some(kind) => CloseReason::Unreachable(kind),
            None => CloseReason::TimedOut,
        });
    }

    /// Takes a router's word that packets above `mtu` do not pass (RFC 1191, RFC 8201); returns false if it is no
    /// news or the quoted segment is not under way (RFC 5927 §7).
    pub(crate) fn set_path_mtu(&mut self, sequence: SeqNumber, mtu: u16) -> bool {
        let least = if self.local.is_ipv4() { 576 } else { 1280 };
        let mtu = mtu.max(least);
        if mtu >= self.path_mtu || !self.is_under_way(sequence) {
            return false;
        }
        self.path_mtu = mtu;
        self.update_mss();
        match &mut self.handshake {
            // The SYN itself was too big: send it bare.
            Some(handshake) if self.state == State::SynSent => {
                handshake.bare = true;
                handshake.due = true;
            }
            _ => self.recovery.on_path_mtu_reduced(self.segment),
        }
        true
    }
}
