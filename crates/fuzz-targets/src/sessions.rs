//! Any bytes to a TLS client or server of either library. The first byte chooses the library, then
//! each piece has its length in two bytes before it.

use std::sync::{Arc, OnceLock};

use tls::{
    Client, ClientConfig, Identity, KeyType, Library, Server, ServerConfig, Session, Trust, Version,
};

/// Any bytes as a server's answer.
pub fn client(bytes: &[u8]) {
    static CLIENTS: OnceLock<[Client; 2]> = OnceLock::new();
    let clients = CLIENTS.get_or_init(|| {
        [Library::Rustls, Library::OpenSsl].map(|library| {
            let mut config = ClientConfig::new(library, "server.test", Trust::Insecure);
            config.versions = vec![Version::Tls12, Version::Tls13];
            Client::new(&config).expect("the configuration works")
        })
    });
    let Some((choice, pieces)) = bytes.split_first() else { return };
    let mut session = clients[usize::from(choice & 1)].start(None).expect("a session can be made");
    let _ = session.write_tls(&mut Vec::new());
    feed(session.as_mut(), pieces);
}

/// Any bytes as a client.
pub fn server(bytes: &[u8]) {
    static SERVERS: OnceLock<[Server; 2]> = OnceLock::new();
    let servers = SERVERS.get_or_init(|| {
        let identity = Identity::generate(KeyType::EcdsaP256, 1, &["server.test"]);
        let identity = Arc::new(identity.expect("a certificate can be made"));
        [Library::Rustls, Library::OpenSsl].map(|library| {
            let config = ServerConfig::new(library, Arc::clone(&identity));
            Server::new(&config).expect("the default configuration works")
        })
    });
    let Some((choice, pieces)) = bytes.split_first() else { return };
    let mut session = servers[usize::from(choice & 1)].accept().expect("a session can be made");
    feed(session.as_mut(), pieces);
}

fn feed(session: &mut dyn Session, mut bytes: &[u8]) {
    let (mut out, mut data) = (Vec::new(), Vec::new());
    while let Some((len, rest)) = bytes.split_first_chunk() {
        let len = usize::from(u16::from_be_bytes(*len)).min(rest.len());
        let (piece, rest) = rest.split_at(len);
        let read = session.read_tls(piece);
        let _ = session.write_tls(&mut out);
        let _ = session.receive(&mut data);
        if read.is_err() {
            break;
        }
        bytes = rest;
    }
}
