//! A TLS server and clients on our stacks.

use std::net::SocketAddr;
use std::sync::Arc;

use sslmtcp::{ListenOptions, SslmTcpListener};
use tcpio::Stack;
use tls::{
    ClientConfig, Identity, KeyExchange, KeyLog, KeyType, Library, ServerConfig, Trust, Version,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use lab_test::TestResult;
use lab_test::net::peers::{PORT, open_on, our_addresses, stack_options, teach};
use lab_test::net::{Pair, WAIT, direct, pair};

/// The name in the certificates.
pub const NAME: &str = "server.test";

/// What the server answers, as HTTP has it.
pub const BODY: &str = "it is served\n";

/// Our stack on both nodes; the kernel of the client node knows the way to the server's too.
pub struct Site {
    pub pair: Pair,
    pub client: Stack,
    pub server: Stack,
    pub to: SocketAddr,
}

impl Site {
    pub fn new() -> TestResult<Site> {
        Site::on(pair(&linkmodel::Path::symmetric("10ms".parse()?))?, tcp::Config::default())
    }

    /// Without the pump, for floods.
    pub fn direct() -> TestResult<Site> {
        Site::direct_with(tcp::Config::default())
    }

    /// The same, with the server's TCP as configured.
    pub fn direct_with(config: tcp::Config) -> TestResult<Site> {
        Site::on(direct()?, config)
    }

    fn on(pair: Pair, config: tcp::Config) -> TestResult<Site> {
        teach(&pair.client, &pair.server)?;
        let ours = stack_options(&pair.client, &pair.server, tcp::Config::default())?;
        let client = open_on(&pair.client, ours)?;
        let mut options = stack_options(&pair.server, &pair.client, config)?;
        // Answers to unknown addresses go somewhere.
        options.gateways = vec![pair.client.addr4()?.into()];
        let server = open_on(&pair.server, options)?;
        let to = (our_addresses(&pair.server)?.0, PORT).into();
        Ok(Site { pair, client, server, to })
    }

    /// Serves every connection: a request that ends in an empty line gets [`BODY`].
    pub fn serve(&self, server: tls::Server) -> TestResult {
        self.serve_with(server, ListenOptions::default())
    }

    /// The same, listening as told.
    pub fn serve_with(&self, server: tls::Server, options: ListenOptions) -> TestResult {
        let (stack, to) = (self.server.clone(), self.to);
        let listening = self
            .pair
            .server
            .spawn(move || async move { SslmTcpListener::bind(&stack, to, server, options) });
        let listener = listening.join_within(WAIT)??;
        drop(self.pair.server.spawn(move || async move {
            while let Ok(mut stream) = listener.accept().await {
                tokio::spawn(async move {
                    let mut request = Vec::new();
                    while !request.ends_with(b"\r\n\r\n") {
                        if stream.read_buf(&mut request).await? == 0 {
                            break;
                        }
                    }
                    stream.write_all(response().as_bytes()).await?;
                    stream.shutdown().await
                });
            }
        }));
        Ok(())
    }
}

pub fn request() -> &'static [u8] {
    b"GET / HTTP/1.1\r\nHost: server.test\r\n\r\n"
}

pub fn response() -> String {
    let len = BODY.len();
    format!("HTTP/1.1 200 OK\r\nContent-Length: {len}\r\nConnection: close\r\n\r\n{BODY}")
}

/// Client and server of one version, with certificates on the spot.
pub struct Keys {
    pub identity: Arc<Identity>,
    pub client: tls::Client,
    pub server: tls::Server,
}

/// TLS 1.3 with ECDSA P-256 by rustls, or TLS 1.2 with RSA key exchange by OpenSSL, the SSLmTCP paper's.
pub fn keys(version: Version, log: Option<KeyLog>) -> TestResult<Keys> {
    let (library, key_type, key_exchange) = match version {
        Version::Tls13 => (Library::Rustls, KeyType::EcdsaP256, KeyExchange::Ecdhe),
        Version::Tls12 => (Library::OpenSsl, KeyType::Rsa2048, KeyExchange::Rsa),
    };
    let identity = Arc::new(Identity::generate(key_type, 2, &[NAME])?);
    let mut client = ClientConfig::new(library, NAME, Trust::Roots(identity.roots()));
    let mut server = ServerConfig::new(library, Arc::clone(&identity));
    client.versions = vec![version];
    server.versions = vec![version];
    client.key_exchange = key_exchange;
    server.key_exchange = key_exchange;
    client.early_data = version == Version::Tls13;
    server.max_early_data = if version == Version::Tls13 { 4096 } else { 0 };
    client.key_log = log;
    let (client, server) = (tls::Client::new(&client)?, tls::Server::new(&server)?);
    Ok(Keys { identity, client, server })
}
