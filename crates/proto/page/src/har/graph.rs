//! What the entries of a HAR file say of who told of whom.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use units::{Bytes, Delay};
use url::Url;

use crate::cache::Storage;
use crate::check::short;
use crate::har::left::{LeftOut, Why};
use crate::har::names::{Names, Paths, shortened};
use crate::har::view::{Entry, Number};
use crate::har::{HarError, Read};
use crate::page::{Caching, Found, HostId, Kind, Object, ObjectId, Page, Urgency};
use crate::share::Share;
use crate::text::Hosts;

/// An entry that is an object of the page.
struct Fetched {
    /// Its place in the file, for messages.
    entry: usize,
    /// The page that it names; empty if it names none.
    page: String,
    /// Its host's name, which gets its number once all entries of other pages are left out.
    host: String,
    /// Nanoseconds since 1970; of an entry without a date, those of the one before.
    started: i128,
    /// When its body began to come, and when it was there.
    body: (i128, i128),
    /// Without its fragment.
    url: String,
    kind: Kind,
    redirect: Option<String>,
    initiator: Option<String>,
    /// Characters of its path that are left out.
    cut: usize,
    object: Object,
}

/// The page of these entries.
pub(super) fn page(name: &str, entries: Vec<Entry>) -> Result<Read, HarError> {
    let mut names = Names::default();
    let mut fetched = Vec::new();
    let mut left = Vec::new();
    let mut last = 0;
    for (at, mut entry) in entries.into_iter().enumerate() {
        let page = std::mem::take(&mut entry.page.0);
        match target(&entry, &mut names) {
            Err(why) => left.push((page, why)),
            Ok((url, host)) => {
                let one = fetched_of(at, entry, last, (page, url, host))?;
                last = one.started;
                fetched.push(one);
            }
        }
    }
    let left_out = of_first_page(&mut fetched, left);
    let shortened = fetched.iter().filter(|one| one.cut > 0).count();
    let mut hosts = Hosts::default();
    for one in &mut fetched {
        one.object.host = hosts.number(&one.host);
    }
    fetched.sort_by_key(|one| one.started);
    let root = root(&fetched).ok_or(HarError::Nothing(left_out.count()))?;
    if let Some(first) = fetched.get_mut(root) {
        // A redirect to it has no type of its own.
        first.object.kind = Kind::Document;
    }
    let document = document(&fetched, root);
    let parents = parents(&fetched, root, document);
    let mut paths = Paths::default();
    let mut objects = Vec::with_capacity(fetched.len());
    for (at, one) in fetched.iter().enumerate() {
        let mut object = one.object.clone();
        object.path = paths.distinct(object.host.0, object.path, at);
        object.found = parents
            .get(at)
            .copied()
            .flatten()
            .and_then(|parent| Some(found(parent, fetched.get(parent)?, one)));
        // What a frame waits for does not block the page.
        let by_document = object.found.is_some_and(|found| found.by.index() == document);
        object.blocking = object.blocking && by_document;
        objects.push(object);
    }
    let page = Page::new(name, hosts.names, objects).map_err(|error| by_entry(error, &fetched))?;
    Ok(Read { page, left_out, shortened })
}

/// Leaves the entries of the page that began first, and those that name none; counts the others, and
/// those that were left out before.
fn of_first_page(fetched: &mut Vec<Fetched>, left: Vec<(String, Why)>) -> LeftOut {
    let named = fetched.iter().filter(|one| !one.page.is_empty());
    let first = named.min_by_key(|one| one.started).map(|one| one.page.clone());
    let is_of_first =
        |page: &str| page.is_empty() || first.as_deref().is_none_or(|first| first == page);
    let all = fetched.len();
    fetched.retain(|one| is_of_first(&one.page));
    let mut left_out = LeftOut { other_pages: all - fetched.len(), ..LeftOut::default() };
    for (page, why) in left {
        if is_of_first(&page) {
            left_out.add(why);
        } else {
            left_out.other_pages += 1;
        }
    }
    left_out
}

/// With what a page begins: the first document, or what was redirected to it; any entry if there is no
/// document.
fn root(fetched: &[Fetched]) -> Option<usize> {
    let document = fetched.iter().position(|one| one.kind == Kind::Document);
    let mut root = document.or((!fetched.is_empty()).then_some(0))?;
    for (at, one) in fetched.iter().enumerate().take(root).rev() {
        let to = fetched.get(root).map(|one| one.url.as_str());
        if one.redirect.as_deref() == to {
            root = at;
        }
    }
    Some(root)
}

/// The document behind the redirects with which the page begins; where the file has no entry for it, the
/// first document.
fn document(fetched: &[Fetched], root: usize) -> usize {
    let mut last = root;
    for (at, one) in fetched.iter().enumerate().skip(root + 1) {
        let to = fetched.get(last).and_then(|one| one.redirect.as_deref());
        if to == Some(&one.url) {
            last = at;
        }
    }
    if fetched.get(last).is_some_and(|one| one.redirect.is_none()) {
        return last;
    }
    let is_document = |one: &Fetched| one.kind == Kind::Document && one.redirect.is_none();
    fetched.iter().position(is_document).unwrap_or(root)
}

/// An error that counts entries as the file does.
fn by_entry(error: crate::error::PageError, fetched: &[Fetched]) -> HarError {
    use crate::error::PageError as E;
    let entry = |at: usize| fetched.get(at).map_or(at, |one| one.entry);
    HarError::Page(match error {
        E::Cycle { object } => E::Cycle { object: entry(object) },
        E::TooLate { object } => E::TooLate { object: entry(object) },
        E::BadPath { object, path } => E::BadPath { object: entry(object), path },
        E::RequestTooLarge { object } => E::RequestTooLarge { object: entry(object) },
        other => other,
    })
}

/// Where an entry was fetched from by HTTP, and the name of the host.
fn target(entry: &Entry, names: &mut Names) -> Result<(Url, String), Why> {
    let url = Url::parse(&entry.request.url.0).map_err(|_| Why::NotHttp)?;
    let status = entry.response.status.0.unwrap_or(0.0);
    // RFC 6455 §4.1: a WebSocket begins with 101.
    if matches!(url.scheme(), "ws" | "wss") || status == 101.0 {
        return Err(Why::WebSocket);
    }
    if !matches!(url.scheme(), "http" | "https") {
        return Err(Why::NotHttp);
    }
    if !(100.0..600.0).contains(&status) {
        return Err(Why::NoAnswer);
    }
    let host = names.of(&url).ok_or(Why::NotHttp)?;
    Ok((url, host))
}

/// An entry as an object. Its host has no number yet.
fn fetched_of(
    at: usize,
    entry: Entry,
    last: i128,
    (page, mut url, host): (String, Url, String),
) -> Result<Fetched, HarError> {
    let status = entry.response.status.0.unwrap_or(0.0);
    url.set_fragment(None);
    let redirect = (300.0..400.0).contains(&status).then_some(&entry.response.redirect.0);
    let redirect = redirect.filter(|to| !to.is_empty()).and_then(|to| url.join(to).ok());
    let (started, body) = times(at, &entry, last)?;
    let kind = kind(&entry, &url);
    let path = url[url::Position::BeforePath..url::Position::AfterQuery].to_owned();
    let (path, cut) = shortened(path);
    let mut object = Object::new(HostId(0), path, kind, Bytes(body_size(at, &entry)?));
    let post = matches!(entry.request.method.0.as_str(), "POST" | "PUT" | "PATCH");
    object.upload = match post {
        true => Some(Bytes(size(at, entry.request.body_size)?.unwrap_or(0))),
        false => None,
    };
    let cookies = entry.request.headers.cookies;
    // The request is as long as it was, as far as it may be.
    let with_cut = cookies.saturating_add(cut as u64).min(Page::MAX_REQUEST_EXTRA);
    object.request_extra = Bytes(with_cut.max(cookies));
    object.urgency = urgency(&entry.priority.0);
    // Chromium: a script or style that rendering waits for is at least high.
    let high = object.urgency.is_some_and(|urgency| urgency.value() <= 1);
    object.blocking = high && matches!(kind, Kind::Style | Kind::Script);
    object.caching = caching(&entry);
    let initiator = [Some(entry.initiator.url.0), entry.initiator.stack.frames.0];
    let initiator = initiator.into_iter().flatten().find(|url| !url.is_empty());
    let without_fragment = |url: String| url.split('#').next().unwrap_or_default().to_owned();
    Ok(Fetched {
        entry: at,
        page,
        host,
        started,
        body,
        url: url.into(),
        kind,
        redirect: redirect.map(|to| without_fragment(to.into())),
        initiator: initiator.map(without_fragment),
        cut,
        object,
    })
}

/// When it began, and when its body began and ended to come, in nanoseconds.
fn times(at: usize, entry: &Entry, last: i128) -> Result<(i128, (i128, i128)), HarError> {
    let bad = |field, value: &dyn std::fmt::Display| HarError::BadTime {
        entry: at,
        field,
        value: short(&value.to_string()),
    };
    let started = match entry.started.0.as_str() {
        "" => last,
        text => match text.parse::<Timestamp>() {
            Ok(time) => time.as_nanosecond(),
            Err(_) => return Err(bad("startedDateTime", &text)),
        },
    };
    // Milliseconds; a day at most, and -1 where something does not apply.
    let span = |field, number: Number| match number.0 {
        None => Ok(0),
        Some(-1.0) => Ok(0),
        Some(value) if (0.0..=86_400_000.0).contains(&value) => Ok((value * 1e6) as i128),
        Some(value) => Err(bad(field, &value)),
    };
    let ended = started + span("time", entry.time)?;
    let receive = span("timings.receive", entry.timings.receive)?;
    Ok((started, ((ended - receive).max(started), ended)))
}

/// A number of bytes; `None` where the file does not know it, which HAR writes as -1.
fn size(at: usize, number: Number) -> Result<Option<u64>, HarError> {
    match number.0 {
        None => Ok(None),
        Some(-1.0) => Ok(None),
        Some(value) if (0.0..=Page::MAX_BYTES as f64).contains(&value) => Ok(Some(value as u64)),
        Some(value) => Err(HarError::BadSize { entry: at, value: value.to_string() }),
    }
}

/// The bytes of a body: those of transfer; of what came from a cache, those of its content.
fn body_size(at: usize, entry: &Entry) -> Result<u64, HarError> {
    let response = &entry.response;
    let content = size(at, response.content.size)?;
    let (body, transfer) = (size(at, response.body_size)?, size(at, response.transfer_size)?);
    let head = size(at, response.headers_size)?.unwrap_or(0);
    let cached = !entry.from_cache.0.is_empty() || response.status.0 == Some(304.0);
    let network = body.or(transfer.map(|all| all.saturating_sub(head)));
    let (first, second) = if cached { (content, network) } else { (network, content) };
    // A body of none with content came from a cache too, though nothing says so.
    Ok(first.filter(|bytes| *bytes > 0).or(second).or(first).unwrap_or(0))
}

fn kind(entry: &Entry, url: &Url) -> Kind {
    let types = [&entry.resource_type.0, &entry.request_type.0];
    let named = types.into_iter().find(|name| !name.is_empty()).map(|name| name.to_lowercase());
    let named = match named.as_deref().unwrap_or_default() {
        "document" => Some(Kind::Document),
        "stylesheet" => Some(Kind::Style),
        "script" => Some(Kind::Script),
        "image" => Some(Kind::Image),
        "font" => Some(Kind::Font),
        "xhr" | "fetch" | "ping" | "eventsource" => Some(Kind::Fetch),
        _ => None,
    };
    named.or_else(|| of_mime(&entry.response.content.mime.0)).unwrap_or_else(|| of_path(url.path()))
}

/// A kind by media type; `None` if that says nothing.
fn of_mime(mime: &str) -> Option<Kind> {
    let mime = mime.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match mime.as_str() {
        "text/html" | "application/xhtml+xml" => Some(Kind::Document),
        "text/css" => Some(Kind::Style),
        "application/json" | "text/event-stream" => Some(Kind::Fetch),
        _ if mime.ends_with("javascript") || mime.ends_with("ecmascript") => Some(Kind::Script),
        _ if mime.starts_with("image/") => Some(Kind::Image),
        _ if mime.starts_with("font/") || mime.contains("font-") => Some(Kind::Font),
        _ => None,
    }
}

/// A kind by the ending of a path.
pub(crate) fn of_path(path: &str) -> Kind {
    let file = path.rsplit('/').next().unwrap_or_default();
    let ending = file.rsplit_once('.').map_or("", |(_, ending)| ending).to_ascii_lowercase();
    match ending.as_str() {
        "html" | "htm" | "xhtml" => Kind::Document,
        "css" => Kind::Style,
        "js" | "mjs" => Kind::Script,
        "png" | "gif" | "jpg" | "jpeg" | "webp" | "avif" | "svg" | "ico" => Kind::Image,
        "woff" | "woff2" | "ttf" | "otf" | "eot" => Kind::Font,
        "json" => Kind::Fetch,
        _ => Kind::Other,
    }
}

/// Chromium's priority as an urgency (net/quic/quic_http_utils.cc), by its own names or by those that its
/// developer tools and WebPageTest show.
fn urgency(priority: &str) -> Option<Urgency> {
    let value = match priority {
        "VeryHigh" | "Highest" => 0,
        "High" => 1,
        "Medium" => 2,
        "Low" => 3,
        "VeryLow" | "Lowest" => 4,
        _ => return None,
    };
    Urgency::new(value)
}

fn caching(entry: &Entry) -> Caching {
    let fields = &entry.response.headers;
    let storage = Storage::of_fields(
        fields.cache_control.as_deref(),
        fields.etag.as_deref(),
        fields.last_modified.as_deref(),
    );
    match storage {
        None => Caching::Never,
        Some(Storage { fresh_for, validator }) => {
            Caching::Stored { fresh_for: fresh_for.into(), validator: validator.is_some() }
        }
    }
}

/// What tells of each entry: one that began before it; `None` for the root alone.
fn parents(fetched: &[Fetched], root: usize, document: usize) -> Vec<Option<usize>> {
    let mut by_url: HashMap<&str, Vec<usize>> = HashMap::new();
    let mut redirects: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, one) in fetched.iter().enumerate() {
        by_url.entry(&one.url).or_default().push(at);
        if let Some(to) = &one.redirect {
            redirects.entry(to).or_default().push(at);
        }
    }
    // The last of a list before an entry.
    let before = |list: &[usize], at: usize| list.iter().rev().find(|other| **other < at).copied();
    let parent = |at: usize, one: &Fetched| {
        if at == root {
            return None;
        }
        let redirect = redirects.get(one.url.as_str()).and_then(|list| before(list, at));
        if redirect.is_some() {
            return redirect;
        }
        // What names itself says nothing.
        let initiator = one.initiator.as_ref().filter(|url| **url != one.url);
        let list = initiator.and_then(|url| by_url.get(url.as_str()));
        let by = list.and_then(|list| before(list, at));
        if by.is_some() {
            return by;
        }
        let by_kind = match one.kind {
            Kind::Font => latest(fetched, at, Kind::Style),
            Kind::Fetch => latest(fetched, at, Kind::Script),
            _ => None,
        };
        // A redirect before the document tells of the document alone.
        Some(by_kind.unwrap_or(if at > document { document } else { root }))
    };
    fetched.iter().enumerate().map(|(at, one)| parent(at, one)).collect()
}

/// The entry of this kind that was there last before another began.
fn latest(fetched: &[Fetched], at: usize, kind: Kind) -> Option<usize> {
    let one = fetched.get(at)?;
    // Whoever is looked for is near: this bounds what a hostile file costs.
    let near = fetched.iter().enumerate().take(at).rev().take(1_000);
    let there = near.filter(|(_, other)| other.kind == kind && other.body.1 <= one.started);
    there.max_by_key(|(_, other)| other.body.1).map(|(other, _)| other)
}

/// When an entry was found: by how much of its parent had come, and what was computed after it.
fn found(by: usize, parent: &Fetched, one: &Fetched) -> Found {
    let (begin, end) = parent.body;
    let after = if parent.redirect.is_some() || one.started >= end {
        Share::ALL
    } else {
        let share = (one.started - begin).max(0) as f64 / (end - begin).max(1) as f64;
        Share::new(share.min(1.0)).unwrap_or(Share::ALL)
    };
    let nanos = u64::try_from(one.started - end).unwrap_or(0);
    Found { by: ObjectId(by as u32), after, delay: Delay::from(Duration::from_nanos(nanos)) }
}
