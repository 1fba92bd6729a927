//! Making connections: what one needs, taken from its place, and carried to the client's node.

use std::net::SocketAddr;
use std::time::Duration;

use conn::{Attempt, ClientPlan, ClientTransport};
use tls::Ticket;

use crate::error::StudyError;
use crate::site::{Place, Site, Variant};

/// How long a priming connection waits for its ticket; the path has no delay then.
const TICKET_PATIENCE: Duration = Duration::from_secs(2);
/// How long a priming connection may take in all.
const PRIMING_PATIENCE: Duration = Duration::from_secs(20);

/// One connection to be made, with all that it needs.
pub(crate) struct Dial {
    address: SocketAddr,
    transport: ClientTransport,
    ticket: Option<Ticket>,
    early_data: bool,
    timeout: Duration,
    /// How long to wait for the server's end after our own.
    linger: Duration,
    /// How long to wait for a ticket, if one is wanted.
    await_ticket: Option<Duration>,
}

impl Dial {
    /// A connection to `place`. It takes one of the tickets there, if the mode resumes.
    pub(crate) fn new(place: &mut Place, timeout: Duration, linger: Duration) -> Dial {
        let mode = place.variant.mode;
        let ticket = if mode.resumes() { place.tickets.pop_front() } else { None };
        Dial {
            address: place.address,
            transport: place.transport.clone(),
            ticket,
            early_data: mode.early_data(),
            timeout,
            linger,
            await_ticket: None,
        }
    }

    /// A connection to `place` that fetches what later ones need.
    fn priming(place: &Place, await_ticket: Option<Duration>) -> Dial {
        Dial {
            address: place.address,
            transport: place.transport.clone(),
            ticket: None,
            early_data: false,
            timeout: PRIMING_PATIENCE,
            linger: Duration::from_millis(50),
            await_ticket,
        }
    }

    /// Makes the connection, on the node that polls this.
    pub(crate) async fn run(self) -> Attempt {
        let plan = ClientPlan {
            ticket: self.ticket,
            early_data: self.early_data,
            timeout: self.timeout,
            await_ticket: self.await_ticket,
            linger: self.linger,
            ..ClientPlan::new(self.address, self.transport)
        };
        conn::connect(plan).await
    }
}

impl Site {
    /// Fetches what `count` connections of a variant need beforehand: a ticket each, and a Fast Open
    /// cookie. To be called on a path without delay or loss.
    ///
    /// # Errors
    /// A priming connection failed or brought no ticket.
    pub(crate) fn prime(&mut self, variant: &Variant, count: usize) -> Result<(), StudyError> {
        let client = self.client.clone();
        let Some(place) = self.place(variant) else { return Ok(()) };
        let wanted = if variant.mode.resumes() { count } else { 0 };
        let missing = wanted.saturating_sub(place.tickets.len());
        // Even without a ticket to fetch, one connection warms caches up, and fetches the cookie.
        for _ in 0..missing.max(1) {
            prime_once(&client, place, missing > 0)?;
        }
        let _ = place.log.drain();
        Ok(())
    }

    /// Lets the client of a variant learn what the cell's path does to its SYN: to be called on that
    /// path.
    ///
    /// # Errors
    /// The connection failed.
    pub(crate) fn teach(&mut self, variant: &Variant) -> Result<(), StudyError> {
        let client = self.client.clone();
        let Some(place) = self.place(variant) else { return Ok(()) };
        prime_once(&client, place, false)?;
        let _ = place.log.drain();
        Ok(())
    }
}

fn prime_once(client: &lab::Node, place: &mut Place, fetch: bool) -> Result<(), StudyError> {
    let mode = place.variant.mode;
    let failed = |failure| StudyError::Priming { mode: mode.to_string(), failure };
    let dial = Dial::priming(place, fetch.then_some(TICKET_PATIENCE));
    let attempt = client.spawn(move || dial.run()).join()?;
    let mut outcome = attempt.map_err(failed)?;
    if fetch {
        let no_ticket = || failed(conn::Failure::Protocol("sent no ticket"));
        place.tickets.push_back(outcome.tickets.pop().ok_or_else(no_ticket)?);
    }
    Ok(())
}
