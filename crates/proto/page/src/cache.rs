//! A browser's cache: what may be used again, and whether a server has to be asked first.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use units::{Bytes, Time};

use crate::page::Caching;

/// What an entry costs beside its body, so that many empty ones do not cost nothing.
const OVERHEAD: u64 = 512;

/// Longest validator that is kept, in bytes.
const MAX_VALIDATOR: usize = 1024;

/// By what a server finds out that a stored response is unchanged (RFC 9110 §8.8).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Validator {
    /// An entity tag as it stood in `ETag`: goes into `If-None-Match`.
    Etag(Box<str>),
    /// A date as it stood in `Last-Modified`: goes into `If-Modified-Since`.
    Modified(Box<str>),
}

impl Validator {
    fn len(&self) -> usize {
        match self {
            Validator::Etag(text) | Validator::Modified(text) => text.len(),
        }
    }
}

/// How a response may be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Storage {
    /// Fresh for this long after it came.
    pub fresh_for: Duration,
    /// By what it is found unchanged after that.
    pub validator: Option<Validator>,
}

impl Storage {
    /// What the fields of a response's head say, each `None` where the field is missing; `None` if it
    /// must not be stored, or storing it would be of no use (RFC 9111 §3, §5.2.2). Heuristic
    /// freshness (§4.2.2) and `Expires` are not looked at.
    #[must_use]
    pub fn of_fields(
        cache_control: Option<&str>,
        etag: Option<&str>,
        last_modified: Option<&str>,
    ) -> Option<Storage> {
        let mut fresh_for = Duration::ZERO;
        let mut ask_first = false;
        for directive in cache_control.unwrap_or_default().split(',') {
            let (name, value) = directive.split_once('=').unwrap_or((directive, ""));
            match name.trim().to_ascii_lowercase().as_str() {
                "no-store" => return None,
                "no-cache" => ask_first = true,
                "max-age" => fresh_for = seconds(value.trim().trim_matches('"')),
                _ => {}
            }
        }
        if ask_first {
            fresh_for = Duration::ZERO;
        }
        let validator = etag
            .map(|text| Validator::Etag(text.into()))
            .or_else(|| last_modified.map(|text| Validator::Modified(text.into())))
            .filter(|validator| validator.len() <= MAX_VALIDATOR);
        let useful = !fresh_for.is_zero() || validator.is_some();
        useful.then_some(Storage { fresh_for, validator })
    }
}

/// A number of seconds; too large a one counts as 2^31 (RFC 9111 §1.2.2), and what is none as zero.
fn seconds(text: &str) -> Duration {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Duration::ZERO;
    }
    Duration::from_secs(text.parse().unwrap_or(1 << 31).min(1 << 31))
}

impl Caching {
    /// The `Cache-Control` of a server that allows this.
    #[must_use]
    pub fn cache_control(self) -> String {
        match self {
            Caching::Never => "no-store".to_owned(),
            Caching::Stored { fresh_for, .. } if fresh_for.duration().is_zero() => {
                "no-cache".to_owned()
            }
            // Whole seconds only: RFC 9111 §1.2.2.
            Caching::Stored { fresh_for, .. } => {
                format!("max-age={}", fresh_for.duration().as_secs())
            }
        }
    }
}

/// What the cache has for a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lookup {
    /// Nothing that is of use.
    Missing,
    /// A response that is used without asking.
    Fresh {
        /// The bytes of its body.
        body: Bytes,
    },
    /// A response that is used if the server says that it is unchanged.
    Stale {
        /// The bytes of its body.
        body: Bytes,
        /// What to ask by.
        validator: Validator,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    body: Bytes,
    /// When it came, or was last found unchanged.
    came: Time,
    storage: Storage,
    /// Its place in the order of use.
    used: u64,
}

impl Entry {
    fn cost(&self, url: &str) -> u64 {
        self.body.count().saturating_add(OVERHEAD + url.len() as u64)
    }
}

/// Responses by URL, within a bound: what was used longest ago goes first. No body is kept, only its
/// size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cache {
    room: u64,
    taken: u64,
    entries: HashMap<Box<str>, Entry>,
    by_use: BTreeMap<u64, Box<str>>,
    uses: u64,
}

impl Cache {
    /// An empty cache with room for this many bytes, of which one response may take an eighth, as in
    /// Chromium (net/disk_cache, from memory of the source).
    #[must_use]
    pub fn new(room: Bytes) -> Cache {
        Cache {
            room: room.count(),
            taken: 0,
            entries: HashMap::new(),
            by_use: BTreeMap::new(),
            uses: 0,
        }
    }

    /// How many responses are in it.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Forgets all responses; the room stays the same.
    pub fn clear(&mut self) {
        *self = Cache::new(Bytes(self.room));
    }

    /// What there is for a URL at this time (RFC 9111 §4.2).
    pub fn look_up(&mut self, url: &str, now: Time) -> Lookup {
        let Some(entry) = self.entries.get_mut(url) else { return Lookup::Missing };
        self.uses += 1;
        self.by_use.remove(&entry.used);
        entry.used = self.uses;
        self.by_use.insert(entry.used, url.into());
        let body = entry.body;
        if now.saturating_since(entry.came) < entry.storage.fresh_for {
            return Lookup::Fresh { body };
        }
        match &entry.storage.validator {
            Some(validator) => Lookup::Stale { body, validator: validator.clone() },
            None => Lookup::Missing,
        }
    }

    /// Stores a response that came at `now`, in place of one with the same URL.
    pub fn store(&mut self, url: &str, body: Bytes, storage: Storage, now: Time) {
        self.remove(url);
        self.uses += 1;
        let entry = Entry { body, came: now, storage, used: self.uses };
        let cost = entry.cost(url);
        if cost > self.room / 8 {
            return;
        }
        while self.taken.saturating_add(cost) > self.room {
            let Some((_, oldest)) = self.by_use.first_key_value() else { break };
            let oldest = oldest.clone();
            self.remove(&oldest);
        }
        self.taken += cost;
        self.by_use.insert(entry.used, url.into());
        self.entries.insert(url.into(), entry);
    }

    /// A response was found unchanged at `now` (RFC 9111 §4.3.4); what the answer says of storing it
    /// counts from here on.
    pub fn revalidated(&mut self, url: &str, storage: Option<Storage>, now: Time) {
        let Some(entry) = self.entries.get_mut(url) else { return };
        entry.came = now;
        if let Some(storage) = storage {
            let validator = storage.validator.or(entry.storage.validator.take());
            entry.storage = Storage { fresh_for: storage.fresh_for, validator };
        }
    }

    /// Forgets a response.
    pub fn remove(&mut self, url: &str) {
        if let Some(entry) = self.entries.remove(url) {
            self.by_use.remove(&entry.used);
            self.taken = self.taken.saturating_sub(entry.cost(url));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn storage(seconds: u64, etag: Option<&str>) -> Storage {
        let validator = etag.map(|text| Validator::Etag(text.into()));
        Storage { fresh_for: Duration::from_secs(seconds), validator }
    }

    fn at(seconds: u64) -> Time {
        Time::from_millis(seconds * 1000)
    }

    #[test]
    fn fields_say_how_a_response_is_stored() {
        let of = |control| Storage::of_fields(Some(control), Some("\"a\""), None);
        assert_eq!(of("public, Max-Age=\"60\""), Some(storage(60, Some("\"a\""))));
        assert_eq!(of("max-age=99999999999999999999"), Some(storage(1 << 31, Some("\"a\""))));
        assert_eq!(of("max-age=-1"), Some(storage(0, Some("\"a\""))));
        assert_eq!(of("max-age=60, no-cache"), Some(storage(0, Some("\"a\""))));
        assert_eq!(of("max-age=60, no-store"), None);
        assert_eq!(Storage::of_fields(None, None, None), None);
        let long = "x".repeat(MAX_VALIDATOR + 1);
        assert_eq!(Storage::of_fields(None, Some(&long), None), None);
        let modified = Storage::of_fields(None, None, Some("then")).unwrap().validator;
        assert_eq!(modified, Some(Validator::Modified("then".into())));
    }

    #[test]
    fn a_server_says_what_a_cache_reads() {
        let caching =
            Caching::Stored { fresh_for: Duration::from_secs(60).into(), validator: false };
        let read = Storage::of_fields(Some(&caching.cache_control()), None, None);
        assert_eq!(read, Some(storage(60, None)));
        assert_eq!(
            Storage::of_fields(Some(&Caching::Never.cache_control()), Some("a"), None),
            None
        );
        let ask = Caching::Stored { fresh_for: units::Delay::ZERO, validator: true };
        let read = Storage::of_fields(Some(&ask.cache_control()), Some("a"), None);
        assert_eq!(read, Some(storage(0, Some("a"))));
    }

    /// RFC 9111 §4.2: fresh while its age is less than its lifetime.
    #[test]
    fn a_response_is_fresh_then_stale_then_fresh_again() {
        let mut cache = Cache::new(Bytes(1 << 20));
        cache.store("a", Bytes(7), storage(60, Some("tag")), at(100));
        assert_eq!(cache.look_up("a", at(159)), Lookup::Fresh { body: Bytes(7) });
        let validator = Validator::Etag("tag".into());
        assert_eq!(cache.look_up("a", at(160)), Lookup::Stale { body: Bytes(7), validator });
        cache.revalidated("a", Some(storage(10, None)), at(200));
        assert_eq!(cache.look_up("a", at(209)), Lookup::Fresh { body: Bytes(7) });
        assert!(matches!(cache.look_up("a", at(210)), Lookup::Stale { .. }), "keeps its tag");
        cache.store("b", Bytes(7), storage(60, None), at(0));
        assert_eq!(cache.look_up("b", at(60)), Lookup::Missing);
    }

    #[test]
    fn what_was_used_longest_ago_goes_first_and_the_bound_holds() {
        let mut cache = Cache::new(Bytes(16 * 1000));
        for url in ["a", "b", "c"] {
            cache.store(url, Bytes(1000), storage(60, None), at(0));
        }
        assert_eq!(cache.look_up("a", at(1)), Lookup::Fresh { body: Bytes(1000) });
        for number in 0..8 {
            cache.store(&format!("n{number}"), Bytes(1000), storage(60, None), at(0));
        }
        assert_eq!(cache.look_up("b", at(1)), Lookup::Missing);
        assert_eq!(cache.look_up("a", at(1)), Lookup::Fresh { body: Bytes(1000) });
        assert_eq!(cache.len(), 10);
        assert!(cache.taken <= cache.room);
        cache.store("large", Bytes(2001), storage(60, None), at(0));
        assert_eq!(cache.look_up("large", at(1)), Lookup::Missing);
        cache.clear();
        assert!(cache.is_empty());
    }
}
