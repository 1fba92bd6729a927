//! Key figures, calibration and manifest.

use fault::one_line;
use serde_json::Value;

use super::Page;
use crate::clean::html as esc;
use crate::{Fact, KeyFigure, Report};

/// The heading of the last section.
pub(super) const PROVENANCE_TITLE: &str = "How this was measured";

pub(super) fn key_figures(figures: &[KeyFigure]) -> String {
    if figures.is_empty() {
        return String::new();
    }
    let mut out = String::from("<dl class=\"figures\">\n");
    for figure in figures {
        let unit = match figure.unit.as_str() {
            "" => String::new(),
            unit => format!("\u{00A0}<span class=\"unit\">{}</span>", esc(unit)),
        };
        let detail = match figure.detail.as_str() {
            "" => String::new(),
            detail => format!("<dd class=\"detail\">{}</dd>", esc(detail)),
        };
        let means = match figure.means.as_str() {
            "" => String::new(),
            means => format!("<dd class=\"means\">{}</dd>", esc(means)),
        };
        out.push_str(&format!(
            "<div><dt>{}</dt><dd class=\"value\">{}{unit}</dd>{means}{detail}</div>\n",
            esc(&figure.label),
            esc(&figure.value)
        ));
    }
    out.push_str("</dl>\n");
    out
}

pub(super) fn provenance(
    page: &mut Page,
    report: &Report,
    (id, fold): (&str, super::Fold),
) -> String {
    let mut out = String::new();
    super::begin_section(&mut out, id, PROVENANCE_TITLE, fold);
    if !report.command.is_empty() {
        let label = page.ids.unique("command");
        out.push_str(&format!(
            "<figure class=\"code\">\n<figcaption id=\"{label}\">The command that makes this \
             report again</figcaption>\n<pre tabindex=\"0\" aria-labelledby=\"{label}\" \
             role=\"region\"><code>{}</code></pre>\n</figure>\n",
            esc(&report.command)
        ));
    }
    if !report.recorded_command.is_empty() {
        out.push_str(&format!(
            "<p>The results name the command that made them. Who wrote it is not known here:</p>\n\
             <blockquote class=\"recorded\">{}</blockquote>\n",
            esc(&one_line(&report.recorded_command))
        ));
    }
    if !report.calibration.is_empty() {
        out.push_str("<h3>Calibration: what the lab itself adds</h3>\n");
        out.push_str(&facts_table(
            page,
            "The lab's own errors, measured by itself",
            &report.calibration,
        ));
    }
    if !report.manifest.is_null() {
        let mut rows = Vec::new();
        flatten(&mut rows, String::new(), &report.manifest, 0);
        if rows.len() >= MOST_ROWS {
            rows.push(Fact::new("more", "in manifest.json", ""));
        }
        out.push_str("<h3>Manifest</h3>\n");
        out.push_str(&facts_table(page, "Versions, machine and settings", &rows));
    }
    out.push_str(super::END_OF_SECTION);
    out
}

fn facts_table(page: &mut Page, caption: &str, facts: &[Fact]) -> String {
    let meanings = facts.iter().any(|fact| !fact.meaning.is_empty());
    let id = page.ids.unique("facts");
    let mut out = format!(
        "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-labelledby=\"{id}\">\n\
         <table class=\"facts\">\n<caption id=\"{id}\">{}</caption>\n<thead><tr><th scope=\"col\">\
         What</th><th scope=\"col\">Value</th>",
        esc(caption)
    );
    if meanings {
        out.push_str("<th scope=\"col\">Meaning</th>");
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for fact in facts {
        out.push_str(&format!(
            "<tr><th scope=\"row\">{}</th><td>{}</td>",
            esc(&fact.name),
            esc(&fact.value)
        ));
        if meanings {
            out.push_str(&format!("<td>{}</td>", esc(&fact.meaning)));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n</table>\n</div>\n");
    out
}

/// Most rows of a manifest. Ours have some hundred.
const MOST_ROWS: usize = 2000;

/// Levels of a JSON value that become rows of their own.
const LEVELS: usize = 6;

/// Rows of a JSON value: keys joined by ` / `, lists of plain values on one line. Below
/// [`LEVELS`] the value is printed as JSON.
fn flatten(rows: &mut Vec<Fact>, name: String, value: &Value, depth: usize) {
    let join = |key: &str| match name.as_str() {
        "" => key.to_owned(),
        name => format!("{name} / {key}"),
    };
    if rows.len() >= MOST_ROWS {
        return;
    }
    match value {
        Value::Object(map) if depth < LEVELS && !map.is_empty() => {
            for (key, inner) in map {
                flatten(rows, join(&key.replace('_', " ")), inner, depth + 1);
            }
        }
        Value::Array(items) if items.iter().all(|item| !item.is_object() && !item.is_array()) => {
            let texts: Vec<String> = items.iter().map(scalar).collect();
            rows.push(Fact::new(name, texts.join(", "), ""));
        }
        Value::Array(items) if depth < LEVELS => {
            for (at, inner) in items.iter().enumerate() {
                flatten(rows, join(&(at + 1).to_string()), inner, depth + 1);
            }
        }
        other => rows.push(Fact::new(name, scalar(other), "")),
    }
}

fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "\u{2013}".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_manifest_has_a_bounded_number_of_rows() {
        let mut rows = Vec::new();
        let value = Value::from(vec![json!([[0]]); 3 * MOST_ROWS]);
        flatten(&mut rows, String::new(), &value, 0);
        assert_eq!(rows.len(), MOST_ROWS);
    }

    #[test]
    fn a_manifest_becomes_rows() {
        let mut rows = Vec::new();
        let value =
            json!({"cpu": {"cores": 2, "flags": ["a", "b"]}, "runs": [{"k": null}], "empty": {}});
        flatten(&mut rows, String::new(), &value, 0);
        let rows: Vec<_> = rows.iter().map(|r| (r.name.as_str(), r.value.as_str())).collect();
        assert_eq!(
            rows,
            [("cpu / cores", "2"), ("cpu / flags", "a, b"), ("empty", "{}"), ("runs / 1 / k", "–")]
        );
    }
}
