//! What HTML and CSS refer to, in order, by a scanner that knows tags and attributes and no more.
//! What scripts write is not seen, nor what `srcset` and `base` say.

use crate::page::Kind;

/// A reference in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reference {
    /// The bytes of the text up to its end.
    pub(super) end: usize,
    /// As it is written, with `&amp;` resolved.
    pub(super) url: String,
    /// What it is, if the tag says so.
    pub(super) kind: Option<Kind>,
    /// Whether rendering waits for it.
    pub(super) blocking: bool,
}

/// Most references of one text.
const MOST: usize = crate::page::Page::MAX_OBJECTS;

/// What a document refers to.
pub(super) fn html(text: &[u8]) -> Vec<Reference> {
    let mut references = Vec::new();
    let mut head = true;
    let mut rest = Scanner { text, at: 0 };
    while rest.to(b"<") && references.len() < MOST {
        if rest.takes(b"!--") {
            rest.past(b"-->");
            continue;
        }
        let closing = rest.takes(b"/");
        let name = rest.word();
        let tag = Tag { attributes: rest.attributes() };
        match (closing, name.as_str()) {
            (true, "head") | (false, "body") => head = false,
            (false, name) => {
                references.extend(tag.reference(name, head, rest.at));
                // Their content is no markup.
                if name == "script" || name == "style" {
                    rest.past_end_of(name);
                }
            }
            (true, _) => {}
        }
    }
    references
}

/// What a style sheet refers to: `url(…)`, and the text of an `@import`.
pub(super) fn css(text: &[u8]) -> Vec<Reference> {
    let mut references = Vec::new();
    let mut rest = Scanner { text, at: 0 };
    while rest.at < text.len() && references.len() < MOST {
        let url = if rest.takes(b"/*") {
            rest.past(b"*/");
            continue;
        } else if rest.takes(b"@import") {
            rest.spaces();
            (matches!(rest.next(), Some(b'"' | b'\''))).then(|| rest.value(b";"))
        } else if rest.takes(b"url(") {
            rest.spaces();
            Some(rest.value(b")"))
        } else {
            rest.at += 1;
            continue;
        };
        let url = url.map(|url| url.trim().to_owned()).filter(|url| !url.is_empty());
        references.extend(url.map(|url| Reference {
            end: rest.at,
            url,
            kind: None,
            blocking: false,
        }));
    }
    references
}

/// The attributes of a tag, in small letters.
struct Tag {
    attributes: Vec<(String, String)>,
}

impl Tag {
    fn get(&self, name: &str) -> Option<&str> {
        let found = self.attributes.iter().find(|(attribute, _)| attribute == name);
        found.map(|(_, value)| value.as_str())
    }

    fn reference(&self, name: &str, head: bool, end: usize) -> Option<Reference> {
        let rel = self.get("rel").unwrap_or_default().to_ascii_lowercase();
        let has = |word: &str| rel.split_ascii_whitespace().any(|other| other == word);
        let (url, kind, blocking) = match name {
            "img" => (self.get("src"), Some(Kind::Image), false),
            "script" => {
                let waits = self.get("async").or(self.get("defer")).is_none()
                    && self.get("type") != Some("module");
                (self.get("src"), Some(Kind::Script), head && waits)
            }
            "link" if has("stylesheet") => (self.get("href"), Some(Kind::Style), head),
            "link" if has("icon") => (self.get("href"), Some(Kind::Image), false),
            "link" if has("preload") || has("manifest") => (self.get("href"), None, false),
            "iframe" | "frame" => (self.get("src"), Some(Kind::Document), false),
            "source" | "audio" | "video" | "embed" | "track" | "input" => {
                (self.get("src"), None, false)
            }
            "object" => (self.get("data"), None, false),
            _ => return None,
        };
        let url = url?.trim().replace("&amp;", "&");
        (!url.is_empty()).then_some(Reference { end, url, kind, blocking })
    }
}

/// A place in a text.
struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
}

impl Scanner<'_> {
    fn rest(&self) -> &[u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn next(&self) -> Option<u8> {
        self.rest().first().copied()
    }

    /// Whether the text goes on so, whatever the case; if it does, past it.
    fn takes(&mut self, what: &[u8]) -> bool {
        let there =
            self.rest().get(..what.len()).is_some_and(|next| next.eq_ignore_ascii_case(what));
        self.at += if there { what.len() } else { 0 };
        there
    }

    /// Past the next place where this is; to the end if it is nowhere.
    fn past(&mut self, what: &[u8]) {
        let found = self.rest().windows(what.len()).position(|next| next == what);
        self.at = found.map_or(self.text.len(), |found| self.at + found + what.len());
    }

    /// Past the next of these; whether there is one.
    fn to(&mut self, what: &[u8]) -> bool {
        let before = self.at;
        self.past(what);
        self.at < self.text.len() || (self.at > before && self.text.ends_with(what))
    }

    /// To the closing tag of an element whose content is no markup.
    fn past_end_of(&mut self, name: &str) {
        while self.to(b"</") {
            if self.takes(name.as_bytes()) {
                self.past(b">");
                return;
            }
        }
    }

    fn spaces(&mut self) {
        while self.next().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    /// A name, in small letters.
    fn word(&mut self) -> String {
        self.until(|byte| byte.is_ascii_whitespace() || matches!(byte, b'>' | b'/' | b'='))
            .to_ascii_lowercase()
    }

    fn until(&mut self, ends: impl Fn(u8) -> bool) -> String {
        let rest = self.rest();
        let len = rest.iter().position(|byte| ends(*byte)).unwrap_or(rest.len());
        let text = String::from_utf8_lossy(rest.get(..len).unwrap_or_default()).into_owned();
        self.at += len;
        text
    }

    /// A value in quotes, or without them up to a space or one of these.
    fn value(&mut self, ends: &[u8]) -> String {
        match self.next() {
            Some(quote @ (b'"' | b'\'')) => {
                self.at += 1;
                let value = self.until(|byte| byte == quote);
                self.at = (self.at + 1).min(self.text.len());
                value
            }
            _ => self.until(|byte| byte.is_ascii_whitespace() || ends.contains(&byte)),
        }
    }

    /// The attributes of a tag, past its end.
    fn attributes(&mut self) -> Vec<(String, String)> {
        let mut attributes = Vec::new();
        loop {
            self.spaces();
            match self.next() {
                None => return attributes,
                Some(b'>') => {
                    self.at += 1;
                    return attributes;
                }
                Some(b'/' | b'=') => self.at += 1,
                Some(_) => {
                    let name = self.word();
                    self.spaces();
                    let value = if self.takes(b"=") {
                        self.spaces();
                        self.value(b">")
                    } else {
                        String::new()
                    };
                    // No tag has many: this bounds what a hostile one costs.
                    if attributes.len() < 64 {
                        attributes.push((name, value));
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_document_refers_in_order() {
        let text = br#"<!doctype html><HEAD><link rel="icon stylesheet" href='a.css'>
            <script src=b.js></script><script defer src="c.js"></script>
            <script>if (1 < 2) { "<img src=no.png>" }</script>
            <!-- <img src="no.png"> --></head>
            <body><IMG alt="a > b" src="d.png?x=1&amp;y=2"/><script src="e.js"></script>
            <iframe src="f.html"></iframe><img src=""><a href="no.html">"#;
        let found: Vec<_> = html(text).into_iter().map(|r| (r.url, r.kind, r.blocking)).collect();
        let expected = [
            ("a.css", Kind::Style, true),
            ("b.js", Kind::Script, true),
            ("c.js", Kind::Script, false),
            ("d.png?x=1&y=2", Kind::Image, false),
            ("e.js", Kind::Script, false),
            ("f.html", Kind::Document, false),
        ];
        let expected: Vec<_> =
            expected.into_iter().map(|(url, kind, b)| (url.to_owned(), Some(kind), b)).collect();
        assert_eq!(found, expected);
        let first = &html(text)[0];
        assert_eq!(&text[first.end - 2..first.end], b"'>");
    }

    #[test]
    fn a_style_sheet_refers_in_order() {
        let text = b"@import 'a.css'; /* url(no.png) */ b { background: URL( \"b.png\" ) } \
            @import url(c.css); @font-face { src: url(d.woff) } e { background: url() }";
        let urls: Vec<_> = css(text).into_iter().map(|reference| reference.url).collect();
        assert_eq!(urls, ["a.css", "b.png", "c.css", "d.woff"]);
    }

    proptest! {
        #[test]
        fn references_end_within_any_text(text in proptest::collection::vec(
            prop_oneof![Just(b'<'), Just(b'>'), Just(b'"'), Just(b'('), any::<u8>()], 0..200))
        {
            for reference in html(&text).into_iter().chain(css(&text)) {
                prop_assert!(reference.end <= text.len());
            }
        }
    }
}
