//! Pages loaded in the lab: by each protocol, visit after visit, with what both sides saw.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use browser::{Bed, Before, Seen, Setting, Tcp, Windows};
use lab_test::net::sleeping;
use lab_test::{Need, Test, TestResult};
use linkmodel::Path;
use page::{Browser, Caching, HostId, Kind, Object, ObjectId, Outcome, Page, Policy, Share};
use units::{Bytes, Delay};
use web::Protocol;

/// The round trip of the tests' links.
const RTT: Duration = Duration::from_millis(40);

fn setting(protocol: Protocol) -> Setting {
    Setting {
        protocol,
        versions: vec![tls::Version::Tls13],
        settings: Windows::Chromium.settings(protocol),
        tcp: Tcp::default(),
        policy: Policy::of(Browser::Chromium),
        timeout: Duration::from_secs(20),
        chromium: None,
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
    let (page, setting) = (page()?, setting(protocol));
    let mut bed = Bed::new(sleeping(7), 1, page.hosts().len())?;
    let lane = bed.lanes().first_mut().ok_or("no lane")?;
    lane.serve(&page, &setting)?;
    lane.set_path(&Path::symmetric(RTT.into()))?;
    Ok(lane.visit(&page, &setting, visits, Arc::new(AtomicBool::new(false)))?.join()??)
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

/// A page with something of each kind that a browser finds in a way of its own, on two hosts.
fn varied() -> TestResult<Page> {
    let hosts = vec!["www.page.test".to_owned(), "img.page.test".to_owned()];
    let object = |host, path: &str, kind, bytes, by| {
        let object = Object::new(HostId(host), path, kind, Bytes(bytes));
        object.found_by(ObjectId(by), Share::ALL, Delay::ZERO)
    };
    let mut style = object(0, "/a.css", Kind::Style, 700, 0);
    style.found = style.found.map(|found| page::Found { after: Share::ZERO, ..found });
    style.blocking = true;
    let hour = Duration::from_secs(3600).into();
    style.caching = Caching::Stored { fresh_for: hour, validator: true };
    let mut stale = object(1, "/b.gif", Kind::Image, 5_000, 0);
    stale.caching = Caching::Stored { fresh_for: Delay::ZERO, validator: true };
    let mut late = object(1, "/c.json", Kind::Fetch, 900, 4);
    late.found = late.found.map(|found| {
        let delay = Duration::from_millis(20).into();
        page::Found { delay, ..found }
    });
    let objects = vec![
        Object::new(HostId(0), "/", Kind::Document, Bytes(3_000)),
        style,
        stale,
        object(1, "/d.gif?x=1&y=2", Kind::Image, 70_000, 1),
        object(0, "/e.js", Kind::Script, 500, 0),
        late,
        object(0, "/f.html", Kind::Document, 400, 0),
        object(0, "/g.gif", Kind::Image, 43, 6),
    ];
    Ok(Page::new("varied", hosts, objects)?)
}

/// Chromium loads a page whole by each protocol, over the connections that the protocol needs; a repeat
/// asks for what is not in its cache, on the connections that are there.
fn chromium_loads_a_page_by_each_protocol() -> TestResult {
    let program = match chromium::find(None) {
        Ok(program) => program,
        Err(missing) => return lab_test::skip(Need::Chromium, missing.to_string()),
    };
    let page = varied()?;
    let mut bed = Bed::new(sleeping(10), 1, page.hosts().len())?;
    let lane = bed.lanes().first_mut().ok_or("no lane")?;
    lane.set_path(&Path::symmetric(RTT.into()))?;
    for protocol in [Protocol::Http1, Protocol::Http2, Protocol::Http3, Protocol::Http1Clear] {
        let mut setting = setting(protocol);
        setting.chromium = Some(program.clone());
        setting.timeout = Duration::from_secs(60);
        lane.serve(&page, &setting)?;
        let stop = Arc::new(AtomicBool::new(false));
        let visits = vec![Before::Forget, Before::Keep, Before::Forget];
        let seen = lane.visit(&page, &setting, visits, stop)?.join()??;
        let [first, kept, again] = seen.as_slice() else { return Err("not three".into()) };
        for seen in [first, kept, again] {
            println!("{protocol}: {:?}", seen.load_time());
            assert!(seen.loaded.is_complete(), "{protocol}: {seen:#?}");
        }
        let named = match protocol {
            Protocol::Http1Clear => "http/1.1".to_owned(),
            other => other.to_string(),
        };
        for seen in [first, again] {
            assert!(seen.loaded.objects.iter().all(|one| one.outcome == Outcome::Fetched));
            assert!(
                seen.fetched.iter().all(|one| one.protocol.as_ref() == Some(&named)),
                "{seen:#?}"
            );
            assert_eq!(seen.loaded.bytes(), page.bytes(), "{protocol}");
            assert_eq!(seen.loaded.requests() as usize, page.objects().len(), "{protocol}");
            assert_eq!(seen.streams.len(), page.objects().len(), "{protocol}");
            assert!(seen.load_event.is_some_and(|at| at <= seen.load_time()));
            let opened = seen.loaded.connections_opened();
            match protocol {
                // As many as there were requests at once, and no more than six to a host.
                Protocol::Http1 | Protocol::Http1Clear => {
                    assert!((2..=12).contains(&opened), "{opened}")
                }
                _ => assert_eq!(opened, 2, "{protocol}: {:#?}", seen.loaded.connections),
            }
            // A name, a connection and a request: no byte is sooner.
            let byte = seen.loaded.first_byte().ok_or("no byte")?.duration();
            assert!(byte >= RTT * 3, "{protocol}: {byte:?}");
        }
        let outcome = |path: &str| {
            let at = page.objects().iter().position(|object| object.path == path);
            at.map(|at| kept.loaded.objects[at].outcome)
        };
        assert_eq!(outcome("/a.css"), Some(Outcome::Fresh), "{protocol}");
        assert_eq!(outcome("/b.gif"), Some(Outcome::Validated), "{protocol}");
        assert_eq!(outcome("/"), Some(Outcome::Fetched), "{protocol}");
        assert_eq!(kept.loaded.requests() as usize, page.objects().len() - 1, "{protocol}");
        if protocol.is_multiplexed() {
            assert_eq!(kept.loaded.connections_opened(), 0, "{protocol}");
        }
        assert!(lane.visit(&page, &setting, vec![Before::Close], Arc::default()).is_err());
    }
    Ok(())
}

fn main() -> std::process::ExitCode {
    lab_test::main(&[
        Test::inside("every_protocol_loads_a_page", every_protocol_loads_a_page),
        Test::inside("round_trips_are_paid", round_trips_are_paid),
        Test::inside("servers_follow_each_other", servers_follow_each_other),
        Test::inside(
            "chromium_loads_a_page_by_each_protocol",
            chromium_loads_a_page_by_each_protocol,
        ),
        Test::inside("a_load_that_takes_too_long_ends", a_load_that_takes_too_long_ends),
    ])
}
