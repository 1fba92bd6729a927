//! What happens when nothing comes.

use super::*;
use crate::destinations::Destinations;

/// Zero-window probes are at most this far apart.
const MAX_PERSIST: Duration = Duration::from_secs(60);

impl Connection {
    /// When [`Connection::handle_timeout`] is to be called.
    pub(crate) fn next_timeout(&self) -> Option<Time> {
        let handshake = self.handshake.as_ref();
        let recovery = self.is_synchronised().then(|| self.recovery.next_timeout()).flatten();
        [
            handshake.and_then(|handshake| handshake.again_at),
            handshake.and_then(|handshake| handshake.answer_by),
            recovery.filter(|_| self.closed.is_none()),
            self.ack.by,
            self.timers.persist,
            self.timers.keep_alive,
            self.timers.fin_wait,
            self.timers.orphan,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Lets the timers fire that are due.
    pub(crate) fn handle_timeout(
        &mut self,
        now: Time,
        config: &Config,
        destinations: &mut Destinations,
    ) {
        let is_due = |timer: Option<Time>| timer.is_some_and(|at| at <= now);
        if self.handshake.is_some() {
            self.handshake_timeout(now, config, destinations);
        }
        if self.closed.is_some() {
            return;
        }
        if is_due(self.ack.by) {
            self.ack.by = None;
            self.ack.now = true;
        }
        if self.is_synchronised() && is_due(self.recovery.next_timeout()) {
            self.recovery.handle_timeout(now);
            if self.recovery.timeouts_in_row() > config.retries {
                self.give_up();
                return;
            }
        }
        if is_due(self.timers.persist) {
            self.persist_timeout(now, config);
        }
        if is_due(self.timers.keep_alive) {
            self.keep_alive_timeout(now, config);
        }
        if is_due(self.timers.fin_wait) {
            self.close(CloseReason::TimedOut);
        }
    }

    fn handshake_timeout(&mut self, now: Time, config: &Config, destinations: &mut Destinations) {
        let is_answer = self.state == State::SynReceived;
        let Some(handshake) = &mut self.handshake else { return };
        if handshake.answer_by.is_some_and(|at| at <= now) {
            // The answer is late: a bare SYN-ACK keeps the client from sending again.
            handshake.answer_by = None;
            handshake.due = true;
            return;
        }
        if handshake.again_at.is_none_or(|at| at > now) {
            return;
        }
        let retries = if is_answer { config.syn_ack_retries } else { config.syn_retries };
        if handshake.sent > retries {
            if handshake.ask_cookie && self.syn_bytes > 0 && !is_answer {
                // RFC 7413 §4.1.3.1: no answer at all
                destinations.remember_refusal(now, self.remote);
            }
            self.give_up();
            return;
        }
        // RFC 6298 §5.5
        handshake.rto = (handshake.rto * 2).min(config.max_rto);
        handshake.again_at = Some(now + handshake.rto);
        handshake.due = true;
        if is_answer {
            self.recovery.on_handshake_timeout();
        }
        // RFC 7413 §4.2.1: without data and option, whatever stood in the way.
        if !is_answer {
            handshake.bare = true;
        }
    }

    /// Begins to probe a window that holds everything back (RFC 9293 §3.8.6.1).
    pub(super) fn watch_window(&mut self, now: Time) {
        if self.timers.persist.is_none() && self.recovery.is_blocked_by_window() {
            self.timers.persist = Some(now + self.recovery.rto());
        }
    }

    fn persist_timeout(&mut self, now: Time, config: &Config) {
        self.timers.persist = None;
        if !self.recovery.is_blocked_by_window() {
            return;
        }
        // Every answer sets `probes` back: only silence ends it.
        self.timers.probes = self.timers.probes.saturating_add(1);
        if self.timers.probes > config.retries {
            self.give_up();
            return;
        }
        self.timers.probe_due = true;
        self.timers.backoff = self.timers.backoff.saturating_add(1);
        let wait = self.recovery.rto() * 2u32.saturating_pow(self.timers.backoff.min(16));
        self.timers.persist = Some(now + wait.min(MAX_PERSIST));
    }

    pub(super) fn reset_keep_alive(&mut self, now: Time, config: &Config) {
        if let Some(keep_alive) = config.keep_alive {
            self.timers.keep_alive = Some(now + keep_alive.idle);
        }
    }

    fn keep_alive_timeout(&mut self, now: Time, config: &Config) {
        let Some(keep_alive) = config.keep_alive else {
            self.timers.keep_alive = None;
            return;
        };
        if self.timers.keep_alive_probes >= keep_alive.probes {
            self.give_up();
            return;
        }
        // With data under way their timer speaks.
        if self.recovery.is_idle() {
            self.timers.keep_alive_probes += 1;
            self.timers.keep_alive_due = true;
        }
        self.timers.keep_alive = Some(now + keep_alive.interval);
    }
}
