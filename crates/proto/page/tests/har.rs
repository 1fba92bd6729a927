//! HAR files: read, written, hostile.

use page::har::{self, About, HarError, Stalled};
use page::{Caching, Found, Kind, ObjectId, PageError, Policy, Share, Urgency};
use serde_json::{Value, json};
use units::{Bytes, Delay, Time};

use crate::exact::{images, page_of};
use crate::net::Net;

/// An entry that began so many milliseconds after noon.
fn entry(millis: u64, url: &str, fields: Value) -> Value {
    let mut entry = json!({
        "startedDateTime": format!("2013-06-07T12:00:{:02}.{:03}+09:00", millis / 1000, millis % 1000),
        "time": 100,
        "request": { "method": "GET", "url": url },
        "response": { "status": 200, "bodySize": 1000, "content": { "size": 3000 } },
        "timings": { "receive": 50, "dns": -1 },
    });
    for (name, value) in fields.as_object().expect("fields") {
        entry[name] = value.clone();
    }
    entry
}

fn file(entries: Vec<Value>) -> String {
    json!({ "log": { "version": "1.2", "entries": entries } }).to_string()
}

fn ms(millis: u64) -> Delay {
    std::time::Duration::from_millis(millis).into()
}

#[test]
fn a_page_is_read_from_what_chromium_saves() {
    let text = file(vec![
        // Out of order, as some tools write them.
        entry(
            375,
            "https://www.example/a.css",
            json!({
                "_initiator": { "type": "parser", "url": "https://www.example/" },
                "_resourceType": "stylesheet", "_priority": "VeryHigh",
                "response": { "status": 200, "bodySize": 700,
                    "headers": [{ "name": "Cache-Control", "value": "max-age=60" },
                        { "name": "ETag", "value": "x" }] },
            }),
        ),
        entry(
            0,
            "http://example/",
            json!({
                "response": { "status": 301, "redirectURL": "https://www.example/", "bodySize": 0 },
            }),
        ),
        entry(300, "https://www.example/#top", json!({ "_resourceType": "document" })),
        entry(
            500,
            "https://CDN.example:8443/f.woff?v=1",
            json!({
                "_initiator": { "type": "script", "stack": { "callFrames": [
                    { "url": "https://www.example/a.css" }], "parent": {} } },
                "response": { "status": 304, "bodySize": 0, "content": { "size": 5000, "mimeType": "font/woff" } },
                "request": { "method": "GET", "url": "https://CDN.example:8443/f.woff?v=1",
                    "headers": [{ "name": "cookie", "value": "12345" }] },
            }),
        ),
        entry(600, "data:image/png;base64,AAAA", json!({})),
        entry(610, "https://www.example/hanging", json!({ "response": { "status": 0 } })),
        entry(
            620,
            "https://www.example/post",
            json!({
                "request": { "method": "POST", "url": "https://www.example/post", "bodySize": 77 },
                "response": { "status": 200, "bodySize": -1, "_transferSize": 500, "headersSize": 120 },
            }),
        ),
        entry(
            630,
            "https://www.example/post",
            json!({ "time": null, "response": { "status": 200 } }),
        ),
    ]);
    let har::Read { page, left_out, .. } = har::read("saved", &text).unwrap();
    assert_eq!((left_out.not_http, left_out.no_answer, left_out.count()), (1, 1, 2));
    assert_eq!(page.hosts(), ["www.example", "example", "port-8443.cdn.example"]);
    let objects = page.objects();
    let paths: Vec<_> = objects.iter().map(|object| object.path.as_str()).collect();
    assert_eq!(paths, ["/", "/", "/a.css", "/f.woff?v=1", "/post", "/post?again=5"]);
    let found = |at: usize| objects[at].found;
    let by = |by, after, delay| Some(Found { by: ObjectId(by), after, delay });
    // The redirect is where the page begins: it leads to the document.
    assert_eq!(page.root(), ObjectId(0));
    assert_eq!(found(1), by(0, Share::ALL, ms(200)));
    // 25 of the 50 ms in which the document's body came.
    assert_eq!(found(2), by(1, Share::new(0.5).unwrap(), Delay::ZERO));
    assert_eq!(found(3), by(2, Share::ALL, ms(25)));
    let style = &objects[2];
    assert_eq!((style.kind, style.body, style.blocking), (Kind::Style, Bytes(700), true));
    assert_eq!(style.urgency, Urgency::new(0));
    assert_eq!(style.caching, Caching::Stored { fresh_for: ms(60_000), validator: true });
    let font = &objects[3];
    assert_eq!((font.kind, font.body, font.request_extra), (Kind::Font, Bytes(5000), Bytes(5)));
    assert_eq!((objects[4].body, objects[4].upload), (Bytes(380), Some(Bytes(77))));
}

#[test]
fn without_initiators_time_and_kind_decide() {
    let text = file(vec![
        entry(0, "http://www.example/index.html", json!({})),
        entry(100, "http://www.example/a.css", json!({})),
        entry(110, "http://www.example/a.js", json!({})),
        entry(250, "http://www.example/a.woff", json!({})),
        entry(260, "http://www.example/a.json", json!({})),
        entry(270, "http://www.example/a.png", json!({})),
    ]);
    let page = har::read("saved", &text).unwrap().page;
    let by: Vec<_> = page.objects().iter().map(|object| object.found.map(|f| f.by.0)).collect();
    assert_eq!(by, [None, Some(0), Some(0), Some(1), Some(2), Some(0)]);
}

fn parents(page: &page::Page) -> Vec<Option<u32>> {
    page.objects().iter().map(|object| object.found.map(|found| found.by.0)).collect()
}

/// As Firefox and Safari save it: without initiators.
#[test]
fn behind_a_redirect_the_document_tells_of_objects() {
    let to = |status: u16, to: &str| {
        json!({ "response": { "status": status, "redirectURL": to, "bodySize": 0,
            "content": { "mimeType": "text/html" } } })
    };
    let of = |mime: &str| json!({ "response": { "status": 200, "content": { "mimeType": mime } } });
    let text = file(vec![
        entry(0, "http://a.example/", to(301, "https://a.example/")),
        entry(100, "https://a.example/", to(302, "/home")),
        entry(200, "https://a.example/home", of("text/html; charset=utf-8")),
        entry(310, "https://a.example/a.css", of("text/css")),
        entry(320, "https://a.example/a.png", to(302, "https://b.example/a.png")),
        entry(430, "https://b.example/a.png", of("image/png")),
        entry(440, "https://a.example/a.woff", of("font/woff")),
    ]);
    let page = har::read("saved", &text).unwrap().page;
    let by = [None, Some(0), Some(1), Some(2), Some(2), Some(4), Some(3)];
    assert_eq!(parents(&page), by);
    // The document has no type, and is none the less no frame's.
    let text = file(vec![
        entry(0, "http://a.example/", to(301, "https://a.example/")),
        entry(100, "https://a.example/", json!({})),
        entry(210, "https://a.example/frame.html", of("text/html")),
        entry(320, "https://a.example/a.png", of("image/png")),
    ]);
    let page = har::read("saved", &text).unwrap().page;
    assert_eq!(parents(&page), [None, Some(0), Some(1), Some(1)]);
}

#[test]
fn of_several_pages_the_first_is_read() {
    let of = |page: &str| json!({ "pageref": page });
    let text = file(vec![
        // Out of order, and with what no page needs to be right of.
        entry(20_000, "https://b.example/", of("page_2")),
        entry(0, "https://a.example/", of("page_1")),
        entry(100, "https://a.example/a.png", of("page_1")),
        entry(110, "https://a.example/b.png", json!({})),
        entry(20_100, "https://b.example/a.png", of("page_2")),
        entry(20_110, "data:image/png;base64,AA", of("page_2")),
        entry(120, "data:image/png;base64,AA", of("page_1")),
    ]);
    let read = har::read("saved", &text).unwrap();
    assert_eq!(read.page.hosts(), ["a.example"]);
    let paths: Vec<_> = read.page.objects().iter().map(|object| object.path.as_str()).collect();
    assert_eq!(paths, ["/", "/a.png", "/b.png"]);
    assert_eq!((read.left_out.other_pages, read.left_out.not_http), (3, 1));
    assert_eq!(
        read.notes(),
        [
            "the file has several pages: 3 entries of other pages were left out, the first page is loaded",
            "1 entry was left out: data:, blob: or another URL that is not HTTP: 1",
        ]
    );
}

#[test]
fn what_is_left_out_is_told_with_the_reason() {
    let status = |status: u16| json!({ "response": { "status": status } });
    let text = file(vec![
        entry(0, "https://a.example/", json!({})),
        entry(100, "data:image/png;base64,AA", json!({})),
        entry(100, "blob:https://a.example/1", json!({})),
        entry(110, "wss://a.example/socket", status(101)),
        entry(110, "https://a.example/socket", status(101)),
        entry(120, "https://a.example/blocked.js", status(0)),
        entry(120, "https://a.example/failed.js", json!({ "response": null })),
    ]);
    let read = har::read("saved", &text).unwrap();
    assert_eq!(
        read.notes(),
        ["6 entries were left out: data:, blob: or another URL that is not HTTP: 2; \
          WebSocket: 2; no answer (failed, blocked): 2"]
    );
    let whole = file(vec![entry(0, "https://a.example/", json!({}))]);
    assert!(har::read("whole", &whole).unwrap().notes().is_empty());
}

#[test]
fn servers_of_ones_own_have_names() {
    let text = file(vec![
        entry(0, "http://127.0.0.1:8080/", json!({})),
        entry(100, "http://127.0.0.1/a.png", json!({})),
        entry(110, "http://[::1]/a.png", json!({})),
        entry(120, "http://[::]:80/a.png", json!({})),
    ]);
    let page = har::read("local", &text).unwrap().page;
    assert_eq!(
        page.hosts(),
        [
            "port-8080.ip-127-0-0-1",
            "ip-127-0-0-1",
            "ip6-0000-0000-0000-0000-0000-0000-0000-0001",
            "ip6-0000-0000-0000-0000-0000-0000-0000-0000",
        ]
    );
}

/// WebPageTest and sitespeed.io.
#[test]
fn initiators_and_types_are_read_as_other_tools_write_them() {
    let text = file(vec![
        entry(0, "https://a.example/", json!({ "_initiator": "", "_request_type": "Document" })),
        entry(
            200,
            "https://a.example/a",
            json!({ "_initiator": "https://a.example/", "_request_type": "Script", "_priority": "Highest" }),
        ),
        entry(
            400,
            "https://a.example/b",
            json!({ "_initiator": "https://a.example/a#x", "_request_type": "Image", "_priority": "Lowest" }),
        ),
    ]);
    let page = har::read("wpt", &text).unwrap().page;
    assert_eq!(parents(&page), [None, Some(0), Some(1)]);
    let kinds = page.objects().iter().map(|object| object.kind);
    assert_eq!(kinds.collect::<Vec<_>>(), [Kind::Document, Kind::Script, Kind::Image]);
    assert!(page.objects()[1].blocking);
    let urgencies = page.objects().iter().map(|object| object.urgency.map(Urgency::value));
    assert_eq!(urgencies.collect::<Vec<_>>(), [None, Some(0), Some(4)]);
}

#[test]
fn an_initiator_that_began_later_tells_of_nothing() {
    let by =
        |millis, url: &str, by: &str| entry(millis, url, json!({ "_initiator": { "url": by } }));
    let text = file(vec![
        entry(0, "http://a.example/", json!({})),
        entry(100, "http://a.example/a.js", json!({})),
        // Its script came again after it: the entry of the first time is not in the file.
        by(250, "http://a.example/a.json", "http://a.example/b.js"),
        entry(300, "http://a.example/b.js", json!({})),
        // Two that name each other, and two that name themselves.
        by(400, "http://a.example/c.js", "http://a.example/d.js"),
        by(400, "http://a.example/d.js", "http://a.example/c.js"),
        by(500, "http://a.example/e.js", "http://a.example/e.js"),
        by(510, "http://a.example/e.js", "http://a.example/e.js"),
    ]);
    let page = har::read("circles", &text).unwrap().page;
    let by = [None, Some(0), Some(1), Some(0), Some(0), Some(4), Some(0), Some(0)];
    assert_eq!(parents(&page), by);
    // Many that name themselves are no long chain.
    let own = |at: u64| by_itself(100 + at);
    let mut entries = vec![entry(0, "http://a.example/", json!({}))];
    entries.extend((0..200).map(own));
    assert_eq!(har::read("poll", &file(entries)).unwrap().page.depth(), 2);
}

fn by_itself(millis: u64) -> Value {
    let url = "http://a.example/poll";
    entry(millis, url, json!({ "_initiator": { "type": "script", "url": url } }))
}

#[test]
fn a_url_that_is_too_long_is_cut_and_stays_distinct() {
    let beacon = |end: &str| format!("https://t.example/?{}{end}", "q".repeat(9_000));
    let text = file(vec![
        entry(0, "https://a.example/", json!({})),
        entry(200, &beacon("1"), json!({})),
        entry(210, &beacon("2"), json!({})),
    ]);
    let read = har::read("beacons", &text).unwrap();
    let [_, first, second] = read.page.objects() else { panic!("{:?}", read.page) };
    assert!(first.path.starts_with("/?qqq") && first.path.len() <= page::Page::MAX_PATH);
    assert!(second.path.ends_with("&again=2") && second.path.len() <= page::Page::MAX_PATH);
    // The request is as long as it was.
    assert_eq!(first.path.len() as u64 + first.request_extra.count(), "/?".len() as u64 + 9_001);
    assert_eq!(read.notes(), ["2 URLs of more than 8000 characters were shortened"]);
}

#[test]
fn a_har_is_known_by_its_log() {
    let text = file(vec![]);
    for (text, is_har) in [
        (text.as_str(), true),
        ("{\"comment\": [{\"log\": 1}], \"log\": {", true),
        ("{\"name\": \"log\", \"object\": [{\"log\": 1}]}", false),
        ("[\"log\"]", false),
        ("{\"name\": ", false),
        ("", false),
    ] {
        assert_eq!(har::is_har(text), is_har, "{text}");
    }
}

#[test]
fn hostile_files_get_one_clear_error() {
    let deep = format!("{{\"log\":{{\"entries\":{}1{}}}}}", "[".repeat(1_000), "]".repeat(1_000));
    for (text, said) in [
        (String::new(), "cannot be read"),
        ("[]".to_owned(), "cannot be read"),
        ("{\"log\": {}}".to_owned(), "missing field `entries`"),
        // What nobody looks at is passed over without recursion.
        (deep.clone(), "no request by http"),
        (deep.replace(']', ""), "cannot be read"),
        (file(vec![]), "no request by http"),
    ] {
        let error = har::read("hostile", &text).unwrap_err();
        assert!(error.to_string().contains(said), "{error} is not about {said}");
    }
    let many = (0..=page::Page::MAX_OBJECTS).map(|_| json!({})).collect();
    assert_eq!(har::read("many", &file(many)), Err(HarError::TooManyEntries));
    let large = json!({ "response": { "status": 200, "bodySize": 1 << 30 } });
    let two = ["http://a.example/", "http://a.example/2"].map(|url| entry(0, url, large.clone()));
    let error = har::read("large", &file(two.into())).unwrap_err();
    assert_eq!(error, HarError::Page(PageError::TooLarge { bytes: 2 << 30 }));
}

/// The entry of the document, and another one with these fields.
fn beside(fields: Value) -> har::Read {
    let entries = vec![
        entry(0, "https://a.example/", json!({})),
        entry(100, "https://a.example/other", fields),
        entry(200, "https://a.example/last.png", json!({})),
    ];
    har::read("odd", &file(entries)).unwrap()
}

#[test]
fn one_odd_size_or_time_is_unknown() {
    let response = |body: Value, content: Value| json!({ "response": { "status": 200, "bodySize": body, "content": { "size": content } } });
    for (fields, bytes) in [
        (response(json!(-171), json!(3_000)), 3_000),
        (response(json!(-171), json!(-5)), 0),
        (response(json!(1e12), json!(3_000)), 3_000),
        (response(json!(-1e300), json!(1e300)), 0),
        (json!({ "time": -5 }), 1_000),
        (json!({ "time": 1e300 }), 1_000),
        (json!({ "timings": { "receive": -2 } }), 1_000),
    ] {
        let read = beside(fields.clone());
        assert_eq!(read.page.objects().len(), 3, "{fields}");
        assert_eq!(read.page.objects()[1].body, Bytes(bytes), "{fields}");
        assert_eq!(read.left_out.count(), 0, "{fields}");
    }
}

#[test]
fn an_entry_without_a_date_in_reach_is_left_out() {
    for (date, note) in [
        ("Invalid Date", "1 entry was left out: no valid date: 1"),
        ("2013-02-30T12:00:00Z", "1 entry was left out: no valid date: 1"),
        (
            "1970-01-01T00:00:00Z",
            "1 entry was left out: more than 10 minutes before or after the page: 1",
        ),
        (
            "2013-06-07T13:00:00.100+09:00",
            "1 entry was left out: more than 10 minutes before or after the page: 1",
        ),
        (
            "2013-06-07T11:00:00.100+09:00",
            "1 entry was left out: more than 10 minutes before or after the page: 1",
        ),
    ] {
        let read = beside(json!({ "startedDateTime": date }));
        assert_eq!(read.notes(), [note], "{date}");
        let paths = read.page.objects().iter().map(|object| object.path.as_str());
        assert_eq!(paths.collect::<Vec<_>>(), ["/", "/last.png"], "{date}");
    }
}

#[test]
fn the_page_ends_at_onload() {
    let with = |pages: Value| {
        let of = |millis, path: &str| {
            entry(millis, &format!("https://a.example/{path}"), json!({ "pageref": "p" }))
        };
        let entries =
            vec![of(0, ""), of(299, "late.png"), of(300, "at-once.png"), of(25_000, "beacon")];
        let text = json!({ "log": { "entries": entries, "pages": pages } }).to_string();
        har::read("loaded", &text).unwrap()
    };
    let page = |id: &str, timings: Value| {
        json!([{ "id": id, "startedDateTime": "2013-06-07T12:00:00.000+09:00",
            "pageTimings": timings }])
    };
    let read = with(page("p", json!({ "onLoad": 300 })));
    assert_eq!(read.page.objects().len(), 3);
    assert_eq!(read.notes(), ["1 entry began after onLoad and was left out"]);
    assert_eq!(read.left_out.after_load, 1);
    let read = with(page("p", json!({ "onLoad": 299.5 })));
    assert_eq!(read.notes(), ["2 entries began after onLoad and were left out"]);
    // Where the file does not say when it was, all entries are the page.
    for pages in [
        page("p", json!({ "onLoad": -1 })),
        page("p", json!({ "onLoad": null })),
        page("p", json!({})),
        page("other", json!({ "onLoad": 300 })),
        json!(null),
        json!("p"),
        json!([1, "p", null]),
    ] {
        assert_eq!(with(pages.clone()).page.objects().len(), 4, "{pages}");
    }
    // A page whose date is wrong begins with its document.
    let mut wrong = page("p", json!({ "onLoad": 300 }));
    wrong[0]["startedDateTime"] = json!("2000-01-01T00:00:00Z");
    assert_eq!(with(wrong).page.objects().len(), 3);
}

#[test]
fn an_upload_of_unknown_size_has_its_datas_length() {
    let post = |request: Value| {
        let mut all = json!({ "method": "post", "url": "https://a.example/other", "bodySize": -1 });
        for (name, value) in request.as_object().unwrap() {
            all[name] = value.clone();
        }
        beside(json!({ "request": all })).page.objects()[1].upload
    };
    let params = json!([{ "name": "a", "value": "1" }, { "name": "bc", "value": "23" }]);
    for (request, bytes) in [
        (json!({ "postData": { "text": "é".repeat(25_000) } }), 50_000),
        (json!({ "postData": { "params": params, "text": "" } }), "a=1&bc=23".len() as u64),
        (json!({ "postData": { "text": "abc" }, "bodySize": 7 }), 7),
        (json!({ "postData": null }), 0),
        (json!({ "method": "Put", "postData": { "text": "abc" } }), 3),
    ] {
        assert_eq!(post(request.clone()), Some(Bytes(bytes)), "{request}");
    }
    assert_eq!(post(json!({ "method": "get", "postData": { "text": "abc" } })), None);
}

/// `_transferSize` has the head in it.
#[test]
fn no_head_counts_as_body() {
    let fields = json!([{ "name": "content-type", "value": "text/css" }]);
    for (head, content, bytes) in [
        (json!(120), json!(380), 380),
        // 24 bytes of fields; the content was compressed, or is not known.
        (json!(-1), json!(9_000), 476),
        (json!(-1), json!(-1), 476),
        // It was not compressed.
        (json!(-1), json!(350), 350),
    ] {
        let response = json!({ "status": 200, "bodySize": -1, "_transferSize": 500,
            "headersSize": head, "headers": fields, "content": { "size": content } });
        let read = beside(json!({ "response": response }));
        assert_eq!(read.page.objects()[1].body, Bytes(bytes), "{head} {content}");
    }
}

#[test]
fn hosts_beyond_those_of_a_page_are_one() {
    let most = page::Page::MAX_HOSTS as u64;
    let mut entries = vec![entry(0, "https://merged-0.invalid/", json!({}))];
    entries.extend((0..most + 50).flat_map(|host| {
        // The later ones are asked for more.
        let objects = 1 + host / 100;
        (0..objects).map(move |at| {
            entry(100 + host, &format!("https://h{host}.example/{at}.png"), json!({}))
        })
    }));
    let count = entries.len();
    let read = har::read("many", &file(entries)).unwrap();
    assert_eq!(read.page.objects().len(), count);
    assert_eq!(read.page.hosts().len() as u64, most);
    assert_eq!(read.page.hosts()[0], "merged-0.invalid");
    assert!(read.page.hosts().contains(&"merged-1.invalid".to_owned()));
    assert!(read.page.hosts().contains(&format!("h{}.example", most + 49)));
    assert_eq!(
        read.notes(),
        ["the 52 hosts with the fewest requests are loaded from one host: a page has at most 250"]
    );
}

#[test]
fn cookies_beyond_those_of_a_page_are_cut() {
    let cookie = json!([{ "name": "Cookie", "value": "c".repeat(100_000) }]);
    let read = beside(json!({
        "request": { "method": "GET", "url": "https://a.example/other", "headers": cookie } }));
    assert_eq!(read.page.objects()[1].request_extra.count(), 32_000);
}

#[test]
fn a_field_that_stands_twice_counts_once() {
    let text = file(vec![entry(0, "https://a.example/", json!({}))]);
    let twice = text.replace("\"time\":100", "\"time\":100,\"time\":\"x\"");
    assert_ne!(text, twice);
    assert_eq!(har::read("twice", &twice).unwrap().page, har::read("twice", &text).unwrap().page);
}

#[test]
fn packed_files_are_unpacked() {
    use std::io::Write;
    let text = file(vec![entry(0, "https://a.example/", json!({}))]);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(text.as_bytes()).unwrap();
    assert_eq!(har::text(&gzip.finish().unwrap()).unwrap(), text);
    let zip = |names: &[&str]| {
        let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
        for name in names {
            zip.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
            zip.write_all(text.as_bytes()).unwrap();
        }
        zip.finish().unwrap().into_inner()
    };
    // As Playwright writes it.
    assert_eq!(har::text(&zip(&["0a1b.html", "har.har"])).unwrap(), text);
    for (bytes, said) in [
        (zip(&["0a1b.html"]), "no file in it has a name that ends with .har"),
        (zip(&["a.har", "b.HAR"]), "it holds more than one HAR file: a.har, b.HAR"),
        (zip(&["har.har"])[..60].to_vec(), "cannot be unpacked"),
        (vec![0x1f, 0x8b, 8, 0, 0], "cannot be unpacked"),
    ] {
        let error = har::text(&bytes).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
    // What unpacks without end is no HAR file.
    let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let zeros = vec![0; 1 << 20];
    (0..257).for_each(|_| bomb.write_all(&zeros).unwrap());
    let error = har::text(&bomb.finish().unwrap()).unwrap_err();
    assert_eq!(error, HarError::TooLong(har::MAX_TEXT + 1));
}

#[test]
fn odd_fields_do_no_harm() {
    let text = file(vec![
        entry(
            0,
            "http://[2001:db8::1]:81/%zz?<script>",
            json!({
                "_initiator": "parser", "_priority": 7, "timings": null, "time": "long",
                "response": { "status": 200, "headers": {}, "content": [], "bodySize": "many" },
            }),
        ),
        json!({}),
        json!({ "request": { "url": "http:///" }, "response": { "status": 200 } }),
    ]);
    let page =
        har::read("odd", &har::text(format!("\u{feff}{text}").as_bytes()).unwrap()).unwrap().page;
    assert_eq!(page.hosts(), ["port-81.ip6-2001-0db8-0000-0000-0000-0000-0000-0001"]);
    assert_eq!(page.objects()[0].path, "/%zz?%3Cscript%3E");
}

/// What is written of a load is what HAR 1.2 asks for, and is read back as the page that it was.
#[test]
fn a_load_is_written_as_har_and_read_back() {
    let page = page_of(10_000, images(3, 1_000));
    let seen = Net::default().first_visit(&page, &Policy::chromium());
    let begin = Time::from_millis(1_370_606_400_000);
    let (on_windows, on_tcp) = ([0, 25, 0].map(ms), [5, 0, 10, 0].map(ms));
    let stalled = Stalled { on_windows: &on_windows, on_tcp: &on_tcp };
    let about = About { begin, protocol: "HTTP/1.1", version: "0.1.0", stalled };
    let written = har::write(&page, &seen.loaded, &about);
    let entries = written["log"]["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 4);
    assert_eq!(entries[0]["startedDateTime"], "2013-06-07T12:00:00.000000Z");
    assert_eq!(
        entries[0]["timings"],
        json!({
            "blocked": 0.0, "dns": 100.0, "connect": 200.0, "ssl": 100.0,
            "send": 0.0, "wait": 100.0, "receive": 10.0,
        })
    );
    assert_eq!(entries[1]["timings"]["dns"], -1.0);
    assert_eq!(entries[1]["connection"], "1");
    let stalled = |on: &str| entries.iter().map(|entry| entry[on].as_f64()).collect::<Vec<_>>();
    assert_eq!(stalled("_stalledOnWindow"), [Some(0.0), Some(25.0), Some(0.0), None]);
    assert_eq!(stalled("_stalledOnTcp"), [Some(5.0), Some(0.0), Some(10.0), Some(0.0)]);
    for entry in entries {
        let timings = entry["timings"].as_object().unwrap();
        let parts = timings.iter().filter(|(name, _)| *name != "ssl");
        let sum: f64 = parts.map(|(_, value)| value.as_f64().unwrap().max(0.0)).sum();
        assert!((sum - entry["time"].as_f64().unwrap()).abs() < 1e-9);
    }
    let read = har::read("test", &written.to_string()).unwrap().page;
    let simple = |page: &page::Page| -> Vec<_> {
        let objects = page.objects().iter();
        objects.map(|o| (o.path.clone(), o.kind, o.body, o.found.map(|found| found.by))).collect()
    };
    assert_eq!(simple(&read), simple(&page));
}
