//! What the entries of a HAR file say of who told of whom.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use units::{Bytes, Delay};
use url::Url;

use crate::cache::Storage;
use crate::har::left::{LeftOut, Why};
use crate::har::names::{Names, Paths, merged, shortened};
use crate::har::view::{Entry, Log, Number, Response, Visit};
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

/// The page of a log.
pub(super) fn page(name: &str, log: Log) -> Result<Read, HarError> {
    let mut names = Names::default();
    let mut fetched = Vec::new();
    let mut left = Vec::new();
    let mut last = 0;
    for (at, mut entry) in log.entries.into_iter().enumerate() {
        let page = std::mem::take(&mut entry.page.0);
        let one = target(&entry, &mut names)
            .and_then(|(url, host)| fetched_of(at, entry, last, (page.clone(), url, host)));
        match one {
            Err(why) => left.push((page, why)),
            Ok(one) => {
                last = one.started;
                fetched.push(one);
            }
        }
    }
    let (mut left_out, first) = of_first_page(&mut fetched, left);
    fetched.sort_by_key(|one| one.started);
    within_reach(&mut fetched, &mut left_out);
    let root = root(&fetched).ok_or(HarError::Nothing(left_out.count()))?;
    until_loaded(&mut fetched, root, log.pages.visit(first.as_deref()), &mut left_out);
    let shortened = fetched.iter().filter(|one| one.cut > 0).count();
    let own = fetched.get(root).map(|one| one.host.clone()).unwrap_or_default();
    let merged = merged(fetched.iter_mut().map(|one| &mut one.host), &own);
    let mut hosts = Hosts::default();
    // Hosts have the order of the file.
    let mut in_file: Vec<&mut Fetched> = fetched.iter_mut().collect();
    in_file.sort_by_key(|one| one.entry);
    for one in in_file {
        one.object.host = hosts.number(&one.host);
    }
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
    Ok(Read { page, left_out, shortened, merged })
}

/// Leaves the entries of the page that began first, and those that name no page; counts the others, and
/// those that were left out before. Returns the name of that page too.
fn of_first_page(
    fetched: &mut Vec<Fetched>,
    left: Vec<(String, Why)>,
) -> (LeftOut, Option<String>) {
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
    (left_out, first)
}

/// Leaves the entries that begin within [`Page::MAX_DELAY`] of the first one. The entry in the middle is
/// always among them, so that one wrong date takes only its own entry away.
fn within_reach(fetched: &mut Vec<Fetched>, left_out: &mut LeftOut) {
    let reach = Page::MAX_DELAY.as_nanos() as i128;
    let Some(middle) = fetched.get(fetched.len().saturating_sub(1) / 2) else { return };
    let earliest = middle.started - reach;
    let early = fetched.iter().take_while(|one| one.started < earliest).count();
    fetched.drain(..early);
    let latest = fetched.first().map_or(0, |one| one.started) + reach;
    let near = fetched.iter().take_while(|one| one.started <= latest).count();
    let far = early + fetched.len() - near;
    fetched.truncate(near);
    (0..far).for_each(|_| left_out.add(Why::FarAway));
}

/// Leaves the entries that began before the page had loaded, as the file says when that was.
fn until_loaded(
    fetched: &mut Vec<Fetched>,
    root: usize,
    visit: Option<&Visit>,
    left_out: &mut LeftOut,
) {
    let Some(first) = fetched.get(root).map(|one| one.started) else { return };
    let Some(on_load) = visit.and_then(|visit| millis(visit.timings.on_load)) else { return };
    let near = |begin: &i128| begin.abs_diff(first) <= Page::MAX_DELAY.as_nanos();
    let begin = visit.and_then(|visit| date(&visit.started.0)).filter(near).unwrap_or(first);
    let end = first.max(begin + on_load);
    let before = fetched.iter().take_while(|one| one.started <= end).count();
    (before..fetched.len()).for_each(|_| left_out.add(Why::AfterLoad));
    fetched.truncate(before);
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
        E::BadPath { object, path } => E::BadPath { object: entry(object), path },
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
) -> Result<Fetched, Why> {
    let status = entry.response.status.0.unwrap_or(0.0);
    url.set_fragment(None);
    let redirect = (300.0..400.0).contains(&status).then_some(&entry.response.redirect.0);
    let redirect = redirect.filter(|to| !to.is_empty()).and_then(|to| url.join(to).ok());
    let (started, body) = times(&entry, last)?;
    let kind = kind(&entry, &url);
    let path = url[url::Position::BeforePath..url::Position::AfterQuery].to_owned();
    let (path, cut) = shortened(path);
    let mut object = Object::new(HostId(0), path, kind, Bytes(body_size(&entry)));
    object.upload = upload_size(&entry).map(Bytes);
    let cookies = entry.request.headers.cookies;
    // The request is as long as it was, as far as it may be.
    let with_cut = cookies.saturating_add(cut as u64).min(Page::MAX_REQUEST_EXTRA);
    object.request_extra = Bytes(with_cut);
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
fn times(entry: &Entry, last: i128) -> Result<(i128, (i128, i128)), Why> {
    let started = match entry.started.0.as_str() {
        "" => last,
        text => date(text).ok_or(Why::BadDate)?,
    };
    let ended = started + millis(entry.time).unwrap_or(0);
    let receive = millis(entry.timings.receive).unwrap_or(0);
    Ok((started, ((ended - receive).max(started), ended)))
}

/// Nanoseconds since 1970 of a date; `None` if it is no date.
fn date(text: &str) -> Option<i128> {
    Some(text.parse::<Timestamp>().ok()?.as_nanosecond())
}

/// Nanoseconds of a time in milliseconds. `None` where the file does not know it, which HAR writes as -1,
/// or where it is negative or longer than a day.
fn millis(number: Number) -> Option<i128> {
    let value = number.0.filter(|value| (0.0..=86_400_000.0).contains(value))?;
    Some((value * 1e6) as i128)
}

/// Bytes of a size. `None` where the file does not know it, which HAR writes as -1, or where it is
/// negative or larger than a page.
fn size(number: Number) -> Option<u64> {
    let value = number.0.filter(|value| (0.0..=Page::MAX_BYTES as f64).contains(value))?;
    Some(value as u64)
}

/// Bytes of a request's body; `None` for a method without one.
fn upload_size(entry: &Entry) -> Option<u64> {
    let request = &entry.request;
    let method = request.method.0.to_ascii_uppercase();
    let has_body = matches!(method.as_str(), "POST" | "PUT" | "PATCH");
    let posted = request.posted.bytes().min(Page::MAX_BYTES);
    has_body.then(|| size(request.body_size).unwrap_or(posted))
}

/// Bytes of a response's body: those of transfer; of what came from a cache, those of its content.
fn body_size(entry: &Entry) -> u64 {
    let response = &entry.response;
    let content = size(response.content.size);
    let cached = !entry.from_cache.0.is_empty() || response.status.0 == Some(304.0);
    let network = size(response.body_size).or_else(|| transferred(response, content));
    let (first, second) = if cached { (content, network) } else { (network, content) };
    // A body of none with content came from a cache too, though nothing says so.
    first.filter(|bytes| *bytes > 0).or(second).or(first).unwrap_or(0)
}

/// Bytes of a body by those of the whole response. Where the file does not say how long the head was,
/// the content is the body if it fits into the response; else the fields that are listed are the head.
fn transferred(response: &Response, content: Option<u64>) -> Option<u64> {
    let all = size(response.transfer_size)?;
    if let Some(head) = size(response.headers_size) {
        return Some(all.saturating_sub(head));
    }
    let uncompressed = content.filter(|bytes| *bytes > 0 && *bytes <= all);
    Some(uncompressed.unwrap_or_else(|| all.saturating_sub(response.headers.bytes)))
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
