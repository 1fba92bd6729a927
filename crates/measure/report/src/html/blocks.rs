//! What a section holds.

use super::{Page, flame, plot, table};
use crate::clean::html as esc;
use crate::{Block, Caution, Code, Note, NoteKind};

pub(super) fn block(page: &mut Page, out: &mut String, block: &Block) {
    match block {
        Block::Paragraph(line) => out.push_str(&format!("<p>{}</p>\n", line.to_html())),
        Block::List(items) => {
            out.push_str("<ul>\n");
            for item in items {
                out.push_str(&format!("<li>{}</li>\n", item.to_html()));
            }
            out.push_str("</ul>\n");
        }
        Block::Plot(one) => plot::figure(page, out, one),
        Block::Flame(one) => flame::figure(page, out, one),
        Block::Table(one) => table::table(page, out, one, table::Place::Text),
        Block::Code(one) => code(page, out, one),
        Block::Note(one) => note(out, one),
    }
}

fn code(page: &mut Page, out: &mut String, code: &Code) {
    let id = page.ids.unique("code");
    let language = match code.language.as_str() {
        "" => String::new(),
        language => format!(" <span class=\"language\">{}</span>", esc(language)),
    };
    out.push_str(&format!(
        "<figure class=\"code\">\n<figcaption id=\"{id}\">{}{language}</figcaption>\n\
         <pre tabindex=\"0\" aria-labelledby=\"{id}\" role=\"region\"><code>{}</code></pre>\n\
         </figure>\n",
        esc(&code.caption),
        esc(&code.text)
    ));
}

pub(super) fn note(out: &mut String, note: &Note) {
    begin_note(out, note);
    out.push_str("</div>\n");
}

/// A note, and what it means for the answer.
pub(super) fn caution(out: &mut String, caution: &Caution) {
    begin_note(out, &caution.note);
    let (lead, why) = (caution.effect.lead(), caution.effect.why().to_html());
    out.push_str(&format!("<p class=\"effect\"><strong>{lead}:</strong> {why}</p>\n</div>\n"));
}

fn begin_note(out: &mut String, note: &Note) {
    let (class, word) = match note.kind {
        NoteKind::Info => ("info", "Note"),
        NoteKind::Warning => ("warning", "Warning"),
    };
    out.push_str(&format!(
        "<div class=\"note {class}\" role=\"note\">\n<p><strong>{word}.</strong> {}</p>\n",
        note.text.to_html()
    ));
    if let Some(remedy) = &note.remedy {
        out.push_str(&format!(
            "<p class=\"remedy\"><strong>What to do:</strong> {}</p>\n",
            remedy.to_html()
        ));
    }
}
