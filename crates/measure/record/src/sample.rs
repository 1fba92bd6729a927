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
    /// [`LineProblem::NotFinite`], since JSON has no NaN and no infinity.
    pub(crate) fn check(&self) -> Result<(), LineProblem> {
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
