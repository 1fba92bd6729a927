//! Where chains come from: files, a server, and what is made here.

use std::io::{Read, Write};
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use conn::probe::Finding;
use fault::{Fault, OrProblem, Problem, WhileDoing};
use flight::Framing;
use outfile::OutFile;
use testbed::Carrier;
use tls::chain::{Chain, ChainFault, Oddity, Verdict};
use tls::{Compression, Identity, SignatureKind, Trust};

use super::ChainArgs;
use super::made::Recipe;
use crate::certificates::roots_in;
use crate::diagnostics::Diagnostics;

/// Most of a file that is read: more than any chain has, by which one that is too large is known.
const LARGEST: u64 = (1 << 20) + 1;
/// How long to wait for a server.
const PATIENCE: Duration = Duration::from_secs(10);

/// A chain, and what is said of it before any cost.
pub struct Source {
    /// What it is called: the file, the server, the keys.
    pub name: String,
    /// The certificates, the server's own first.
    pub chain: Chain,
    /// Bytes of the Certificate message's body, compressed in each way.
    pub compressed: Vec<(Compression, usize)>,
    /// What is odd about it.
    pub oddities: Vec<Oddity>,
    /// What each library's verifier says; empty without a name to verify it for.
    pub verdicts: Vec<Verdict>,
    /// The faults for which a client refuses it.
    pub faults: Vec<ChainFault>,
    /// The verdict on the server's handshake, if a browser's hello fails there.
    pub finding: Option<Finding>,
    /// The chain without its key, which rustls shows in every way.
    pub stand_in: Arc<Identity>,
    /// The chain with its key, where OpenSSL serves it: over TCP, without compression.
    pub own: Option<Arc<Identity>>,
}

impl Source {
    /// Whether OpenSSL serves it so, with its own key.
    pub fn is_served(&self, carrier: Carrier, compression: Option<Compression>) -> bool {
        self.own.is_some() && carrier == Carrier::Tls13 && compression.is_none()
    }

    /// How whoever shows it so frames its messages.
    pub fn framing(&self, compression: Option<Compression>) -> Framing {
        match self.is_served(Carrier::Tls13, compression) {
            true => Framing::PerMessage,
            false => Framing::Coalesced,
        }
    }

    /// Whether the leaf's key signs in TLS 1.3 alone.
    pub fn is_post_quantum(&self) -> bool {
        self.chain.leaf_key().kind == SignatureKind::PostQuantum
    }
}

/// All chains that are asked for: the files first, then the server's, then those made here.
pub fn sources(args: &ChainArgs, diagnostics: &Diagnostics) -> Result<Vec<Source>, Problem> {
    let trust = trust(args)?;
    let mut sources = Vec::new();
    for file in &args.files {
        let named = || format!("{}", file.display());
        let chain = Chain::from_file(&contents(file)?).while_doing(named)?;
        let host = args.name.clone().or_else(|| chain.name());
        sources.push(given(named(), chain, host, &trust)?);
    }
    if let Some(server) = &args.server {
        let (chain, host, finding) = fetched(server, args, diagnostics)?;
        let host = host.or_else(|| chain.name());
        let source = given(server.clone(), chain, host, &trust)?;
        sources.push(Source { finding, ..source });
    }
    for recipe in &args.make {
        sources.push(made(*recipe, args)?);
    }
    Ok(sources)
}

/// The bytes of a file, no more than are needed to see that it is too large.
fn contents(path: &Path) -> Result<Vec<u8>, Problem> {
    let doing = || format!("{} cannot be read", path.display());
    let mut bytes = Vec::new();
    let file =
        study::open_input(path).blame(Fault::Caller).while_doing(doing).map_err(|problem| {
            problem.with_remedy(
                "give a file of certificates in PEM, the server's own first, as fullchain.pem",
            )
        })?;
    file.take(LARGEST).read_to_end(&mut bytes).blame(Fault::Caller).while_doing(doing)?;
    Ok(bytes)
}

fn trust(args: &ChainArgs) -> Result<Trust, Problem> {
    match &args.ca {
        Some(path) => Ok(Trust::Roots(roots_in(path)?)),
        None => Ok(Trust::System),
    }
}

/// A chain of somebody else's.
fn given(
    name: String,
    chain: Chain,
    host: Option<String>,
    trust: &Trust,
) -> Result<Source, Problem> {
    let (verdicts, faults) = match &host {
        Some(host) => (chain.verify(trust, host, now())?, chain.faults(trust, host, now())?),
        None => (Vec::new(), Vec::new()),
    };
    Ok(Source { faults, ..source(name, chain, verdicts, None)? })
}

/// A chain made here. Classical ones are shown without their key as strangers' are, so that all are shown
/// alike; those with post-quantum keys are served with them, too.
fn made(recipe: Recipe, args: &ChainArgs) -> Result<Source, Problem> {
    let identity = recipe.make(args.length.into(), testbed::SERVER_NAME)?;
    let chain = Chain::from_der(identity.chain_der())?;
    let roots = Trust::Roots(identity.roots());
    let verdicts = chain.verify(&roots, testbed::SERVER_NAME, now())?;
    let own = match recipe {
        Recipe::Classical(_) => None,
        Recipe::PostQuantum(..) => Some(Arc::new(identity)),
    };
    source(format!("made: {recipe}"), chain, verdicts, own)
}

fn source(
    name: String,
    chain: Chain,
    verdicts: Vec<Verdict>,
    own: Option<Arc<Identity>>,
) -> Result<Source, Problem> {
    let body = chain.certificate_body()?;
    let compressed = Compression::ALL.iter();
    let compressed = compressed.filter_map(|by| Some((*by, by.pack(&body)?.len())));
    Ok(Source {
        compressed: compressed.collect(),
        oddities: chain.oddities(now()),
        stand_in: Arc::new(chain.stand_in()?),
        name,
        chain,
        verdicts,
        faults: Vec::new(),
        finding: None,
        own,
    })
}

/// The chain that a server sends, the name that it must carry, and the verdict on the handshake; the chain
/// goes into a file, too, if that is wanted.
fn fetched(
    server: &str,
    args: &ChainArgs,
    diagnostics: &Diagnostics,
) -> Result<(Chain, Option<String>, Option<Finding>), Problem> {
    let mut target = args.reach.target(server, diagnostics)?;
    let unwritable = |path: &Path| format!("{} cannot be written", path.display());
    let save = match &args.save {
        Some(path) => {
            let file = OutFile::create(path).blame(Fault::Results);
            Some((path, file.while_doing(|| unwritable(path))?))
        }
        None => None,
    };
    target.server_name.clone_from(&args.name);
    let runtime = crate::runtime::runtime()?;
    let seen = runtime.block_on(conn::probe::chain(&target, PATIENCE));
    runtime.shutdown_background();
    let seen = seen.map_err(|error| Problem::from(error).blaming(Fault::Peer))?;
    let chain = Chain::from_der(&seen.chain).while_doing(|| server.to_owned())?;
    if let Some((path, mut file)) = save {
        let written = file.write_all(chain.to_pem()?.as_ref()).and_then(|()| file.finish_synced());
        written.blame(Fault::Results).while_doing(|| unwritable(path))?;
    }
    // An address is in few certificates: the chain's own name says more.
    let host = Some(target.host).filter(|host| host.parse::<IpAddr>().is_err());
    Ok((chain, args.name.clone().or(host), seen.finding))
}

/// Seconds since 1970.
fn now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_secs()).unwrap_or(i64::MAX)
}
