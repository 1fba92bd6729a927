//! Chains shown to a client in the lab: the bytes of the server's first flight and the round trips until
//! the client may send, counted.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use conn::{Attempt, ClientPlan, ClientTransport, ServerTransport};
use lab::LabOptions;
use linkmodel::Path;
use tls::{Compression, Group, Identity, Library, Trust, Version};
use units::Delay;

use crate::{Error, SERVER_NAME, Testbed};

/// Far above what any computing takes, and below the first timer of a sender (RFC 6298 §2.1): so many whole
/// round trips as are in a time were spent on the way.
const ROUND_TRIP: Duration = Duration::from_millis(600);
/// Where captures are made, and clients run.
const CLIENT: usize = 0;

/// What carries the handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Carrier {
    /// TLS 1.3 over the kernel's TCP.
    Tls13,
    /// TLS 1.2 with ECDHE over the kernel's TCP.
    Tls12,
    /// TLS 1.3 in QUIC.
    Quic,
}

/// One way to show one of the chains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Showing {
    /// The chain, by its place in the list.
    pub chain: usize,
    /// What carries it.
    pub carrier: Carrier,
    /// How it is compressed.
    pub compression: Option<Compression>,
}

impl fmt::Display for Showing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "chain {} by {:?}", self.chain + 1, self.carrier)?;
        match self.compression {
            Some(compression) => write!(f, ", {compression}"),
            None => Ok(()),
        }
    }
}

/// A chain to be shown.
#[derive(Debug, Clone)]
pub struct Shown {
    /// Key and chain. One that stands in for its key is served by rustls; another by OpenSSL.
    pub identity: Arc<Identity>,
}

impl Shown {
    fn library(&self) -> Library {
        if self.identity.private_key_der().is_empty() { Library::Rustls } else { Library::OpenSsl }
    }

    fn trust(&self) -> Trust {
        match self.library() {
            Library::Rustls => Trust::Unchecked,
            Library::OpenSsl => Trust::Roots(self.identity.roots()),
        }
    }
}

/// What was counted of one handshake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counted {
    /// What was shown, and how.
    pub showing: Showing,
    /// Whole round trips until the client could send its request, TCP's own included.
    pub round_trips: u32,
    /// Bytes of the server's first flight in TLS records, as the wire shows them; `None` over QUIC, whose
    /// packets are encrypted.
    pub flight: Option<u64>,
    /// Segments that were sent again, or packets lost: more than none makes the count worth nothing.
    pub retransmitted: u64,
}

/// What is not the chain's.
#[derive(Debug, Clone)]
pub struct ShowOptions {
    /// Groups that client and server have, preferred first; each gets a key share.
    pub groups: Vec<Group>,
    /// Segments in TCP's initial window; the kernel's own with `None`.
    pub initial_window: Option<u32>,
    /// How the lab is made: its seed, backend and processor.
    pub lab: LabOptions,
}

/// Handshakes under way at the same time: so few that none waits long for a processor.
const AT_ONCE: usize = 6;
/// How long a client waits for the server's end: nothing is read of it.
const LINGER: Duration = Duration::from_millis(50);

/// Shows each chain in each of these ways, some at a time on one path of 600 ms without loss, at an MTU of
/// 1500 bytes. Each has been shown once before, on a path without delay, so that what is made once is made:
/// compressed certificates, and what libraries set up. The process must be in the lab already ([`lab::enter`]).
///
/// # Errors
/// The lab's; [`Error::Tls`] where a library cannot show a chain so; [`Error::Shown`] for a handshake that
/// failed.
pub fn count(
    chains: &[Shown],
    showings: &[Showing],
    options: &ShowOptions,
) -> Result<Vec<Counted>, Error> {
    let mut bed = Testbed::new(options.lab, &[("client", Path::default())])?;
    bed.set_initial_window(CLIENT, options.initial_window)?;
    let mut shown = Vec::new();
    for showing in showings {
        let Some(chain) = chains.get(showing.chain) else { continue };
        bed.serve(*showing, server(chain, *showing, options)?)?;
        bed.reach(CLIENT, *showing, client(chain, *showing, options)?, false);
        bed.prime(showing, 0, 1)?;
        shown.push(*showing);
    }
    bed.settle()?;
    bed.set_path(CLIENT, &Path::symmetric(Delay::from(ROUND_TRIP)))?;
    let mut all = Vec::new();
    for wave in shown.chunks(AT_ONCE) {
        let plans = wave.iter().filter_map(|showing| bed.plan(CLIENT, showing));
        let only_shown = |plan| ClientPlan { request: Vec::new(), linger: LINGER, ..plan };
        let plans = plans.map(only_shown).collect();
        let capture = bed.capture_at_client(CLIENT)?;
        let attempts = bed.connect(CLIENT, plans)?.join()?;
        let (captured, _) = capture.stop()?;
        for (showing, attempt) in wave.iter().zip(attempts) {
            all.push(counted(*showing, attempt, &captured)?);
        }
    }
    Ok(all)
}

fn counted(
    showing: Showing,
    attempt: Attempt,
    captured: &[tracker::Connection],
) -> Result<Counted, Error> {
    let outcome = attempt.map_err(|failure| Error::Shown {
        showing: showing.to_string(),
        failure: Box::new(failure),
    })?;
    let own = captured.iter().find(|connection| {
        connection.client == outcome.local && connection.server == outcome.remote
    });
    let tls = own.and_then(|connection| connection.tls.as_ref());
    let sent_again = own.and_then(|connection| connection.tcp.as_ref());
    let sent_again = sent_again.map(|tcp| tcp.client_retransmitted + tcp.server_retransmitted);
    let lost = outcome.quic.map_or(0, |quic| quic.packets_lost);
    let ready = outcome.timeline.time_to_ready().unwrap_or_default();
    Ok(Counted {
        showing,
        round_trips: u32::try_from(ready.as_nanos() / ROUND_TRIP.as_nanos()).unwrap_or(u32::MAX),
        flight: tls.filter(|_| showing.carrier != Carrier::Quic).map(|tls| tls.server_flight_len),
        retransmitted: sent_again.unwrap_or(lost),
    })
}

fn versions(showing: Showing) -> Vec<Version> {
    match showing.carrier {
        Carrier::Tls12 => vec![Version::Tls12],
        Carrier::Tls13 | Carrier::Quic => vec![Version::Tls13],
    }
}

/// TLS 1.2 knows no hybrid group, and there the groups are the curves of certificates, too.
fn groups(showing: Showing, options: &ShowOptions) -> Vec<Group> {
    match showing.carrier {
        Carrier::Tls12 => vec![Group::X25519, Group::Secp256r1],
        Carrier::Tls13 | Carrier::Quic => options.groups.clone(),
    }
}

fn server(
    chain: &Shown,
    showing: Showing,
    options: &ShowOptions,
) -> Result<ServerTransport, Error> {
    let mut config = tls::ServerConfig::new(chain.library(), Arc::clone(&chain.identity));
    config.versions = versions(showing);
    config.groups = groups(showing, options);
    config.compression = showing.compression.into_iter().collect();
    // A ticket would come behind the flight, and is not asked for.
    config.tickets = false;
    Ok(match showing.carrier {
        Carrier::Quic => ServerTransport::quic(config),
        Carrier::Tls13 | Carrier::Tls12 => ServerTransport::tls(tls::Server::new(&config)?),
    })
}

fn client(
    chain: &Shown,
    showing: Showing,
    options: &ShowOptions,
) -> Result<ClientTransport, Error> {
    let mut config = tls::ClientConfig::new(chain.library(), SERVER_NAME, chain.trust());
    config.versions = versions(showing);
    config.groups = groups(showing, options);
    config.key_shares = match showing.carrier {
        Carrier::Tls12 => 1,
        Carrier::Tls13 | Carrier::Quic => config.groups.len(),
    };
    config.compression = showing.compression.into_iter().collect();
    Ok(match showing.carrier {
        Carrier::Quic => ClientTransport::Quic { tls: tls::quic::client_config(&config)? },
        Carrier::Tls13 | Carrier::Tls12 => ClientTransport::tls(&tls::Client::new(&config)?),
    })
}
