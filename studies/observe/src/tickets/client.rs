//! One client at one server name.

use std::time::Duration;

use units::Time;

use super::Visit;
use super::policy::{POLICIES, Policy};

/// What is kept of a client.
#[derive(Debug, Clone)]
pub(super) struct Client {
    pub(super) visits: u32,
    /// Whether it ever brought a ticket.
    pub(super) brings: bool,
    pub(super) brought: u32,
    pub(super) resumed: u32,
    last: Time,
    /// When the ticket was issued that it holds, by policy.
    issued: [Time; POLICIES],
    /// Returns that would have resumed, by policy.
    pub(super) hits: [u32; POLICIES],
}

impl Default for Client {
    fn default() -> Self {
        Client {
            visits: 0,
            brings: false,
            brought: 0,
            resumed: 0,
            last: Time::ZERO,
            issued: [Time::ZERO; POLICIES],
            hits: [0; POLICIES],
        }
    }
}

impl Client {
    /// How long it was away; `None` at its first visit.
    pub(super) fn away(&self, at: Time) -> Option<Duration> {
        (self.visits > 0).then(|| at.saturating_since(self.last))
    }

    /// How often it came back.
    pub(super) fn returns(&self) -> u32 {
        self.visits.saturating_sub(1)
    }

    /// Takes a visit, and says under which policies it would have resumed.
    pub(super) fn visit(&mut self, visit: &Visit<'_>) -> [bool; POLICIES] {
        let at = visit.at.max(self.last);
        let returns = self.visits > 0;
        self.visits = self.visits.saturating_add(1);
        self.brings |= visit.brought;
        if returns {
            self.brought = self.brought.saturating_add(visit.brought.into());
            self.resumed = self.resumed.saturating_add(visit.resumed.into());
        }
        self.last = at;
        let mut all = [false; POLICIES];
        let each = Policy::all().into_iter().zip(&mut self.issued).zip(&mut self.hits);
        for (((policy, issued), hits), hit) in each.zip(&mut all) {
            *hit = returns && policy.accepts(*issued, at);
            *hits = hits.saturating_add((*hit).into());
            if !*hit || visit.tls13 || policy.renews(*issued, at) {
                *issued = at;
            }
        }
        all
    }
}
