//! One measured run.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::{Attachment, LineProblem};

/// What one run measured, raw. It is written as it is and never changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// The study: `handshake`.
    pub study: String,
    /// The place in the sweep: axis to value, the mode among them.
    pub point: BTreeMap<String, String>,
    /// Which repeat at that place, from 0.
    pub repeat: u32,
    /// The seed of everything random in the run.
    pub seed: u64,
    /// When the run ended: milliseconds since 1970-01-01 UTC.
    pub at_unix_ms: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// Numbers, finite. Names carry the unit: `ready_ms`, `up_bytes`.
    pub values: BTreeMap<String, f64>,
    /// Facts that are no numbers: `cipher_suite`.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// What it has beside its numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// The command that measures this sample again.
    pub command: String,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Outcome {
    /// It did what it should.
    Completed,
    /// It failed; what was measured until then stands in the values.
    Failed {
        /// The reason, in a few words.
        reason: String,
    },
    /// It had not ended when it was given up: its time is longer than this (a censored sample).
    TimedOut {
        /// How long it was given, in milliseconds; finite.
        after_ms: f64,
    },
}

impl Outcome {
    /// The word for it, as it stands in the file: `completed`, `failed`, `timed_out`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed { .. } => "failed",
            Self::TimedOut { .. } => "timed_out",
        }
    }
}

impl Sample {
    /// The name of the sample's place in the sweep, the same for every repeat:
    /// `handshake/mode=tls13,rtt=20ms`. Axes are in the order of their names, and what could be
    /// taken for a separator is percent-encoded, so that different places have different names.
    #[must_use]
    pub fn cell(&self) -> String {
        cell_name(&self.study, &self.point)
    }

    /// The sample's own name: the cell and the repeat, `handshake/mode=tls13,rtt=20ms#3`.
    #[must_use]
    pub fn key(&self) -> String {
        format!("{}#{}", self.cell(), self.repeat)
    }

    /// # Errors
    /// [`LineProblem::NotFinite`], since JSON has no NaN and no infinity; [`LineProblem::TooMany`].
    pub(crate) fn check(&self) -> Result<(), LineProblem> {
        let Sample { point, values, labels, attachments, .. } = self;
        if point.len() + values.len() + labels.len() + attachments.len() > MAX_ENTRIES {
            return Err(LineProblem::TooMany { limit: MAX_ENTRIES });
        }
        let timeout = match &self.outcome {
            Outcome::TimedOut { after_ms } => Some(("outcome.after_ms", *after_ms)),
            _ => None,
        };
        let values = self.values.iter().map(|(name, value)| (name.as_str(), *value));
        match values.chain(timeout).find(|(_, value)| !value.is_finite()) {
            Some((name, value)) => Err(LineProblem::NotFinite { name: name.to_owned(), value }),
            None => Ok(()),
        }
    }
}

/// Most values, labels, axes and attachments of a sample together. Ours have some 50.
const MAX_ENTRIES: usize = 1000;
/// Bytes that a heap allocation takes at least, and beside its content.
const ALLOCATION: (usize, usize) = (32, 16);
/// A longer text, in bytes, may be shown again and again, and escaped: it counts this many times.
const SHORT: usize = 1024;
const SHOWN: usize = 8;
/// Entries of a node of a map: 11 at most, and half of them after nodes were split.
const NODE: (usize, usize) = (11, 6);

impl Sample {
    /// Names and texts that a summary of its point keeps, and the memory that each takes, about.
    pub(crate) fn kept_texts(&self) -> impl Iterator<Item = (Kept<'_>, u64)> {
        let node = (nodes::<f64>(NODE.0 + 1) / (NODE.0 + 1)) as u64;
        let values =
            self.values.keys().map(move |name| (Kept::Value(name), node + text(name) as u64));
        let labels = self.labels.iter().map(move |(name, value)| {
            (Kept::Label(name, value), node + (text(name) + text(value)) as u64)
        });
        let reason = match &self.outcome {
            Outcome::Failed { reason } => Some((Kept::Reason(reason), text(reason) as u64)),
            Outcome::Completed | Outcome::TimedOut { .. } => None,
        };
        values.chain(labels).chain(reason)
    }

    /// Bytes of memory that it takes, about and rather more than less.
    pub(crate) fn footprint(&self) -> u64 {
        let texts = |map: &BTreeMap<String, String>| {
            let entries = map.iter().map(|(key, value)| text(key) + text(value));
            nodes::<String>(map.len()) + entries.sum::<usize>()
        };
        let values = self.values.keys().map(|key| text(key)).sum::<usize>();
        let attachments = self.attachments.iter().map(|attachment| {
            size_of::<Attachment>() + text(&attachment.name) + text(&attachment.file)
        });
        let reason = match &self.outcome {
            Outcome::Failed { reason } => text(reason),
            Outcome::Completed | Outcome::TimedOut { .. } => 0,
        };
        let own = size_of::<Sample>() + text(&self.study) + text(&self.command) + reason;
        let maps = texts(&self.point) + texts(&self.labels);
        let values = nodes::<f64>(self.values.len()) + values;
        (own + maps + values + attachments.sum::<usize>()) as u64
    }
}

/// A name or text of a sample that a summary of its point keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kept<'a> {
    /// The name of a value.
    Value(&'a str),
    /// The name of a label, and what it says.
    Label(&'a str, &'a str),
    /// The reason of a failure.
    Reason(&'a str),
}

/// Bytes that a text takes, about.
fn text(text: &str) -> usize {
    match text.len() {
        length @ 0..=SHORT => ALLOCATION.0.max(length + ALLOCATION.1),
        length => length * SHOWN,
    }
}

/// Bytes of the nodes of a map of so many entries.
fn nodes<V>(entries: usize) -> usize {
    let (most, usual) = NODE;
    let node = most * (size_of::<String>() + size_of::<V>()) + ALLOCATION.1;
    if entries <= most { node * usize::from(entries > 0) } else { entries.div_ceil(usual) * node }
}

/// [`Sample::cell`] of a place that has no sample yet.
pub(crate) fn cell_name(study: &str, point: &BTreeMap<String, String>) -> String {
    let mut name = String::new();
    escape(study, &mut name);
    for (index, (axis, value)) in point.iter().enumerate() {
        name.push(if index == 0 { '/' } else { ',' });
        escape(axis, &mut name);
        name.push('=');
        escape(value, &mut name);
    }
    name
}

fn escape(text: &str, out: &mut String) {
    for c in text.chars() {
        if matches!(c, '%' | '/' | ',' | '=' | '#') || c.is_control() {
            let mut bytes = [0; 4];
            for byte in c.encode_utf8(&mut bytes).bytes() {
                // Writing to a String cannot fail.
                let _ = write!(out, "%{byte:02X}");
            }
        } else {
            out.push(c);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(crate) fn example(repeat: u32) -> Sample {
        let text = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
        };
        Sample {
            study: "handshake".into(),
            point: text(&[("mode", "tls13"), ("rtt", "20ms")]),
            repeat,
            seed: u64::MAX - u64::from(repeat),
            at_unix_ms: 1_750_000_000_000,
            outcome: Outcome::Completed,
            values: [("ready_ms".to_owned(), 40.123_456_789), ("up_bytes".to_owned(), 517.0)]
                .into(),
            labels: text(&[("group", "X25519")]),
            attachments: Vec::new(),
            command: "wiretax handshake --rtt 20ms".into(),
        }
    }

    #[test]
    fn names_are_canonical() {
        let mut sample = example(3);
        assert_eq!(sample.cell(), "handshake/mode=tls13,rtt=20ms");
        assert_eq!(sample.key(), "handshake/mode=tls13,rtt=20ms#3");
        sample.point = [("a=b".to_owned(), "1,2/3#4%\n".to_owned())].into();
        assert_eq!(sample.cell(), "handshake/a%3Db=1%2C2%2F3%234%25%0A");
        sample.point.clear();
        assert_eq!(sample.key(), "handshake#3");
    }

    proptest! {
        #[test]
        fn different_places_have_different_names(
            a in prop::collection::btree_map("[a,=%/#]{0,3}", "[b,=%/#]{0,3}", 0..3),
            b in prop::collection::btree_map("[a,=%/#]{0,3}", "[b,=%/#]{0,3}", 0..3),
        ) {
            prop_assert_eq!(a == b, cell_name("s", &a) == cell_name("s", &b));
        }
    }
}
