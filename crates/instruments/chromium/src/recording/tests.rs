//! Events in, a visit out, whatever they are.

use page::content::Origin;
use page::{HostId, Kind, Object, Share};
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn wanted() -> Wanted {
    let hosts = vec!["page.test".to_owned()];
    let image = |path: &str| {
        let image = Object::new(HostId(0), path, Kind::Image, Bytes(100));
        image.found_by(ObjectId(0), Share::ALL, Delay::ZERO)
    };
    let document = Object::new(HostId(0), "/", Kind::Document, Bytes(300));
    let page = Page::new("x", hosts, vec![document, image("/a"), image("/b")]).unwrap();
    Wanted::new(&page, Origin { secure: true, port: 1234 }).unwrap()
}

const URLS: [&str; 3] =
    ["https://page.test:1234/", "https://page.test:1234/a", "https://page.test:1234/b"];

fn request(id: &str, url: &str, at: f64) -> (&'static str, Value) {
    (
        "Network.requestWillBeSent",
        json!({ "requestId": id, "request": { "url": url }, "timestamp": at }),
    )
}

/// A response on a connection, whose request was sent 10 ms after `at`.
fn response(id: &str, connection: u64, at: f64, opened: bool) -> (&'static str, Value) {
    let connect = if opened { (2.0, 8.0, 5.0) } else { (-1.0, -1.0, -1.0) };
    let timing = json!({ "requestTime": at, "dnsStart": -1, "dnsEnd": -1, "connectStart": connect.0,
        "connectEnd": connect.1, "sslStart": connect.2, "sendStart": 10, "sendEnd": 11,
        "receiveHeadersStart": 30, "receiveHeadersEnd": 31 });
    let response =
        json!({ "status": 200, "protocol": "h2", "connectionId": connection, "timing": timing });
    ("Network.responseReceived", json!({ "requestId": id, "response": response }))
}

fn data(id: &str, bytes: u64, at: f64) -> (&'static str, Value) {
    ("Network.dataReceived", json!({ "requestId": id, "timestamp": at, "dataLength": bytes }))
}

fn finished(id: &str, at: f64) -> (&'static str, Value) {
    let params = json!({ "requestId": id, "timestamp": at, "encodedDataLength": 123 });
    ("Network.loadingFinished", params)
}

fn record(events: Vec<(&str, Value)>, known: &[u64]) -> (bool, Visit) {
    let (wanted, known) = (wanted(), known.iter().copied().collect());
    let mut recording = Recording::new(&wanted, &known);
    for (name, params) in events {
        recording.event(name, params);
    }
    (recording.is_done(), recording.finish())
}

fn millis(delay: Option<Delay>) -> f64 {
    delay.map_or(-1.0, |delay| (delay.duration().as_secs_f64() * 1e4).round() / 10.0)
}

#[test]
fn a_load_is_put_together_from_its_events() {
    let (done, visit) = record(
        vec![
            request("1", URLS[0], 100.0),
            request("x", "https://elsewhere.test/", 100.0),
            request("y", "data:,x", 100.0),
            response("1", 7, 100.0, true),
            data("1", 300, 100.04),
            finished("1", 100.05),
            request("2", URLS[1], 100.05),
            response("2", 7, 100.05, false),
            data("2", 60, 100.09),
            data("2", 40, 100.10),
            finished("2", 100.11),
            request("3", URLS[2], 100.05),
            response("3", 7, 100.05, false),
            data("3", 99, 100.10),
            finished("3", 100.12),
            ("Page.loadEventFired", json!({ "timestamp": 100.13 })),
        ],
        &[],
    );
    assert!(done);
    let outcomes: Vec<Outcome> = visit.loaded.objects.iter().map(|one| one.outcome).collect();
    // The last came too short.
    let short = Outcome::Failed(Failure::Request);
    assert_eq!(outcomes, [Outcome::Fetched, Outcome::Fetched, short]);
    assert_eq!((visit.strangers, visit.loaded.bytes()), (1, Bytes(400)));
    assert_eq!(millis(Some(visit.load_time())), 130.0);
    assert_eq!(millis(Some(visit.loaded.load_time())), 120.0);
    assert_eq!(millis(visit.loaded.first_byte()), 30.0);
    assert_eq!(visit.loaded.connections_opened(), 1);
    let opening = visit.loaded.connections[0].opening.unwrap();
    assert_eq!((millis(Some(opening.begin)), millis(opening.tcp)), (2.0, 5.0));
    assert_eq!(visit.loaded.connections[0].requests, 3);
    assert_eq!(visit.fetched[1].protocol.as_deref(), Some("h2"));
}

#[test]
fn what_the_cache_has_is_told_apart_from_what_was_asked_for() {
    let cached = |id: &str, url: &str, raw: u16| {
        let response = json!({ "status": 200, "connectionId": 7, "fromDiskCache": true });
        vec![
            request(id, url, 5.0),
            ("Network.responseReceivedExtraInfo", json!({ "requestId": id, "statusCode": raw })),
            ("Network.responseReceived", json!({ "requestId": id, "response": response })),
            data(id, 100, 5.1),
            ("Network.loadingFinished", json!({ "requestId": id, "timestamp": 5.2 })),
        ]
    };
    let mut events = cached("1", URLS[1], 304);
    events.extend(cached("2", URLS[2], 200));
    events.push(request("3", URLS[0], 5.0));
    let failed = json!({ "requestId": "3", "timestamp": 6, "errorText": "net::ERR_FAILED" });
    events.push(("Network.loadingFailed", failed));
    let (done, visit) = record(events, &[7]);
    assert!(!done, "there was no load event");
    let outcomes: Vec<Outcome> = visit.loaded.objects.iter().map(|one| one.outcome).collect();
    let lost = Outcome::Failed(Failure::Request);
    assert_eq!(outcomes, [lost, Outcome::Validated, Outcome::Fresh]);
    assert_eq!((visit.loaded.requests(), visit.loaded.bytes()), (2, Bytes(0)));
    assert_eq!(visit.fetched[0].error.as_deref(), Some("net::ERR_FAILED"));
    assert!(visit.loaded.connections.iter().all(|one| one.kept));
    assert_eq!(visit.loaded.connections_opened(), 0);
}

#[test]
fn what_is_unchanged_is_known_without_the_status_on_the_wire() {
    let response = |id: &str, status: u16, cached: bool| {
        let response = json!({ "status": status, "connectionId": 7, "fromDiskCache": cached });
        ("Network.responseReceived", json!({ "requestId": id, "response": response }))
    };
    let events = vec![
        request("1", URLS[1], 5.0),
        response("1", 304, false),
        data("1", 100, 5.1),
        finished("1", 5.2),
        request("2", URLS[2], 5.0),
        response("2", 200, true),
        finished("2", 5.2),
    ];
    let (_, visit) = record(events, &[7]);
    let outcomes = visit.loaded.objects.iter().skip(1).map(|one| one.outcome);
    assert_eq!(outcomes.collect::<Vec<_>>(), [Outcome::Validated; 2]);
}

/// Values that a hostile browser may put anywhere.
fn values() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        Just(json!({})),
        Just(json!("1")),
        (0usize..3).prop_map(|at| json!({ "url": URLS[at] })),
    ]
}

fn events() -> impl Strategy<Value = (&'static str, Value)> {
    let ids = prop_oneof![Just("1"), Just("2"), Just("3")];
    let known = (ids, 0usize..3, 0u8..7, -1e3f64..1e3, any::<u64>(), any::<bool>()).prop_map(
        |(id, url, kind, at, number, flag)| match kind {
            0 => request(id, URLS[url], at),
            1 => response(id, number % 4, at, flag),
            2 => data(id, number, at),
            3 => finished(id, at),
            4 => ("Network.requestServedFromCache", json!({ "requestId": id })),
            5 => ("Network.loadingFailed", json!({ "requestId": id, "timestamp": at })),
            _ => ("Page.loadEventFired", json!({ "timestamp": at })),
        },
    );
    let mangled =
        (known.clone(), 0usize..8, values()).prop_map(|((name, mut params), at, value)| {
            if let Some(fields) = params.as_object_mut() {
                let field = fields.keys().nth(at % fields.len().max(1)).cloned();
                fields.extend(field.map(|field| (field, value)));
            }
            (name, params)
        });
    prop_oneof![3 => known, 1 => mangled]
}

proptest! {
    #[test]
    fn whatever_is_told_a_visit_comes_out_with_an_entry_for_each_object(
        events in proptest::collection::vec(events(), 0..60)
    ) {
        let (_, visit) = record(events, &[1]);
        prop_assert_eq!(visit.loaded.objects.len(), 3);
        prop_assert_eq!(visit.fetched.len(), 3);
        let most = Duration::from_secs_f64(MOST_SECONDS);
        prop_assert!(visit.load_time().duration() <= most);
        prop_assert!(visit.loaded.arrivals.is_sorted_by_key(|arrival| arrival.at));
        for (object, size) in visit.loaded.objects.iter().zip([300, 100, 100]) {
            prop_assert!(object.outcome != Outcome::Fetched || object.received == Bytes(size));
        }
    }
}
