//! What DevTools tells of a visit, put together: events in, a [`Visit`] out.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use page::{
    Arrival, ConnectionId, ConnectionTimeline, Failure, Loaded, ObjectId, Opening, Outcome, Page,
    Span, Timeline,
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use units::{Bytes, Delay};

use crate::load::Wanted;
use crate::message::{Data, Ended, ExtraInfo, Fired, Received, Timing, WillBeSent};

/// Requests that are followed: each object some times.
const MOST_REQUESTS: usize = 4 * Page::MAX_OBJECTS;
/// Pieces of bodies that are listed.
const MOST_ARRIVALS: usize = 1 << 20;
/// Longest text of the browser's that is kept.
const MOST_TEXT: usize = 200;
/// The longest time that is told apart: what is later is this.
const MOST_SECONDS: f64 = 1e6;

/// What DevTools says of one object, beside its times.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fetched {
    /// The URL that was asked for.
    pub url: String,
    /// The protocol of its response: `http/1.1`, `h2`, `h3`.
    pub protocol: Option<String>,
    /// The response's status: 200 where the cache was found unchanged.
    pub status: Option<u16>,
    /// Bytes on the wire as the browser counts them, heads included.
    pub encoded: Bytes,
    /// Why it did not come.
    pub error: Option<String>,
}

/// One load, as the browser tells of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Visit {
    /// Objects, connections and bytes, in times since the first request was about to be sent. An object
    /// whose body has not the length that the page says has failed.
    pub loaded: Loaded,
    /// When the load event had been fired.
    pub load_event: Option<Delay>,
    /// Each object as the browser has it, in the page's order.
    pub fetched: Vec<Fetched>,
    /// Requests for what is not the page's.
    pub strangers: u64,
}

impl Visit {
    /// Page load time: until the load event, or until everything was fetched if that came later.
    #[must_use]
    pub fn load_time(&self) -> Delay {
        self.loaded.load_time().max(self.load_event.unwrap_or_default())
    }
}

/// What is known of an object.
#[derive(Debug, Default)]
struct Entry {
    fetched: Fetched,
    asked: Option<f64>,
    timing: Option<Timing>,
    connection: u64,
    received: u64,
    /// The status on the wire.
    raw_status: Option<u16>,
    from_cache: bool,
    end: Option<f64>,
    requests: u32,
}

impl Entry {
    fn is_over(&self) -> bool {
        self.end.is_some()
    }

    /// Whether the server said that the cache has it. The status on the wire may be told too late to be
    /// heard; then the renderer's own cache says 304, and of the network's cache bytes on the wire say
    /// that it asked.
    fn is_unchanged(&self) -> bool {
        let statuses = [self.raw_status, self.fetched.status];
        statuses.contains(&Some(304)) || self.from_cache && self.fetched.encoded > Bytes(0)
    }
}

/// A visit under way.
pub(crate) struct Recording<'a> {
    wanted: &'a Wanted,
    /// Connections of visits before.
    known: &'a BTreeSet<u64>,
    by_url: HashMap<&'a str, ObjectId>,
    /// Which object a request is for.
    requests: HashMap<String, ObjectId>,
    entries: Vec<Entry>,
    arrivals: Vec<(f64, ObjectId, u64)>,
    begin: Option<f64>,
    load_event: Option<f64>,
    strangers: u64,
}

impl<'a> Recording<'a> {
    pub(crate) fn new(wanted: &'a Wanted, known: &'a BTreeSet<u64>) -> Recording<'a> {
        let urls = wanted.content.urls.iter().map(String::as_str);
        let entry = |url: &str| Entry {
            fetched: Fetched { url: url.to_owned(), ..Fetched::default() },
            ..Entry::default()
        };
        Recording {
            wanted,
            known,
            entries: urls.clone().map(entry).collect(),
            by_url: urls.zip(wanted.page.ids()).collect(),
            requests: HashMap::new(),
            arrivals: Vec::new(),
            begin: None,
            load_event: None,
            strangers: 0,
        }
    }

    /// Whether the load event was fired and every object is over.
    pub(crate) fn is_done(&self) -> bool {
        self.load_event.is_some() && self.entries.iter().all(Entry::is_over)
    }

    /// Whether the load event was fired and nothing that was asked for is awaited.
    pub(crate) fn is_idle(&self) -> bool {
        let under_way = |entry: &Entry| entry.asked.is_some() && !entry.is_over();
        self.load_event.is_some() && !self.entries.iter().any(under_way)
    }

    /// Takes an event. One that cannot be read tells nothing.
    pub(crate) fn event(&mut self, name: &str, params: Value) {
        match name {
            "Network.requestWillBeSent" => self.on_request(params),
            "Network.responseReceived" => self.on_response(params),
            "Network.responseReceivedExtraInfo" => self.on_extra(params),
            "Network.requestServedFromCache" => self.on_cache(params),
            "Network.dataReceived" => self.on_data(params),
            "Network.loadingFinished" => self.on_end(params, false),
            "Network.loadingFailed" => self.on_end(params, true),
            "Page.loadEventFired" => {
                let fired = read::<Fired>(params).filter(|_| self.begin.is_some());
                self.load_event = self.load_event.or(fired.map(|fired| fired.timestamp));
            }
            _ => {}
        }
    }

    fn on_request(&mut self, params: Value) {
        let Some(sent) = read::<WillBeSent>(params) else { return };
        let url = sent.request.url.split('#').next().unwrap_or_default();
        let Some(id) = self.by_url.get(url).copied() else {
            // What has no server is no request.
            if url.starts_with("http") {
                self.strangers += 1;
            }
            return;
        };
        self.begin.get_or_insert(sent.timestamp);
        let Some(entry) = self.entries.get_mut(id.index()) else { return };
        // A second request for what is there (a browser's own cache answers it) changes nothing.
        if entry.end.is_some() && entry.fetched.error.is_none() {
            return;
        }
        if self.requests.len() >= MOST_REQUESTS || sent.request_id.len() > MOST_TEXT {
            return;
        }
        self.requests.insert(sent.request_id, id);
        entry.asked.get_or_insert(sent.timestamp);
        entry.requests = entry.requests.saturating_add(1);
        // A request that is made again begins again.
        (entry.end, entry.fetched.error, entry.received) = (None, None, 0);
        self.arrivals.retain(|(_, of, _)| entry.requests == 1 || *of != id);
    }

    fn entry(&mut self, request: &str) -> Option<(ObjectId, &mut Entry)> {
        let id = *self.requests.get(request)?;
        Some((id, self.entries.get_mut(id.index())?))
    }

    fn on_response(&mut self, params: Value) {
        let Some(Received { request_id, response }) = read(params) else { return };
        let Some((_, entry)) = self.entry(&request_id) else { return };
        entry.fetched.status = status(response.status);
        entry.fetched.protocol = response.protocol.map(|name| cut(&name));
        entry.connection = count(response.connection_id);
        entry.from_cache |= response.from_disk_cache;
        entry.timing = response.timing;
    }

    fn on_extra(&mut self, params: Value) {
        let Some(ExtraInfo { request_id, status_code }) = read(params) else { return };
        let Some((_, entry)) = self.entry(&request_id) else { return };
        entry.raw_status = status(status_code);
    }

    fn on_cache(&mut self, params: Value) {
        let Some(Ended { request_id, .. }) = read(params) else { return };
        let Some((_, entry)) = self.entry(&request_id) else { return };
        entry.from_cache = true;
    }

    fn on_data(&mut self, params: Value) {
        let Some(Data { request_id, timestamp, data_length }) = read(params) else { return };
        let Some((id, entry)) = self.entry(&request_id) else { return };
        let bytes = count(data_length);
        entry.received = entry.received.saturating_add(bytes);
        if bytes > 0 && self.arrivals.len() < MOST_ARRIVALS {
            self.arrivals.push((timestamp, id, bytes));
        }
    }

    fn on_end(&mut self, params: Value, failed: bool) {
        let Some(ended) = read::<Ended>(params) else { return };
        let Some((_, entry)) = self.entry(&ended.request_id) else { return };
        entry.end = Some(ended.timestamp);
        entry.fetched.encoded = Bytes(count(ended.encoded_data_length));
        entry.fetched.error = failed.then(|| cut(&ended.error_text));
    }

    /// What came of it. What has not ended has failed.
    pub(crate) fn finish(self) -> Visit {
        let begin = self.begin.unwrap_or_default();
        let since = |time: f64| delay(time - begin);
        let sizes = self.wanted.page.objects().iter().map(|object| object.body.count());
        let mut objects: Vec<Timeline> = self
            .entries
            .iter()
            .zip(sizes)
            .map(|(entry, size)| timeline(entry, size, begin))
            .collect();
        let connections = self.connections(begin);
        // The first request of a connection is the one that opened it.
        let mut opened = BTreeSet::new();
        let mut by_time: Vec<&mut Timeline> = objects.iter_mut().collect();
        by_time.sort_by_key(|object| object.sending);
        for object in by_time {
            if object.connection.is_some_and(|connection| !opened.insert(connection)) {
                object.connect = None;
            }
        }
        let came = |id: ObjectId| {
            objects.get(id.index()).is_some_and(|object| object.outcome == Outcome::Fetched)
        };
        let mut arrivals: Vec<Arrival> = self
            .arrivals
            .iter()
            .filter(|(_, id, _)| came(*id))
            .map(|(at, object, bytes)| Arrival { at: since(*at), object: *object, bytes: *bytes })
            .collect();
        arrivals.sort_by_key(|arrival| arrival.at);
        Visit {
            loaded: Loaded { objects, connections, arrivals, uploads: Vec::new() },
            load_event: self.load_event.map(since),
            fetched: self.entries.into_iter().map(|entry| entry.fetched).collect(),
            strangers: self.strangers,
        }
    }

    fn connections(&self, begin: f64) -> Vec<ConnectionTimeline> {
        let mut all: BTreeMap<u64, ConnectionTimeline> = BTreeMap::new();
        for (entry, object) in self.entries.iter().zip(self.wanted.page.objects()) {
            if entry.connection == 0 {
                continue;
            }
            let kept = self.known.contains(&entry.connection);
            let protocol = entry.fetched.protocol.as_deref().unwrap_or_default();
            let one = all.entry(entry.connection).or_insert_with(|| ConnectionTimeline {
                id: ConnectionId(entry.connection),
                host: self.wanted.page.host(object.host).unwrap_or_default().to_owned(),
                opening: None,
                kept,
                multiplexed: !protocol.starts_with("http/"),
                resumed: false,
                requests: 0,
                closed: None,
            });
            one.requests = one.requests.saturating_add(1);
            // Every new connection was opened, by whichever request waited for it.
            if let Some(timing) = entry.timing.filter(|_| !kept) {
                let opening = opening(&timing, begin);
                let at = delay(timing.request_time + timing.send_start / 1e3 - begin);
                let unseen = Opening { begin: at, tcp: None, ready: at };
                let best = opening.or(one.opening).unwrap_or(unseen);
                one.opening = Some(best);
            }
        }
        all.into_values().collect()
    }
}

fn timeline(entry: &Entry, size: u64, begin: f64) -> Timeline {
    let since = |time: f64| delay(time - begin);
    let mut timeline = Timeline {
        found: entry.asked.map(since),
        queued: entry.asked.map(since),
        released: entry.asked.map(since),
        end: entry.end.map(since),
        status: entry.fetched.status,
        outcome: outcome(entry, size),
        ..Timeline::default()
    };
    if timeline.outcome == Outcome::Fresh {
        return timeline;
    }
    timeline.requests = entry.requests;
    timeline.connection = (entry.connection > 0).then_some(ConnectionId(entry.connection));
    if timeline.outcome != Outcome::Validated {
        timeline.received = Bytes(entry.received);
    }
    if let Some(timing) = entry.timing {
        let at = |ms: f64| (ms >= 0.0).then(|| since(timing.request_time + ms / 1e3));
        let span = at(timing.dns_start).zip(at(timing.dns_end));
        timeline.dns = span.map(|(begin, end)| Span { begin, end });
        timeline.connect = opening(&timing, begin);
        timeline.sending = at(timing.send_start);
        timeline.sent = at(timing.send_end);
        let first = timing.receive_headers_start.filter(|ms| *ms >= 0.0);
        timeline.first_byte = at(first.unwrap_or(timing.receive_headers_end));
    }
    timeline
}

fn opening(timing: &Timing, begin: f64) -> Option<Opening> {
    let at = |ms: f64| (ms >= 0.0).then(|| delay(timing.request_time + ms / 1e3 - begin));
    Some(Opening {
        begin: at(timing.connect_start)?,
        tcp: at(timing.ssl_start),
        ready: at(timing.connect_end)?,
    })
}

fn outcome(entry: &Entry, size: u64) -> Outcome {
    match (&entry.fetched.error, entry.asked, entry.end) {
        (_, None, _) => Outcome::Unreached,
        (Some(_), ..) => Outcome::Failed(Failure::Request),
        (None, Some(_), None) => Outcome::Failed(Failure::Unfinished),
        // Unchanged: the server was asked, and sent no body.
        (None, ..) if entry.is_unchanged() => Outcome::Validated,
        (None, ..) if entry.from_cache => Outcome::Fresh,
        (None, ..) if entry.fetched.status == Some(200) && entry.received == size => {
            Outcome::Fetched
        }
        _ => Outcome::Failed(Failure::Request),
    }
}

fn read<T: DeserializeOwned>(params: Value) -> Option<T> {
    T::deserialize(params).ok()
}

/// A time in seconds that a stranger says; what is none is 0.
fn delay(seconds: f64) -> Delay {
    let seconds = if seconds.is_finite() { seconds.clamp(0.0, MOST_SECONDS) } else { 0.0 };
    Duration::from_secs_f64(seconds).into()
}

/// A count that a stranger says. The conversion saturates, and makes 0 of what is no number.
fn count(number: f64) -> u64 {
    number as u64
}

fn status(number: f64) -> Option<u16> {
    let number = number as u16;
    (100..600).contains(&number).then_some(number)
}

fn cut(text: &str) -> String {
    text.chars().take(MOST_TEXT).collect()
}

#[cfg(test)]
mod tests;
