//! Style sheets and scripts.

use super::{Reference, Writer, is_plain, pad};
use crate::page::{Kind, ObjectId};

const COMMENT: (&str, &str) = ("/*", "*/");

/// A style sheet of `size` bytes that tells of these, and those that found no room or have none here.
pub(super) fn style(
    writer: &Writer<'_>,
    id: ObjectId,
    children: &[ObjectId],
    size: usize,
) -> (Vec<u8>, Vec<ObjectId>) {
    let mut sheet = Sheet::default();
    let mut left = Vec::new();
    for child in children {
        let object = writer.page.object(*child).filter(|object| is_plain(object));
        let is_styled = writer.styled.contains(&id);
        let url = css_url(&writer.relative(*child, id));
        let (list, text) = match object.map(|object| object.kind) {
            Some(Kind::Style) => (IMPORTS, format!("@import {url};")),
            Some(Kind::Image) if is_styled => (IMAGES, url),
            Some(Kind::Font) if is_styled => (FONTS, font(*child, &url)),
            _ => {
                left.push(*child);
                continue;
            }
        };
        sheet[list].push(text);
        if text_of(&sheet, id).len() > size {
            sheet[list].pop();
            left.push(*child);
        }
    }
    (filled(text_of(&sheet, id), size), left)
}

/// What a style sheet says, by list.
type Sheet = [Vec<String>; 3];

/// They stand before all else (CSS Cascading 4 §2).
const IMPORTS: usize = 0;
/// One element has all of them as backgrounds: each is asked for.
const IMAGES: usize = 1;
const FONTS: usize = 2;

fn font(id: ObjectId, url: &str) -> String {
    let name = format!("f{}", id.0);
    format!("@font-face{{font-family:{name};src:{url}}}#{name}{{font-family:{name}}}")
}

fn text_of(sheet: &Sheet, id: ObjectId) -> String {
    let images = sheet[IMAGES].join(",");
    let images = match images.as_str() {
        "" => images,
        _ => format!("#s{}{{background:{images}}}", id.0),
    };
    format!("{}{images}{}", sheet[IMPORTS].concat(), sheet[FONTS].concat())
}

/// A script of `size` bytes that tells of these, and those that found no room.
pub(super) fn script(
    writer: &Writer<'_>,
    id: ObjectId,
    children: &[ObjectId],
    size: usize,
) -> (Vec<u8>, Vec<ObjectId>) {
    let (mut text, mut left) = (String::new(), Vec::new());
    let document = writer.owner(id);
    for child in children {
        let call = writer.reference(*child, Some(document)).as_ref().map(Reference::call);
        match call.filter(|call| text.len() + call.len() <= size) {
            Some(call) => text += &call,
            None => left.push(*child),
        }
    }
    (filled(text, size), left)
}

fn filled(mut text: String, size: usize) -> Vec<u8> {
    let gap = size.saturating_sub(text.len());
    pad(&mut text, gap, COMMENT);
    text.into_bytes()
}

/// `url(…)`, with marks only where it needs them (CSS Syntax 3 §4.3.6).
fn css_url(url: &str) -> String {
    if url.contains(['\'', '(', ')', '\\', '"']) {
        format!("url(\"{}\")", url.replace('\\', "\\\\"))
    } else {
        format!("url({url})")
    }
}
