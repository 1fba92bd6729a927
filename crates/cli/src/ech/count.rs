//! What ECH makes of hellos and handshakes, counted in memory.

use flight::QuicPath;
use serde::Serialize;
use tls::ech::{Answer, Client, ClientLibrary, Connection, Keys, Offer, Server};
use tls::{Error, Group, Identity, KeyType};

use super::EchArgs;
use crate::chain::TRANSPORT_PARAMETERS;

/// The groups that are offered: without and with the hybrid one.
const GROUPS: [&[Group]; 2] = [&[Group::X25519], &[Group::X25519MlKem768, Group::X25519]];

/// A hello, and how much of the path it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Size {
    /// Bytes in TLS records.
    pub bytes: usize,
    /// Full segments of TCP that it takes.
    pub segments: usize,
    /// Datagrams of QUIC that it takes, of 1200 bytes; null for AWS-LC, whose QUIC is not measured.
    pub datagrams: Option<usize>,
}

/// One client's hellos for one name.
#[derive(Debug, Clone, Serialize)]
pub struct Hello {
    /// The client's library.
    pub library: ClientLibrary,
    /// The groups offered.
    pub groups: &'static [Group],
    /// The name of the server, which ECH hides.
    pub name: String,
    /// The hello without ECH.
    pub plain: Size,
    /// With a placeholder (GREASE).
    pub placeholder: Size,
    /// The hello with ECH, sealed.
    pub ech: Size,
}

/// What happens between a client and a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Case {
    /// The client does not know ECH.
    Plain,
    /// The client sends a placeholder.
    Placeholder,
    /// ECH, and the server opens it.
    Accepted,
    /// ECH by a key that the server has no more: it gives the new one, and the client begins again.
    NewKey,
    /// ECH at a server that has it no more: the client begins again without.
    Dropped,
}

impl Case {
    const ALL: [Case; 5] =
        [Case::Plain, Case::Placeholder, Case::Accepted, Case::NewKey, Case::Dropped];

    /// What it is called in tables.
    pub fn title(self) -> &'static str {
        match self {
            Case::Plain => "no ECH",
            Case::Placeholder => "placeholder (GREASE)",
            Case::Accepted => "ECH, accepted",
            Case::NewKey => "ECH by an old key: retry",
            Case::Dropped => "ECH that is there no more: retry",
        }
    }
}

/// What a visit comes to until the client may send its request.
#[derive(Debug, Clone, Serialize)]
pub struct Visit {
    /// The client's library.
    pub library: ClientLibrary,
    /// What happens to ECH in it.
    pub case: Case,
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

/// All that is counted.
pub struct Counts {
    /// Bytes of the configuration that the server publishes.
    pub config_bytes: usize,
    /// One for each client, groups and name.
    pub hellos: Vec<Hello>,
    /// One for each client and case.
    pub visits: Vec<Visit>,
}

/// Counts the hellos of all clients, and their visits in all cases.
pub fn counts(args: &EchArgs) -> Result<Counts, Error> {
    let keys = Keys::generate(&args.public_name, 1)?;
    let names: Vec<&str> = args.name.iter().map(String::as_str).collect();
    let all: Vec<&str> = names.iter().copied().chain([args.public_name.as_str()]).collect();
    let identity = Identity::generate(KeyType::EcdsaP256, 1, &all)?;
    let mut counts =
        Counts { config_bytes: keys.config_list().len(), hellos: Vec::new(), visits: Vec::new() };
    for library in ClientLibrary::ALL {
        for groups in GROUPS {
            let client =
                Client { library: *library, groups: groups.to_vec(), roots: identity.roots() };
            for name in &names {
                counts.hellos.push(hello(&client, groups, name, &keys, args)?);
            }
        }
        let groups = GROUPS.last().copied().unwrap_or_default();
        let client = Client { library: *library, groups: groups.to_vec(), roots: identity.roots() };
        for case in Case::ALL {
            let name = names.first().copied().unwrap_or_default();
            counts.visits.push(visit(&client, case, name, &keys, &identity, args)?);
        }
    }
    Ok(counts)
}

fn hello(
    client: &Client,
    groups: &'static [Group],
    name: &str,
    keys: &Keys,
    args: &EchArgs,
) -> Result<Hello, Error> {
    let size = |offer: &Offer| {
        let bytes = client.hello_len(name, offer)?;
        let datagrams = match client.library {
            ClientLibrary::Rustls => {
                let bytes = client.quic_hello_len(name, offer, TRANSPORT_PARAMETERS)?;
                Some(QuicPath::default().with_client_hello(bytes).client_datagrams())
            }
            ClientLibrary::AwsLc => None,
        };
        Ok::<_, Error>(Size { bytes, segments: bytes.div_ceil(args.mss.into()), datagrams })
    };
    Ok(Hello {
        library: client.library,
        groups,
        name: name.to_owned(),
        plain: size(&Offer::Nothing)?,
        placeholder: size(&Offer::Placeholder)?,
        ech: size(&sealed(keys))?,
    })
}

fn sealed(keys: &Keys) -> Offer {
    Offer::Sealed(keys.config_list().to_vec())
}

fn visit(
    client: &Client,
    case: Case,
    name: &str,
    keys: &Keys,
    identity: &Identity,
    args: &EchArgs,
) -> Result<Visit, Error> {
    let offer = match case {
        Case::Plain => Offer::Nothing,
        Case::Placeholder => Offer::Placeholder,
        Case::Accepted | Case::NewKey | Case::Dropped => sealed(keys),
    };
    let new = Keys::generate(&args.public_name, 2)?;
    let server = match case {
        Case::NewKey => Server::new(identity, Some(&new))?,
        Case::Dropped => Server::new(identity, None)?,
        Case::Plain | Case::Placeholder | Case::Accepted => Server::new(identity, Some(keys))?,
    };
    let mut connections = vec![client.connect(name, &offer, &server)?];
    if let Some(Answer::Rejected(list)) = connections.first().map(|first| first.answer.clone()) {
        let offer = list.map_or(Offer::Nothing, Offer::Sealed);
        connections.push(client.connect(name, &offer, &server)?);
    }
    let sum = |of: &dyn Fn(&Connection) -> usize| connections.iter().map(of).sum::<usize>();
    let round_trips = sum(&|one| one.round_trips);
    Ok(Visit {
        library: client.library,
        case,
        connections: connections.len(),
        flights: sum(&|one| one.flights.len()),
        client_bytes: sum(&|one| one.bytes(true)),
        server_bytes: sum(&|one| one.bytes(false)),
        tcp_round_trips: connections.len() + round_trips,
        quic_round_trips: round_trips,
        hidden: connections.last().is_some_and(|last| last.opened),
    })
}
