//! Client certificates: shown, refused, missing. A refusal never counts as a connection.

use load::{Kind, Options, Stage};
use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use tls::ClientIdentity;

use crate::support::{Custom, Stream, Tls, answer, options_http2, options_of, run, serve_custom};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// A root for clients, and a certificate that it has signed.
struct Clients {
    root: Vec<u8>,
    certificate: ClientIdentity,
}

fn clients() -> Clients {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let root = params.self_signed(&key).unwrap().der().to_vec();
    let issuer = Issuer::new(params, key);
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["client.test".to_owned()]).unwrap();
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let signed = params.signed_by(&key, &issuer).unwrap();
    let pem = key.serialize_pem();
    let certificate = ClientIdentity::from_pem(signed.pem().as_bytes(), pem.as_bytes()).unwrap();
    Clients { root, certificate }
}

/// Reads until the client closes.
fn listen(stream: &mut dyn Stream) -> std::io::Result<()> {
    let mut buffer = [0; 1024];
    while stream.read(&mut buffer)? > 0 {}
    Ok(())
}

fn asking(clients: &Clients, change: impl FnOnce(&mut Tls)) -> Custom {
    let mut tls = Tls { clients: Some(clients.root.clone()), ..Tls::default() };
    change(&mut tls);
    serve_custom(tls, |stream, _| answer(stream, OK))
}

fn few(options: Options) -> Options {
    Options { count: Some(3), ..options }
}

#[test]
fn a_certificate_is_shown_to_those_who_ask() {
    let clients = clients();
    for only_tls12 in [false, true] {
        let server = asking(&clients, |tls| tls.only_tls12 = only_tls12);
        let mut options = few(options_of(&server));
        options.client_certificate = Some(clients.certificate.clone());
        let report = run(&options);
        assert_eq!((report.completed, report.failed), (3, 0), "{report:#?}");
        assert_eq!((report.handshakes.full, report.handshakes.asked_for_certificate), (3, 3));
    }
}

#[test]
fn a_refusal_is_no_connection() {
    let (clients, others) = (clients(), clients());
    for only_tls12 in [false, true] {
        for handshake_only in [false, true] {
            for no_tickets in [false, true] {
                for shown in [None, Some(others.certificate.clone())] {
                    let server = asking(&clients, |tls| {
                        tls.only_tls12 = only_tls12;
                        tls.no_tickets = no_tickets;
                    });
                    let mut options = few(options_of(&server));
                    options.client_certificate.clone_from(&shown);
                    if handshake_only {
                        options.request = None;
                    }
                    let report = run(&options);
                    let case =
                        format!("TLS 1.2 {only_tls12}, handshake {handshake_only}, {shown:?}");
                    assert_eq!((report.completed, report.failed), (0, 3), "{case}: {report:#?}");
                    assert_eq!(report.handshakes.full, 0, "{case}: {report:#?}");
                    let failure = &report.failures[0];
                    let found = (failure.stage, failure.kind);
                    assert_eq!(found, (Stage::Tls, Kind::ClientCertificate), "{case}: {failure:?}");
                }
            }
        }
    }
}

#[test]
fn a_handshake_alone_is_made_where_the_server_goes_on() {
    let clients = clients();
    for no_tickets in [false, true] {
        for shown in [None, Some(clients.certificate.clone())] {
            let tls = Tls {
                clients: Some(clients.root.clone()),
                optional: true,
                no_tickets,
                ..Tls::default()
            };
            let server = serve_custom(tls, |stream, _| listen(stream));
            let mut options = few(options_of(&server));
            options.request = None;
            options.client_certificate.clone_from(&shown);
            let report = run(&options);
            assert_eq!((report.completed, report.failed), (3, 0), "{no_tickets}: {report:#?}");
            assert_eq!(report.handshakes.asked_for_certificate, 3);
        }
    }
}

#[test]
fn a_refusal_over_http2_is_no_connection() {
    let clients = clients();
    let server = asking(&clients, |tls| tls.alpn = vec!["h2"]);
    let mut options = options_http2(&server, 4, true);
    options.count = Some(8);
    let report = run(&options);
    assert_eq!(
        (report.completed, report.requests, report.handshakes.full),
        (0, 0, 0),
        "{report:#?}"
    );
    let failure = &report.failures[0];
    assert_eq!((failure.stage, failure.kind), (Stage::Tls, Kind::ClientCertificate), "{failure:?}");
}
