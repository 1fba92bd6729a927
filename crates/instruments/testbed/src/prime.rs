//! Priming: what later connections need is fetched by connections that do not count.

use std::collections::VecDeque;
use std::fmt::Display;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use conn::{Attempt, ClientPlan, Failure};
use lab::JoinHandle;
use tls::Ticket;

use crate::{Error, Testbed};

/// How long a priming connection waits for its ticket, beside the path's round trips.
const TICKET_PATIENCE: Duration = Duration::from_secs(2);
/// How long a priming connection may take in all.
const PRIMING_PATIENCE: Duration = Duration::from_secs(20);

/// Priming connections of one client that are under way.
struct Wave {
    client: usize,
    fetches: bool,
    attempts: JoinHandle<Vec<Attempt>>,
}

impl<V: Copy + Ord + Display> Testbed<V> {
    /// Fetches what `tickets` connections of each client that reaches a variant need beforehand: a
    /// ticket each, and a Fast Open cookie. `at_once` connections of a client are under way together.
    /// Without a ticket to fetch, one connection warms caches up, fetches the cookie, and lets our TCP
    /// learn what the path does to its SYN. The ends of the connections made, client first; what the
    /// server has logged of them by then is gone.
    ///
    /// # Errors
    /// [`Error::Priming`]: a connection failed or brought no ticket.
    pub fn prime(
        &mut self,
        variant: &V,
        tickets: usize,
        at_once: usize,
    ) -> Result<Vec<(SocketAddr, SocketAddr)>, Error> {
        let mut ends = Vec::new();
        let mut least = 1;
        loop {
            let mut waves = Vec::new();
            for client in 0..self.clients.len() {
                waves.extend(self.start_wave(client, variant, tickets, least..=at_once.max(1))?);
            }
            if waves.is_empty() {
                break;
            }
            for wave in waves {
                self.end_wave(variant, wave, &mut ends)?;
            }
            least = 0;
        }
        if let Some(log) = self.log(variant) {
            drop(log.drain());
        }
        Ok(ends)
    }

    /// Starts as many connections as tickets are missing, within the range.
    fn start_wave(
        &mut self,
        client: usize,
        variant: &V,
        tickets: usize,
        range: RangeInclusive<usize>,
    ) -> Result<Option<Wave>, Error> {
        let Some(plan) = self.plan_without_ticket(client, variant) else { return Ok(None) };
        let have = self.tickets(client, variant).map_or(0, |tickets| tickets.len());
        let missing = tickets.saturating_sub(have);
        let count = missing.clamp(*range.start(), *range.end());
        if count == 0 {
            return Ok(None);
        }
        let fetches = missing > 0;
        let await_ticket = fetches.then_some(TICKET_PATIENCE);
        let plan = ClientPlan { timeout: PRIMING_PATIENCE, await_ticket, ..plan };
        let attempts = self.connect(client, vec![plan; count])?;
        Ok(Some(Wave { client, fetches, attempts }))
    }

    fn end_wave(
        &mut self,
        variant: &V,
        wave: Wave,
        ends: &mut Vec<(SocketAddr, SocketAddr)>,
    ) -> Result<(), Error> {
        let failed = |failure| Error::Priming { variant: variant.to_string(), failure };
        for attempt in wave.attempts.join()? {
            let mut outcome = attempt.map_err(failed)?;
            ends.push((outcome.local, outcome.remote));
            if wave.fetches {
                let none = || failed(Failure::Protocol("sent no ticket"));
                let ticket = outcome.tickets.pop().ok_or_else(none)?;
                if let Some(tickets) = self.tickets(wave.client, variant) {
                    tickets.push_back(ticket);
                }
            }
        }
        Ok(())
    }

    fn tickets(&mut self, client: usize, variant: &V) -> Option<&mut VecDeque<Ticket>> {
        self.clients.get_mut(client)?.tickets(variant)
    }
}
