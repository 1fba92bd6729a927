//! What a server sends or names before a browser asks for it: server push and server hint.
//!
//! A server that knows its page can push what a document refers to (SPDY draft 3.1 §3.3, RFC 9113 §8.4),
//! or name it in the head of the response, so that the browser asks for it before it has read the body.
//! SPDY's server hint was such a `Link` field (`rel=subresource`, before that `X-Subresources`); its
//! successor, which all protocols have, is `Link` with `rel=preload` (RFC 8288; W3C Preload).

use crate::page::{Kind, Object, ObjectId, Page};
use crate::policy::Policy;

/// Most targets that are taken of one field.
const MOST_TARGETS: usize = 100;

/// Which of a document's objects a server pushes or names.
///
/// Those that the document itself refers to, on its own host: a server speaks for no other (RFC 9113
/// §8.4, §10.1). By default all style sheets, scripts and fonts among them. Images are not: nothing is
/// found by them and no rendering waits for them, and what is pushed beyond what fills the round trip
/// in which a link would idle is taken from the document (Bergan, Pelchat and Buettner, *Rules of Thumb
/// for HTTP/2 Push*, 2016). What is asked for with a body is never pushed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ahead {
    /// The kinds of objects.
    pub kinds: Vec<Kind>,
    /// At most so many of a document.
    pub most: usize,
}

impl Default for Ahead {
    /// Style sheets, scripts and fonts; 100, as many streams as clients usually allow.
    fn default() -> Ahead {
        Ahead { kinds: vec![Kind::Style, Kind::Script, Kind::Font], most: 100 }
    }
}

impl Ahead {
    /// The objects to push or name with a document, the most urgent first, by Chromium's urgencies; those
    /// as urgent in the order of the document's references.
    #[must_use]
    pub fn of(&self, page: &Page, document: ObjectId) -> Vec<ObjectId> {
        let policy = Policy::chromium();
        let Some(host) = page.object(document).map(|document| document.host) else {
            return Vec::new();
        };
        let sent = |object: &Object| {
            object.host == host && object.upload.is_none() && self.kinds.contains(&object.kind)
        };
        let children = page.children(document).iter();
        let children = children.filter_map(|id| Some((*id, page.object(*id)?)));
        let mut chosen: Vec<_> = children.filter(|(_, object)| sent(object)).collect();
        chosen.sort_by_key(|(_, object)| policy.treatment(object).urgency);
        chosen.into_iter().take(self.most).map(|(id, _)| id).collect()
    }
}

/// An object as a `Link` field names it: `</a.css>; rel=preload; as=style`.
#[must_use]
pub fn preload(object: &Object) -> String {
    // W3C Preload §2: without `as`, or with another mode of the request, it would be fetched twice.
    let destination = match object.kind {
        Kind::Document => "; as=document",
        Kind::Style => "; as=style",
        Kind::Script => "; as=script",
        Kind::Image => "; as=image",
        Kind::Font => "; as=font; crossorigin",
        Kind::Fetch => "; as=fetch; crossorigin",
        Kind::Other => "",
    };
    format!("<{}>; rel=preload{destination}", object.path)
}

/// The targets of a `Link` field that are to be loaded ahead, at most 100 (RFC 8288 §3). Malformed
/// parts are passed over.
#[must_use]
pub fn preloads(field: &str) -> Vec<&str> {
    let mut targets = Vec::new();
    let mut rest = field;
    while targets.len() < MOST_TARGETS {
        let Some((_, link)) = rest.split_once('<') else { break };
        let Some((target, parameters)) = link.split_once('>') else { break };
        let (own, next) = unquoted(parameters, b',');
        if is_preload(own) {
            targets.push(target.trim());
        }
        rest = next;
    }
    targets
}

/// Whether a link's parameters say so; of several `rel` the first counts (RFC 8288 §3.3).
fn is_preload(mut parameters: &str) -> bool {
    while !parameters.is_empty() {
        let (parameter, next) = unquoted(parameters, b';');
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        if name.trim().eq_ignore_ascii_case("rel") {
            let mut relations = value.trim().trim_matches('"').split_ascii_whitespace();
            return relations.any(|relation| relation.eq_ignore_ascii_case("preload"));
        }
        parameters = next;
    }
    false
}

/// A text up to the first such byte outside of quotes, and what is behind it.
fn unquoted(text: &str, end: u8) -> (&str, &str) {
    let (mut quoted, mut escaped) = (false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            byte if byte == end && !quoted => {
                return (
                    text.get(..at).unwrap_or_default(),
                    text.get(at + 1..).unwrap_or_default(),
                );
            }
            _ => {}
        }
    }
    (text, "")
}

#[cfg(test)]
mod tests {
    use units::{Bytes, Delay};

    use super::*;
    use crate::page::HostId;
    use crate::share::Share;

    fn page() -> Page {
        let hosts = vec!["www.example".to_owned(), "img.example".to_owned()];
        let of = |host, path: &str, kind, by: u32| {
            let object = Object::new(HostId(host), path, kind, Bytes(1000));
            object.found_by(ObjectId(by), Share::ALL, Delay::ZERO)
        };
        let blocking = |object| Object { blocking: true, ..object };
        let objects = vec![
            Object::new(HostId(0), "/", Kind::Document, Bytes(5000)),
            of(0, "/late.js", Kind::Script, 0),
            of(0, "/a.png", Kind::Image, 0),
            blocking(of(0, "/first.js", Kind::Script, 0)),
            of(1, "/other.css", Kind::Style, 0),
            of(0, "/a.css", Kind::Style, 0),
            of(0, "/deep.css", Kind::Style, 5),
            of(0, "/a.woff", Kind::Font, 0),
            Object { upload: Some(Bytes(1)), ..of(0, "/post.js", Kind::Script, 0) },
        ];
        Page::new("test", hosts, objects).unwrap()
    }

    fn paths(rule: &Ahead, page: &Page, of: u32) -> Vec<String> {
        let ids = rule.of(page, ObjectId(of));
        ids.into_iter().map(|id| page.object(id).unwrap().path.clone()).collect()
    }

    #[test]
    fn what_the_document_refers_to_on_its_own_host_goes_by_its_urgency() {
        let page = page();
        let rule = Ahead::default();
        assert_eq!(paths(&rule, &page, 0), ["/a.css", "/a.woff", "/first.js", "/late.js"]);
        assert_eq!(paths(&rule, &page, 5), ["/deep.css"]);
        assert_eq!(paths(&rule, &page, 99), Vec::<String>::new());
        let two = Ahead { most: 2, ..rule };
        assert_eq!(paths(&two, &page, 0), ["/a.css", "/a.woff"]);
        let images = Ahead { kinds: vec![Kind::Image], most: 9 };
        assert_eq!(paths(&images, &page, 0), ["/a.png"]);
    }

    #[test]
    fn what_is_named_is_read_again() {
        let page = page();
        for object in page.objects() {
            assert_eq!(preloads(&preload(object)), [object.path.as_str()]);
        }
    }

    /// RFC 8288 §3, and its examples of lists, quotes and several relations.
    #[test]
    fn only_preloads_are_taken_of_a_field() {
        for (field, targets) in [
            ("</a>; rel=preload", &["/a"][..]),
            ("</a>;rel=\"preload\" , <b>; REL = PreLoad", &["/a", "b"]),
            ("</a>; rel=next, </b>; as=style; rel=preload", &["/b"]),
            ("</a>; title=\"x, <y>; rel=preload\"; rel=\"next preload\"", &["/a"]),
            ("</a>; rel=next; rel=preload", &[]),
            ("</a>; title=\"\\\"; rel=preload", &[]),
            ("</a>", &[]),
            ("</a; rel=preload", &[]),
            ("rel=preload", &[]),
            ("", &[]),
        ] {
            assert_eq!(preloads(field), targets, "{field}");
        }
        let many = "</a>; rel=preload,".repeat(1000);
        assert_eq!(preloads(&many).len(), MOST_TARGETS);
    }
}
