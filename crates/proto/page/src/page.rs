//! A page: what is fetched from where, and what has to be there before.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use units::{Bytes, Delay};
use url::{Position, Url};

use crate::check;
use crate::error::PageError;
use crate::share::Share;

/// The number of a host within its page, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId(pub u32);

/// The number of an object within its page, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId(pub u32);

impl HostId {
    /// Its place in [`Page::hosts`].
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl ObjectId {
    /// Its place in [`Page::objects`].
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

units::named! {
    /// What an object is to a browser: it decides on when the object is asked for.
    #[derive(Default)]
    pub enum Kind: "kind of object" {
        /// HTML: the page itself, or a frame in it.
        Document = "document",
        /// A style sheet.
        Style = "style" | "stylesheet" | "css",
        /// JavaScript, whether rendering waits for it or not.
        Script = "script" | "js",
        /// An image.
        Image = "image" | "img",
        /// A font.
        Font = "font",
        /// What a script asks for itself: XMLHttpRequest, fetch.
        Fetch = "fetch" | "xhr",
        /// Anything else: media, plug-ins, manifests.
        #[default]
        Other = "other" | "media",
    }
}

/// A neutral urgency from 0 (first) to 7 (last), as in RFC 9218 §4.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Urgency(u8);

impl Urgency {
    /// The least urgent.
    pub const LAST: Urgency = Urgency(7);

    /// An urgency; `None` above 7.
    #[must_use]
    pub const fn new(value: u8) -> Option<Urgency> {
        if value <= 7 { Some(Urgency(value)) } else { None }
    }

    /// The number, from 0 to 7.
    #[must_use]
    pub const fn value(self) -> u8 {
        self.0
    }

    /// For tables: `value` is written in the source, and at most 7.
    pub(crate) const fn literal(value: u8) -> Urgency {
        assert!(value <= 7);
        Urgency(value)
    }
}

/// Which object tells of another, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// The object that refers to it.
    pub by: ObjectId,
    /// The reference has been read when this share of the other's bytes is there; if that is all of
    /// them, when the other is complete.
    pub after: Share,
    /// Computation from then on until it can be asked for.
    pub delay: Delay,
}

/// What a server allows a cache (RFC 9111 §5.2.2).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Caching {
    /// It must not be stored: `no-store`.
    #[default]
    Never,
    /// It may be stored.
    Stored {
        /// Fresh for this long after it came: `max-age`.
        fresh_for: Delay,
        /// Whether it carries an entity tag, by which it is found unchanged (304) once stale. Without
        /// one it is fetched again.
        validator: bool,
    },
}

/// One object of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// Where it is fetched from.
    pub host: HostId,
    /// Path and query: begins with `/`, printable ASCII without spaces.
    pub path: String,
    /// What it is.
    pub kind: Kind,
    /// Its body as it is transferred, in bytes.
    pub body: Bytes,
    /// What tells of it; `None` for the page's root alone.
    pub found: Option<Found>,
    /// Whether rendering waits for it: a style sheet or a script that is not `async` or `defer`, in
    /// the head of the document.
    pub blocking: bool,
    /// Its urgency, where the page says more than its kind does (`fetchpriority`).
    pub urgency: Option<Urgency>,
    /// Bytes of its request's head beyond what every request has: cookies.
    pub request_extra: Bytes,
    /// The body of its request, which then is a POST.
    pub upload: Option<Bytes>,
    /// What a cache may do with it.
    pub caching: Caching,
}

impl Object {
    /// An object of this kind and size that may not be stored, and needs nothing else said.
    #[must_use]
    pub fn new(host: HostId, path: impl Into<String>, kind: Kind, body: Bytes) -> Object {
        Object {
            host,
            path: path.into(),
            kind,
            body,
            found: None,
            blocking: false,
            urgency: None,
            request_extra: Bytes(0),
            upload: None,
            caching: Caching::Never,
        }
    }

    /// The same, found by another.
    #[must_use]
    pub fn found_by(mut self, by: ObjectId, after: Share, delay: Delay) -> Object {
        self.found = Some(Found { by, after, delay });
        self
    }
}

/// A page that has been checked: its objects form one tree with one root. Cheap to clone.
#[derive(Clone, PartialEq)]
pub struct Page(Arc<Inner>);

#[derive(PartialEq)]
struct Inner {
    name: String,
    hosts: Vec<String>,
    objects: Vec<Object>,
    /// The objects that each object tells of, the first first.
    children: Vec<Vec<ObjectId>>,
    root: ObjectId,
    /// Objects on the longest path from the root.
    depth: usize,
}

impl Page {
    /// Most objects of a page.
    pub const MAX_OBJECTS: usize = 10_000;
    /// Most hosts of a page.
    pub const MAX_HOSTS: usize = 250;
    /// Most bytes of all bodies and uploads together: 1 GiB.
    pub const MAX_BYTES: u64 = 1 << 30;
    /// Most objects on a path from the root.
    pub const MAX_DEPTH: usize = 100;
    /// Longest computation before an object is asked for: 10 minutes.
    pub const MAX_DELAY: Duration = Duration::from_secs(600);
    /// Most bytes of a path (RFC 9110 §4.1 asks for at least 8000 to be supported).
    pub const MAX_PATH: usize = 8_000;
    /// Most bytes that a request's head may have beyond the usual.
    pub const MAX_REQUEST_EXTRA: u64 = 64 << 10;

    /// A page of these hosts and objects.
    ///
    /// # Errors
    /// The first thing that makes no sense: see [`PageError`].
    pub fn new(
        name: impl Into<String>,
        hosts: Vec<String>,
        objects: Vec<Object>,
    ) -> Result<Page, PageError> {
        let name = name.into();
        check::names(&name, &hosts)?;
        check::objects(&hosts, &objects)?;
        let root = check::root(&objects)?;
        let children = check::children(&objects)?;
        let depth = check::depth(root, &children)?;
        Ok(Page(Arc::new(Inner { name, hosts, objects, children, root, depth })))
    }

    /// What it is called.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The names of its hosts; a [`HostId`] is a place among them.
    #[must_use]
    pub fn hosts(&self) -> &[String] {
        &self.0.hosts
    }

    /// Its objects; an [`ObjectId`] is a place among them.
    #[must_use]
    pub fn objects(&self) -> &[Object] {
        &self.0.objects
    }

    /// The numbers of its objects.
    pub fn ids(&self) -> impl Iterator<Item = ObjectId> + use<> {
        (0..self.0.objects.len() as u32).map(ObjectId)
    }

    /// An object; `None` if the number is another page's.
    #[must_use]
    pub fn object(&self, id: ObjectId) -> Option<&Object> {
        self.0.objects.get(id.index())
    }

    /// A host's name; `None` if the number is another page's.
    #[must_use]
    pub fn host(&self, id: HostId) -> Option<&str> {
        self.0.hosts.get(id.index()).map(String::as_str)
    }

    /// The object with which a load begins.
    #[must_use]
    pub fn root(&self) -> ObjectId {
        self.0.root
    }

    /// What an object tells of, the first first.
    #[must_use]
    pub fn children(&self, id: ObjectId) -> &[ObjectId] {
        self.0.children.get(id.index()).map_or(&[], Vec::as_slice)
    }

    /// How many objects are on the longest path from the root, which is one of them.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.0.depth
    }

    /// The object at this host and path, if there is one.
    #[must_use]
    pub fn find(&self, host: &str, path: &str) -> Option<ObjectId> {
        let host = self.0.hosts.iter().position(|other| other == host)?;
        let is_it = |object: &Object| object.host.index() == host && object.path == path;
        let at = self.0.objects.iter().position(is_it)?;
        u32::try_from(at).ok().map(ObjectId)
    }

    /// The object that a reference in another's response leads to (RFC 3986 §5), if there is one.
    #[must_use]
    pub fn resolve(&self, base: ObjectId, reference: &str) -> Option<ObjectId> {
        let base = self.object(base)?;
        if reference.starts_with('/') && !reference.starts_with("//") {
            return self.find(self.host(base.host)?, reference);
        }
        // Longer ones than a page has lead to none.
        if reference.len() > 2 * Page::MAX_PATH {
            return None;
        }
        let url = Url::parse(&format!("https://{}", self.key(base))).ok()?.join(reference).ok()?;
        let path = &url[Position::BeforePath..Position::AfterQuery];
        self.find(url.host_str()?, path)
    }

    /// The bytes of all bodies.
    #[must_use]
    pub fn bytes(&self) -> Bytes {
        Bytes(self.0.objects.iter().map(|object| object.body.count()).sum())
    }

    /// The key of an object in a cache: host and path.
    pub(crate) fn key(&self, object: &Object) -> String {
        format!("{}{}", self.host(object.host).unwrap_or_default(), object.path)
    }
}

impl fmt::Debug for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Page")
            .field("name", &self.0.name)
            .field("hosts", &self.0.hosts.len())
            .field("objects", &self.0.objects.len())
            .field("bytes", &self.bytes())
            .finish()
    }
}
