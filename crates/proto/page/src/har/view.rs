//! What is looked at in a HAR file: as little as makes a page, whatever else there is, and with
//! fields missing, null or of another type than the specification's.

use std::collections::HashSet;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{
    DeserializeSeed, Deserializer, IgnoredAny, IntoDeserializer, MapAccess, SeqAccess, Visitor,
};

use crate::har::HarError;
use crate::page::Page;

/// Said in place of serde's error if there are too many entries.
const TOO_MANY: &str = "too many entries";

#[derive(Deserialize)]
struct File {
    log: Log,
}

#[derive(Deserialize)]
pub(super) struct Log {
    #[serde(default)]
    pub(super) pages: Visits,
    #[serde(deserialize_with = "bounded")]
    pub(super) entries: Vec<Entry>,
}

/// The file's list of pages.
#[derive(Debug, Default)]
pub(super) struct Visits(Vec<Visit>);

impl Visits {
    /// The one of this name; without a name, the first.
    pub(super) fn visit(&self, name: Option<&str>) -> Option<&Visit> {
        self.0.iter().find(|visit| name.is_none_or(|name| visit.id.0 == name))
    }
}

/// A page, and when it had loaded.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Visit {
    id: Text,
    #[serde(rename = "startedDateTime")]
    pub(super) started: Text,
    #[serde(rename = "pageTimings", deserialize_with = "object")]
    pub(super) timings: PageTimings,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PageTimings {
    #[serde(rename = "onLoad")]
    pub(super) on_load: Number,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Entry {
    #[serde(rename = "startedDateTime")]
    pub(super) started: Text,
    pub(super) time: Number,
    #[serde(deserialize_with = "object")]
    pub(super) request: Request,
    #[serde(deserialize_with = "object")]
    pub(super) response: Response,
    #[serde(deserialize_with = "object")]
    pub(super) timings: Timings,
    #[serde(rename = "_initiator", deserialize_with = "object")]
    pub(super) initiator: Initiator,
    #[serde(rename = "_priority")]
    pub(super) priority: Text,
    #[serde(rename = "_resourceType")]
    pub(super) resource_type: Text,
    /// WebPageTest's name for it.
    #[serde(rename = "_request_type")]
    pub(super) request_type: Text,
    #[serde(rename = "pageref")]
    pub(super) page: Text,
    #[serde(rename = "_fromCache")]
    pub(super) from_cache: Text,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Request {
    pub(super) method: Text,
    pub(super) url: Text,
    #[serde(rename = "bodySize")]
    pub(super) body_size: Number,
    #[serde(rename = "postData", deserialize_with = "object")]
    pub(super) posted: Posted,
    pub(super) headers: Headers,
}

/// A request's body: as a text, or as the fields of a form.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Posted {
    text: Length,
    params: Params,
}

impl Posted {
    /// Bytes of the text; of a form without its text, those of its fields.
    pub(super) fn bytes(&self) -> u64 {
        if self.text.0 > 0 { self.text.0 } else { self.params.0 }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Response {
    pub(super) status: Number,
    pub(super) headers: Headers,
    #[serde(rename = "headersSize")]
    pub(super) headers_size: Number,
    #[serde(rename = "bodySize")]
    pub(super) body_size: Number,
    #[serde(rename = "_transferSize")]
    pub(super) transfer_size: Number,
    #[serde(rename = "redirectURL")]
    pub(super) redirect: Text,
    #[serde(deserialize_with = "object")]
    pub(super) content: Content,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Content {
    pub(super) size: Number,
    #[serde(rename = "mimeType")]
    pub(super) mime: Text,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Timings {
    pub(super) receive: Number,
}

/// What asked for it: Chromium writes an object, WebPageTest and sitespeed.io the URL alone.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Initiator {
    pub(super) url: Text,
    #[serde(deserialize_with = "object")]
    pub(super) stack: Stack,
}

/// Where a script asked for it. The stacks of what called it asynchronously are not looked at.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Stack {
    #[serde(rename = "callFrames")]
    pub(super) frames: Frames,
}

/// The first URL among the frames of a stack.
#[derive(Debug, Default)]
pub(super) struct Frames(pub(super) Option<String>);

#[derive(Deserialize, Default)]
#[serde(default)]
struct Frame {
    url: Text,
}

/// The fields of a head that matter to a cache, and the size of cookies.
#[derive(Debug, Default)]
pub(super) struct Headers {
    pub(super) cache_control: Option<String>,
    pub(super) etag: Option<String>,
    pub(super) last_modified: Option<String>,
    /// Bytes of the values of `Cookie`.
    pub(super) cookies: u64,
    /// Bytes of all fields, as HTTP/1.1 writes them.
    pub(super) bytes: u64,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Header {
    name: Text,
    value: Text,
}

/// Bytes of a form's fields, as `a=1&b=2` has them.
#[derive(Debug, Default)]
struct Params(u64);

#[derive(Deserialize, Default)]
#[serde(default)]
struct Param {
    name: Length,
    value: Length,
}

/// Bytes of a text; 0 for anything else.
#[derive(Debug, Default, Clone, Copy)]
struct Length(u64);

/// A text; empty for anything else.
#[derive(Debug, Default)]
pub(super) struct Text(pub(super) String);

/// A number; `None` for anything else.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Number(pub(super) Option<f64>);

/// Whether a JSON text has a `log`.
pub(super) fn has_log(text: &str) -> bool {
    struct Log(bool);
    impl<'de> Visitor<'de> for &mut Log {
        type Value = ();

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
            while let Some(Text(name)) = map.next_key()? {
                self.0 = name == "log";
                if self.0 {
                    break;
                }
                map.next_value::<IgnoredAny>()?;
            }
            Ok(())
        }
    }
    let mut log = Log(false);
    let mut json = serde_json::Deserializer::from_str(text);
    // An error behind the field, of which nothing was read, is not of interest.
    let _ = json.deserialize_map(&mut log);
    log.0
}

/// The log of a HAR text.
pub(super) fn log(text: &str) -> Result<Log, HarError> {
    match serde_json::from_str::<File>(text) {
        Ok(file) => Ok(file.log),
        Err(error) if error.to_string().starts_with(TOO_MANY) => Err(HarError::TooManyEntries),
        Err(error) => Err(HarError::Json(error.to_string())),
    }
}

fn bounded<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Entry>, D::Error> {
    struct Entries;
    impl<'de> Visitor<'de> for Entries {
        type Value = Vec<Entry>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a list of entries")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<Entry>, A::Error> {
            let mut entries = Vec::new();
            while let Some(Object(entry)) = list.next_element()? {
                if entries.len() == Page::MAX_OBJECTS {
                    return Err(serde::de::Error::custom(TOO_MANY));
                }
                entries.push(entry);
            }
            Ok(entries)
        }
    }
    deserializer.deserialize_seq(Entries)
}

/// What is an object, and may say something as a text too.
trait Written: Default {
    fn of_text(_: &str) -> Self {
        Self::default()
    }
}

impl Written for Initiator {
    fn of_text(url: &str) -> Initiator {
        Initiator { url: Text::default().text(url), ..Initiator::default() }
    }
}

macro_rules! written {
    ($($type:ident),*) => { $(impl Written for $type {})* };
}

written!(
    Entry,
    Request,
    Posted,
    Response,
    Content,
    Timings,
    Stack,
    Frame,
    Header,
    Param,
    Visit,
    PageTimings
);

/// An object; the default for anything else.
fn object<'de, D: Deserializer<'de>, T: Deserialize<'de> + Written>(
    deserializer: D,
) -> Result<T, D::Error> {
    Object::deserialize(deserializer).map(|Object(value)| value)
}

/// As [`object`], in a list.
struct Object<T>(T);

impl<'de, T: Deserialize<'de> + Written> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Fields(PhantomData)).map(Object)
    }
}

/// Reads the fields of an object, and passes over anything else.
struct Fields<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de> + Written> Visitor<'de> for Fields<T> {
    type Value = T;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("any value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_u64<E>(self, _: u64) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_str<E>(self, text: &str) -> Result<T, E> {
        Ok(T::of_text(text))
    }

    fn visit_unit<E>(self) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<T, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(T::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(First { map, seen: HashSet::new() }))
    }
}

/// The fields of an object, each name once: serde refuses an object that has one twice.
struct First<A> {
    map: A,
    seen: HashSet<String>,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for First<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        while let Some(name) = self.map.next_key::<String>()? {
            if self.seen.insert(name.clone()) {
                return seed.deserialize(name.into_deserializer()).map(Some);
            }
            self.map.next_value::<IgnoredAny>()?;
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.map.next_value_seed(seed)
    }
}

/// Takes what it is looking for of any JSON value, and passes over the rest.
trait Lenient: Default {
    fn text(self, _: &str) -> Self {
        self
    }
    fn number(self, _: f64) -> Self {
        self
    }
    /// Takes the elements of a list one by one.
    fn list<'de, A: SeqAccess<'de>>(self, mut list: A) -> Result<Self, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(self)
    }
}

struct Any<T>(T);

impl<'de, T: Lenient> DeserializeSeed<'de> for Any<T> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, T: Lenient> Visitor<'de> for Any<T> {
    type Value = T;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("any value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<T, E> {
        Ok(self.0)
    }

    fn visit_i64<E>(self, value: i64) -> Result<T, E> {
        Ok(self.0.number(value as f64))
    }

    fn visit_u64<E>(self, value: u64) -> Result<T, E> {
        Ok(self.0.number(value as f64))
    }

    fn visit_f64<E>(self, value: f64) -> Result<T, E> {
        Ok(self.0.number(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<T, E> {
        Ok(self.0.text(value))
    }

    fn visit_unit<E>(self) -> Result<T, E> {
        Ok(self.0)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<T, A::Error> {
        self.0.list(list)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<T, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(self.0)
    }
}

macro_rules! lenient {
    ($($type:ident),*) => {
        $(impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Any($type::default()).deserialize(deserializer)
            }
        })*
    };
}

lenient!(Text, Number, Length, Headers, Frames, Params, Visits);

impl Lenient for Text {
    fn text(self, text: &str) -> Text {
        // No address of HTTP is longer than what a page takes; of a `data:` URL its begin will do.
        Text(text.chars().take(4 * Page::MAX_PATH).collect())
    }
}

impl Lenient for Number {
    fn number(self, value: f64) -> Number {
        Number(Some(value))
    }
}

impl Lenient for Length {
    fn text(self, text: &str) -> Length {
        Length(text.len() as u64)
    }
}

impl Lenient for Params {
    fn list<'de, A: SeqAccess<'de>>(mut self, mut list: A) -> Result<Params, A::Error> {
        while let Some(Object(Param { name, value })) = list.next_element()? {
            // `=`, and `&` before all fields but the first.
            let between = 1 + u64::from(self.0 > 0);
            self.0 = self.0.saturating_add(name.0).saturating_add(value.0).saturating_add(between);
        }
        Ok(self)
    }
}

impl Lenient for Visits {
    fn list<'de, A: SeqAccess<'de>>(mut self, mut list: A) -> Result<Visits, A::Error> {
        while let Some(Object(visit)) = list.next_element()? {
            if self.0.len() < Page::MAX_OBJECTS {
                self.0.push(visit);
            }
        }
        Ok(self)
    }
}

impl Lenient for Headers {
    fn list<'de, A: SeqAccess<'de>>(mut self, mut list: A) -> Result<Headers, A::Error> {
        while let Some(Object(Header { name, value })) = list.next_element()? {
            // `: ` and the line's end.
            let line = (name.0.len() + value.0.len() + 4) as u64;
            self.bytes = self.bytes.saturating_add(line);
            let slot = match name.0.to_ascii_lowercase().as_str() {
                "cache-control" => &mut self.cache_control,
                "etag" => &mut self.etag,
                "last-modified" => &mut self.last_modified,
                "cookie" => {
                    self.cookies = self.cookies.saturating_add(value.0.len() as u64);
                    continue;
                }
                _ => continue,
            };
            slot.get_or_insert(value.0);
        }
        Ok(self)
    }
}

impl Lenient for Frames {
    fn list<'de, A: SeqAccess<'de>>(mut self, mut list: A) -> Result<Frames, A::Error> {
        while let Some(Object(Frame { url })) = list.next_element()? {
            if self.0.is_none() && !url.0.is_empty() {
                self.0 = Some(url.0);
            }
        }
        Ok(self)
    }
}
