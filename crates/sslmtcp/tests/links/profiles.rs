//! Every profile over both families, with chains of 1, 2 and 3 certificates, between our stacks.

use sslmtcp::{Carried, Embedding};
use tls::{EarlyData, KeyType, Library};

use super::talk::{Ask, RTT, Site, port};
use crate::common::Ends;
use lab_test::net::peers::FAMILIES;
use lab_test::{Test, TestResult};

pub fn tests() -> Vec<Test> {
    vec![
        Test::new("round_trips_are_those_of_the_profile", round_trips),
        Test::new("chains_of_every_length_come", chains),
        Test::new("a_first_request_leaves_with_finished", first_request),
        Test::new("early_data_are_served_once_and_not_after_a_restart", early_data),
    ]
}

/// The libraries of a profile's two sides.
const PAIRS: [(Library, Library); 2] =
    [(Library::Rustls, Library::OpenSsl), (Library::OpenSsl, Library::Rustls)];

fn key_type(embedding: Embedding) -> KeyType {
    if embedding == Embedding::Paper { KeyType::Rsa2048 } else { KeyType::EcdsaP256 }
}

fn round_trips() -> TestResult {
    // Long enough that no pause of a busy machine is taken for one more.
    let rtt = RTT * 5;
    let site = Site::new(rtt)?;
    let mut case = 0;
    // What libraries make at their first use, with many programs beside, takes as long as a round trip.
    for (client, server) in PAIRS {
        let ends = Ends::new(Embedding::None, client, server, KeyType::EcdsaP256, 1);
        let to = site.serve(FAMILIES[0], &ends.server, port(case))?;
        case += 1;
        site.ask(to, &ends.client, Ask::new(Embedding::None))?;
    }
    for family in FAMILIES {
        for (embedding, wanted) in
            [(Embedding::None, (2, 3)), (Embedding::Paper, (2, 3)), (Embedding::Tls13, (1, 2))]
        {
            for (client, server) in PAIRS {
                let ends = Ends::new(embedding, client, server, key_type(embedding), 1);
                let to = site.serve(family, &ends.server, port(case))?;
                case += 1;
                let asked = site.ask(to, &ends.client, Ask::new(embedding))?;
                let carried = match embedding {
                    Embedding::None => Carried::Sequential,
                    _ => Carried::Embedded,
                };
                assert_eq!(asked.report.carried, carried, "{embedding}, {family:?}");
                assert_eq!(asked.round_trips(rtt), wanted, "{embedding}, {family:?}");
                let tcp = asked.early.tcp.ok_or("no TCP")?;
                println!("{embedding}: {tcp:?} {:?}", asked.report.crypto);
                assert_eq!(tcp.syn_bytes >= 1024, embedding != Embedding::None);
                assert!(!asked.report.crypto.is_zero());
            }
        }
    }
    Ok(())
}

fn chains() -> TestResult {
    let site = Site::new(RTT)?;
    let mut case = 0;
    for (embedding, key_type, chain) in [
        (Embedding::Tls13, KeyType::EcdsaP256, 2),
        (Embedding::Tls13, KeyType::EcdsaP256, 3),
        (Embedding::Tls13, KeyType::Rsa4096, 1),
        (Embedding::Paper, KeyType::Rsa4096, 1),
        (Embedding::Paper, KeyType::Rsa2048, 2),
        (Embedding::Paper, KeyType::Rsa2048, 3),
        (Embedding::Tls13, KeyType::Rsa2048, 3),
    ] {
        let ends = Ends::new(embedding, Library::Rustls, Library::OpenSsl, key_type, chain);
        for family in FAMILIES {
            let to = site.serve(family, &ends.server, port(case))?;
            case += 1;
            let asked = site.ask(to, &ends.client, Ask::new(embedding))?;
            let name = format!("{embedding}, {key_type}, {chain}, {family:?}");
            let (ready, answered) = asked.round_trips(RTT);
            println!("{name}: ready after {ready}, answered after {answered}");
            assert_eq!(asked.report.carried, Carried::Embedded, "{name}");
            // The server's flight is within three times the SYN, but for the longest.
            let least = if embedding == Embedding::Paper { 2 } else { 1 };
            let more = u128::from(embedding == Embedding::Tls13 && key_type == KeyType::Rsa2048);
            assert!((least..=least + more).contains(&ready), "{name}: {ready}");
        }
    }
    Ok(())
}

fn first_request() -> TestResult {
    let site = Site::new(RTT)?;
    for (case, (client, server)) in PAIRS.into_iter().enumerate() {
        let ends = Ends::new(Embedding::Tls13, client, server, KeyType::EcdsaP256, 1);
        let to = site.serve(FAMILIES[0], &ends.server, port(case))?;
        let how = Ask { first_request: true, ..Ask::new(Embedding::Tls13) };
        let asked = site.ask(to, &ends.client, how)?;
        assert_eq!(asked.round_trips(RTT), (1, 2));
    }
    Ok(())
}

fn early_data() -> TestResult {
    let site = Site::new(RTT)?;
    let mut case = 0;
    for (client, server) in PAIRS {
        for family in FAMILIES {
            let mut ends = Ends::new(Embedding::ZeroRtt, client, server, KeyType::EcdsaP256, 1);
            let to = site.serve(family, &ends.server, port(case))?;
            let first = site.ask(to, &ends.client, Ask::new(Embedding::ZeroRtt))?;
            assert_eq!(first.report.facts.early_data, EarlyData::NotOffered);
            let ticket = first.ticket.ok_or("no ticket")?;
            let asked = site.ask(to, &ends.client, Ask::new(Embedding::ZeroRtt).with(ticket))?;
            assert_eq!(asked.report.facts.early_data, EarlyData::Accepted, "{server}");
            assert_eq!(asked.early.carried, Carried::Pending);
            assert_eq!(asked.report.carried, Carried::Embedded);
            assert_eq!(asked.round_trips(RTT), (0, 1), "{client} to {server}, {family:?}");

            let ticket = asked.ticket.ok_or("no second ticket")?;
            ends.restart_server();
            let to = site.serve(family, &ends.server, port(case + 1))?;
            case += 2;
            let asked = site.ask(to, &ends.client, Ask::new(Embedding::ZeroRtt).with(ticket))?;
            assert_eq!(asked.report.facts.early_data, EarlyData::Rejected, "{server}");
            assert_eq!(asked.round_trips(RTT), (0, 2), "{client} to {server}, {family:?}");
            assert!(asked.report.timeline.request_resent.is_some());
        }
    }
    Ok(())
}
