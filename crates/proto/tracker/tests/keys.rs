//! Connections of rustls with itself, read with their keys, without, and with wrong ones.

use crate::pair::{Ends, Pair, certificate, ends, provider, replay};
use crate::talk::ms;
use rustls::crypto::aws_lc_rs;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tracker::{Class, Connection, EarlyData, KeyUse};

const SUITES: [u16; 3] = [0x1301, 0x1302, 0x1303];

/// With its keys, the connection is as given: times of the client's Finished, of both sides' first
/// data; and the rule told the same.
fn check(pair: &Pair, ends: &Ends, times: [u64; 3], tickets: u32) -> Connection {
    let lines = ends.lines.0.lock().unwrap().clone();
    let without = replay(&pair.wire, 1460, None);
    for segment in [1460, 1, 77, 100_000] {
        let c = replay(&pair.wire, segment, Some(&lines));
        let tls = c.tls.as_ref().unwrap();
        let decrypted = tls.decrypted.as_ref().expect("keys that fit");
        let reported = [decrypted.client_finished, decrypted.client_data, decrypted.server_data];
        assert_eq!(reported, times.map(ms));
        assert_eq!((tls.keys, &c.uncertain[..]), (KeyUse::Fit, &[][..]));
        assert_eq!([tls.client_finished, c.client_data, c.server_data], reported);
        assert_eq!((tls.tickets, tls.alpn.as_deref()), (tickets, Some("h2")));
        assert!(decrypted.rule_agrees, "{without:?}");
        let rule = without.tls.as_ref().unwrap();
        assert_eq!([rule.client_finished, without.client_data, without.server_data], reported);
        assert_eq!((rule.server_finished, rule.decrypted.as_ref()), (tls.server_finished, None));
        assert_eq!((rule.certificate_requested, rule.keys), (None, KeyUse::None));
        assert_eq!(rule.server_flight_len, tls.server_flight_len);
    }
    replay(&pair.wire, 1460, Some(&lines))
}

#[test]
fn full_and_resumed_under_every_suite() {
    for suite in SUITES {
        let ends = ends(suite, false, true);
        for (tickets, class) in [(2, Class::Full), (2, Class::Resumed)] {
            let mut pair = Pair::new(&ends);
            // ClientHello at 10 ms, the server's flight at 20, the client's Finished at 30, tickets
            // at 40, request at 50, answer at 60.
            pair.run();
            pair.exchange(100, 3000);
            let c = check(&pair, &ends, [30, 50, 60], tickets);
            assert_eq!(c.class(), Some(class));
            let tls = c.tls.unwrap();
            assert_eq!((tls.certificate_requested, tls.alerts.len()), (Some(false), 0));
        }
    }
}

#[test]
fn answers_of_any_length() {
    for down in [1, 2, 3, 17, 18, 19, 200, 1200, 20_000] {
        let ends = ends(0x1301, false, true);
        let mut pair = Pair::new(&ends);
        pair.run();
        pair.exchange(2, down);
        pair.exchange(1, 1);
        check(&pair, &ends, [30, 50, 60], 2);
    }
}

#[test]
fn a_client_certificate() {
    for suite in SUITES {
        let ends = ends(suite, true, true);
        let mut pair = Pair::new(&ends);
        pair.run();
        pair.exchange(100, 3000);
        let c = check(&pair, &ends, [30, 50, 60], 2);
        assert_eq!(c.tls.unwrap().certificate_requested, Some(true));
    }
}

#[test]
fn early_data() {
    use std::io::Write;
    for (suite, taken) in SUITES.into_iter().flat_map(|suite| [(suite, true), (suite, false)]) {
        let mut ends = ends(suite, false, true);
        ends.server.max_early_data_size = 1000;
        ends.client.enable_early_data = true;
        let mut first = Pair::new(&ends);
        first.run();
        if !taken {
            ends.server.max_early_data_size = 0;
        }
        let mut pair = Pair::new(&ends);
        pair.client.early_data().expect("a ticket").write_all(b"early request").unwrap();
        pair.run();
        pair.exchange(100, 3000);
        let times = if taken { [30, 10, 60] } else { [30, 50, 60] };
        let c = check(&pair, &ends, times, 2);
        let (class, outcome) = if taken {
            (Class::ZeroRtt, EarlyData::Accepted)
        } else {
            (Class::Resumed, EarlyData::Rejected)
        };
        let tls = c.tls.as_ref().unwrap();
        assert_eq!(
            (c.class(), tls.early_data, tls.early_data_sent),
            (Some(class), outcome, ms(10))
        );
    }
}

#[test]
fn another_hello_is_asked_for() {
    let mut ends = ends(0x1301, false, true);
    let mut other = (**ends.server.crypto_provider()).clone();
    other.kx_groups = vec![aws_lc_rs::kx_group::SECP256R1];
    let (chain, key) = certificate();
    let mut roots = RootCertStore::empty();
    roots.add(chain[0].clone()).unwrap();
    let server = ServerConfig::builder_with_provider(other.into());
    let alpn = ends.server.alpn_protocols.clone();
    ends.server = server
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    ends.server.alpn_protocols = alpn;
    let client = ClientConfig::builder_with_provider(provider(0x1301));
    let lines = ends.lines.clone();
    ends.client = client
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    ends.client.alpn_protocols = vec![b"h2".to_vec()];
    ends.client.key_log = lines;
    let mut pair = Pair::new(&ends);
    pair.run();
    pair.exchange(100, 3000);
    let c = check(&pair, &ends, [50, 70, 80], 2);
    assert_eq!(c.class(), Some(Class::HelloRetry));
    let tls = c.tls.unwrap();
    assert_eq!((tls.retry_group.unwrap().0, tls.group.unwrap().0), (0x17, 0x17));
}

#[test]
fn a_refused_certificate_shows_its_alert_with_keys_only() {
    let ends = ends(0x1302, false, false);
    let mut pair = Pair::new(&ends);
    pair.run();
    let lines = ends.lines.0.lock().unwrap().clone();
    let [with, without] = [Some(&lines[..]), None].map(|lines| replay(&pair.wire, 1460, lines));
    for c in [&with, &without] {
        assert_eq!((c.class(), c.uncertain.len()), (Some(Class::Failed), 0));
    }
    let alert = |c: &Connection| c.tls.as_ref().unwrap().alerts[0];
    assert_eq!((alert(&without).level, alert(&without).from_client), (None, true));
    // Another authority of the same name.
    assert_eq!(alert(&with).name, Some("decrypt_error"));
}

#[test]
fn keys_change_before_the_answer() {
    let ends = ends(0x1301, false, true);
    let mut pair = Pair::new(&ends);
    pair.run();
    pair.server.refresh_traffic_keys().unwrap();
    pair.client.refresh_traffic_keys().unwrap();
    pair.exchange(100, 3000);
    let lines = ends.lines.0.lock().unwrap().clone();
    let c = replay(&pair.wire, 1460, Some(&lines));
    let tls = c.tls.as_ref().unwrap();
    assert_eq!((tls.keys, tls.client_finished), (KeyUse::Fit, ms(30)));
    assert_eq!((c.client_data, c.server_data), (ms(50), ms(60)));
}

#[test]
fn keys_that_do_not_fit_leave_the_rule() {
    let ends = ends(0x1301, false, true);
    let mut pair = Pair::new(&ends);
    pair.run();
    pair.exchange(100, 3000);
    let lines = ends.lines.0.lock().unwrap().clone();
    let plain = replay(&pair.wire, 1460, None);
    // Another secret of the server's; half of the secrets; a secret of another hash's length.
    let wrong = |label: &str, secret: &dyn Fn(&str) -> String| {
        let line = |line: &str| match line.rsplit_once(' ') {
            Some((front, old)) if front.starts_with(label) => format!("{front} {}\n", secret(old)),
            _ => format!("{line}\n"),
        };
        lines.lines().map(line).collect::<String>()
    };
    let zeros = wrong("SERVER_HANDSHAKE_TRAFFIC_SECRET", &|_| "00".repeat(32));
    let traffic = wrong("SERVER_TRAFFIC_SECRET_0", &|_| "00".repeat(32));
    let longer = wrong("CLIENT_TRAFFIC_SECRET_0", &|_| "00".repeat(48));
    let half: String =
        lines.lines().filter(|l| l.starts_with("CLIENT")).map(|l| format!("{l}\n")).collect();
    for (log, keys) in [
        (zeros, KeyUse::DoNotFit),
        (traffic, KeyUse::DoNotFit),
        (longer, KeyUse::DoNotFit),
        (half, KeyUse::None),
    ] {
        let mut c = replay(&pair.wire, 1460, Some(&log));
        let tls = c.tls.as_mut().unwrap();
        assert_eq!((tls.keys, tls.decrypted.is_none()), (keys, true));
        tls.keys = KeyUse::None;
        assert_eq!(c, plain);
    }
}

#[test]
fn a_lost_record_ends_decryption_without_harm() {
    let ends = ends(0x1301, false, true);
    let mut pair = Pair::new(&ends);
    pair.run();
    pair.exchange(100, 3000);
    let lines = ends.lines.0.lock().unwrap().clone();
    for lost in 0..pair.wire.len() {
        let mut wire = pair.wire.clone();
        wire.remove(lost);
        let c = replay(&wire, 1460, Some(&lines));
        assert!(c.uncertain.len() < 4);
        for bytes in &mut wire {
            let middle = bytes.2.len() / 2;
            bytes.2[middle] ^= 1;
        }
        let c = replay(&wire, 1460, Some(&lines));
        assert!(c.tls.is_none_or(|tls| tls.keys != KeyUse::Fit));
    }
}

/// How a server answers a request that came with the Finished: tickets, then writes of these lengths.
struct Answer {
    tickets: usize,
    writes: &'static [usize],
}

/// Requests that ride with the Finished are the rule's hardest case: all that the server sends
/// acknowledges both. Where the rule is wrong it must have said that it is uncertain.
#[test]
fn where_the_rule_is_wrong_it_says_so() {
    use std::io::Write;
    let writes: [&[usize]; 12] = [
        &[1],
        &[2],
        &[18],
        &[60],
        &[300],
        &[1000],
        &[16_000],
        &[300, 5],
        &[300, 300],
        &[300, 5000],
        &[10, 5000],
        &[300, 300, 5000],
    ];
    let (mut wrong, mut certain, mut cases, mut failed) = (0, 0, 0, 0);
    for answer in
        writes.into_iter().flat_map(|writes| [0, 1, 2, 4].map(|tickets| Answer { tickets, writes }))
    {
        for (client_certificate, spread) in
            [(false, false), (true, false), (false, true), (true, true)]
        {
            let mut ends = ends(0x1301, client_certificate, true);
            ends.server.send_tls13_tickets = answer.tickets;
            let mut pair = Pair::new(&ends);
            pair.client.writer().write_all(&[b'u'; 100]).unwrap();
            pair.flight(0);
            pair.flight(1);
            pair.flight(0);
            if spread {
                pair.flight(1);
            }
            let begin = pair.at;
            for len in answer.writes {
                pair.server.writer().write_all(&vec![b'd'; *len]).unwrap();
                if spread {
                    pair.flight(1);
                }
            }
            pair.run();
            let lines = ends.lines.0.lock().unwrap().clone();
            let without = replay(&pair.wire, 1460, None);
            let with = replay(&pair.wire, 1460, Some(&lines));
            let decrypted = with.tls.unwrap().decrypted.unwrap();
            assert_eq!(decrypted.client_finished, ms(30));
            assert_eq!((decrypted.client_data, decrypted.server_data), (ms(30), ms(begin)));
            cases += 1;
            wrong += usize::from(!decrypted.rule_agrees);
            certain += usize::from(without.uncertain.is_empty());
            let reported = without.uncertain.is_empty() <= decrypted.rule_agrees;
            println!(
                "{} tickets, {:?}, spread {spread}: agrees {} uncertain {:?} tickets by the rule {}",
                answer.tickets,
                answer.writes,
                decrypted.rule_agrees,
                without.uncertain,
                without.tls.unwrap().tickets
            );
            // What `tls/rule13.rs` says that the rule cannot know.
            let unknowable = spread
                && answer.tickets == 0
                && matches!(answer.writes, [300, 5] | [300, 300, 5000]);
            failed += usize::from(reported == unknowable);
        }
    }
    println!("{wrong} of {cases} wrong, {certain} certain");
    assert_eq!(failed, 0, "wrong and certain");
}
