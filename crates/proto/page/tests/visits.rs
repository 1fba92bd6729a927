//! First and repeated visits, with kept and with closed connections.

use std::time::Duration;

use page::{Caching, HostId, Kind, Object, Outcome, Page, Policy};
use units::{Bytes, Delay, Time};

use crate::exact::{images, ms, page_of};
use crate::net::{Net, Seen};

/// A document that may not be stored, an image that is fresh for a minute, one that is always checked.
fn cached() -> Page {
    let caching = |seconds| Caching::Stored {
        fresh_for: Delay::from(Duration::from_secs(seconds)),
        validator: true,
    };
    let image = |path: &str, seconds| Object {
        caching: caching(seconds),
        ..Object::new(HostId(0), path, Kind::Image, Bytes(1_000))
    };
    page_of(1_000, [image("/fresh.png", 60), image("/stale.png", 0)])
}

fn first(page: &Page) -> Seen {
    Net::default().first_visit(page, &Policy::chromium())
}

fn again(seen: Seen, page: &Page, seconds: u64) -> Seen {
    let begin = Time::from_millis(5_000 + seconds * 1_000);
    Net::default().load(page, &Policy::chromium(), seen.memory, begin)
}

#[test]
fn a_repeated_visit_uses_cache_and_kept_connections() {
    let page = cached();
    let seen = first(&page);
    // The first image ends on the first connection before the second is ready.
    assert_eq!(seen.loaded.load_time(), ms(603));
    let seen = again(seen, &page, 10);
    assert_eq!(seen.log, ["0 ms send / on 1", "101 ms send /stale.png on 1 if changed"]);
    let outcomes: Vec<_> = seen.loaded.objects.iter().map(|object| object.outcome).collect();
    assert_eq!(outcomes, [Outcome::Fetched, Outcome::Fresh, Outcome::Validated]);
    assert_eq!(seen.loaded.load_time(), ms(201));
    assert_eq!(seen.loaded.bytes(), Bytes(1_000));
    assert_eq!(seen.loaded.connections_opened(), 0);
    let fresh = seen.loaded.objects[1];
    assert_eq!((fresh.queued, fresh.end, fresh.requests), (Some(ms(101)), Some(ms(101)), 0));
}

#[test]
fn what_was_fresh_is_checked_when_its_time_is_over() {
    let page = cached();
    let seen = again(first(&page), &page, 61);
    let outcomes: Vec<_> = seen.loaded.objects.iter().map(|object| object.outcome).collect();
    assert_eq!(outcomes, [Outcome::Fetched, Outcome::Validated, Outcome::Validated]);
    // It came again at that time: fresh for another minute.
    let seen = again(seen, &page, 100);
    assert_eq!(seen.loaded.objects[1].outcome, Outcome::Fresh);
}

#[test]
fn with_closed_connections_names_and_tickets_remain() {
    let page = cached();
    let mut seen = first(&page);
    assert_eq!(seen.memory.close_connections().len(), 2);
    let seen = again(seen, &page, 10);
    assert_eq!(
        seen.log,
        [
            "0 ms open 3 to www.example with a ticket",
            "200 ms send / on 3",
            "301 ms send /stale.png on 3 if changed"
        ]
    );
    assert!(seen.loaded.connections[0].resumed);
    let mut seen = first(&page);
    seen.memory.close_connections();
    seen.memory.forget_names();
    seen.memory.forget_tickets();
    seen.memory.cache.clear();
    let seen = again(seen, &page, 10);
    assert_eq!(seen.log[..2], ["0 ms resolve www.example", "100 ms open 3 to www.example"]);
    assert_eq!(seen.loaded.load_time(), ms(603));
}

/// Names count for 60 s where the answer does not say; connections for 300 s after their last use.
#[test]
fn names_and_connections_are_kept_for_their_time() {
    let page = page_of(1_000, []);
    let seen = again(first(&page), &page, 299);
    assert_eq!(seen.log, ["0 ms send / on 1"]);
    let seen = again(first(&page), &page, 301);
    let log =
        ["0 ms close 1", "0 ms resolve www.example", "100 ms open 2 to www.example with a ticket"];
    assert_eq!(seen.log[..3], log);
    let mut seen = first(&page);
    seen.memory.close_connections();
    assert_eq!(again(seen, &page, 60).log[0], "0 ms open 2 to www.example with a ticket");
}

/// RFC 9112 §9.3.1: the server closed a kept connection just as a request was sent on it.
#[test]
fn a_request_that_fails_on_a_reused_connection_is_sent_once_more_on_a_new_one() {
    let page = page_of(1_000, images(1, 1_000));
    let seen = first(&page);
    let stale: Vec<_> = seen.memory.connections().collect();
    let net = Net { stale, ..Net::default() };
    let begin = Time::from_millis(10_000);
    let seen = net.load(&page, &Policy::chromium(), seen.memory, begin);
    assert_eq!(
        seen.log[..3],
        ["0 ms send / on 1", "100 ms open 2 to www.example with a ticket", "300 ms send / on 2"]
    );
    assert!(seen.loaded.is_complete());
    assert_eq!(seen.loaded.objects[0].requests, 2);
    let phases = seen.loaded.objects[0].phases().unwrap();
    // What the first attempt took is time blocked.
    assert_eq!((phases.blocked, phases.connect), (ms(100), ms(200)));
}

/// On a new connection nothing says that the server did not act on it.
#[test]
fn a_request_that_fails_on_a_new_connection_has_failed() {
    let page = page_of(1_000, images(1, 1_000));
    let net = Net { stale: vec![page::ConnectionId(1)], ..Net::default() };
    let seen = net.first_visit(&page, &Policy::chromium());
    let outcomes: Vec<_> = seen.loaded.objects.iter().map(|object| object.outcome).collect();
    assert_eq!(outcomes, [Outcome::Failed(page::Failure::Request), Outcome::Unreached]);
    let words: Vec<_> = outcomes.iter().map(ToString::to_string).collect();
    assert_eq!(words, ["its request or its response broke off", "the browser never asked for it"]);
    assert!(!seen.loaded.is_complete());
}
