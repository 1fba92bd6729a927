//! Full and resumed handshakes in memory, both sides on one thread: the CPU time that the libraries take
//! with no network between them.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use tls::{
    Client, ClientConfig, Identity, KeyType, Library, Server, ServerConfig, Ticket, Trust, Version,
};

const NAME: &str = "server.test";

/// Runs a handshake until both sides are done, and returns the ticket.
fn handshake(client: &Client, server: &Server, ticket: Option<&Ticket>) -> Option<Ticket> {
    let mut client = client.start(ticket).expect("a client");
    let mut server = server.accept().expect("a server");
    let mut flight = Vec::with_capacity(8192);
    loop {
        flight.clear();
        let sent = client.write_tls(&mut flight).expect("write");
        server.read_tls(&flight).expect("read");
        flight.clear();
        let answered = server.write_tls(&mut flight).expect("write");
        client.read_tls(&flight).expect("read");
        if sent + answered == 0 {
            assert!(!client.is_handshaking() && !server.is_handshaking());
            assert_eq!(client.facts().resumed, ticket.is_some());
            return client.take_ticket();
        }
    }
}

fn endpoints(library: Library, version: Version, identity: &Arc<Identity>) -> (Client, Server) {
    let mut client = ClientConfig::new(library, NAME, Trust::Roots(identity.roots()));
    client.versions = vec![version];
    let mut server = ServerConfig::new(library, Arc::clone(identity));
    server.versions = vec![version];
    (Client::new(&client).expect("a client"), Server::new(&server).expect("a server"))
}

fn handshakes(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("handshake");
    group.sample_size(20);
    for key_type in [KeyType::EcdsaP256, KeyType::Rsa2048] {
        let identity = Arc::new(Identity::generate(key_type, 1, &[NAME]).expect("an identity"));
        for &library in Library::ALL {
            for &version in Version::ALL {
                let (client, server) = endpoints(library, version, &identity);
                group.bench_function(format!("{library}/{version}/{key_type}/full"), |bencher| {
                    bencher.iter(|| black_box(handshake(&client, &server, None)));
                });
                let mut ticket = handshake(&client, &server, None);
                group.bench_function(
                    format!("{library}/{version}/{key_type}/resumed"),
                    |bencher| {
                        bencher.iter(|| {
                            let newer = handshake(&client, &server, ticket.as_ref());
                            ticket = newer.or(ticket.take());
                        });
                    },
                );
            }
        }
    }
    group.finish();
}

criterion_group!(benches, handshakes);
criterion_main!(benches);
