//! What a chain costs: its flights' bytes and round trips, computed.

use std::sync::Arc;

use flight::{Flight, Framing, Hello, QuicPath};
use serde::Serialize;
use testbed::{Carrier, Counted, Showing, Shown};
use tls::{Compression, Group};

use super::ChainArgs;
use super::source::Source;

/// Bytes of a ClientHello with a hybrid share and one of X25519: two datagrams of QUIC.
const HYBRID_HELLO: usize = 1_500;
/// Bytes of QUIC's transport parameters in a ClientHello or in EncryptedExtensions, about.
pub const TRANSPORT_PARAMETERS: usize = 80;
/// Bytes of rustls' extensions in a ServerHello of TLS 1.2: server_name, renegotiation_info and
/// extended_master_secret.
const EXTENSIONS_1_2: usize = 13;
/// The answer to server_name, which rustls gives and OpenSSL does not.
const SERVER_NAME_ANSWER: usize = 4;

/// One way to send a chain, and what it comes to.
#[derive(Debug, Clone, Serialize)]
pub struct Way {
    /// `tls1.3`, `tls1.2` or `quic`.
    pub carrier: &'static str,
    /// How certificates are compressed, if they are.
    pub compression: Option<Compression>,
    /// Bytes of the message with the certificates.
    pub certificate_bytes: usize,
    /// Bytes that the server sends before it hears of any: TLS records, or QUIC's UDP payload.
    pub flight_bytes: usize,
    /// Bytes that go out in the first round trip at most: the initial window, or three times what came.
    pub limit_bytes: usize,
    /// Round trips until the client may send its request, TCP's own included.
    pub round_trips: usize,
    /// The same where a client of QUIC acknowledges each datagram by itself, which some do on some runs.
    pub least_round_trips: usize,
    /// What was counted in the lab.
    pub measured: Option<Measured>,
    #[serde(skip)]
    pub(super) showing: (Carrier, Option<Compression>),
}

/// What was counted in the lab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Measured {
    /// Round trips until the client could send its request.
    pub round_trips: u32,
    /// Bytes of the flight; null over QUIC, whose packets are encrypted.
    pub flight_bytes: Option<u64>,
    /// Segments sent again: above 0 the count says nothing.
    pub retransmitted: u64,
}

/// Every way to send a chain: TLS 1.3 and QUIC, plain and compressed, and TLS 1.2.
pub fn ways(source: &Source, args: &ChainArgs) -> Vec<Way> {
    let plain = source.chain.lengths();
    let packed: Vec<(Option<Compression>, flight::Chain)> = [(None, plain.clone())]
        .into_iter()
        .chain(source.compressed.iter().map(|(by, bytes)| (Some(*by), plain.compressed_to(*bytes))))
        .collect();
    let mut ways = Vec::new();
    for (compression, chain) in &packed {
        let framing = source.framing(*compression);
        ways.push(over_tcp(chain, *compression, framing, args));
    }
    for (compression, chain) in &packed {
        ways.push(over_quic(chain, *compression, args));
    }
    if !source.is_post_quantum() {
        ways.push(over_tls12(&plain, args));
    }
    ways
}

/// Bytes of the server's key share.
fn key_share(group: Group) -> usize {
    match group {
        Group::X25519 => 32,
        Group::Secp256r1 => 65,
        // The ciphertext of ML-KEM-768, and X25519's (draft-ietf-tls-ecdhe-mlkem §3.2).
        Group::X25519MlKem768 => 1_088 + 32,
    }
}

fn over_tcp(
    chain: &flight::Chain,
    compression: Option<Compression>,
    framing: Framing,
    args: &ChainArgs,
) -> Way {
    let extensions = match framing {
        Framing::Coalesced => SERVER_NAME_ANSWER,
        Framing::PerMessage => 0,
    };
    let hello = Hello { key_share: key_share(args.group), extensions, ..Hello::default() };
    // One round trip of TCP's, and those until the flight is there.
    let way = ("tls1.3", 1, (Carrier::Tls13, compression));
    of_window(&Flight::tls13(chain, hello, framing), way, args)
}

fn over_quic(chain: &flight::Chain, compression: Option<Compression>, args: &ChainArgs) -> Way {
    let extensions = SERVER_NAME_ANSWER + TRANSPORT_PARAMETERS;
    let hello = Hello { key_share: key_share(args.group), session_id: 0, extensions };
    let flight = Flight::quic(chain, hello);
    let path = match args.group {
        Group::X25519MlKem768 => QuicPath::default().with_client_hello(HYBRID_HELLO),
        Group::X25519 | Group::Secp256r1 => QuicPath::default(),
    };
    let round_trips = path.round_trips(&flight);
    Way {
        carrier: "quic",
        compression,
        certificate_bytes: flight.certificate,
        flight_bytes: path.bytes(&flight),
        limit_bytes: path.limit(),
        round_trips: round_trips.most,
        least_round_trips: round_trips.least,
        measured: None,
        showing: (Carrier::Quic, compression),
    }
}

fn over_tls12(chain: &flight::Chain, args: &ChainArgs) -> Way {
    let hello = Hello { key_share: 32, session_id: 0, extensions: EXTENSIONS_1_2 };
    // And one more for the keys and both Finished.
    let way = ("tls1.2", 2, (Carrier::Tls12, None));
    of_window(&Flight::tls12(chain, hello, Framing::Coalesced), way, args)
}

/// A flight over TCP, by TCP's initial window: who carries it, the round trips beside the flight's own, and how it is
/// shown.
fn of_window(
    flight: &Flight,
    (carrier, beside, showing): (&'static str, usize, (Carrier, Option<Compression>)),
    args: &ChainArgs,
) -> Way {
    let window = args.window();
    let round_trips = beside + window.round_trips(flight.bytes());
    Way {
        carrier,
        compression: showing.1,
        certificate_bytes: flight.certificate,
        flight_bytes: flight.bytes(),
        limit_bytes: window.initial * window.segment,
        round_trips,
        least_round_trips: round_trips,
        measured: None,
        showing,
    }
}

/// The chains as they are shown in the lab: each without its key, and with it where it has one.
pub fn shown(sources: &[Source]) -> Vec<Shown> {
    let both = |source: &Source| {
        let stand_in = Arc::clone(&source.stand_in);
        let own = source.own.as_ref().unwrap_or(&stand_in);
        [Shown { identity: Arc::clone(own) }, Shown { identity: stand_in }]
    };
    sources.iter().flat_map(both).collect()
}

/// How a way of a source, by its place in the list, is shown.
pub fn showing(number: usize, source: &Source, way: &Way) -> Showing {
    let (carrier, compression) = way.showing;
    let with_key = source.is_served(carrier, compression);
    Showing { chain: 2 * number + usize::from(!with_key), carrier, compression }
}

/// Writes what was counted beside what was computed.
pub fn note(ways: &mut [Way], number: usize, source: &Source, counted: &[Counted]) {
    for way in ways {
        let showing = showing(number, source, way);
        let found = counted.iter().find(|one| one.showing == showing);
        way.measured = found.map(|one| Measured {
            round_trips: one.round_trips,
            flight_bytes: one.flight,
            retransmitted: one.retransmitted,
        });
    }
}
