//! What is said of pages that cannot be.

use std::borrow::Cow;

use fault::{Explain, Fault};
use thiserror::Error;

/// Hosts and objects that make no page. Objects are counted from 0.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PageError {
    /// Its name is empty, too long or has control characters.
    #[error("`{name}` is no name for a page")]
    BadName {
        /// The name, cut.
        name: String,
    },
    /// More than [`Page::MAX_HOSTS`](crate::Page::MAX_HOSTS).
    #[error("the page has {count} hosts")]
    TooManyHosts {
        /// Hosts of the page, above [`Page::MAX_HOSTS`](crate::Page::MAX_HOSTS).
        count: usize,
    },
    /// More than [`Page::MAX_OBJECTS`](crate::Page::MAX_OBJECTS).
    #[error("the page has {count} objects")]
    TooManyObjects {
        /// How many, or how many were read until then.
        count: usize,
    },
    /// More than [`Page::MAX_BYTES`](crate::Page::MAX_BYTES).
    #[error("the page has {bytes} bytes")]
    TooLarge {
        /// Bytes of all bodies, those sent up included.
        bytes: u64,
    },
    /// More objects than [`Page::MAX_DEPTH`](crate::Page::MAX_DEPTH) tell of each other in a row.
    #[error("more than {} objects of the page are found one by another", crate::Page::MAX_DEPTH)]
    TooDeep,
    /// Not a host's name.
    #[error("`{host}` is no host name")]
    BadHost {
        /// The name, cut.
        host: String,
    },
    /// A host twice.
    #[error("the host `{host}` is listed twice")]
    SameHost {
        /// The name that is listed a second time.
        host: String,
    },
    /// A host without objects.
    #[error("no object comes from the host `{host}`")]
    UnusedHost {
        /// The host's name, as the page lists it.
        host: String,
    },
    /// An object's host is not the page's.
    #[error("object {object} comes from a host that is not listed")]
    UnknownHost {
        /// The object's number, from 0.
        object: usize,
    },
    /// A path that no request can have.
    #[error("the path of object {object}, `{path}`, cannot be asked for")]
    BadPath {
        /// The object's number, from 0.
        object: usize,
        /// Its path, cut.
        path: String,
    },
    /// A request's head beyond [`Page::MAX_REQUEST_EXTRA`](crate::Page::MAX_REQUEST_EXTRA).
    #[error("the request for object {object} is too large")]
    RequestTooLarge {
        /// The object's number, from 0.
        object: usize,
    },
    /// Two objects of one host with the same path.
    #[error("objects {other} and {object} have the same host and path")]
    SameUrl {
        /// The number of the second of them, from 0.
        object: usize,
        /// The number of the first of them, from 0.
        other: usize,
    },
    /// Every object is found by another, or there is none.
    #[error("the page has no object that is not found by another: it cannot begin")]
    NoRoot,
    /// Several objects that none tells of.
    #[error("objects {first} and {second} are both found by no other: the page has one beginning")]
    SeveralRoots {
        /// One of them.
        first: usize,
        /// Another of them.
        second: usize,
    },
    /// An object is found by one that there is not.
    #[error("object {object} is found by object {parent}, which does not exist")]
    UnknownParent {
        /// The object's number, from 0.
        object: usize,
        /// The one that there is not.
        parent: usize,
    },
    /// Objects that tell of each other in a circle.
    #[error("object {object} is found by itself, through others or at once")]
    Cycle {
        /// One of them.
        object: usize,
    },
    /// A computation longer than [`Page::MAX_DELAY`](crate::Page::MAX_DELAY).
    #[error("object {object} is asked for more than 10 minutes after it is found")]
    TooLate {
        /// The object's number, from 0.
        object: usize,
    },
}

impl Explain for PageError {
    fn fault(&self) -> Fault {
        Fault::Caller
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        let remedy = match self {
            PageError::BadName { .. } => "give it a name of at most 200 characters",
            PageError::TooManyHosts { .. } => "use at most 250 hosts",
            PageError::TooManyObjects { .. } => "use at most 10000 objects",
            PageError::TooLarge { .. } => "use at most 1 GiB in all",
            PageError::TooDeep => "let more objects be found by the same one",
            PageError::BadHost { .. } => "write it in small letters, digits, hyphens and dots",
            PageError::SameHost { .. } | PageError::UnusedHost { .. } => "leave it out",
            PageError::UnknownHost { .. } => "list its host",
            PageError::BadPath { .. } => {
                "begin it with /, without spaces and fragment, in at most 8000 characters of ASCII"
            }
            PageError::RequestTooLarge { .. } => "give it at most 64 KiB more than other requests",
            PageError::SameUrl { .. } => "tell them apart by a query: ?2",
            PageError::NoRoot | PageError::SeveralRoots { .. } => {
                "let exactly one object be found by no other"
            }
            PageError::UnknownParent { .. } => "count objects from 0",
            PageError::Cycle { .. } => "let it be found by an object that is there before it",
            PageError::TooLate { .. } => "cut the page before it",
        };
        Some(remedy.into())
    }
}
