//! Identifiers of elements: unique in a document and the same for the same input.

use std::collections::BTreeSet;

/// Hands out identifiers, each once.
#[derive(Default)]
pub(crate) struct Ids {
    taken: BTreeSet<String>,
}

impl Ids {
    /// An identifier made of `wanted`: ASCII letters, digits and hyphens; numbered when taken.
    pub(crate) fn unique(&mut self, wanted: &str) -> String {
        let slug = slug(wanted);
        if self.taken.insert(slug.clone()) {
            return slug;
        }
        let mut number = 2_u64;
        loop {
            let candidate = format!("{slug}-{number}");
            if self.taken.insert(candidate.clone()) {
                return candidate;
            }
            number += 1;
        }
    }
}

fn slug(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars().take(60) {
        if c.is_ascii_alphanumeric() {
            out.push(c.to_ascii_lowercase());
        } else if !out.ends_with('-') && !out.is_empty() {
            out.push('-');
        }
    }
    let out = out.trim_end_matches('-');
    match out.chars().next() {
        Some(first) if first.is_ascii_alphabetic() => out.to_owned(),
        Some(_) => format!("s-{out}"),
        None => "s".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_unique_and_plain() {
        let mut ids = Ids::default();
        assert_eq!(ids.unique("What to change?"), "what-to-change");
        assert_eq!(ids.unique("what to change"), "what-to-change-2");
        assert_eq!(ids.unique("\"><script>"), "script");
        assert_eq!(ids.unique("0-RTT"), "s-0-rtt");
        assert_eq!(ids.unique(""), "s");
        assert_eq!(ids.unique("…"), "s-2");
    }
}
