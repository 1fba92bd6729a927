//! A plot: title, legend, drawing, caption, table.

use std::io::Write;
use std::sync::LazyLock;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::{Page, table};
use crate::clean::html as esc;
use crate::plot::{Legend, Shape, figure as make_figure};
use crate::{Plot, Scale};

/// The plotting library in a `<script>` element that no browser runs: compressed, which makes 1.9 MB of
/// its 4.7, and unpacked by our own script. Its licence's notice stands before it.
pub(super) fn library() -> &'static str {
    static LIBRARY: LazyLock<String> = LazyLock::new(|| {
        let source = source();
        // Writing to memory does not fail.
        let mut packer = GzEncoder::new(Vec::new(), Compression::best());
        let packed = packer.write_all(source.as_bytes()).and_then(|()| packer.finish());
        let notice = source.lines().take_while(|line| !line.contains("*/"));
        let notice = notice.map(|line| line.trim_start_matches(['/', '*', ' ']));
        let notice: Vec<&str> = notice.filter(|line| !line.is_empty()).collect();
        format!(
            "<!-- {} -->\n<script type=\"text/plain\" id=\"plotly\">{}</script>",
            esc(&notice.join(" ")).replace("--", "- -"),
            base64(&packed.unwrap_or_default())
        )
    });
    &LIBRARY
}

/// plotly.js, out of the `plotly` crate, which gives it together with MathJax (2 MB more, for formulas that
/// no plot here has): the first element is plotly.js, and a test holds that.
fn source() -> String {
    let sources = plotly::Plot::offline_js_sources();
    let first = sources.split("</script>").next().unwrap_or_default();
    first.split_once('>').map_or("", |(_, script)| script).trim().to_owned()
}

/// RFC 4648 §4.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digit = |group: u32, at: u32| {
        let index = (group >> (18 - 6 * at)) & 63;
        DIGITS.get(index as usize).map_or('A', |digit| char::from(*digit))
    };
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or_default());
        let group = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            text.push(if at as usize <= chunk.len() { digit(group, at) } else { '=' });
        }
    }
    text
}

pub(super) fn figure(page: &mut Page, out: &mut String, plot: &Plot) {
    page.plots += 1;
    let id = page.ids.unique(&format!("plot-{}", page.plots));
    let drawing = make_figure(plot);
    let (_, y) = plot.axes();
    out.push_str(&format!(
        "<figure class=\"plot\" id=\"{id}\">\n<div class=\"drawing\">\n<h3>{}</h3>\n",
        esc(plot.title())
    ));
    legend(out, &drawing.legend);
    if !y.title.is_empty() {
        let log = if y.scale == Scale::Log { ", logarithmic" } else { "" };
        out.push_str(&format!("<p class=\"y-title\">{}{log}</p>\n", esc(&y.head())));
    }
    // The picture's accessible text is the sentence; what it draws is in the table.
    out.push_str(&format!(
        "<div class=\"canvas\" role=\"img\" aria-label=\"{}\" style=\"min-height:{}px\">\
         <noscript><p>The plot is drawn by a script; its values are in the table below.</p>\
         </noscript></div>\n</div>\n<p class=\"picked\" aria-live=\"polite\" hidden></p>\n",
        esc(plot.alt()),
        drawing.height
    ));
    out.push_str(&format!(
        "<figcaption><p class=\"means\">{}</p><p>{}</p>",
        esc(plot.means()),
        esc(plot.alt())
    ));
    for text in [Some(plot.caption_text()), drawing.thinned.as_deref()].into_iter().flatten() {
        if !text.is_empty() {
            out.push_str(&format!("<p class=\"caption\">{}</p>", esc(text)));
        }
    }
    out.push_str("</figcaption>\n<details class=\"values\"><summary>Values as a table</summary>\n");
    table::table(page, out, &plot.values(), table::Place::Plot);
    out.push_str("</details>\n");
    out.push_str(&format!(
        "<script type=\"application/json\" class=\"figure\">{}</script>\n</figure>\n",
        drawing.json
    ));
}

fn legend(out: &mut String, entries: &[Legend]) {
    if entries.is_empty() {
        return;
    }
    out.push_str("<ul class=\"legend\">\n");
    for (index, entry) in entries.iter().enumerate() {
        out.push_str(&format!(
            "<li data-series=\"{index}\">{}<span>{}</span></li>\n",
            swatch(entry),
            esc(&entry.label)
        ));
    }
    out.push_str("</ul>\n");
}

/// A sample of the line, marker or area as the plot draws it.
fn swatch(entry: &Legend) -> String {
    let style = entry.style;
    let mut inside = String::new();
    if entry.area && !entry.line {
        let fill = if style.hollow { "none" } else { "currentColor" };
        inside.push_str(&format!(
            "<rect x=\"7\" y=\"2\" width=\"14\" height=\"10\" fill=\"{fill}\" stroke=\"currentColor\" stroke-width=\"2\"/>"
        ));
    }
    if entry.line {
        inside.push_str(&format!(
            "<path d=\"M0 7H28\" stroke=\"currentColor\" stroke-width=\"{}\" stroke-dasharray=\"{}\"/>",
            style.line_width(),
            style.dash_array()
        ));
    }
    if entry.marker {
        let fill = if style.hollow { "var(--bg)" } else { "currentColor" };
        inside.push_str(&format!(
            "<path d=\"{}\" fill=\"{fill}\" stroke=\"currentColor\" stroke-width=\"{}\"/>",
            outline(style.shape),
            if style.hollow { "1.75" } else { "0.5" }
        ));
    }
    let slot = match style.slot {
        0 => "-muted".to_owned(),
        slot => slot.to_string(),
    };
    format!(
        "<svg aria-hidden=\"true\" width=\"28\" height=\"14\" viewBox=\"0 0 28 14\" style=\"color:var(--s{slot})\">{inside}</svg>"
    )
}

/// A marker around (14, 7), about nine pixels wide.
fn outline(shape: Shape) -> &'static str {
    match shape {
        Shape::Circle => "M10 7a4 4 0 1 0 8 0a4 4 0 1 0 -8 0Z",
        Shape::Square => "M10.3 3.3h7.4v7.4h-7.4Z",
        Shape::Diamond => "M14 2l5 5l-5 5l-5 -5Z",
        Shape::TriangleUp => "M14 2.2l4.8 8.3h-9.6Z",
        Shape::TriangleDown => "M14 11.8l4.8 -8.3h-9.6Z",
        Shape::X => {
            "M10.3 4.7l1.4 -1.4l2.3 2.3l2.3 -2.3l1.4 1.4l-2.3 2.3l2.3 2.3l-1.4 1.4l-2.3 -2.3l-2.3 2.3l-1.4 -1.4l2.3 -2.3Z"
        }
        Shape::Cross => "M12.8 2.5h2.4v3.3h3.3v2.4h-3.3v3.3h-2.4v-3.3h-3.3v-2.4h3.3Z",
        Shape::Star => {
            "M14 1.6l1.5 3.6l3.9 .3l-3 2.5l1 3.8l-3.4 -2.1l-3.4 2.1l1 -3.8l-3 -2.5l3.9 -.3Z"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_is_plotly_js_alone() {
        let packed = library();
        assert!(
            packed.starts_with("<!-- plotly.js v") && packed.contains("MIT"),
            "{}",
            &packed[..200]
        );
        assert_eq!(packed.matches("<script").count(), 1);
        assert_eq!(packed.matches("</script").count(), 1);
        let library = source();
        assert!(library.starts_with("/**\n* plotly.js v"), "{}", &library[..100]);
        assert!(library.len() > 4_000_000);
        // MathJax names its parts so; plotly.js only asks whether it is there.
        assert!(!library.contains("MathJax.loader") && !library.contains("mathjax@"));
    }

    #[test]
    fn base64_is_that_of_the_rfc() {
        // RFC 4648 §10.
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }
}
