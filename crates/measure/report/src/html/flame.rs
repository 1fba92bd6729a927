//! A flame graph: boxes at shares of the width, the root at the top, and a table of the same.

use super::{Page, table};
use crate::Flame;
use crate::clean::html as esc;

/// Height of a row of frames, in rem.
const ROW: f64 = 1.25;

pub(super) fn figure(page: &mut Page, out: &mut String, flame: &Flame) {
    let id = page.ids.unique("flame");
    let placed = flame.placed();
    let rows = placed.iter().map(|one| one.frame.depth + 1).max().unwrap_or(0);
    out.push_str(&format!(
        "<figure class=\"flame\" id=\"{id}\">\n<details{}>\n<summary><h3>{}</h3></summary>\n",
        if flame.open { " open" } else { "" },
        esc(&flame.title)
    ));
    legend(out, flame);
    out.push_str(&format!(
        "<div class=\"frames\" role=\"img\" aria-label=\"{}\" style=\"height:{:.2}rem\">\n",
        esc(&flame.alt),
        rows as f64 * ROW
    ));
    for one in placed {
        out.push_str(&format!(
            "<span class=\"k{}\" style=\"left:{:.3}%;width:{:.3}%;top:{:.2}rem\" title=\"{}\">{}</span>\n",
            colour(flame, one.frame.kind),
            100.0 * one.left,
            100.0 * one.width,
            one.frame.depth as f64 * ROW,
            esc(&flame.says(one)),
            esc(&one.frame.label)
        ));
    }
    out.push_str(&format!(
        "</div>\n<figcaption><p class=\"means\">{}</p><p>{}</p></figcaption>\n",
        esc(&flame.means),
        esc(&flame.alt)
    ));
    out.push_str("<details class=\"values\"><summary>Values as a table</summary>\n");
    table::table(page, out, &flame.values(), table::Place::Plot);
    out.push_str("</details>\n</details>\n</figure>\n");
}

/// Colours that the style has; what has none is grey.
const COLOURS: usize = 7;

fn colour(flame: &Flame, kind: usize) -> usize {
    if kind < flame.kinds.len() && kind < COLOURS { kind + 1 } else { 0 }
}

fn legend(out: &mut String, flame: &Flame) {
    out.push_str("<ul class=\"legend\">\n");
    for (at, kind) in flame.kinds.iter().enumerate() {
        out.push_str(&format!(
            "<li><i class=\"k{}\" aria-hidden=\"true\"></i><span>{}</span></li>\n",
            colour(flame, at),
            esc(kind)
        ));
    }
    out.push_str("</ul>\n");
}
