//! `wiretax gateway`: the pair of proxies, from the command line to their end.

mod args;
mod service;
mod survey;
mod survey_args;

use std::cell::Cell;
use std::io::Read;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fault::{Fault, Problem};
use gateway::{Common, ConnectOptions, Ended, Ending, Place, ServeOptions, Stage, Summary};
use rustls_pki_types::ServerName;
use sslmtcp::Embedding;
use tls::{ClientConfig, Identity, KeyExchange, Library, ServerConfig, Trust, Version};
use units::counted;

pub use self::args::GatewayArgs;
use self::args::{CommonArgs, ConnectArgs, ServeArgs, Side};
use self::service::LogForm;
use crate::certificates::roots_in;
use crate::exit::{Exit, Outcome};
use crate::interrupt::Asked;
use crate::remote::only_local;

/// Early data that is taken on a connection, in bytes: a large request head.
const EARLY_DATA: u32 = 16 << 10;
/// The largest key or certificate file, in bytes.
const LARGEST: u64 = 1 << 20;

/// Runs one side until it is asked to end.
pub fn gateway(args: &GatewayArgs, verbose: u8, quiet: bool) -> Outcome {
    let log = |common: &CommonArgs| {
        let form = if common.json { LogForm::Json } else { LogForm::Text };
        service::log_to_stderr(verbose, quiet, form);
        common.json
    };
    let (json, ended) = match &args.side {
        Side::Serve(args) => {
            let json = log(&args.common);
            let ended = serve_options(args).and_then(|options| {
                run(|ended| gateway::serve(options, ended, || service::tell("READY=1")))
            });
            (json, ended)
        }
        Side::Connect(args) => {
            let json = log(&args.common);
            let ended = connect_options(args).and_then(|options| {
                run(|ended| gateway::connect(options, ended, || service::tell("READY=1")))
            });
            (json, ended)
        }
        Side::Survey(args) => return survey::survey(args, verbose, quiet),
    };
    match ended {
        Err(failed) if json => {
            tracing::error!(hint = failed.remedy().unwrap_or_default(), "{failed}");
            Ok(Exit::of(failed.fault()))
        }
        other => other,
    }
}

/// Runs a gateway and passes the signals on to it: the first asks it to end, the second ends it.
fn run<F>(gateway: impl FnOnce(Ended) -> F) -> Outcome
where
    F: Future<Output = Result<Summary, gateway::Error>>,
{
    let runtime = crate::runtime::runtime()?;
    let outcome = runtime.block_on(async {
        let signals = Asked::listen()?;
        let (ending, ended) = gateway::ending();
        let at_once = Cell::new(false);
        tokio::select! {
            result = gateway(ended) => finish(result, at_once.get()),
            () = pass_on(signals, &ending, &at_once) => Ok(Exit::Interrupted),
        }
    });
    // What blocks a thread of the runtime must not hold up the end.
    runtime.shutdown_background();
    outcome
}

fn finish(result: Result<Summary, gateway::Error>, at_once: bool) -> Outcome {
    match result {
        Err(error) => Err(error.into()),
        Ok(Summary { cut_off }) => {
            if cut_off > 0 {
                tracing::warn!("ended; {} cut off", counted(cut_off, "connection"));
            } else {
                tracing::info!("ended");
            }
            Ok(if at_once { Exit::Interrupted } else { Exit::Done })
        }
    }
}

/// Returns when the gateway has not ended within a while of the second signal.
async fn pass_on(mut signals: Asked, ending: &Ending, at_once: &Cell<bool>) {
    const WHILE: Duration = Duration::from_secs(2);
    signals.next().await;
    service::tell("STOPPING=1");
    ending.advance(Stage::Draining);
    signals.next().await;
    at_once.set(true);
    ending.advance(Stage::Now);
    tokio::time::sleep(WHILE).await;
}

fn serve_options(args: &ServeArgs) -> Result<ServeOptions, Problem> {
    let chain = read(&args.certificate, "certificate", false)?;
    let key = read(&args.key, "private key", true)?;
    let identity = Identity::from_pem(&chain, &key)?;
    let (library, key_exchange) = match args.paper {
        false => (Library::Rustls, KeyExchange::Ecdhe),
        true => (Library::OpenSsl, KeyExchange::Rsa),
    };
    let config = ServerConfig {
        versions: vec![Version::Tls12, Version::Tls13],
        key_exchange,
        max_early_data: if args.early_data { EARLY_DATA } else { 0 },
        ..ServerConfig::new(library, Arc::new(identity))
    };
    if args.paper {
        tracing::warn!("--paper: whoever gets the key later can read what is recorded today");
    }
    let (_, to) = resolve(&args.to)?;
    if !to.ip().is_loopback() {
        tracing::warn!(hint = "serve on the server's own machine", "the way to {to} is plaintext");
    }
    Ok(ServeOptions {
        common: Common { syn_data_rate: args.syn_data_rate, ..common(&args.common)? },
        listen: args.listen,
        to,
        allowed: args.allow.clone(),
        max_per_source: args.max_per_source.unwrap_or(args.common.max_connections.div_ceil(4))
            as usize,
        tls: tls::Server::new(&config).map_err(usage)?,
        proxy_protocol: args.proxy_protocol,
    })
}

fn connect_options(args: &ConnectArgs) -> Result<ConnectOptions, Problem> {
    let common = common(&args.common)?;
    only_local("--listen", args.listen, args.common.allow_remote)?;
    let (host, to) = resolve(&args.to)?;
    let name = args.name.clone().unwrap_or(host);
    let trust = match &args.ca {
        _ if args.insecure => {
            tracing::warn!("--insecure: anyone on the way can read and change everything");
            Trust::Insecure
        }
        Some(path) => Trust::Roots(roots_in(path)?),
        None => Trust::System,
    };
    let paper = args.profile == Embedding::Paper;
    let library = if paper { Library::OpenSsl } else { Library::Rustls };
    let config = ClientConfig::new(library, &name, trust);
    let config = match paper {
        true => ClientConfig {
            versions: vec![Version::Tls12],
            key_exchange: KeyExchange::Rsa,
            ..config
        },
        false => ClientConfig { early_data: args.profile == Embedding::ZeroRtt, ..config },
    };
    Ok(ConnectOptions {
        common,
        listen: args.listen,
        to,
        tls: tls::Client::new(&config).map_err(usage)?,
        embedding: args.profile,
        first_bytes: args.first_bytes_wait.duration(),
    })
}

fn common(args: &CommonArgs) -> Result<Common, Problem> {
    if let Some(metrics) = args.metrics {
        only_local("--metrics", metrics, args.allow_remote)?;
    }
    let place = match (&args.tun, args.redirect) {
        (Some(name), _) => Place::Tun { name: name.clone() },
        (None, true) => Place::Redirect { name: args.interface.clone() },
        (None, false) => Place::Interface { name: args.interface.clone() },
    };
    Ok(Common {
        address: args.address,
        router: args.router,
        metrics: args.metrics,
        max_connections: args.max_connections as usize,
        drain: args.drain.duration(),
        handshake: args.handshake_timeout.duration(),
        idle: args.idle_timeout.duration(),
        send_memory: memory(args.send_memory),
        receive_memory: memory(args.receive_memory),
        ..Common::new(place)
    })
}

/// An amount of memory; more than there can be is all there is.
fn memory(size: units::Bytes) -> usize {
    usize::try_from(size.count()).unwrap_or(usize::MAX)
}

/// What TLS cannot work with was given on the command line.
fn usage(error: tls::Error) -> Problem {
    Problem::from(error).blaming(Fault::Caller)
}

/// The host and the address of `HOST:PORT`.
fn resolve(text: &str) -> Result<(String, SocketAddr), Problem> {
    let wrong = |problem: &str| {
        Problem::new(Fault::Caller, format!("{text:?}: {problem}"))
            .with_remedy("write it as example.org:443")
    };
    let (host, port) = text.rsplit_once(':').ok_or_else(|| wrong("there is no port"))?;
    let port: u16 = port.parse().map_err(|_| wrong("its port is not a number up to 65535"))?;
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let colons = bare.contains(':') && bare.len() == host.len();
    if port == 0 || colons || ServerName::try_from(bare).is_err() {
        return Err(wrong("it is not a host and port"));
    }
    if let Ok(address) = bare.parse::<IpAddr>() {
        return Ok((bare.to_owned(), SocketAddr::new(address, port)));
    }
    let found = (bare, port).to_socket_addrs().ok().and_then(|mut all| all.next());
    let found = found.ok_or_else(|| {
        Problem::new(Fault::Caller, format!("{bare} has no address"))
            .with_remedy("check that it is spelt right, and that DNS works")
    })?;
    Ok((bare.to_owned(), found))
}

/// The bytes of a PEM file. A private one must not be readable, or writable, by everyone.
fn read(path: &Path, what: &str, private: bool) -> Result<Vec<u8>, Problem> {
    let shown = path.display();
    let unreadable = |error: std::io::Error| {
        Problem::of(Fault::Caller, error)
            .while_doing(format!("the {what} {shown} cannot be read"))
            .with_remedy("name a file that you may read")
    };
    let file = study::open_input(path).map_err(unreadable)?;
    // Of the file that is open, whatever its name stands for by now.
    let mode = file.file().metadata().map_err(unreadable)?.mode();
    if private && mode & 0o027 != 0 {
        let open = format!("the {what} {shown} is open to others (mode {:03o})", mode & 0o777);
        let remedy = format!("chmod u=rw,g=r,o= {shown}");
        return Err(Problem::new(Fault::Caller, open).with_remedy(remedy));
    }
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > LARGEST {
        return Err(Problem::new(Fault::Caller, format!("the {what} {shown} is too large"))
            .with_remedy("check that it is the right file"));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn peers_are_read_as_people_write_them() {
        for (text, host, address) in [
            ("192.0.2.10:443", "192.0.2.10", "192.0.2.10:443"),
            ("[2001:db8::1]:8443", "2001:db8::1", "[2001:db8::1]:8443"),
        ] {
            let read = resolve(text).unwrap();
            assert_eq!(read, (host.to_owned(), address.parse().unwrap()));
        }
        for wrong in ["", "x", ":1", "x:0", "x:99999", "2001:db8::1", "2001:db8::1:443", "a b:1"] {
            let failed = resolve(wrong).unwrap_err();
            assert_eq!(failed.fault(), Fault::Caller);
            assert!(failed.remedy().is_some(), "{wrong}");
        }
    }

    #[test]
    fn a_key_that_everyone_may_read_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for (mode, allowed) in
            [(0o600, true), (0o640, true), (0o644, false), (0o660, false), (0o602, false)]
        {
            std::fs::set_permissions(file.path(), PermissionsExt::from_mode(mode)).unwrap();
            assert_eq!(read(file.path(), "private key", true).is_ok(), allowed, "{mode:o}");
            assert!(read(file.path(), "certificate", false).is_ok());
        }
    }
}
