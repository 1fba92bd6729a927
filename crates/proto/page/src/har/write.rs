//! A load as HAR 1.2.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use units::{Delay, Time};

use crate::load::{Loaded, Outcome, Timeline};
use crate::page::{Kind, Object, ObjectId, Page};

/// What a HAR file says of a load that neither page nor load know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct About<'a> {
    /// When the load began, since the begin of 1970.
    pub begin: Time,
    /// By which protocol: `HTTP/1.1`, `SPDY/3.1`, `h2`, `h3`.
    pub protocol: &'a str,
    /// The program's version.
    pub version: &'a str,
    /// What its objects waited for.
    pub stalled: Stalled<'a>,
}

/// For how long each object was stalled, in the page's order. Empty where nobody knows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stalled<'a> {
    /// Its bodies, the request's and the response's, on a flow-control window.
    pub on_windows: &'a [Delay],
    /// Its connection's TCP or QUIC, between its request and its last byte.
    pub on_tcp: &'a [Delay],
}

/// A load as HAR 1.2 in JSON. Objects that were never wanted are left out.
#[must_use]
pub fn write(page: &Page, loaded: &Loaded, about: &About<'_>) -> Value {
    let objects = page.ids().zip(page.objects()).zip(&loaded.objects);
    let mut entries: Vec<_> = objects
        .filter_map(|((id, object), timeline)| {
            Some((timeline.queued?, entry(page, id, object, timeline, about)?))
        })
        .collect();
    // HAR 1.2: sorted by when they started.
    entries.sort_by_key(|(queued, _)| *queued);
    let entries: Vec<Value> = entries.into_iter().map(|(_, entry)| entry).collect();
    json!({
        "log": {
            "version": "1.2",
            "creator": { "name": "wiretax", "version": about.version },
            "pages": [{
                "startedDateTime": date(about.begin, Delay::ZERO),
                "id": "page",
                "title": page.name(),
                "pageTimings": { "onContentLoad": -1, "onLoad": millis(loaded.load_time()) },
            }],
            "entries": entries,
        }
    })
}

fn entry(
    page: &Page,
    id: ObjectId,
    object: &Object,
    timeline: &Timeline,
    about: &About<'_>,
) -> Option<Value> {
    let phases = timeline.phases()?;
    let asked = timeline.requests > 0;
    let applies = |delay: Delay, applies: bool| if applies { millis(delay) } else { -1.0 };
    let total = timeline.end?.duration().saturating_sub(timeline.queued?.duration());
    let from_cache = timeline.outcome == Outcome::Fresh;
    let mut entry = json!({
        "pageref": "page",
        "startedDateTime": date(about.begin, timeline.queued?),
        "time": millis(total.into()),
        "request": {
            "method": if object.upload.is_some() { "POST" } else { "GET" },
            "url": url(page, object),
            "httpVersion": about.protocol,
            "cookies": [], "headers": [], "queryString": [],
            "headersSize": -1,
            "bodySize": object.upload.map_or(0, |upload| upload.count()),
        },
        "response": {
            "status": timeline.status.unwrap_or(if from_cache { 200 } else { 0 }),
            "statusText": "",
            "httpVersion": about.protocol,
            "cookies": [], "headers": [],
            "content": { "size": object.body.count(), "mimeType": mime(object.kind) },
            "redirectURL": "",
            "headersSize": -1,
            "bodySize": timeline.received.count(),
        },
        "cache": {},
        "timings": {
            "blocked": millis(phases.blocked),
            "dns": applies(phases.dns, timeline.dns.is_some()),
            "connect": applies(phases.connect, timeline.connect.is_some()),
            "ssl": applies(phases.ssl, timeline.connect.is_some_and(|connect| connect.tcp.is_some())),
            "send": if asked { millis(phases.send) } else { 0.0 },
            "wait": millis(phases.wait),
            "receive": millis(phases.receive),
        },
        "_resourceType": resource_type(object.kind),
    });
    let fields = entry.as_object_mut()?;
    if let Some(connection) = timeline.connection {
        fields.insert("connection".to_owned(), json!(connection.0.to_string()));
    }
    let Stalled { on_windows, on_tcp } = about.stalled;
    for (name, times) in [("_stalledOnWindow", on_windows), ("_stalledOnTcp", on_tcp)] {
        if let Some(stalled) = times.get(id.index()).filter(|_| asked) {
            fields.insert(name.to_owned(), json!(millis(*stalled)));
        }
    }
    if from_cache {
        fields.insert("_fromCache".to_owned(), json!("disk"));
    }
    if timeline.pushed.is_some() {
        // As WebPageTest marks it.
        fields.insert("_was_pushed".to_owned(), json!(1));
        fields.insert("comment".to_owned(), json!("pushed by the server: there was no request"));
    }
    if let Some(by) = object.found.and_then(|found| page.object(found.by)) {
        let kind = if by.kind == Kind::Script { "script" } else { "parser" };
        fields.insert("_initiator".to_owned(), json!({ "type": kind, "url": url(page, by) }));
    }
    if let Outcome::Failed(failure) = timeline.outcome {
        fields.insert("comment".to_owned(), json!(format!("failed: {failure}; object {}", id.0)));
    }
    Some(entry)
}

fn url(page: &Page, object: &Object) -> String {
    format!("https://{}", page.key(object))
}

/// What HAR counts in: milliseconds, exact to the nanosecond for a load of minutes.
fn millis(delay: Delay) -> f64 {
    delay.as_millis_f64()
}

fn date(begin: Time, after: Delay) -> String {
    let time = (begin + after.duration()).saturating_since(Time::ZERO);
    // Microseconds are what others read: HAR asks for milliseconds.
    let time = Duration::from_micros(time.as_micros() as u64);
    let stamp =
        i128::try_from(time.as_nanos()).ok().and_then(|n| Timestamp::from_nanosecond(n).ok());
    format!("{:.6}", stamp.unwrap_or(Timestamp::UNIX_EPOCH))
}

fn mime(kind: Kind) -> &'static str {
    match kind {
        Kind::Document => "text/html",
        Kind::Style => "text/css",
        Kind::Script => "text/javascript",
        Kind::Image => "image/png",
        Kind::Font => "font/woff",
        Kind::Fetch => "application/json",
        Kind::Other => "application/octet-stream",
    }
}

fn resource_type(kind: Kind) -> &'static str {
    match kind {
        Kind::Style => "stylesheet",
        other => other.name(),
    }
}
