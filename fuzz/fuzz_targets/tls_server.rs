//! Any bytes to a TLS server of either library.
#![no_main]

use libfuzzer_sys::fuzz_target;

use std::sync::{Arc, OnceLock};

use tls::{Identity, KeyType, Library, Server, ServerConfig};

fn server(library: Library) -> &'static Server {
    static SERVERS: OnceLock<[Server; 2]> = OnceLock::new();
    let servers = SERVERS.get_or_init(|| {
        let identity = Identity::generate(KeyType::EcdsaP256, 1, &["server.test"]);
        let identity = Arc::new(identity.expect("a certificate can be made"));
        [Library::Rustls, Library::OpenSsl].map(|library| {
            let config = ServerConfig::new(library, Arc::clone(&identity));
            Server::new(&config).expect("the default configuration works")
        })
    });
    match library {
        Library::Rustls => &servers[0],
        Library::OpenSsl => &servers[1],
    }
}

fuzz_target!(|input: (bool, Vec<Vec<u8>>)| {
    let (openssl, pieces) = input;
    let library = if openssl { Library::OpenSsl } else { Library::Rustls };
    let mut session = server(library).accept().expect("a session can be made");
    let (mut out, mut data) = (Vec::new(), Vec::new());
    for piece in &pieces {
        let read = session.read_tls(piece);
        let _ = session.write_tls(&mut out);
        let _ = session.receive(&mut data);
        if read.is_err() {
            break;
        }
    }
});
