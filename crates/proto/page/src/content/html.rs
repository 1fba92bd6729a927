//! Documents.

use super::{Reference, Writer, is_plain, pad};
use crate::page::{Kind, Object, ObjectId};
use crate::share::Share;

const TYPE: &str = "<!doctype html>";
const BODY: &str = "<body>";
const COMMENT: (&str, &str) = ("<!--", "-->");

/// A piece of a document.
struct Piece {
    text: String,
    /// Bytes of the document that are there when it has been read.
    end: u64,
    /// The sooner it is left out where there is no room: the higher.
    rank: u8,
    /// What it tells of, or for which sheet its element is.
    of: Option<ObjectId>,
    is_element: bool,
}

/// A document of `size` bytes that tells of these, and those that found no room.
pub(super) fn write(
    writer: &mut Writer<'_>,
    id: ObjectId,
    children: &[ObjectId],
    size: usize,
) -> (Vec<u8>, Vec<ObjectId>) {
    let mut pieces = pieces(writer, id, children, size as u64);
    let mut left = Vec::new();
    let mut length: usize = pieces.iter().map(|piece| piece.text.len()).sum();
    while length > size {
        // The last of the least important.
        let worst = pieces.iter().enumerate().max_by_key(|(at, piece)| (piece.rank, *at));
        let Some((worst, _)) = worst else { break };
        let piece = pieces.remove(worst);
        length -= piece.text.len();
        left.extend(piece.of.filter(|_| !piece.is_element));
    }
    let elements = pieces.iter().filter(|piece| piece.is_element);
    writer.styled.extend(elements.filter_map(|piece| piece.of));
    left.sort_unstable();
    (join(&pieces, length, size).into_bytes(), left)
}

/// The pieces one after the other, each as near to its place as the others allow.
fn join(pieces: &[Piece], length: usize, size: usize) -> String {
    let mut text = String::with_capacity(size);
    let mut behind = length;
    for piece in pieces {
        behind -= piece.text.len();
        let end = usize::try_from(piece.end).unwrap_or(size).min(size.saturating_sub(behind));
        let begin = end.saturating_sub(piece.text.len());
        let gap = begin.saturating_sub(text.len());
        pad(&mut text, gap, COMMENT);
        text.push_str(&piece.text);
    }
    let gap = size.saturating_sub(text.len());
    pad(&mut text, gap, COMMENT);
    text
}

fn pieces(writer: &Writer<'_>, id: ObjectId, children: &[ObjectId], size: u64) -> Vec<Piece> {
    let fixed = |text: &str, rank| Piece {
        text: text.to_owned(),
        end: 0,
        rank,
        of: None,
        is_element: false,
    };
    let objects: Vec<(ObjectId, &Object)> =
        children.iter().filter_map(|id| Some((*id, writer.page.object(*id)?))).collect();
    let blocking = objects.iter().filter(|(_, object)| object.blocking && is_tag(object));
    // The head ends behind the last object that blocks rendering.
    let head_end = blocking.map(|(_, object)| after(object)).max();
    let in_head = |object: &Object| {
        !matches!(object.kind, Kind::Image | Kind::Document)
            && head_end.is_some_and(|end| after(object) <= end)
    };
    let (head, body): (Vec<_>, Vec<_>) =
        objects.into_iter().partition(|(_, object)| in_head(object));
    let mut pieces = vec![fixed(TYPE, 1)];
    let told = |(child, object): &(ObjectId, &Object)| tell(writer, id, *child, object, size);
    pieces.extend(head.iter().filter_map(told));
    pieces.push(fixed(BODY, 1));
    pieces.extend(elements(writer, id));
    pieces.extend(body.iter().filter_map(told));
    pieces
}

fn after(object: &Object) -> Share {
    object.found.map(|found| found.after).unwrap_or_default()
}

/// Whether it is a tag of its own, and not a call in a script.
fn is_tag(object: &Object) -> bool {
    let by_tag = matches!(object.kind, Kind::Style | Kind::Script | Kind::Image | Kind::Document);
    by_tag && is_plain(object)
}

/// The piece that tells of a child.
fn tell(
    writer: &Writer<'_>,
    document: ObjectId,
    child: ObjectId,
    object: &Object,
    size: u64,
) -> Option<Piece> {
    let url = attribute(&writer.relative(child, document));
    let (text, rank) = match object.kind {
        _ if !is_tag(object) => {
            let call = writer.reference(child, Some(document)).as_ref().map(Reference::call)?;
            (format!("<script>{call}</script>"), 5)
        }
        Kind::Style => (format!("<link rel=stylesheet href={url}>"), 0),
        Kind::Script if object.blocking => (format!("<script src={url}></script>"), 0),
        Kind::Script => (format!("<script async src={url}></script>"), 3),
        Kind::Document => (format!("<iframe src={url}></iframe>"), 4),
        _ => (format!("<img src={url}>"), 6),
    };
    let end = after(object).of(size);
    Some(Piece { text, end, rank, of: Some(child), is_element: false })
}

/// The elements that a document's sheets style, as early as can be.
fn elements<'a>(writer: &'a Writer<'_>, document: ObjectId) -> impl Iterator<Item = Piece> + 'a {
    let sheets = writer.sheets.get(&document).map_or(&[][..], Vec::as_slice);
    sheets.iter().filter_map(|sheet| {
        let mut text = String::new();
        for child in writer.page.children(*sheet) {
            let object = writer.page.object(*child).filter(|object| is_plain(object));
            match object.map(|object| object.kind) {
                Some(Kind::Font) => text += &format!("<i id=f{}>x</i>", child.0),
                Some(Kind::Image) if !text.contains("<i id=s") => {
                    text += &format!("<i id=s{}>x</i>", sheet.0);
                }
                _ => {}
            }
        }
        let is_needed = !text.is_empty();
        is_needed.then_some(Piece { text, end: 0, rank: 2, of: Some(*sheet), is_element: true })
    })
}

/// A URL as an attribute's value, with marks around it only where it needs them (HTML §13.1.2.3).
fn attribute(url: &str) -> String {
    let url = url.replace('&', "&amp;");
    if url.contains(['"', '\'', '=', '<', '>', '`']) { format!("\"{url}\"") } else { url }
}
