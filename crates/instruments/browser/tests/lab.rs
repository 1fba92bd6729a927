//! Pages loaded in the lab: by each protocol, visit after visit, with what both sides saw.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use browser::{Bed, Before, Carrier, Seen, Setting, Tcp, Windows};
use lab_test::net::sleeping;
use lab_test::{Test, TestResult};
use linkmodel::Path;
use page::{Browser, Caching, HostId, Kind, Object, ObjectId, Page, Policy, Share};
use units::{Bytes, Delay};
use web::{Embedding, Protocol};

/// The round trip of the tests' links.
const RTT: Duration = Duration::from_millis(40);

fn setting(protocol: Protocol) -> Setting {
    Setting {
        protocol,
        versions: vec![tls::Version::Tls13],
        settings: Windows::Chromium.settings(protocol),
        carrier: Carrier::Kernel,
        tcp: Tcp::default(),
        policy: Policy::of(Browser::Chromium),
        timeout: Duration::from_secs(20),
    }
}

/// A document, and ten images on two hosts of which one may be stored.
fn page() -> TestResult<Page> {
    let hosts = vec!["www.page.test".to_owned(), "img.page.test".to_owned()];
    let mut objects = vec![Object::new(HostId(0), "/", Kind::Document, Bytes(5_000))];
    for number in 0..10u32 {
        let host = HostId(number % 2);
        let path = format!("/image{number}");
        let image = Object::new(host, path, Kind::Image, Bytes(3_000));
        let mut image = image.found_by(ObjectId(0), Share::ALL, Delay::ZERO);
        if number == 0 {
            let fresh_for = Duration::from_secs(3600).into();
            image.caching = Caching::Stored { fresh_for, validator: true };
        }
        objects.push(image);
    }
    Ok(Page::new("test", hosts, objects)?)
}

fn visits(protocol: Protocol, visits: Vec<Before>) -> TestResult<Vec<Seen>> {
    visits_with(&setting(protocol), visits)
}

fn visits_with(setting: &Setting, visits: Vec<Before>) -> TestResult<Vec<Seen>> {
    let page = page()?;
    let mut bed = Bed::new(sleeping(7), 1, page.hosts().len())?;
    let lane = bed.lanes().first_mut().ok_or("no lane")?;
    lane.serve(&page, setting)?;
    lane.set_path(&Path::symmetric(RTT.into()))?;
    Ok(lane.visit(&page, setting, visits, Arc::new(AtomicBool::new(false)))?.join()??)
}

/// Every protocol loads the page: the first visit whole, the second with what was kept.
fn every_protocol_loads_a_page() -> TestResult {
    for protocol in Protocol::ALL.iter().copied() {
        let seen = visits(protocol, vec![Before::Forget, Before::Keep, Before::Close])?;
        let [first, kept, closed] = seen.as_slice() else { return Err("not three".into()) };
        println!("{protocol}: {:?}", seen.iter().map(|s| s.loaded.load_time()).collect::<Vec<_>>());
        for (seen, requests) in [(first, 11), (kept, 10), (closed, 10)] {
            assert!(seen.loaded.is_complete(), "{protocol}: {:?}", seen.loaded.objects);
            // What is fresh in the cache is not asked for again.
            assert_eq!(seen.loaded.requests(), requests, "{protocol}");
            assert_eq!(seen.streams.len(), requests as usize, "{protocol}");
            assert!(seen.down > Bytes(3_000 * 9 + 5_000), "{protocol}: {:?}", seen.down);
        }
        assert_eq!(first.loaded.bytes(), Bytes(35_000));
        assert_eq!(kept.loaded.connections_opened(), 0, "{protocol}");
        assert!(closed.loaded.connections_opened() >= 2, "{protocol}");
        // Without TLS there is nothing to resume; else every connection of a later visit is resumed.
        let resumed = closed.loaded.connections.iter().filter(|c| c.resumed).count();
        let expected = match protocol {
            Protocol::Http1Clear => 0,
            _ => closed.loaded.connections_opened(),
        };
        assert_eq!(resumed, expected, "{protocol}");
        for seen in &seen {
            let opened = seen.loaded.connections_opened();
            assert_eq!(seen.connections.len(), opened, "{protocol}");
        }
    }
    Ok(())
}

/// A name costs a round trip, TCP and TLS 1.3 one each, QUIC one, the request one: no load is sooner.
fn round_trips_are_paid() -> TestResult {
    for (protocol, document) in [
        (Protocol::Http1Clear, 3),
        (Protocol::Http1, 4),
        (Protocol::Http2, 4),
        (Protocol::Http3, 3),
    ] {
        let seen = visits(protocol, vec![Before::Forget])?;
        let first = seen.first().ok_or("no load")?;
        let byte = first.loaded.first_byte().ok_or("no byte")?.duration();
        assert!(byte >= RTT * document, "{protocol}: {byte:?}");
        let dns = first.loaded.objects[0].dns.ok_or("no name was asked for")?;
        assert!(dns.end.duration() - dns.begin.duration() >= RTT);
        // The images need a round trip of their own.
        assert!(first.loaded.load_time().duration() >= RTT * (document + 1), "{protocol}");
    }
    Ok(())
}

/// Over our TCP every protocol loads the page too; its SYNs carry what the embedding says, and a second
/// visit's first requests.
fn our_tcp_carries_tls_in_its_handshake() -> TestResult {
    // TLS 1.2 is abbreviated on the second visit: its two flights ride in the SYN and the SYN+ACK.
    let round_trips = [
        (Embedding::None, 3, 3),
        (Embedding::Paper, 3, 2),
        (Embedding::Tls13, 2, 2),
        (Embedding::ZeroRtt, 2, 1),
    ];
    for (embedding, first_visit, second_visit) in round_trips {
        for protocol in [Protocol::Http1, Protocol::Spdy31, Protocol::Http2] {
            let what = format!("{protocol}, {embedding}");
            let carrier = Carrier::UserTcp(embedding);
            let setting = Setting { carrier, ..setting(protocol) };
            let seen = visits_with(&setting, vec![Before::Forget, Before::Close])?;
            let [first, second] = seen.as_slice() else { return Err("not two".into()) };
            for (seen, round_trips) in [(first, first_visit + 1), (second, second_visit)] {
                assert!(seen.loaded.is_complete(), "{what}: {:?}", seen.loaded.objects);
                let byte = seen.loaded.first_byte().ok_or("no byte")?.duration();
                assert!(byte >= RTT * round_trips, "{what}: {byte:?}");
                assert_eq!(seen.connections.len(), seen.loaded.connections_opened(), "{what}");
            }
            let rode = |seen: &Seen| {
                let tcp =
                    |c: &web::ConnectionRecord| c.tcp.as_ref().map(|i| i.syn_data_acknowledged);
                seen.connections.iter().all(|c| tcp(c) == Some(embedding != Embedding::None))
            };
            assert!(rode(first) && rode(second), "{what}: {:?}", first.connections);
            let tls = |seen: &Seen| seen.connections.iter().filter_map(|c| c.tls.clone()).collect();
            let (before, after): (Vec<tls::Facts>, Vec<tls::Facts>) = (tls(first), tls(second));
            assert!(after.iter().all(|facts| facts.resumed), "{what}: {after:?}");
            let early = |facts: &tls::Facts| facts.early_data == tls::EarlyData::Accepted;
            assert!(!before.iter().any(|facts| early(facts) && !facts.resumed), "{what}");
            let is_early = embedding == Embedding::ZeroRtt;
            assert!(after.iter().all(|facts| early(facts) == is_early), "{what}: {after:?}");
            let versions: Vec<_> = after.iter().filter_map(|facts| facts.version).collect();
            let expected = match embedding {
                Embedding::Paper => tls::Version::Tls12,
                _ => tls::Version::Tls13,
            };
            assert!(versions.iter().all(|version| *version == expected), "{what}: {versions:?}");
        }
    }
    Ok(())
}

/// A load that is to end ends, and what did not come has failed.
fn a_load_that_takes_too_long_ends() -> TestResult {
    let (page, mut setting) = (page()?, setting(Protocol::Http2));
    setting.timeout = RTT * 3;
    let mut bed = Bed::new(sleeping(8), 1, 2)?;
    let lane = bed.lanes().first_mut().ok_or("no lane")?;
    lane.serve(&page, &setting)?;
    lane.set_path(&Path::symmetric(RTT.into()))?;
    let stop = Arc::new(AtomicBool::new(false));
    let seen = lane.visit(&page, &setting, vec![Before::Forget], stop)?.join()??;
    assert!(!seen.first().ok_or("no load")?.loaded.is_complete());
    Ok(())
}

/// A lane serves one protocol after the other, whatever the one before has not yet closed.
fn servers_follow_each_other() -> TestResult {
    let page = page()?;
    let mut bed = Bed::new(sleeping(9), 2, 2)?;
    for lane in bed.lanes() {
        lane.set_path(&Path::symmetric(Duration::from_millis(2).into()))?;
    }
    for round in 0..4 {
        for protocol in Protocol::ALL.iter().copied() {
            let setting = setting(protocol);
            let mut loads = Vec::new();
            for lane in bed.lanes() {
                lane.serve(&page, &setting)?;
                let stop = Arc::new(AtomicBool::new(false));
                loads.push(lane.visit(&page, &setting, vec![Before::Forget], stop)?);
            }
            for load in loads {
                let seen = load.join()??;
                assert!(seen.iter().all(|seen| seen.loaded.is_complete()), "{protocol}, {round}");
            }
        }
    }
    Ok(())
}

fn main() -> std::process::ExitCode {
    lab_test::main(&[
        Test::inside("every_protocol_loads_a_page", every_protocol_loads_a_page),
        Test::inside("round_trips_are_paid", round_trips_are_paid),
        Test::inside("our_tcp_carries_tls_in_its_handshake", our_tcp_carries_tls_in_its_handshake),
        Test::inside("servers_follow_each_other", servers_follow_each_other),
        Test::inside("a_load_that_takes_too_long_ends", a_load_that_takes_too_long_ends),
    ])
}
