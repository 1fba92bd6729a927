//! A page as text: TOML or JSON with one table per object.

use std::borrow::Cow;
use std::collections::HashMap;

use fault::{Explain, Fault};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;
use units::{Bytes, Delay};

use crate::error::PageError;
use crate::page::{Caching, Found, HostId, Kind, Object, ObjectId, Page, Urgency};
use crate::share::Share;

/// Most bytes of a page's text: 16 MiB.
const MAX_TEXT: usize = 16 << 20;

/// A text that is no page.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum TextError {
    /// It is not TOML, or has fields that a page has not; says where.
    #[error("the page cannot be read: {0}")]
    Toml(#[from] toml::de::Error),
    /// It is not JSON, or has fields that a page has not; says where.
    #[error("the page cannot be read: {0}")]
    Json(String),
    /// What is written makes no page.
    #[error("the page makes no sense: {0}")]
    Page(#[from] PageError),
    /// More than 16 MiB.
    #[error("the page's text has {0} bytes")]
    TooLong(usize),
}

impl Explain for TextError {
    fn fault(&self) -> Fault {
        Fault::Caller
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        match self {
            TextError::Page(error) => error.remedy(),
            TextError::TooLong(_) => Some("use at most 16 MiB of text".into()),
            TextError::Toml(_) | TextError::Json(_) => None,
        }
    }
}

/// How a page is written.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PageText {
    name: String,
    #[serde(rename = "object")]
    objects: Vec<ObjectText>,
}

/// How an object is written: what is usual is left out.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ObjectText {
    host: String,
    path: String,
    kind: Kind,
    bytes: Bytes,
    /// The number of the object that tells of it, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    found_by: Option<u32>,
    #[serde(default, skip_serializing_if = "is_default")]
    after: Share,
    #[serde(default, skip_serializing_if = "is_default")]
    delay: Delay,
    #[serde(default, skip_serializing_if = "is_default")]
    blocking: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    urgency: Option<Urgency>,
    #[serde(default, skip_serializing_if = "is_default")]
    request_extra: Bytes,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    upload: Option<Bytes>,
    /// May be stored, and is fresh for this long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fresh_for: Option<Delay>,
    /// May be stored, and has an entity tag.
    #[serde(default, skip_serializing_if = "is_default")]
    validator: bool,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Serialize for Urgency {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(self.value())
    }
}

impl<'de> Deserialize<'de> for Urgency {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = u8::deserialize(deserializer)?;
        let wrong = || serde::de::Error::custom(format!("an urgency is 0 to 7, not {value}"));
        Urgency::new(value).ok_or_else(wrong)
    }
}

impl From<&Page> for PageText {
    fn from(page: &Page) -> PageText {
        let object = |object: &Object| {
            let (fresh_for, validator) = match object.caching {
                Caching::Never => (None, false),
                Caching::Stored { fresh_for, validator } => (Some(fresh_for), validator),
            };
            let found = object.found;
            ObjectText {
                host: page.host(object.host).unwrap_or_default().to_owned(),
                path: object.path.clone(),
                kind: object.kind,
                bytes: object.body,
                found_by: found.map(|found| found.by.0),
                after: found.map(|found| found.after).unwrap_or_default(),
                delay: found.map(|found| found.delay).unwrap_or_default(),
                blocking: object.blocking,
                urgency: object.urgency,
                request_extra: object.request_extra,
                upload: object.upload,
                fresh_for,
                validator,
            }
        };
        let objects = page.objects().iter().map(object).collect();
        PageText { name: page.name().to_owned(), objects }
    }
}

impl TryFrom<PageText> for Page {
    type Error = PageError;

    /// Hosts are numbered in the order in which objects name them.
    fn try_from(text: PageText) -> Result<Page, PageError> {
        let mut hosts = Hosts::default();
        let object = |text: ObjectText| Object {
            host: hosts.number(&text.host),
            path: text.path,
            kind: text.kind,
            body: text.bytes,
            found: text.found_by.map(|by| Found {
                by: ObjectId(by),
                after: text.after,
                delay: text.delay,
            }),
            blocking: text.blocking,
            urgency: text.urgency,
            request_extra: text.request_extra,
            upload: text.upload,
            caching: match (text.fresh_for, text.validator) {
                (None, false) => Caching::Never,
                (fresh_for, validator) => {
                    Caching::Stored { fresh_for: fresh_for.unwrap_or_default(), validator }
                }
            },
        };
        let objects = text.objects.into_iter().map(object).collect();
        Page::new(text.name, hosts.names, objects)
    }
}

/// Numbers for hosts, in the order in which they are met.
#[derive(Default)]
pub(crate) struct Hosts {
    pub(crate) names: Vec<String>,
    numbers: HashMap<String, HostId>,
}

impl Hosts {
    /// The number of a host, a new one if it was not met before.
    pub(crate) fn number(&mut self, name: &str) -> HostId {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = HostId(self.names.len() as u32);
        self.names.push(name.to_owned());
        self.numbers.insert(name.to_owned(), number);
        number
    }
}

impl Serialize for Page {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        PageText::from(self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Page {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = PageText::deserialize(deserializer)?;
        Page::try_from(text).map_err(|error| serde::de::Error::custom(error.in_one_text()))
    }
}

impl Page {
    /// Reads a page from TOML: a `name` and a table `[[object]]` for each object, with `host`, `path`,
    /// `kind` and `bytes`, and where they are not the usual `found_by` (the number of the object that
    /// tells of it, from 0), `after` (a share of that object's bytes), `delay`, `blocking`, `urgency`,
    /// `request_extra`, `upload`, `fresh_for` and `validator`.
    ///
    /// # Errors
    /// Says where the text is wrong, or why it makes no page.
    pub fn from_toml(text: &str) -> Result<Page, TextError> {
        check_length(text)?;
        Ok(toml::from_str::<PageText>(text)?.try_into()?)
    }

    /// Reads a page from JSON, with the same fields: `{"name": …, "object": […]}`.
    ///
    /// # Errors
    /// As for [`Page::from_toml`].
    pub fn from_json(text: &str) -> Result<Page, TextError> {
        check_length(text)?;
        let page: PageText =
            serde_json::from_str(text).map_err(|error| TextError::Json(error.to_string()))?;
        Ok(page.try_into()?)
    }

    /// The page as [`Page::from_toml`] reads it.
    #[must_use]
    pub fn to_toml(&self) -> String {
        // Strings, numbers and tables: nothing that TOML has not.
        toml::to_string(self).unwrap_or_default()
    }
}

fn check_length(text: &str) -> Result<(), TextError> {
    if text.len() > MAX_TEXT { Err(TextError::TooLong(text.len())) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
name = "two"

[[object]]
host = "www.example"
path = "/"
kind = "document"
bytes = "50kB"

[[object]]
host = "img.example"
path = "/a.png?1"
kind = "image"
bytes = "1234B"
found_by = 0
after = "12.5%"
delay = "5ms"
urgency = 3
request_extra = "300B"
fresh_for = "60s"
validator = true
"#;

    #[test]
    fn a_page_is_read_from_toml_and_written_as_it_was() {
        let page = Page::from_toml(TEXT).unwrap();
        assert_eq!(page.hosts(), ["www.example", "img.example"]);
        assert_eq!(page.bytes(), Bytes(51_234));
        assert_eq!(page.depth(), 2);
        assert_eq!(Page::from_toml(&page.to_toml()).unwrap(), page);
        assert!(page.to_toml().contains("after = \"12.5%\""), "{}", page.to_toml());
        let json = serde_json::to_string(&page).unwrap();
        assert_eq!(Page::from_json(&json).unwrap(), page);
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (from, to, said) in [
            ("urgency = 3", "urgency = 8", "an urgency is 0 to 7"),
            ("after = \"12.5%\"", "after = \"101%\"", "more than 100%"),
            ("found_by = 0", "found_by = 7", "object 1 is found by object 7"),
            ("found_by = 0", "found_by = 1", "object 1 is found by itself"),
            ("path = \"/a.png?1\"", "path = \"/a b\"", "cannot be asked for"),
            ("kind = \"image\"", "kind = \"picture\"", "choose from document"),
            ("validator", "validity", "unknown field"),
        ] {
            let error = Page::from_toml(&TEXT.replace(from, to)).unwrap_err();
            assert!(error.to_string().contains(said), "{error}");
        }
        assert_eq!(
            Page::from_json("{\"name\": \"x\", \"object\": []}"),
            Err(TextError::Page(PageError::NoRoot))
        );
    }
}
