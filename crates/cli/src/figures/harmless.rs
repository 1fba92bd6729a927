//! Texts of a folder of results, before a study makes Markdown of them.

use fault::{Fault, OrProblem, Problem, WhileDoing, one_line};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Returns the same value with all its texts harmless: names, labels, versions, reasons, commands, the plan.
///
/// # Errors
/// A harmless text is not what the value must have in its place: the results are no results of this program.
pub(super) fn harmless<T: Serialize + DeserializeOwned>(value: &T) -> Result<T, Problem> {
    let value = serde_json::to_value(value).blame(Fault::Results)?;
    let harmless = serde_json::from_value(of_value(value, of_label)).blame(Fault::Results);
    harmless.while_doing(|| "the results have texts that cannot stand in Markdown")
}

fn of_value(value: Value, of: fn(&str) -> String) -> Value {
    match value {
        Value::String(text) => Value::String(of(&text)),
        Value::Array(items) => items.into_iter().map(|item| of_value(item, of)).collect(),
        Value::Object(entries) => {
            let entries = entries.into_iter();
            let entries = entries.map(|(key, value)| (of_text(&key), of_value(value, of)));
            Value::Object(entries.collect::<Map<_, _>>())
        }
        other => other,
    }
}

/// Labels may be JSON, which stays what it is: its own texts are made harmless.
fn of_label(text: &str) -> String {
    let is_json = text.starts_with(['[', '{']);
    let Some(inner) = is_json.then(|| serde_json::from_str::<Value>(text).ok()).flatten() else {
        return of_text(text);
    };
    let harmless = of_value(inner.clone(), of_text);
    match harmless == inner && !text.contains(char::is_control) {
        true => text.to_owned(),
        false => harmless.to_string(),
    }
}

/// One line without the marks of Markdown, HTML and code: U+FFFD stands for each.
///
/// A mark is replaced and not escaped: the text may come to stand in code, where an escape is read as text.
fn of_text(text: &str) -> String {
    let is_mark = |c: char| matches!(c, '|' | '<' | '>' | '`' | '[' | ']' | '\\');
    one_line(text).replace(is_mark, "\u{FFFD}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn no_text_is_a_mark() {
        let text =
            "a\u{1b}[2J|x|</td><script>1</script> `x`\n\n# b ![i](http://e/x) <!-- /figures -->\\";
        let shown = of_text(text);
        let marks = |c: char| "|<>`[]\\".contains(c) || c.is_control();
        assert!(!shown.contains(marks), "{shown}");
        for kept in
            ["rustls 0.23.46", "TLS_AES_128_GCM_SHA256", "Intel(R) Xeon(R) @ 2 GHz", "a 'b'"]
        {
            assert_eq!(of_text(kept), kept);
        }
    }

    #[test]
    fn keys_and_nested_texts_are_harmless_and_numbers_stay() {
        let value = json!({ "a|b": [{ "c": "<d>" }, 0.1, u64::MAX, null, true] });
        let shown =
            json!({ "a\u{FFFD}b": [{ "c": "\u{FFFD}d\u{FFFD}" }, 0.1, u64::MAX, null, true] });
        assert_eq!(harmless(&value).unwrap(), shown);
    }

    #[test]
    fn json_in_a_label_stays_json() {
        assert_eq!(of_label(r#"[["a",74.0],"b"]"#), r#"[["a",74.0],"b"]"#);
        assert_eq!(of_label("[\"Okm<L>\",\n\n1]"), "[\"Okm\u{FFFD}L\u{FFFD}\",1]");
        assert_eq!(of_label(r#"["\u003cb\u003e"]"#), "[\"\u{FFFD}b\u{FFFD}\"]");
        assert_eq!(of_label("[l](javascript:1)"), of_text("[l](javascript:1)"));
    }
}
