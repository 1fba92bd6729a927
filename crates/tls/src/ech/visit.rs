//! A visit: the connections that a client makes until it may send its request.

use serde::{Deserialize, Serialize};
use units::named;

use super::{Answer, Connection, Offer};

named! {
    /// What happens between a client and a server.
    pub enum Case: "case of ECH" {
        /// The client does not know ECH.
        Plain = "plain",
        /// The client sends a placeholder.
        Placeholder = "placeholder",
        /// ECH, and the server opens it.
        Accepted = "accepted",
        /// ECH by a key that the server has no more: it gives the new one, and the client begins again.
        NewKey = "new-key",
        /// ECH at a server that has it no more: the client begins again without.
        Dropped = "dropped",
    }
}

impl Case {
    /// What the client sends first, which has read of this ECHConfigList.
    #[must_use]
    pub fn offer(self, list: &[u8]) -> Offer {
        match self {
            Case::Plain => Offer::Nothing,
            Case::Placeholder => Offer::Placeholder,
            Case::Accepted | Case::NewKey | Case::Dropped => Offer::Sealed(list.to_vec()),
        }
    }

    /// The key that the server has, out of the one that clients know and a new one.
    #[must_use]
    pub fn server_key<K>(self, known: K, new: K) -> Option<K> {
        match self {
            Case::Plain | Case::Placeholder | Case::Accepted => Some(known),
            Case::NewKey => Some(new),
            Case::Dropped => None,
        }
    }
}

/// What a visit comes to until the client may send its request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Visit {
    /// Connections that were needed.
    pub connections: usize,
    /// Flights of TLS in all of them.
    pub flights: usize,
    /// Bytes that the client sent, with the headers of TLS records.
    pub client_bytes: usize,
    /// Bytes that the server sent.
    pub server_bytes: usize,
    /// Round trips over TCP, its own included.
    pub tcp_round_trips: usize,
    /// Round trips over QUIC, whose handshake is TLS' own.
    pub quic_round_trips: usize,
    /// Whether the server was asked for the name that was to be hidden, and was so.
    pub hidden: bool,
}

/// Makes a visit to `name`: `connect` makes one connection with what it is given to offer. A client whose ECH is
/// rejected connects once more, with what the server gave, or without.
///
/// # Errors
/// Those of `connect`.
pub fn visit<E>(
    name: &str,
    offer: &Offer,
    mut connect: impl FnMut(&Offer) -> Result<Connection, E>,
) -> Result<Visit, E> {
    let mut connections = vec![connect(offer)?];
    if let Some(Answer::Rejected(list)) = connections.first().map(|first| first.answer.clone()) {
        connections.push(connect(&list.map_or(Offer::Nothing, Offer::Sealed))?);
    }
    let sum = |of: &dyn Fn(&Connection) -> usize| connections.iter().map(of).sum::<usize>();
    let round_trips = sum(&|one| one.round_trips);
    let hidden = |last: &Connection| last.opened && last.server_name.as_deref() == Some(name);
    Ok(Visit {
        connections: connections.len(),
        flights: sum(&|one| one.flights.len()),
        client_bytes: sum(&|one| one.bytes(true)),
        server_bytes: sum(&|one| one.bytes(false)),
        tcp_round_trips: connections.len() + round_trips,
        quic_round_trips: round_trips,
        hidden: connections.last().is_some_and(hidden),
    })
}
