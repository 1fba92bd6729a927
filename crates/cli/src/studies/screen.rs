//! What `wiretax run` ends in: one screen of 80 columns and 40 lines. Each study's answer, what to be
//! careful about, and where the rest is.

use std::path::Path;

use fault::one_line;
use report::{Caution, Effect, Inline, NoteKind};
use study::quoted;

use super::results::{Found, Results, caution};
use super::words;

/// Columns of the screen.
const COLUMNS: usize = 80;
/// Columns of a study's name.
const NAME: usize = 13;
/// Lines of a study's answer.
const LINES: usize = 3;

/// The screen; `html` is where the report is.
pub fn screen(results: &Results, folder: &Path, html: &Path, width: usize) -> String {
    let width = width.min(COLUMNS);
    let mut text = String::new();
    for found in &results.found {
        text += &answer_row(found, width);
        text.push('\n');
    }
    if let Some(line) = cautions(results) {
        text += &row("cautions", &[cut(&line, width.saturating_sub(NAME))]);
    }
    let folder = quoted(&folder.display().to_string());
    text += &row("report", &[one_line(&html.display().to_string()).into_owned()]);
    text += &row("tables", &[one_line(&format!("wiretax report {folder}")).into_owned()]);
    text
}

/// A study's name and its answer, as the screen has them.
pub fn answer_row(found: &Found, width: usize) -> String {
    let lines = answer(&found.findings.answer(), width.min(COLUMNS).saturating_sub(NAME));
    row(&words(found.study), &lines)
}

/// A name, and lines beside it.
fn row(name: &str, lines: &[String]) -> String {
    let names = std::iter::once(name).chain(std::iter::repeat(""));
    let rows = names.zip(lines).map(|(name, line)| format!("{name:<NAME$}{line}\n"));
    rows.collect()
}

/// As many sentences of an answer as fit, the first at least: cut where it alone is too long.
fn answer(sentences: &[Inline], width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for sentence in sentences {
        let text = sentence.to_text(width);
        let more = text.lines().map(str::to_owned).collect::<Vec<_>>();
        if lines.is_empty() {
            lines = more;
        } else if lines.len() + more.len() <= LINES {
            lines.extend(more);
        } else {
            break;
        }
    }
    if lines.len() > LINES {
        lines.truncate(LINES);
        if let Some(last) = lines.last_mut() {
            *last = cut(&format!("{last} …"), width);
        }
    }
    lines
}

/// What makes the answers worth less, in one line; what may change an answer stands first.
fn cautions(results: &Results) -> Option<String> {
    let warnings = results.manifest.warnings.iter().map(caution);
    let found = results.found.iter().flat_map(|found| found.findings.cautions());
    let all = warnings.chain(found).filter(|one| one.note.kind == NoteKind::Warning);
    line(&all.collect::<Vec<_>>())
}

fn line(cautions: &[Caution]) -> Option<String> {
    let changes = |one: &&Caution| matches!(one.effect, Effect::MayChange(_));
    let (first, rest): (Vec<&Caution>, Vec<&Caution>) = cautions.iter().partition(changes);
    let text = |one: &&Caution| one.note.text.to_plain().trim_end_matches('.').to_owned();
    let texts: Vec<String> = first.iter().chain(&rest).map(text).collect();
    let count = match (cautions.len(), first.len()) {
        (0, _) => return None,
        (all, 0) => format!("{all}, no answer would change"),
        (all, some) => format!("{all}, {some} may change an answer"),
    };
    Some(format!("{count}: {}", texts.join("; ")))
}

/// A text of so many columns at most; `…` stands for what is cut.
fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_takes_three_lines_at_most() {
        let sentence = |words: usize| Inline::new().text(vec!["word"; words].join(" ") + ".");
        assert_eq!(answer(&[], 40), Vec::<String>::new());
        assert_eq!(answer(&[sentence(2), sentence(3)], 40), ["word word.", "word word word."]);
        let long = answer(&[sentence(100), sentence(1)], 40);
        assert_eq!(long.len(), LINES);
        assert!(long.iter().all(|line| line.chars().count() <= 40), "{long:?}");
        assert!(long[2].ends_with('…'), "{long:?}");
        // A sentence that does not fit is left out whole.
        assert_eq!(answer(&[sentence(2), sentence(40)], 40), ["word word."]);
    }

    #[test]
    fn cautions_that_may_change_an_answer_stand_first() {
        let note = |text: &str| report::Note::warning(text, "Do this.");
        assert_eq!(line(&[]), None);
        let stands = note("It is old.").answer_stands("it is the same.");
        let told = line(std::slice::from_ref(&stands)).unwrap();
        assert_eq!(told, "1, no answer would change: It is old");
        let changes = note("It is slow.").answer_may_change("times could be less.");
        let told = line(&[stands, changes]).unwrap();
        assert_eq!(told, "2, 1 may change an answer: It is slow; It is old");
    }

    #[test]
    fn rows_stand_under_each_other() {
        let lines = ["one".to_owned(), "two".to_owned()];
        assert_eq!(row("page", &lines), "page         one\n             two\n");
        assert_eq!(cut("a long text", 7), "a long…");
    }
}
