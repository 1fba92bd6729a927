//! Loads at exact virtual times.

use std::time::Duration;

use page::{
    ConnectionId, HostId, Kind, Object, ObjectId, Outcome, Page, Phases, Policy, Share, Urgency,
};
use units::{Bytes, Delay};

use crate::net::Net;

pub fn ms(millis: u64) -> Delay {
    Duration::from_millis(millis).into()
}

/// A document of so many bytes on `www.example` and these objects, which it tells of at its end.
pub fn page_of(document: u64, objects: impl IntoIterator<Item = Object>) -> Page {
    let mut all = vec![Object::new(HostId(0), "/", Kind::Document, Bytes(document))];
    all.extend(objects.into_iter().map(|object| match object.found {
        Some(_) => object,
        None => object.found_by(ObjectId(0), Share::ALL, Delay::ZERO),
    }));
    let hosts = all.iter().map(|object| object.host.0).max().unwrap();
    let name = |host| if host == 0 { "www.example".into() } else { format!("h{host}.example") };
    Page::new("test", (0..=hosts).map(name).collect(), all).unwrap()
}

pub fn images(count: u32, bytes: u64) -> impl Iterator<Item = Object> {
    (1..=count).map(move |number| {
        Object::new(HostId(0), format!("/{number}.png"), Kind::Image, Bytes(bytes))
    })
}

#[test]
fn one_object_takes_its_name_its_connection_and_its_bytes() {
    let page = page_of(10_000, []);
    let seen = Net::default().first_visit(&page, &Policy::chromium());
    assert_eq!(
        seen.log,
        ["0 ms resolve www.example", "100 ms open 1 to www.example", "300 ms send / on 1"]
    );
    let timeline = &seen.loaded.objects[0];
    // 10 ms on the link and a round trip after the request.
    assert_eq!(seen.loaded.load_time(), ms(410));
    assert_eq!(seen.loaded.first_byte(), Some(ms(400)));
    let phases = timeline.phases().unwrap();
    let expected = Phases {
        blocked: ms(0),
        dns: ms(100),
        connect: ms(200),
        ssl: ms(100),
        send: ms(0),
        wait: ms(100),
        receive: ms(10),
    };
    assert_eq!(phases, expected);
    // Half of the bytes after five packets, nine tenths after nine.
    assert_eq!(seen.loaded.bytes_by(Share::new(0.5).unwrap()), Some(ms(405)));
    assert_eq!(seen.loaded.bytes_by(Share::new(0.9).unwrap()), Some(ms(409)));
    assert_eq!(seen.loaded.bytes(), Bytes(10_000));
    assert_eq!(seen.loaded.progress(ObjectId(0)).count(), 10);
}

/// Twelve images after a document. By HTTP/1.1 the first goes on the document's connection, five more
/// are opened, which take two round trips, and no more than six are under way; multiplexed, all go at
/// once.
#[test]
fn six_connections_against_a_multiplexed_one() {
    let page = page_of(1_000, images(12, 1_000));
    let one = Net::default().first_visit(&page, &Policy::chromium());
    assert_eq!(one.loaded.load_time(), ms(806));
    assert_eq!(one.loaded.connections_opened(), 6);
    let opened: Vec<_> = one.log.iter().filter(|line| line.contains("open")).collect();
    assert_eq!(
        opened[1..],
        ["open 2", "open 3", "open 4", "open 5", "open 6"]
            .map(|open| format!("401 ms {open} to www.example with a ticket"))
            .iter()
            .collect::<Vec<_>>()
    );
    let end = |id: u32| one.loaded.objects[id as usize].end.unwrap();
    assert_eq!(
        (1..=12).map(end).collect::<Vec<_>>(),
        [502, 603, 702, 703, 704, 705, 706, 707, 803, 804, 805, 806].map(ms)
    );
    let many = Net::default().multiplexed().first_visit(&page, &Policy::chromium());
    assert_eq!(many.loaded.load_time(), ms(513));
    assert_eq!(many.loaded.connections_opened(), 1);
    assert_eq!(many.loaded.objects[12].phases().unwrap().blocked, ms(0));
    // The queue for a connection is time blocked: found at 401 ms, asked for at 705 ms.
    assert_eq!(one.loaded.objects[12].phases().unwrap().blocked, ms(304));
    assert_eq!(one.loaded.objects[12].connection, Some(ConnectionId(5)));
}

/// The number of requests at once that the server allows is kept, and the most urgent go first.
#[test]
fn a_multiplexed_connection_carries_what_the_server_allows() {
    let mut urgent = Object::new(HostId(0), "/urgent.png", Kind::Image, Bytes(1_000));
    urgent.urgency = Urgency::new(1);
    let page = page_of(1_000, images(4, 1_000).chain([urgent]));
    let net = Net { streams: Some(2), ..Net::default() };
    let seen = net.first_visit(&page, &Policy::chromium());
    let sent: Vec<_> = seen.log.iter().filter(|line| line.contains("send")).collect();
    let expected = [
        "300 ms send / on 1",
        // All five are found at once, and the urgent one is the first of them.
        "401 ms send /urgent.png on 1",
        "401 ms send /1.png on 1",
        "502 ms send /2.png on 1",
        "503 ms send /3.png on 1",
        "603 ms send /4.png on 1",
    ];
    assert_eq!(sent, expected.iter().collect::<Vec<_>>());
}

/// What is found in the midst of a document is asked for before its end; computation comes after.
#[test]
fn objects_are_found_as_bytes_come_and_wanted_after_computation() {
    let half = Share::new(0.5).unwrap();
    let script = Object::new(HostId(0), "/a.js", Kind::Script, Bytes(1_000)).found_by(
        ObjectId(0),
        half,
        Delay::ZERO,
    );
    let fetch = Object::new(HostId(0), "/b.json", Kind::Fetch, Bytes(0)).found_by(
        ObjectId(1),
        Share::ALL,
        ms(25),
    );
    let page = page_of(10_000, [script, fetch]);
    let seen = Net::default().multiplexed().first_visit(&page, &Policy::chromium());
    let [_, script, fetch] = &seen.loaded.objects[..] else { panic!("three objects") };
    assert_eq!(script.found, Some(ms(405)));
    // The request is at the server at 455 ms, when the link is free since 360.
    assert_eq!(script.end, Some(ms(506)));
    assert_eq!((fetch.found, fetch.queued), (Some(ms(506)), Some(ms(531))));
    assert_eq!(fetch.end, Some(ms(631)));
    assert_eq!(seen.loaded.load_time(), ms(631));
}

/// RFC 9113 §9.1.1: another host with the same address that is in the certificate needs no connection
/// of its own.
#[test]
fn a_connection_serves_other_hosts_in_its_certificate() {
    let other = || Object::new(HostId(1), "/a.png", Kind::Image, Bytes(1_000));
    let page = page_of(1_000, [other()]);
    let certificate = vec!["*.example".to_owned()];
    let net = Net { certificate, ..Net::default().multiplexed() };
    let seen = net.first_visit(&page, &Policy::chromium());
    // Its name takes a round trip, its connection none.
    assert_eq!(seen.loaded.load_time(), ms(401 + 100 + 101));
    assert_eq!(seen.loaded.connections_opened(), 1);
    assert_eq!(seen.loaded.objects[1].phases().unwrap().dns, ms(100));
    let never = Policy { coalesce: false, ..Policy::chromium() };
    assert_eq!(net.first_visit(&page, &never).loaded.load_time(), ms(401 + 300 + 101));
    let elsewhere = Net::default().multiplexed();
    assert_eq!(elsewhere.first_visit(&page, &Policy::chromium()).loaded.connections_opened(), 2);
}

/// To a host that is not known to multiplex a browser opens a connection for each request; when the
/// first is ready, it serves all, and the others are closed.
#[test]
fn superfluous_connections_are_closed() {
    let others = (1..=3).map(|n| Object::new(HostId(1), format!("/{n}"), Kind::Fetch, Bytes(0)));
    let page = page_of(1_000, others);
    let seen = Net::default().multiplexed().first_visit(&page, &Policy::chromium());
    assert_eq!(seen.loaded.connections_opened(), 4);
    let closed: Vec<_> = seen.log.iter().filter(|line| line.contains("close")).collect();
    assert_eq!(closed, ["701 ms close 3", "701 ms close 4"]);
    let mut memory = page::Memory::new(&Policy::chromium());
    memory.expect("h1.example", true);
    let begin = units::Time::ZERO;
    let known = Net::default().multiplexed().load(&page, &Policy::chromium(), memory, begin);
    assert_eq!(known.loaded.connections_opened(), 2);
    assert_eq!(known.loaded.load_time(), seen.loaded.load_time());
}

#[test]
fn at_the_limit_an_idle_connection_of_another_host_goes() {
    let others = (1..=3).map(|n| Object::new(HostId(n), "/a", Kind::Fetch, Bytes(0)));
    let page = page_of(1_000, others);
    let policy = Policy { connections: 2, ..Policy::chromium() };
    let seen = Net::default().first_visit(&page, &policy);
    assert!(seen.loaded.is_complete());
    let others: Vec<_> = seen.log.iter().filter(|line| !line.contains("send")).skip(2).collect();
    let expected = [
        "401 ms resolve h1.example",
        "401 ms resolve h2.example",
        "401 ms resolve h3.example",
        "501 ms open 2 to h1.example",
        "501 ms close 1",
        "501 ms open 3 to h2.example",
        "801 ms close 2",
        "801 ms open 4 to h3.example",
    ];
    assert_eq!(others, expected);
}

#[test]
fn an_upload_is_sent_with_its_body_and_never_stored() {
    let mut post = Object::new(HostId(0), "/form", Kind::Fetch, Bytes(0));
    post.upload = Some(Bytes(5_000));
    let page = page_of(1_000, [post]);
    let seen = Net::default().first_visit(&page, &Policy::chromium());
    assert_eq!(seen.loaded.objects[1].outcome, Outcome::Fetched);
    let (mut load, begin) = (
        page::Load::new(&page, Policy::chromium(), seen.memory, units::Time::from_millis(9_000)),
        units::Time::from_millis(9_000),
    );
    let at = |millis| begin + Duration::from_millis(millis);
    let complete = |object| page::Event::Complete { object, reusable: true };
    load.handle(complete(ObjectId(0)), at(10));
    for (millis, bytes) in [(11, 2_000), (12, 3_000)] {
        load.handle(page::Event::Uploaded { object: ObjectId(1), bytes }, at(millis));
    }
    load.handle(page::Event::Sent { object: ObjectId(1) }, at(12));
    load.handle(complete(ObjectId(1)), at(20));
    let (loaded, _) = load.finish(at(20));
    let uploads: Vec<_> = loaded.uploads.iter().map(|sent| (sent.at, sent.bytes)).collect();
    assert_eq!(uploads, [(ms(11), 2_000), (ms(12), 3_000)]);
    assert_eq!(loaded.objects[1].uploaded, Bytes(5_000));
    assert_eq!(loaded.objects[1].phases().unwrap().send, ms(2));
}
