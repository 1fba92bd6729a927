//! A page's objects as real bodies, by which a browser that has never heard of the page's graph finds
//! the same objects in the same order: HTML, style sheets, scripts, images, each exactly as long as the
//! page says.
//!
//! What a document tells of stands in its text where the graph says so: style sheets and scripts as
//! tags, of which those that block rendering are in the head; images and frames in the body. What a
//! style sheet tells of is `url(…)` and `@import`; a browser asks for the former once something on the
//! page is styled by it, so that the document has an empty element for each sheet that needs one.
//! Scripts call `a(…)` for each object that they tell of, with the computation before it.
//!
//! A few references have no place in a body: a body may be too short for them, and what an image or a
//! font tells of (a HAR file may say so) no browser reads there. [`Content::script`] has these, and the
//! function `a`: a browser is to run it before anything else in each document, as DevTools'
//! `Page.addScriptToEvaluateOnNewDocument` does. It costs no bytes on the wire.
//!
//! A document of no bytes is none to a browser, which then runs nothing in it: [`for_browser`] gives those that
//! tell of something as many as a document needs ([`LEAST_DOCUMENT`]). HAR files have such where a redirect
//! leads to the page.
//!
//! Where this differs from what [`Load`](crate::Load) takes the page for: what a style sheet or a script
//! tells of is found when the browser applies or runs it, not when its last byte is there; fetches and
//! computed references of a document are in scripts, which wait for style sheets before them; images
//! that the graph has before the last blocking object stand right behind it, since an image ends the head.

mod html;
mod sheet;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use fault::{Explain, Fault};
use serde::Serialize;
use thiserror::Error;
use units::Bytes;
use url::{Position, Url};

use crate::page::{Kind, Object, ObjectId, Page};

/// The function `a`, and what follows the table of references that have no place in a body.
const SCRIPT: &str = include_str!("script.js");

/// A transparent GIF of one pixel: the shortest image that every browser decodes (GIF89a, 1990).
const GIF: &[u8] =
    b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff!\xf9\x04\x01\0\0\0\0,\0\0\0\0\x01\0\
                     \x01\0\0\x02\x02D\x01\0;";

/// Least bytes of a document from which a browser finds something: its type, a body, and room for a reference in it.
/// Chromium finds nothing by a document of type and body alone.
pub const LEAST_DOCUMENT: Bytes = Bytes(200);

/// The page with [`LEAST_DOCUMENT`] bytes in each document that has fewer and tells of something.
#[must_use]
pub fn for_browser(page: &Page) -> Page {
    let object = |(id, object): (ObjectId, &Object)| {
        let mut object = object.clone();
        if object.kind == Kind::Document && !page.children(id).is_empty() {
            object.body = object.body.max(LEAST_DOCUMENT);
        }
        object
    };
    let objects = page.ids().zip(page.objects()).map(object).collect();
    // It may have too many bytes by it: then it stays as it is.
    Page::new(page.name(), page.hosts().to_vec(), objects).unwrap_or_else(|_| page.clone())
}

/// Where a page is served: decides on what its references look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// By `https`, else `http`.
    pub secure: bool,
    /// The port of every host.
    pub port: u16,
}

/// A page that cannot be given to a browser as real bodies.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ContentError {
    /// It does not begin with a document.
    #[error("the page begins with an object of kind {kind}, which no browser shows as a page")]
    NoDocument {
        /// What it begins with.
        kind: Kind,
    },
    /// A host and path that make no URL, or one that a browser writes as another object's.
    #[error(
        "object {object} has a URL that a browser asks for otherwise, or another object has it"
    )]
    Url {
        /// The object, counted from 0.
        object: usize,
    },
}

impl Explain for ContentError {
    fn fault(&self) -> Fault {
        Fault::Caller
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        Some(match self {
            ContentError::NoDocument { .. } => "let the page begin with a document".into(),
            ContentError::Url { .. } => "write its path without `.` and `..`".into(),
        })
    }
}

/// A body: what it begins with, and how long it is. What comes after the beginning is of no meaning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Body {
    /// Its first bytes, at most `length` of them.
    pub start: Vec<u8>,
    /// All of its bytes.
    pub length: u64,
}

/// A page's bodies and URLs, in the order of its objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// The bodies, as a server sends them.
    pub bodies: Vec<Body>,
    /// URLs, as a browser writes them.
    pub urls: Vec<String>,
    /// What a browser is to run before anything else in each document.
    pub script: String,
}

impl Content {
    /// The bodies of a page that is served there. The same page has the same bodies.
    ///
    /// # Errors
    /// It does not begin with a document; an object has no URL of its own.
    pub fn of(page: &Page, origin: Origin) -> Result<Content, ContentError> {
        let root = page.object(page.root()).map(|object| object.kind).unwrap_or_default();
        if root != Kind::Document {
            return Err(ContentError::NoDocument { kind: root });
        }
        let urls = urls(page, origin)?;
        let mut writer = Writer {
            page,
            sheets: BTreeMap::new(),
            owners: owners(page),
            urls,
            bodies: vec![Vec::new(); page.objects().len()],
            styled: BTreeSet::new(),
            rest: BTreeMap::new(),
        };
        for (id, object) in page.ids().zip(page.objects()) {
            if object.kind == Kind::Style {
                writer.sheets.entry(writer.owner(id)).or_default().push(id);
            }
        }
        // Documents first: whether a sheet's elements have room decides on what it may tell of.
        for of_document in [true, false] {
            for (id, object) in page.ids().zip(page.objects()) {
                if (object.kind == Kind::Document) == of_document {
                    let body = writer.body(id, object);
                    if let Some(place) = writer.bodies.get_mut(id.index()) {
                        *place = body;
                    }
                }
            }
        }
        Ok(writer.finish())
    }
}

/// What the script has for one document: what it adds as it begins, and behind which URL it adds what.
#[derive(Debug, Default, Serialize)]
struct Rest {
    now: Vec<Reference>,
    after: BTreeMap<String, Vec<Reference>>,
}

/// An object as `a` takes it: what it is, its URL, milliseconds before it, bytes to upload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Reference(&'static str, String, u64, u64);

impl Reference {
    /// As a call in a script. Whoever reads it in HTML finds no tag in it: a URL has no `<`.
    fn call(&self) -> String {
        let Reference(kind, url, delay, upload) = self;
        let url = serde_json::to_string(url).unwrap_or_default();
        match (delay, upload) {
            (0, 0) => format!("a(\"{kind}\",{url});"),
            (_, 0) => format!("a(\"{kind}\",{url},{delay});"),
            _ => format!("a(\"{kind}\",{url},{delay},{upload});"),
        }
    }
}

struct Writer<'a> {
    page: &'a Page,
    /// The document in which each object is: the nearest above it.
    owners: Vec<ObjectId>,
    /// The style sheets of each document.
    sheets: BTreeMap<ObjectId, Vec<ObjectId>>,
    urls: Vec<Url>,
    bodies: Vec<Vec<u8>>,
    /// The sheets whose elements a document has.
    styled: BTreeSet<ObjectId>,
    /// What has no place in a body, by the document's URL.
    rest: BTreeMap<String, Rest>,
}

impl Writer<'_> {
    fn body(&mut self, id: ObjectId, object: &Object) -> Vec<u8> {
        let size = usize::try_from(object.body.count()).unwrap_or(usize::MAX);
        let children = self.page.children(id).to_vec();
        let (body, left) = match object.kind {
            Kind::Document => html::write(self, id, &children, size),
            Kind::Style => sheet::style(self, id, &children, size),
            Kind::Script => sheet::script(self, id, &children, size),
            Kind::Image => (GIF.get(..size.min(GIF.len())).unwrap_or_default().to_vec(), children),
            Kind::Font | Kind::Fetch | Kind::Other => (Vec::new(), children),
        };
        self.leave(id, object, left);
        body
    }

    /// Puts what has no place in a body into the script.
    fn leave(&mut self, id: ObjectId, object: &Object, left: Vec<ObjectId>) {
        if left.is_empty() {
            return;
        }
        // What a document tells of is added in it, as it begins; the rest by the document that has the
        // object, once that is there.
        let document = if object.kind == Kind::Document { id } else { self.owner(id) };
        let references: Vec<Reference> =
            left.into_iter().filter_map(|child| self.reference(child, None)).collect();
        let rest = self.rest.entry(self.url(document)).or_default();
        match object.kind {
            Kind::Document => rest.now.extend(references),
            _ => rest.after.entry(url_of(&self.urls, id)).or_default().extend(references),
        }
    }

    fn owner(&self, id: ObjectId) -> ObjectId {
        self.owners.get(id.index()).copied().unwrap_or(self.page.root())
    }

    fn url(&self, id: ObjectId) -> String {
        url_of(&self.urls, id)
    }

    /// An object's URL as it is written where `base` is the URL of: without what both share.
    fn relative(&self, id: ObjectId, base: ObjectId) -> String {
        let (Some(url), Some(base)) = (self.urls.get(id.index()), self.urls.get(base.index()))
        else {
            return String::new();
        };
        // A path that begins with two strokes would be read as a host.
        if url.host_str() == base.host_str() && !url.path().starts_with("//") {
            url[Position::BeforePath..].to_owned()
        } else {
            format!("//{}", &url[Position::BeforeHost..])
        }
    }

    /// An object as a script adds it: by its URL from the document that runs the script, or by all of it.
    fn reference(&self, id: ObjectId, document: Option<ObjectId>) -> Option<Reference> {
        let object = self.page.object(id)?;
        let kind = match object.kind {
            _ if object.upload.is_some() => "x",
            Kind::Image => "i",
            Kind::Script => "s",
            Kind::Style => "c",
            Kind::Document => "d",
            Kind::Font => "f",
            Kind::Fetch | Kind::Other => "x",
        };
        let url = document.map_or_else(|| self.url(id), |document| self.relative(id, document));
        let upload = object.upload.map_or(0, |upload| upload.count());
        Some(Reference(kind, url, delay_ms(object), upload))
    }

    fn finish(self) -> Content {
        let table = serde_json::to_string(&self.rest).unwrap_or_else(|_| "{}".to_owned());
        let lengths = self.page.objects().iter().map(|object| object.body.count());
        let bodies = self.bodies.into_iter().zip(lengths);
        Content {
            bodies: bodies.map(|(start, length)| Body { start, length }).collect(),
            urls: self.urls.iter().map(ToString::to_string).collect(),
            script: SCRIPT.trim_end().replacen("TABLE", &table, 1),
        }
    }
}

/// Computation before an object is asked for, in the whole milliseconds that a browser's timers have.
fn delay_ms(object: &Object) -> u64 {
    let delay = object.found.map_or(Duration::ZERO, |found| found.delay.duration());
    u64::try_from(delay.as_micros().div_ceil(500) / 2).unwrap_or(u64::MAX)
}

/// Whether a tag or `url(…)` says all that there is to say of an object.
fn is_plain(object: &Object) -> bool {
    object.upload.is_none() && delay_ms(object) == 0
}

fn url_of(urls: &[Url], id: ObjectId) -> String {
    urls.get(id.index()).map(ToString::to_string).unwrap_or_default()
}

/// The objects' URLs as browsers write them (WHATWG URL), each its own.
fn urls(page: &Page, origin: Origin) -> Result<Vec<Url>, ContentError> {
    let scheme = if origin.secure { "https" } else { "http" };
    let mut seen = HashMap::new();
    let url = |(at, object): (usize, &Object)| {
        let host = page.host(object.host).unwrap_or_default();
        let text = format!("{scheme}://{host}:{}{}", origin.port, object.path);
        let wrong = ContentError::Url { object: at };
        let url = Url::parse(&text).map_err(|_| wrong.clone())?;
        // A name of digits alone is an address to a browser.
        if url.host_str() != Some(host) || seen.insert(url.to_string(), at).is_some() {
            return Err(wrong);
        }
        Ok(url)
    };
    page.objects().iter().enumerate().map(url).collect()
}

/// The document in which each object is. The root is in itself.
fn owners(page: &Page) -> Vec<ObjectId> {
    let owner = |id: ObjectId| {
        let mut at = id;
        // A page is a tree of bounded depth.
        while let Some(found) = page.object(at).and_then(|object| object.found) {
            at = found.by;
            if page.object(at).is_some_and(|object| object.kind == Kind::Document) {
                return at;
            }
        }
        page.root()
    };
    page.ids().map(owner).collect()
}

/// Appends exactly `length` bytes that mean nothing: a comment, or spaces where none has room.
fn pad(text: &mut String, length: usize, (open, close): (&str, &str)) {
    let room = length.checked_sub(open.len() + close.len());
    match room {
        Some(room) => {
            text.push_str(open);
            text.extend(std::iter::repeat_n('x', room));
            text.push_str(close);
        }
        None => text.extend(std::iter::repeat_n(' ', length)),
    }
}
