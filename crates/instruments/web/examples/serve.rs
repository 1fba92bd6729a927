//! A server to be measured from outside: HTTP/1.1, HTTP/2 and HTTP/3 over TLS on one thread. `/N` is a body
//! of N bytes.
//!
//! usage: serve ADDRESS CHAIN.pem KEY.pem [CLEAR_ADDRESS]

use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use tls::{Identity, Library, ServerConfig, Version};
use web::{Answer, Protocol, RequestHead, Server, ServerPlan, TlsPlan};

fn site(request: &RequestHead<'_>) -> Answer {
    let length = request.path().trim_start_matches('/').parse();
    length.map_or_else(|_| Answer::not_found(), Answer::new)
}

fn plan(arguments: &[String]) -> Result<ServerPlan, String> {
    let [address, chain, key, clear @ ..] = arguments else {
        return Err("usage: serve ADDRESS CHAIN.pem KEY.pem [CLEAR_ADDRESS]".to_owned());
    };
    let parse = |text: &String| -> Result<SocketAddr, String> {
        text.parse().map_err(|error| format!("{text}: {error}"))
    };
    let read =
        |path: &String| std::fs::read(Path::new(path)).map_err(|error| format!("{path}: {error}"));
    let identity = Identity::from_pem(&read(chain)?, &read(key)?);
    let identity = identity.map_err(|error| error.to_string())?;
    let config = ServerConfig {
        versions: vec![Version::Tls12, Version::Tls13],
        ..ServerConfig::new(Library::Rustls, Arc::new(identity))
    };
    let protocols = vec![Protocol::Http2, Protocol::Http1, Protocol::Http3];
    Ok(ServerPlan {
        tls: Some(TlsPlan { addresses: vec![parse(address)?], config, protocols, user_tcp: None }),
        clear: clear.iter().map(parse).collect::<Result<_, _>>()?,
        log_capacity: 0,
        ..ServerPlan::new(Arc::new(site))
    })
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let plan = match plan(&arguments) {
        Ok(plan) => plan,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::from(2);
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let Ok(runtime) = runtime else { return ExitCode::FAILURE };
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async {
        match Server::start(plan) {
            Ok(_server) => std::future::pending().await,
            Err(failure) => {
                eprintln!("error: {failure}");
                ExitCode::FAILURE
            }
        }
    })
}
