//! Pages loaded in the lab: by each protocol, visit after visit, with what both sides saw.

mod early;
mod push;
mod tcp_stalls;
mod uploads;
mod windows;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use browser::{Bed, Before, Carrier, CrossTraffic, Seen, ServerPush, Setting, Tcp, Windows};
use lab::{CaptureOptions, Direction, OwnedFrame};
use lab_test::net::segments::{self, Segment};
use lab_test::net::sleeping;
use lab_test::{Need, Test, TestResult};
use linkmodel::{Codel, Outage, OutageFrames, Path, Queue};
use page::{Browser, Caching, HostId, Kind, Object, ObjectId, Outcome, Page, Policy, Share};
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
        initial_window: None,
        congestion: web::Congestion::Cubic,
        server_push: ServerPush::None,
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

/// The last load's connections are in its record over a link on which their ends take long.
fn a_slow_link_loses_no_record() -> TestResult {
    let (page, setting) = (single(3_000)?, setting(Protocol::Http2));
    let mut bed = Bed::new(sleeping(15), 1, 1)?;
    let lane = bed.lanes().first_mut().ok_or("no lane")?;
    lane.serve(&page, &setting)?;
    lane.set_path(&Path::symmetric((RTT * 20).into()))?;
    for seen in lane.visit(&page, &setting, vec![Before::Forget], Arc::default())?.join()?? {
        assert_eq!((seen.connections.len(), seen.loaded.connections_opened()), (1, 1));
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

/// Our TCP has addresses of its own beside cross traffic, whose packets the kernels forward: none of its
/// packets is forwarded with them.
fn our_tcp_loads_beside_cross_traffic() -> TestResult {
    let page = page()?;
    let mut bed = Bed::new(sleeping(13), 1, page.hosts().len())?;
    let rate = "2mbit/ip".parse::<units::Rate>().map_err(|error| error.to_string())?;
    let slow = Path::symmetric(RTT.into()).with_rate(rate).with_queue(Queue::Packets(30));
    bed.set_cross_traffic(CrossTraffic::Bulk)?;
    let lane = bed.lanes().first_mut().ok_or("no lane")?;
    let setting =
        Setting { carrier: Carrier::UserTcp(Embedding::Tls13), ..setting(Protocol::Http2) };
    lane.serve(&page, &setting)?;
    lane.set_path(&slow)?;
    let stop = Arc::new(AtomicBool::new(false));
    for seen in lane.visit(&page, &setting, vec![Before::Forget], stop)?.join()?? {
        println!("up {:?} down {:?} {:?}", seen.up, seen.down, seen.cross);
        assert!(seen.loaded.is_complete(), "{:?}", seen.loaded.objects);
        assert!(seen.down > Bytes(25_000) && seen.down < Bytes(60_000), "{:?}", seen.down);
        assert!(seen.up > Bytes(500) && seen.up < Bytes(20_000), "{:?}", seen.up);
    }
    Ok(())
}

/// A link's outages and traces begin anew with each load: both loads meet the outage at their beginning.
fn the_links_time_begins_with_the_load() -> TestResult {
    const DOWN: Duration = Duration::from_millis(300);
    let (page, setting) = (page()?, setting(Protocol::Http2));
    let mut bed = Bed::new(sleeping(12), 1, page.hosts().len())?;
    let lane = bed.lanes().first_mut().ok_or("no lane")?;
    lane.serve(&page, &setting)?;
    let mut path = Path::symmetric(RTT.into());
    path.forward.outages.push(Outage {
        start: Delay::ZERO,
        duration: DOWN.into(),
        every: None,
        frames: OutageFrames::Wait,
    });
    lane.set_path(&path)?;
    let stop = Arc::new(AtomicBool::new(false));
    let seen = lane.visit(&page, &setting, vec![Before::Forget, Before::Keep], stop)?.join()??;
    assert_eq!(seen.len(), 2);
    for seen in seen {
        let byte = seen.loaded.first_byte().ok_or("no byte")?.duration();
        assert!(byte >= DOWN, "{byte:?}");
    }
    Ok(())
}

/// A page of one object.
fn single(bytes: u64) -> TestResult<Page> {
    let object = Object::new(HostId(0), "/", Kind::Document, Bytes(bytes));
    Ok(Page::new("single", vec!["www.page.test".to_owned()], vec![object])?)
}

/// Loads a page of one object once, captured at the server.
fn captured(
    bytes: u64,
    protocol: Protocol,
    initial_window: Option<u32>,
) -> TestResult<Vec<OwnedFrame>> {
    let (page, setting) = (single(bytes)?, Setting { initial_window, ..setting(protocol) });
    let mut bed = Bed::new(sleeping(10), 1, 1)?;
    let lane = bed.lanes().first_mut().ok_or("no lane")?;
    lane.serve(&page, &setting)?;
    lane.set_path(&Path::symmetric(RTT.into()))?;
    let (capture, frames) = lane.server().capture_channel(&CaptureOptions::default(), 10_000)?;
    let stop = Arc::new(AtomicBool::new(false));
    let seen = lane.visit(&page, &setting, vec![Before::Forget], stop)?.join()??;
    assert!(seen.first().ok_or("no load")?.loaded.is_complete());
    let stats = capture.stop()?;
    assert_eq!((stats.kernel_drops, stats.channel_drops), (0, 0));
    Ok(frames.into_iter().collect())
}

/// How many segments with data the server sent in each round trip: a round ends when what was sent at its
/// beginning is acknowledged. Nothing of it is a matter of time, only of order.
fn flights(segments: &[Segment]) -> Vec<usize> {
    let (mut flights, mut round_ends) = (Vec::<usize>::new(), None);
    for segment in segments {
        match (segment.direction, segment.acknowledgment, round_ends) {
            (Direction::Outbound, _, ends) if !segment.payload.is_empty() => {
                if ends.is_none() {
                    let end = segment.sequence.wrapping_add(segment.payload.len() as u32);
                    round_ends = Some(end);
                    flights.push(0);
                }
                if let Some(flight) = flights.last_mut() {
                    *flight += 1;
                }
            }
            // What is sent from now on is of the next round.
            (Direction::Inbound, Some(acknowledged), Some(end))
                if acknowledged.wrapping_sub(end) < 1 << 31 =>
            {
                round_ends = None;
            }
            _ => {}
        }
    }
    flights
}

/// The server's first flight has as many segments as the initial window, and a response of ten segments
/// takes as many round trips as slow start needs from there.
fn the_initial_window_is_the_first_flight() -> TestResult {
    // Ten segments of 1448 bytes, the head included.
    let bytes = 14_000;
    for (window, expected) in
        [(None, vec![10]), (Some(10), vec![10]), (Some(3), vec![3, 6, 1]), (Some(32), vec![10])]
    {
        let frames = captured(bytes, Protocol::Http1Clear, window)?;
        let segments: Vec<Segment> = frames.iter().filter_map(segments::segment).collect();
        assert_eq!(flights(&segments), expected, "{window:?}");
    }
    let frames = captured(42_000, Protocol::Http1Clear, Some(32))?;
    let segments: Vec<Segment> = frames.iter().filter_map(segments::segment).collect();
    assert_eq!(flights(&segments), [30]);
    // Over QUIC: datagrams that go out before anything comes in, the certificate's and then the response's.
    let first = |window| -> TestResult<usize> {
        let frames = captured(60_000, Protocol::Http3, window)?;
        let mut bursts = vec![0usize];
        for frame in &frames {
            match (frame.direction, bursts.last_mut()) {
                (Direction::Outbound, Some(last)) if frame.original_len > 1200 => *last += 1,
                (Direction::Outbound, _) => {}
                _ => bursts.push(0),
            }
        }
        bursts.retain(|burst| *burst > 0);
        bursts.into_iter().take(2).max().ok_or_else(|| "nothing was sent".into())
    };
    assert!(first(Some(3))? <= 3);
    // A server that a busy machine holds up lets something come in earlier: not every time.
    let usual = (0..5).map(|_| first(None)).collect::<TestResult<Vec<_>>>()?;
    assert!(usual.iter().any(|burst| *burst > 3), "{usual:?}");
    Ok(())
}

/// Beside a download that has filled the queue a page comes whole, and the download's bytes are not among
/// the page's.
fn cross_traffic_is_counted_apart() -> TestResult {
    let page = page()?;
    let mut bed = Bed::new(sleeping(11), 1, page.hosts().len())?;
    let rate = "2mbit/ip".parse::<units::Rate>().map_err(|error| error.to_string())?;
    let slow = Path::symmetric(RTT.into()).with_rate(rate);
    for (queue, cross) in [
        (Queue::Packets(30), CrossTraffic::None),
        (Queue::Packets(30), CrossTraffic::Bulk),
        (Queue::Codel(Codel::default()), CrossTraffic::Bulk),
        (Queue::Packets(30), CrossTraffic::None),
    ] {
        bed.set_cross_traffic(cross)?;
        let lane = bed.lanes().first_mut().ok_or("no lane")?;
        let setting = setting(Protocol::Http2);
        lane.serve(&page, &setting)?;
        lane.set_path(&slow.clone().with_queue(queue))?;
        let stop = Arc::new(AtomicBool::new(false));
        let visits = vec![Before::Forget, Before::Keep];
        for seen in lane.visit(&page, &setting, visits, stop)?.join()?? {
            let time = seen.loaded.load_time();
            println!("{cross}: {time:?} up {:?} down {:?} {:?}", seen.up, seen.down, seen.cross);
            assert!(seen.loaded.is_complete());
            // Headers, certificates, and what was sent again; a frame or two of the download at most.
            assert!(seen.down > Bytes(25_000) && seen.down < Bytes(60_000), "{:?}", seen.down);
            assert!(seen.up > Bytes(500) && seen.up < Bytes(20_000), "{:?}", seen.up);
            match (cross, seen.cross) {
                (CrossTraffic::None, None) => {}
                (CrossTraffic::Bulk, Some(crossed)) => {
                    assert!(crossed.steady && crossed.up > Bytes(0), "{crossed:?}");
                    assert!(crossed.down > crossed.up, "{crossed:?}");
                }
                other => return Err(format!("{other:?}").into()),
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

/// As HAR files have it where a redirect leads to the page: a document of no bytes before it.
fn chromium_loads_a_page_that_begins_with_a_redirect() -> TestResult {
    let program = match chromium::find(None) {
        Ok(program) => program,
        Err(missing) => return lab_test::skip(Need::Chromium, missing.to_string()),
    };
    let document = |bytes, path: &str| Object::new(HostId(0), path, Kind::Document, Bytes(bytes));
    let by = |object: Object, by| object.found_by(ObjectId(by), Share::ALL, Delay::ZERO);
    let objects = vec![
        document(0, "/"),
        by(document(500, "/home"), 0),
        by(Object::new(HostId(0), "/a.gif", Kind::Image, Bytes(43)), 1),
    ];
    let page = Page::new("redirected", vec!["www.page.test".to_owned()], objects)?;
    let mut bed = Bed::new(sleeping(10), 1, page.hosts().len())?;
    let lane = bed.lanes().first_mut().ok_or("no lane")?;
    lane.set_path(&Path::symmetric(RTT.into()))?;
    let mut setting = setting(Protocol::Http2);
    setting.chromium = Some(program);
    setting.timeout = Duration::from_secs(60);
    lane.serve(&page, &setting)?;
    let visits = vec![Before::Forget];
    let seen = lane.visit(&page, &setting, visits, Arc::default())?.join()??;
    let first = seen.first().ok_or("no visit")?;
    assert!(first.loaded.is_complete(), "{first:#?}");
    Ok(())
}

fn main() -> std::process::ExitCode {
    lab_test::main(&[
        Test::inside("every_protocol_loads_a_page", every_protocol_loads_a_page),
        Test::inside("round_trips_are_paid", round_trips_are_paid),
        Test::inside("our_tcp_carries_tls_in_its_handshake", our_tcp_carries_tls_in_its_handshake),
        Test::inside(
            "what_is_early_needs_a_visit_before",
            early::what_is_early_needs_a_visit_before,
        ),
        Test::inside("a_capture_shows_what_syns_carry", early::a_capture_shows_what_syns_carry),
        Test::inside("rsa_key_exchange_loads_a_page", early::rsa_key_exchange_loads_a_page),
        Test::inside("servers_follow_each_other", servers_follow_each_other),
        Test::inside(
            "the_initial_window_is_the_first_flight",
            the_initial_window_is_the_first_flight,
        ),
        Test::inside("the_links_time_begins_with_the_load", the_links_time_begins_with_the_load),
        Test::inside("cross_traffic_is_counted_apart", cross_traffic_is_counted_apart),
        Test::inside("our_tcp_loads_beside_cross_traffic", our_tcp_loads_beside_cross_traffic),
        Test::inside(
            "chromium_loads_a_page_by_each_protocol",
            chromium_loads_a_page_by_each_protocol,
        ),
        Test::inside(
            "chromium_loads_a_page_that_begins_with_a_redirect",
            chromium_loads_a_page_that_begins_with_a_redirect,
        ),
        Test::inside("what_is_pushed_is_not_asked_for", push::what_is_pushed_is_not_asked_for),
        Test::inside("what_is_hinted_is_asked_for_once", push::what_is_hinted_is_asked_for_once),
        Test::inside(
            "presets_have_the_windows_that_the_paper_read",
            windows::presets_have_the_windows_that_the_paper_read,
        ),
        Test::inside("mod_spdy_updates_at_one_eighth", windows::mod_spdy_updates_at_one_eighth),
        Test::inside(
            "a_window_of_64_kb_stops_its_sender",
            windows::a_window_of_64_kb_stops_its_sender,
        ),
        Test::inside(
            "uploads_stall_by_windows_that_are_too_small_alone",
            uploads::uploads_stall_by_windows_that_are_too_small_alone,
        ),
        Test::inside(
            "tcp_stalls_by_buffers_where_the_link_would_carry_more",
            tcp_stalls::tcp_stalls_by_buffers_where_the_link_would_carry_more,
        ),
        Test::inside(
            "quic_stalls_by_its_congestion_window",
            tcp_stalls::quic_stalls_by_its_congestion_window,
        ),
        Test::inside(
            "our_tcp_says_what_holds_it_back",
            tcp_stalls::our_tcp_says_what_holds_it_back,
        ),
        Test::inside(
            "uploads_say_what_tcp_and_quic_waited_for",
            tcp_stalls::uploads_say_what_tcp_and_quic_waited_for,
        ),
        Test::inside("tshark_reads_the_same_frames", windows::tshark_reads_the_same_frames),
        Test::inside("a_slow_link_loses_no_record", a_slow_link_loses_no_record),
        Test::inside("a_load_that_takes_too_long_ends", a_load_that_takes_too_long_ends),
    ])
}
