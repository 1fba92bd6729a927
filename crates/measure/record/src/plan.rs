//! Is it the same plan?

use std::fmt;

use serde_json::Value;

use crate::line::rename_key;

/// A short name for a plan: FNV-1a of its canonical JSON (keys in order, no spaces), 16 hex digits.
/// It tells plans apart; it does not guard against someone who forges one.
#[must_use]
pub fn plan_hash(plan: &Value) -> String {
    let mut hash = Fnv(0xcbf2_9ce4_8422_2325);
    hash.value(plan);
    format!("{:016x}", hash.0)
}

/// A plan whose keys have the names of today.
pub(crate) fn with_keys_renamed(plan: &Value) -> Value {
    fn rename(value: &mut Value, of_key: bool) {
        match value {
            Value::Object(map) => {
                map.iter_mut().for_each(|(name, value)| rename(value, name == "key"));
            }
            Value::Array(items) => items.iter_mut().for_each(|item| rename(item, of_key)),
            Value::String(text) if of_key => rename_key(text),
            _ => {}
        }
    }
    let mut plan = plan.clone();
    rename(&mut plan, false);
    plan
}

struct Fnv(u64);

impl Fnv {
    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    /// Keys are sorted here: whether a map keeps them sorted depends on a feature of `serde_json`.
    fn value(&mut self, value: &Value) {
        match value {
            Value::Object(map) => {
                self.bytes(b"{");
                let mut entries: Vec<_> = map.iter().collect();
                entries.sort_unstable_by_key(|(key, _)| *key);
                for (key, value) in entries {
                    self.value(&Value::String(key.clone()));
                    self.bytes(b":");
                    self.value(value);
                    self.bytes(b",");
                }
                self.bytes(b"}");
            }
            Value::Array(items) => {
                self.bytes(b"[");
                for item in items {
                    self.value(item);
                    self.bytes(b",");
                }
                self.bytes(b"]");
            }
            scalar => self.bytes(scalar.to_string().as_bytes()),
        }
    }
}

/// One place at which two plans differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Where, as in `sweep.rtt[2]`.
    pub at: String,
    /// What the folder's plan has there, as JSON; `None` for nothing.
    pub found: Option<String>,
    /// What the plan given has there.
    pub wanted: Option<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let or_nothing = |text: &Option<String>| text.clone().unwrap_or_else(|| "nothing".into());
        write!(f, "{} was {}, is {}", self.at, or_nothing(&self.found), or_nothing(&self.wanted))
    }
}

/// Enough to see what is going on.
const MAX_DIFFERENCES: usize = 8;
/// Longer texts are shortened.
const MAX_TEXT: usize = 60;

/// The first places at which two plans differ.
pub(crate) fn differences(found: &Value, wanted: &Value) -> Vec<Difference> {
    let mut out = Vec::new();
    walk("", Some(found), Some(wanted), &mut out);
    out
}

fn walk(at: &str, found: Option<&Value>, wanted: Option<&Value>, out: &mut Vec<Difference>) {
    if out.len() >= MAX_DIFFERENCES || found == wanted {
        return;
    }
    match (found, wanted) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            let mut keys: Vec<&String> = a.keys().chain(b.keys()).collect();
            keys.sort_unstable();
            keys.dedup();
            for key in keys {
                let path = if at.is_empty() { key.clone() } else { format!("{at}.{key}") };
                walk(&path, a.get(key), b.get(key), out);
            }
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) => {
            for index in 0..a.len().max(b.len()) {
                walk(&format!("{at}[{index}]"), a.get(index), b.get(index), out);
            }
        }
        _ => out.push(Difference {
            at: if at.is_empty() { "the plan".into() } else { at.to_owned() },
            found: found.map(shortened),
            wanted: wanted.map(shortened),
        }),
    }
}

fn shortened(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(MAX_TEXT) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_hash_sees_content_not_order() {
        let text = r#"{"b":[1,2],"a":"x"}"#;
        let turned = r#"{ "a": "x", "b": [1, 2] }"#;
        let hash = |text: &str| plan_hash(&serde_json::from_str(text).unwrap());
        assert_eq!(hash(text), hash(turned));
        assert_ne!(hash(text), hash(r#"{"b":[2,1],"a":"x"}"#));
        // FNV-1a, 64 bits, of the text "null", from the published reference code's constants.
        assert_eq!(plan_hash(&Value::Null).len(), 16);
    }

    #[test]
    fn keys_of_a_plan_have_the_names_of_today() {
        let plan = |key| json!({"sweeps": [{"key": [key, "ecdsa-p256"]}], "name": "rsa2048"});
        assert_eq!(with_keys_renamed(&plan("rsa2048")), plan("rsa-2048"));
    }

    #[test]
    fn differences_name_their_place() {
        let found = json!({"repeat": 20, "sweep": {"rtt": ["1ms", "2ms"]}, "old": 1});
        let wanted = json!({"repeat": 10, "sweep": {"rtt": ["1ms", "3ms", "4ms"]}});
        let texts: Vec<String> =
            differences(&found, &wanted).iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "old was 1, is nothing",
                "repeat was 20, is 10",
                "sweep.rtt[1] was \"2ms\", is \"3ms\"",
                "sweep.rtt[2] was nothing, is \"4ms\"",
            ]
        );
        let long = differences(&json!("é".repeat(100)), &json!((0..100).collect::<Vec<_>>()));
        assert!(long[0].found.as_ref().unwrap().len() < 130);
        assert_eq!(long[0].at, "the plan");
    }
}
