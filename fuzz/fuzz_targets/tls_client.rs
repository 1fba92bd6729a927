//! Any bytes as a server's answer to a TLS client of either library.
#![no_main]

use libfuzzer_sys::fuzz_target;

use std::sync::OnceLock;

use tls::{Client, ClientConfig, Library, Trust, Version};

fn client(library: Library) -> &'static Client {
    static CLIENTS: OnceLock<[Client; 2]> = OnceLock::new();
    let clients = CLIENTS.get_or_init(|| {
        [Library::Rustls, Library::OpenSsl].map(|library| {
            let mut config = ClientConfig::new(library, "server.test", Trust::Insecure);
            config.versions = vec![Version::Tls12, Version::Tls13];
            Client::new(&config).expect("the configuration works")
        })
    });
    match library {
        Library::Rustls => &clients[0],
        Library::OpenSsl => &clients[1],
    }
}

fuzz_target!(|input: (bool, Vec<Vec<u8>>)| {
    let (openssl, pieces) = input;
    let library = if openssl { Library::OpenSsl } else { Library::Rustls };
    let mut session = client(library).start(None).expect("a session can be made");
    let (mut out, mut data) = (Vec::new(), Vec::new());
    let _ = session.write_tls(&mut out);
    for piece in &pieces {
        let read = session.read_tls(piece);
        let _ = session.write_tls(&mut out);
        let _ = session.receive(&mut data);
        if read.is_err() {
            break;
        }
    }
});
