//! What the browsers hold back.

use page::{HostId, Kind, Object, ObjectId, Page, Policy, Share};
use units::{Bytes, Delay};

use crate::exact::page_of;
use crate::net::Net;

/// A style sheet that blocks and four images, found with the first byte of a long document.
fn blocking() -> Page {
    let first = Share::new(0.01).unwrap();
    let mut style = Object::new(HostId(0), "/a.css", Kind::Style, Bytes(1_000));
    style.blocking = true;
    let image = |n: u32| Object::new(HostId(0), format!("/{n}.png"), Kind::Image, Bytes(1_000));
    let objects = [style].into_iter().chain((1..=4).map(image));
    page_of(20_000, objects.map(|object| object.found_by(ObjectId(0), first, Delay::ZERO)))
}

fn sent(net: &Net, policy: &Policy) -> Vec<String> {
    let seen = net.first_visit(&blocking(), policy);
    assert!(seen.loaded.is_complete());
    let sent = seen.log.into_iter().filter(|line| line.contains("send"));
    sent.map(|line| line.split(" on ").next().unwrap().to_owned()).collect()
}

/// Two requests are under way, the document's and the style's: images wait for one of them to end,
/// whatever the protocol.
#[test]
fn chromium_holds_images_while_a_style_blocks() {
    let multiplexed = sent(&Net::default().multiplexed(), &Policy::chromium());
    // The document ends at 420 ms: then one request is under way, and one image may be.
    let expected = [
        "300 ms send /",
        "401 ms send /a.css",
        "420 ms send /1.png",
        "502 ms send /2.png",
        "502 ms send /3.png",
        "502 ms send /4.png",
    ];
    assert_eq!(multiplexed, expected);
}

/// Firefox leaves that to the server where the connection is multiplexed, and without it lets nothing
/// but what blocks pass.
#[test]
fn firefox_holds_images_without_multiplexing_alone() {
    let multiplexed = sent(&Net::default().multiplexed(), &Policy::firefox());
    let all_at_once: Vec<_> = multiplexed.iter().map(|line| &line[..6]).collect();
    assert_eq!(all_at_once, ["300 ms", "401 ms", "401 ms", "401 ms", "401 ms", "401 ms"]);
    let one = sent(&Net::default(), &Policy::firefox());
    // The style waits for a connection, which the document's is at 420 ms; it ends at 521.
    assert_eq!(one[1], "420 ms send /a.css");
    assert_eq!(one[2], "521 ms send /1.png");
}

/// Ten delayable requests in all, to hosts without multiplexing.
#[test]
fn chromium_has_at_most_ten_delayable_requests_under_way() {
    let image = |n: u32| Object::new(HostId(n), "/a.png", Kind::Image, Bytes(0));
    let page = page_of(1_000, (1..=15).map(image));
    let seen = Net::default().first_visit(&page, &Policy::chromium());
    let resolved = seen.log.iter().filter(|line| line.starts_with("401 ms resolve")).count();
    assert_eq!(resolved, 10);
    let seen = Net::default().first_visit(&page, &Policy::firefox());
    let resolved = seen.log.iter().filter(|line| line.starts_with("401 ms resolve")).count();
    assert_eq!(resolved, 15);
}

/// The page's host has as many connections more as the policy says, and they serve what is found.
#[test]
fn speculative_connections_are_there_when_they_are_needed() {
    let image = |n: u32| Object::new(HostId(0), format!("/{n}.png"), Kind::Image, Bytes(1_000));
    let page = page_of(1_000, (1..=2).map(image));
    let policy = Policy { speculative: 1, ..Policy::chromium() };
    let seen = Net::default().first_visit(&page, &policy);
    let opened: Vec<_> = seen.log.iter().filter(|line| line.contains("open")).collect();
    assert_eq!(opened, ["100 ms open 1 to www.example", "100 ms open 2 to www.example"]);
    let images = seen.log.iter().filter(|line| line.starts_with("401 ms send")).count();
    assert_eq!(images, 2);
}
