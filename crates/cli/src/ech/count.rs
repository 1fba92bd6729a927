//! What ECH makes of hellos and handshakes, counted in memory.

use flight::QuicPath;
use serde::Serialize;
use tls::ech::{Case, Client, ClientLibrary, Keys, Offer, Server, Visit, visit};
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
    /// Datagrams of QUIC that it takes, of 1200 bytes; null but for rustls, since others' QUIC is not measured.
    pub datagrams: Option<usize>,
}

impl Size {
    /// Of a hello in TLS records alone.
    pub fn in_records(bytes: usize, args: &EchArgs) -> Size {
        Size { bytes, segments: bytes.div_ceil(args.mss.into()), datagrams: None }
    }
}

/// One client's hellos for one name.
#[derive(Debug, Clone, Serialize)]
pub struct Hello {
    /// The client's library.
    pub library: String,
    /// The groups offered.
    pub groups: Vec<Group>,
    /// The name of the server, which ECH hides.
    pub name: String,
    /// The hello without ECH.
    pub plain: Size,
    /// With a placeholder (GREASE).
    pub placeholder: Size,
    /// The hello with ECH, sealed.
    pub ech: Size,
}

/// What a case is called in tables.
pub fn title(case: Case) -> &'static str {
    match case {
        Case::Plain => "no ECH",
        Case::Placeholder => "placeholder (GREASE)",
        Case::Accepted => "ECH, accepted",
        Case::NewKey => "ECH by an old key: retry",
        Case::Dropped => "ECH that is there no more: retry",
    }
}

/// What a visit comes to until the client may send its request.
#[derive(Debug, Clone, Serialize)]
pub struct Visited {
    /// The client's library.
    pub library: String,
    /// The server's library, where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// What happens to ECH in it.
    pub case: Case,
    /// What it comes to.
    #[serde(flatten)]
    pub counts: Visit,
}

/// All that is counted.
pub struct Counts {
    /// Bytes of the configuration that the server publishes.
    pub config_bytes: usize,
    /// One for each client, groups and name.
    pub hellos: Vec<Hello>,
    /// One for each client, server and case.
    pub visits: Vec<Visited>,
}

/// Counts the hellos of the built-in clients, and their visits in all cases.
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
                counts.hellos.push(hello(&client, name, &keys, args)?);
            }
        }
        let groups = GROUPS.last().copied().unwrap_or_default();
        let client = Client { library: *library, groups: groups.to_vec(), roots: identity.roots() };
        for case in Case::ALL {
            let name = names.first().copied().unwrap_or_default();
            counts.visits.push(visited(&client, *case, name, &keys, &identity, args)?);
        }
    }
    Ok(counts)
}

fn hello(client: &Client, name: &str, keys: &Keys, args: &EchArgs) -> Result<Hello, Error> {
    let size = |offer: &Offer| {
        let size = Size::in_records(client.hello_len(name, offer)?, args);
        let datagrams = match client.library {
            ClientLibrary::Rustls => {
                let bytes = client.quic_hello_len(name, offer, TRANSPORT_PARAMETERS)?;
                Some(QuicPath::default().with_client_hello(bytes).client_datagrams())
            }
            ClientLibrary::AwsLc => None,
        };
        Ok::<_, Error>(Size { datagrams, ..size })
    };
    Ok(Hello {
        library: client.library.to_string(),
        groups: client.groups.clone(),
        name: name.to_owned(),
        plain: size(&Offer::Nothing)?,
        placeholder: size(&Offer::Placeholder)?,
        ech: size(&Offer::Sealed(keys.config_list().to_vec()))?,
    })
}

fn visited(
    client: &Client,
    case: Case,
    name: &str,
    keys: &Keys,
    identity: &Identity,
    args: &EchArgs,
) -> Result<Visited, Error> {
    let new = Keys::generate(&args.public_name, 2)?;
    let server = Server::new(identity, case.server_key(keys, &new))?;
    let connect = |offer: &Offer| client.connect(name, offer, &server);
    let counts = visit(name, &case.offer(keys.config_list()), connect)?;
    Ok(Visited { library: client.library.to_string(), server: None, case, counts })
}
