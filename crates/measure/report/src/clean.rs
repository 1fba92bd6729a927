//! Escapes text for HTML, and for the plotting library's markup.

use fault::plain;

/// Escapes text for HTML content and for attribute values in double or single quotes.
pub(crate) fn html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in plain(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// Escapes text for plotly.js, which reads a subset of HTML in labels and hover texts and would
/// make a link of `<a href>`; a line feed becomes a line break.
pub(crate) fn plotly(text: &str) -> String {
    plain(text)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('\n', "<br>")
}

/// Makes JSON fit for a `<script>` element: `<` stands only inside strings, where its escape means
/// the same, and without it neither `</script>` nor `<!--` can appear (HTML standard §4.12.1.3).
pub(crate) fn json_for_script(json: &str) -> String {
    json.replace('<', "\\u003c")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_text() {
        assert_eq!(html("a\u{1b}[31m\u{202e}"), "a\u{fffd}[31m\u{fffd}");
        assert_eq!(html("<script>\"&'</script>"), "&lt;script&gt;&quot;&amp;&#39;&lt;/script&gt;");
        assert_eq!(plotly("<a href='x'>\nb"), "&lt;a href='x'&gt;<br>b");
    }

    #[test]
    fn a_script_element_cannot_be_closed_from_inside() {
        let json = serde_json::json!({"name": "</script><!-- <script>"}).to_string();
        let safe = json_for_script(&json);
        assert!(!safe.contains('<'));
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&safe).ok(),
            serde_json::from_str(&json).ok()
        );
    }
}
