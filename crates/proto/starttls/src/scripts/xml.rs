//! The tags of an XML stream, as far as XMPP needs them (RFC 6120 §11.1 allows no comments, processing
//! instructions or DTDs).

use crate::input::Input;

/// A tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tag {
    /// The name without its prefix.
    pub name: String,
    pub kind: Kind,
    /// The text between the tag before and this one.
    pub text: String,
}

/// Whether a tag opens or closes an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Open,
    Close,
    /// `<x/>`.
    Empty,
    /// `<?xml …?>`.
    Declaration,
}

/// Takes the next tag, and the text before it; `None` if none is whole yet.
pub(super) fn next_tag(input: &mut Input) -> Option<Result<Tag, ()>> {
    let rest = input.rest();
    let start = rest.iter().position(|byte| *byte == b'<')?;
    let length = tag_length(rest.get(start..)?)?;
    let bytes = input.take(start + length)?;
    let text = String::from_utf8_lossy(bytes.get(..start)?).into_owned();
    let inside = String::from_utf8_lossy(bytes.get(start + 1..start + length - 1)?).into_owned();
    Some(tag(&inside, text).ok_or(()))
}

/// The length of a tag up to its `>`, which may be within quotes.
fn tag_length(bytes: &[u8]) -> Option<usize> {
    let mut quote = None;
    for (at, byte) in bytes.iter().enumerate() {
        match (quote, byte) {
            (None, b'>') => return Some(at + 1),
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), close) if open == close => quote = None,
            _ => {}
        }
    }
    None
}

fn tag(inside: &str, text: String) -> Option<Tag> {
    let (kind, inside) = match inside.as_bytes() {
        [b'?', ..] => (Kind::Declaration, inside.get(1..)?),
        // Comments, CDATA and DTDs.
        [b'!', ..] => return None,
        [b'/', ..] => (Kind::Close, inside.get(1..)?),
        [.., b'/'] => (Kind::Empty, inside.strip_suffix('/')?),
        _ => (Kind::Open, inside),
    };
    let name = inside.split(|c: char| c.is_whitespace()).next()?;
    let name = name.rsplit(':').next()?;
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '?');
    (!name.is_empty() && name.chars().all(is_name)).then(|| Tag {
        name: name.to_owned(),
        kind,
        text,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags(text: &str) -> Vec<(String, Kind)> {
        let mut input = Input::default();
        assert!(input.push(text.as_bytes()));
        let mut tags = Vec::new();
        while let Some(tag) = next_tag(&mut input) {
            let tag = tag.unwrap();
            tags.push((tag.name, tag.kind));
        }
        tags
    }

    #[test]
    fn tags_are_found_also_with_brackets_in_quotes() {
        let found = tags("<?xml version='1.0'?><a:b x='>' y=\"'>\">t<c/></a:b><d");
        let name = |name: &str| name.to_owned();
        assert_eq!(
            found,
            [
                (name("xml"), Kind::Declaration),
                (name("b"), Kind::Open),
                (name("c"), Kind::Empty),
                (name("b"), Kind::Close),
            ]
        );
    }

    #[test]
    fn forbidden_xml_is_refused() {
        for wrong in ["<!-- x -->", "<![CDATA[x]]>", "<!DOCTYPE x>", "<>", "< a>", "<a$>"] {
            let mut input = Input::default();
            assert!(input.push(wrong.as_bytes()));
            assert_eq!(next_tag(&mut input), Some(Err(())), "{wrong}");
        }
    }
}
