//! Server push and server hints: what comes before the browser has found it.

use std::time::Duration;

use page::{
    Action, Caching, Carries, Certificate, ConnectionId, Event, HostId, Kind, Load, Memory, Object,
    ObjectId, Outcome, Page, Policy, PushId, Ready, Share, har,
};
use units::{Bytes, Delay, Time};

use crate::exact::{ms, page_of};
use crate::net::{Net, Says, Seen};

const STYLE: ObjectId = ObjectId(1);
const FONT: ObjectId = ObjectId(3);

/// A document of 20 packets that tells of a style sheet and a script in its middle and of an image at
/// its end, which may not be stored; the style sheet tells of a font.
fn page() -> Page {
    let day = Delay::from(Duration::from_secs(24 * 3600));
    let of = |path: &str, kind, bytes, after: f64| {
        let object = Object::new(HostId(0), path, kind, Bytes(bytes));
        let after = Share::new(after).unwrap();
        let caching = Caching::Stored { fresh_for: day, validator: false };
        Object { caching, ..object.found_by(ObjectId(0), after, Delay::ZERO) }
    };
    let font = of("/a.woff", Kind::Font, 1_000, 1.0);
    page_of(
        20_000,
        [
            of("/a.css", Kind::Style, 2_000, 0.5),
            of("/a.js", Kind::Script, 2_000, 0.5),
            font.found_by(STYLE, Share::ALL, Delay::ZERO),
            Object { caching: Caching::Never, ..of("/a.png", Kind::Image, 1_000, 1.0) },
        ],
    )
}

fn net(says: Says) -> Net {
    Net { says, ..Net::default().multiplexed() }
}

fn first(says: Says) -> Seen {
    net(says).first_visit(&page(), &Policy::chromium())
}

/// What was sent, without when and where, in alphabetical order.
fn sent(seen: &Seen) -> Vec<&str> {
    let words = seen.log.iter().map(|line| line.split(' ').collect::<Vec<_>>());
    let mut sent: Vec<&str> =
        words.filter(|words| words[2] == "send").map(|words| words[3]).collect();
    sent.sort_unstable();
    sent
}

#[test]
fn what_is_pushed_is_not_asked_for_and_tells_of_others_when_it_is_found() {
    let (asked, pushed) = (first(Says::Nothing), first(Says::Pushes));
    assert_eq!(sent(&asked), ["/", "/a.css", "/a.js", "/a.png", "/a.woff"]);
    // A font is found by the style sheet, not by the document, and images are not pushed.
    assert_eq!(sent(&pushed), ["/", "/a.png", "/a.woff"]);
    assert!(pushed.loaded.is_complete());
    assert_eq!((pushed.loaded.requests(), pushed.loaded.pushed().count()), (3, 2));
    assert_eq!(pushed.loaded.bytes(), page().bytes());
    assert_eq!(pushed.wasted, 0);
    assert!(pushed.loaded.load_time() < asked.loaded.load_time());
    let style = pushed.loaded.objects[STYLE.index()];
    assert_eq!((style.outcome, style.requests), (Outcome::Fetched, 0));
    let (promised, reached) = (style.pushed.unwrap(), style.reached.unwrap());
    assert_eq!(promised, pushed.loaded.first_byte().unwrap());
    assert!(promised < reached, "{promised:?} {reached:?}");
    // The font is found when the style sheet is there and was told of, whichever is later.
    let font = pushed.loaded.objects[FONT.index()];
    assert_eq!(font.found.unwrap(), style.end.unwrap().max(reached));
    let phases = style.phases().unwrap();
    assert_eq!((phases.blocked, phases.send, phases.connect), (ms(0), ms(0), ms(0)));
}

#[test]
fn what_is_hinted_is_asked_for_when_the_head_comes() {
    let (asked, hinted) = (first(Says::Nothing), first(Says::Hints));
    let head = hinted.loaded.first_byte().unwrap();
    let style = hinted.loaded.objects[STYLE.index()];
    assert_eq!((style.hinted, style.queued, style.sending), (Some(head), Some(head), Some(head)));
    assert!(style.reached.unwrap() > head);
    assert_eq!(hinted.loaded.requests(), asked.loaded.requests());
    assert_eq!(hinted.loaded.pushed().count(), 0);
    assert!(hinted.loaded.is_complete());
    assert!(hinted.loaded.load_time() < asked.loaded.load_time());
    // A push saves the round trip that a hint still takes.
    let pushed = first(Says::Pushes);
    assert!(pushed.loaded.objects[1].first_byte < style.first_byte);
}

#[test]
fn a_hint_works_by_every_protocol() {
    let one = Net { says: Says::Hints, ..Net::default() };
    let hinted = one.first_visit(&page(), &Policy::chromium());
    let asked = Net::default().first_visit(&page(), &Policy::chromium());
    assert!(hinted.loaded.is_complete());
    assert_eq!(hinted.loaded.requests(), asked.loaded.requests());
    assert!(hinted.loaded.objects[1].queued < asked.loaded.objects[1].queued);
}

#[test]
fn what_the_cache_has_is_cancelled_and_what_had_come_is_wasted() {
    let seen = first(Says::Nothing);
    let begin = Time::from_millis(60_000);
    let again = net(Says::Pushes).load(&page(), &Policy::chromium(), seen.memory, begin);
    assert_eq!(sent(&again), ["/", "/a.png"]);
    let refused: Vec<_> = again.log.iter().filter(|line| line.contains("refuse")).collect();
    assert_eq!(refused, ["100 ms refuse /a.css", "100 ms refuse /a.js"]);
    // Both have left when the server hears of it, half a round trip later.
    assert_eq!(again.wasted, 4_000);
    assert!(again.loaded.is_complete());
    assert_eq!(again.loaded.pushed().count(), 0);
    assert_eq!(again.loaded.bytes(), Bytes(21_000));
    // A hint of what is there changes nothing.
    let seen = first(Says::Nothing);
    let hinted = net(Says::Hints).load(&page(), &Policy::chromium(), seen.memory, begin);
    assert_eq!((sent(&hinted), hinted.loaded.objects[1].hinted), (vec!["/", "/a.png"], None));
}

#[test]
fn what_was_pushed_is_in_the_cache_of_the_next_load() {
    let seen = first(Says::Pushes);
    let begin = Time::from_millis(60_000);
    let again = net(Says::Nothing).load(&page(), &Policy::chromium(), seen.memory, begin);
    assert_eq!(sent(&again), ["/", "/a.png"]);
    let outcomes: Vec<_> = again.loaded.objects.iter().map(|object| object.outcome).collect();
    assert_eq!(outcomes[1..4], [Outcome::Fresh; 3]);
}

#[test]
fn a_push_that_breaks_off_is_asked_for_as_if_there_had_been_none() {
    let (asked, broken) = (first(Says::Nothing), first(Says::BreaksOff));
    assert_eq!(sent(&broken), sent(&asked));
    assert_eq!(broken.loaded.load_time(), asked.loaded.load_time());
    assert!(broken.loaded.is_complete());
    assert_eq!(broken.loaded.pushed().count(), 0);
}

#[test]
fn a_har_file_says_what_was_pushed() {
    let seen = first(Says::Pushes);
    let stalled = har::Stalled::default();
    let about = har::About { begin: Time::ZERO, protocol: "h2", version: "0", stalled };
    let written = har::write(&page(), &seen.loaded, &about);
    let entries = written["log"]["entries"].as_array().unwrap();
    let pushed: Vec<_> = entries.iter().filter(|entry| entry["_was_pushed"] == 1).collect();
    let urls: Vec<_> = pushed.iter().map(|entry| entry["request"]["url"].as_str()).collect();
    let expected = ["https://www.example/a.css", "https://www.example/a.js"].map(Some);
    assert_eq!(urls, expected);
    assert!(pushed.iter().all(|entry| entry["timings"]["send"] == 0.0));
    assert_eq!(har::read("again", &written.to_string()).unwrap().page.objects().len(), 5);
}

/// A load whose document is under way on a connection that is for `www.example` alone.
fn under_way(page: &Page) -> (Load, ConnectionId) {
    let policy = Policy::chromium();
    let mut load = Load::new(page, policy.clone(), Memory::new(&policy), Time::ZERO);
    let addresses = vec![[10, 0, 0, 1].into()];
    assert!(matches!(load.poll(), Some(Action::Resolve { .. })));
    load.handle(Event::Resolved { host: HostId(0), addresses, valid_for: None }, Time::ZERO);
    let Some(Action::Open { connection, .. }) = load.poll() else { panic!("no connection") };
    let ready = Ready {
        tcp: None,
        carries: Carries::Many { limit: 100 },
        address: None,
        certificate: Certificate::default(),
        resumed: false,
    };
    load.handle(Event::Ready { connection, ready }, Time::ZERO);
    assert!(matches!(load.poll(), Some(Action::Send { object: ObjectId(0), .. })));
    (load, connection)
}

/// Only what the page has, from who may speak for it, once, and before it was asked for.
#[test]
fn pushes_of_no_use_are_refused_and_nothing_of_them_is_kept() {
    let upload = Object::new(HostId(0), "/post", Kind::Fetch, Bytes(10));
    let upload = Object { upload: Some(Bytes(10)), ..upload };
    let other = Object::new(HostId(1), "/b.css", Kind::Style, Bytes(10));
    let style = Object::new(HostId(0), "/a.css", Kind::Style, Bytes(10));
    let page = page_of(1_000, [style, upload, other]);
    let (mut load, connection) = under_way(&page);
    let mut number = 0;
    let mut push = |load: &mut Load, connection, host: &str, path: &str| {
        number += 1;
        let push = PushId(number);
        let (host, path) = (host.into(), path.into());
        load.handle(Event::Pushed { connection, push, host, path }, Time::ZERO);
        let taken = load.poll();
        assert!(load.poll().is_none());
        match taken {
            Some(Action::Take { push: same, object }) if same == push => Some(object),
            Some(Action::Refuse { push: same }) if same == push => None,
            other => panic!("{other:?}"),
        }
    };
    let elsewhere = ConnectionId(99);
    for (connection, host, path) in [
        (connection, "www.example", "/unknown"),
        (connection, "www.example", "/"),
        (connection, "www.example", "/post"),
        (connection, "h1.example", "/b.css"),
        (connection, "elsewhere.example", "/a.css"),
        (elsewhere, "www.example", "/a.css"),
    ] {
        assert_eq!(push(&mut load, connection, host, path), None, "{host}{path}");
    }
    assert_eq!(push(&mut load, connection, "www.example:443", "/a.css"), Some(STYLE));
    for _ in 0..10_000 {
        assert_eq!(push(&mut load, connection, "www.example", "/a.css"), None);
    }
    // What was taken and never told of, since the document failed, is no part of the page.
    load.handle(Event::Complete { object: STYLE, reusable: true }, Time::ZERO);
    load.handle(Event::Failed { object: ObjectId(0), refused: false }, Time::ZERO);
    assert!(load.is_done());
    let (loaded, _) = load.finish(Time::ZERO);
    assert_eq!(loaded.objects[1].outcome, Outcome::Unreached);
    assert_eq!(loaded.pushed().count(), 0);
}

/// A connection that is closed takes its pushes with it; what is wanted of them is asked for again.
#[test]
fn a_push_ends_with_its_connection() {
    let style = Object::new(HostId(0), "/a.css", Kind::Style, Bytes(10));
    let page = page_of(1_000, [style]);
    let (mut load, connection) = under_way(&page);
    let (host, path) = ("www.example".into(), "/a.css".into());
    load.handle(Event::Pushed { connection, push: PushId(1), host, path }, Time::ZERO);
    assert!(matches!(load.poll(), Some(Action::Take { object: STYLE, .. })));
    load.handle(Event::Complete { object: ObjectId(0), reusable: true }, Time::ZERO);
    assert!(!load.is_done() && load.poll().is_none(), "the style sheet is on its way");
    load.handle(Event::Body { object: STYLE, bytes: 5 }, Time::ZERO);
    load.handle(Event::Closed { connection }, Time::ZERO);
    let Some(Action::Open { connection, .. }) = load.poll() else { panic!("no connection") };
    let ready = Ready {
        tcp: None,
        carries: Carries::Many { limit: 100 },
        address: None,
        certificate: Certificate::default(),
        resumed: false,
    };
    load.handle(Event::Ready { connection, ready }, Time::ZERO);
    assert!(matches!(load.poll(), Some(Action::Send { object: STYLE, .. })));
    load.handle(Event::Complete { object: STYLE, reusable: true }, Time::ZERO);
    assert!(load.is_done());
    let (loaded, memory) = load.finish(Time::ZERO);
    assert_eq!((loaded.objects[1].requests, loaded.objects[1].pushed), (1, None));
    assert_eq!(memory.connections().count(), 1);
}
