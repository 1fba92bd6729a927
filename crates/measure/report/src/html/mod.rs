//! The page.

mod blocks;
mod facts;
mod flame;
mod plot;
mod table;

use crate::clean::html as esc;
use crate::ids::Ids;
use crate::{Report, Section};

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// Forbids every load, so that the page is offline by the browser's own hand: nothing but what is
/// in the file runs, and the only pictures are those that the page makes itself (PNG of a plot).
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
                      img-src data: blob:; base-uri 'none'; form-action 'none'";

/// Renders a report as one HTML file: the same bytes for the same report.
#[must_use]
pub fn render(report: &Report) -> String {
    let mut page = Page::default();
    // What stands in the page for itself.
    for id in ["main", "contents", "answer", "plotly"] {
        page.ids.unique(id);
    }
    let sections: Vec<(String, &Section)> =
        report.sections.iter().map(|section| (page.ids.unique(&section.id), section)).collect();
    let provenance = page.ids.unique("provenance");
    let mut body = String::new();
    // With a card for each study the reader chooses what to unfold.
    let open = report.cards.is_empty();
    for (id, section) in &sections {
        let lead = report.cards.iter().any(|card| card.section == section.id);
        begin_section(&mut body, id, &section.title, Fold { open, lead });
        for block in &section.blocks {
            blocks::block(&mut page, &mut body, block);
        }
        body.push_str(END_OF_SECTION);
    }
    body.push_str(&facts::provenance(&mut page, report, (&provenance, Fold { open, lead: !open })));
    let mut entries: Vec<(&str, &str)> =
        sections.iter().map(|(id, section)| (id.as_str(), section.title.as_str())).collect();
    entries.push((&provenance, facts::PROVENANCE_TITLE));

    let mut out = String::with_capacity(crate::SIZE_BUDGET + body.len());
    head(&mut out, report, page.plots > 0);
    out.push_str("<body>\n<a class=\"skip\" href=\"#main\">Skip to the report</a>\n");
    header(&mut out, report, &sections);
    out.push_str("<div class=\"page\">\n");
    navigation(&mut out, &entries);
    out.push_str("<main id=\"main\" tabindex=\"-1\">\n");
    out.push_str(&body);
    out.push_str("</main>\n</div>\n");
    footer(&mut out, report);
    out.push_str("<script>\n");
    out.push_str(SCRIPT);
    out.push_str("</script>\n</body>\n</html>\n");
    out
}

/// What is counted while the page is made.
#[derive(Default)]
pub(crate) struct Page {
    ids: Ids,
    plots: usize,
}

fn head(out: &mut String, report: &Report, plots: bool) {
    out.push_str("<!doctype html>\n<html lang=\"en-GB\">\n<head>\n<meta charset=\"utf-8\">\n");
    out.push_str(&format!(
        "<meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"generator\" content=\"wiretax\">\n<title>{}</title>\n<style>\n{STYLE}</style>\n",
        esc(&report.title)
    ));
    if plots {
        out.push_str(plot::library());
        out.push('\n');
    }
    out.push_str("</head>\n");
}

/// How a section is folded.
#[derive(Debug, Clone, Copy)]
struct Fold {
    open: bool,
    /// A study begins with it.
    lead: bool,
}

/// Begins a section, which folds.
fn begin_section(out: &mut String, id: &str, title: &str, fold: Fold) {
    let open = if fold.open { " open" } else { "" };
    let class = if fold.lead { " class=\"lead\"" } else { "" };
    out.push_str(&format!(
        "<section id=\"{id}\"{class} aria-labelledby=\"{id}-h\">\n<details class=\"fold\"{open}>\n\
         <summary><h2 id=\"{id}-h\">{}</h2></summary>\n",
        esc(title)
    ));
}

const END_OF_SECTION: &str = "</details>\n</section>\n";

fn header(out: &mut String, report: &Report, sections: &[(String, &Section)]) {
    out.push_str("<header>\n<div class=\"inner\">\n");
    out.push_str(&format!("<h1>{}</h1>\n", esc(&report.title)));
    if !report.subtitle.is_empty() {
        out.push_str(&format!("<p class=\"subtitle\">{}</p>\n", esc(&report.subtitle)));
    }
    out.push_str("<div id=\"answer\">\n");
    if !report.question.is_empty() {
        out.push_str(&format!("<p class=\"question\">{}</p>\n", esc(&report.question)));
    }
    for (at, sentence) in report.answer.iter().enumerate() {
        let class = if at == 0 { "answer" } else { "more" };
        out.push_str(&format!("<p class=\"{class}\">{}</p>\n", sentence.to_html()));
    }
    out.push_str(&facts::key_figures(&report.key_figures));
    if report.cards.is_empty() {
        report.cautions.iter().for_each(|one| blocks::caution(out, one));
    } else {
        cards(out, report, sections);
        cautions(out, report);
    }
    out.push_str("</div>\n</div>\n</header>\n");
}

fn cards(out: &mut String, report: &Report, sections: &[(String, &Section)]) {
    out.push_str("<div class=\"cards\">\n");
    for card in &report.cards {
        out.push_str(&format!(
            "<article class=\"card\">\n<h2>{}</h2>\n<p class=\"question\">{}</p>\n\
             <p class=\"answer\">{}</p>\n",
            esc(&card.title),
            esc(&card.question),
            card.answer.to_html()
        ));
        out.push_str(&facts::key_figures(card.figure.as_slice()));
        if let Some((id, _)) = sections.iter().find(|(_, section)| section.id == card.section) {
            let title = esc(&card.title);
            out.push_str(&format!(
                "<p class=\"on\"><a href=\"#{id}\">Read on<span class=\"unseen\">: {title}</span></a></p>\n"
            ));
        }
        out.push_str("</article>\n");
    }
    out.push_str("</div>\n");
}

/// The cautions of a report with cards: folded, since they are of all studies.
fn cautions(out: &mut String, report: &Report) {
    let count = match report.cautions.len() {
        0 => return,
        1 => "1 caution".to_owned(),
        count => format!("{count} cautions"),
    };
    out.push_str(&format!("<details class=\"cautions\">\n<summary>{count}</summary>\n"));
    report.cautions.iter().for_each(|one| blocks::caution(out, one));
    out.push_str("</details>\n");
}

fn navigation(out: &mut String, entries: &[(&str, &str)]) {
    out.push_str("<nav id=\"contents\" aria-label=\"Contents\">\n<ol>\n");
    for (id, title) in entries {
        out.push_str(&format!("<li><a href=\"#{id}\">{}</a></li>\n", esc(title)));
    }
    out.push_str("</ol>\n</nav>\n");
}

fn footer(out: &mut String, report: &Report) {
    out.push_str("<footer>\n<div class=\"inner\">\n");
    if !report.generated_at.is_empty() {
        out.push_str(&format!("<p>Measured {}.</p>\n", esc(&report.generated_at)));
    }
    // MIT licence of the embedded library: its notice is at the head of its script.
    out.push_str("<p>Made by wiretax. Plots by plotly.js, MIT licence.</p>\n");
    out.push_str("</div>\n</footer>\n");
}
