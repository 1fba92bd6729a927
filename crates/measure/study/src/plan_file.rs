//! Plan files: sweeps by scale, and the time that a scale keeps to.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fault::{Explain, Fault};
use serde::Deserialize;
use serde_json::{Map, Value};
use thiserror::Error;

use crate::axis::{Axes, UnknownValue};
use crate::sweep::{Number, Sweep};

/// A plan that cannot be carried out. The caller's fault.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The file is not a plan.
    #[error("this is not a plan: {0}")]
    NotAPlan(#[from] toml::de::Error),
    /// A plan in a manifest does not read.
    #[error("the plan in the manifest cannot be read")]
    NotRecorded,
    /// No such scale.
    #[error("no scale is called `{name}`")]
    UnknownScale {
        /// The name as given.
        name: String,
        /// The names that the plan has.
        known: String,
    },
    /// A scale takes a sweep of another that has none of this name.
    #[error("scale `{scale}` has no sweep called `{name}` of its own")]
    UnknownSweep {
        /// The scale that it is looked for in.
        scale: String,
        /// The name as given.
        name: String,
        /// The names of that scale's own sweeps.
        known: String,
    },
    /// A word is no value of its axis.
    #[error(transparent)]
    Value(#[from] UnknownValue),
    /// A sweep without a name.
    #[error("a sweep of the plan has no name")]
    NoName,
    /// A sweep has what the study does not know.
    #[error("sweep `{sweep}`: there is no `{key}`")]
    UnknownKey {
        /// The sweep's name.
        sweep: String,
        /// What it has.
        key: String,
        /// What there is.
        known: String,
    },
    /// A list of a sweep is empty.
    #[error("sweep `{sweep}` measures nothing: its list `{list}` is empty")]
    Empty {
        /// The sweep's name.
        sweep: String,
        /// The empty list.
        list: &'static str,
    },
    /// A number lies outside what is allowed.
    #[error("sweep `{sweep}`: {what}")]
    OutOfRange {
        /// The sweep's name.
        sweep: String,
        /// What is wrong, and what is allowed.
        what: String,
    },
    /// Two sweeps have one name.
    #[error("two sweeps are called `{0}`")]
    Twice(String),
    /// The plan has no sweep, so nothing would be measured.
    #[error("the plan has no sweep")]
    NoSweep,
    /// Times by two clocks.
    #[error("the plan has two clocks, whose times are never compared: wall and virtual")]
    TwoClocks,
    /// Nothing that can be measured is left.
    #[error("the plan measures nothing: every combination in it is impossible ({0})")]
    NothingLeft(String),
}

impl Explain for PlanError {
    fn fault(&self) -> Fault {
        match self {
            PlanError::NotRecorded => Fault::Results,
            _ => Fault::Caller,
        }
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        match self {
            PlanError::NotAPlan(_) => Some("see plan.toml of the study for the form".into()),
            PlanError::Twice(_) => Some("give each sweep a name of its own".into()),
            PlanError::Value(unknown) => unknown.remedy(),
            PlanError::UnknownScale { known, .. } | PlanError::UnknownSweep { known, .. } => {
                Some(format!("there are: {known}").into())
            }
            PlanError::UnknownKey { known, .. } => Some(format!("there are: name, {known}").into()),
            PlanError::TwoClocks => {
                Some("measure with one after the other, each into its own folder".into())
            }
            PlanError::NoName => Some("write name = \"…\" into each sweep".into()),
            _ => None,
        }
    }
}

/// One scale of a plan file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scale {
    /// The time that it keeps to, if it has such a limit.
    pub budget: Option<Duration>,
    /// Its sweeps, in order.
    pub sweeps: Vec<Sweep>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlanFile {
    scale: BTreeMap<String, ScaleOfFile>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScaleOfFile {
    #[serde(default)]
    seconds: Option<u64>,
    /// Names of sweeps to take from other scales, by scale.
    #[serde(default)]
    from: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    sweep: Vec<Map<String, Value>>,
}

impl PlanFile {
    fn scale(&self, name: &str) -> Result<&ScaleOfFile, PlanError> {
        self.scale.get(name).ok_or_else(|| {
            let known = self.scale.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
            PlanError::UnknownScale { name: name.to_owned(), known }
        })
    }

    /// The sweeps of a scale: those that it takes from others, then its own.
    fn sweeps<'a>(
        &'a self,
        found: &'a ScaleOfFile,
    ) -> Result<Vec<&'a Map<String, Value>>, PlanError> {
        let mut sweeps = Vec::new();
        for (scale, names) in &found.from {
            let other = self.scale(scale)?;
            for name in names {
                sweeps.push(other.own(name).ok_or_else(|| PlanError::UnknownSweep {
                    scale: scale.clone(),
                    name: name.clone(),
                    known: other.names().collect::<Vec<_>>().join(", "),
                })?);
            }
        }
        sweeps.extend(&found.sweep);
        Ok(sweeps)
    }
}

impl ScaleOfFile {
    /// Its own sweep of this name.
    fn own(&self, name: &str) -> Option<&Map<String, Value>> {
        self.sweep.iter().find(|sweep| name_of(sweep) == Some(name))
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.sweep.iter().filter_map(name_of)
    }
}

fn name_of(sweep: &Map<String, Value>) -> Option<&str> {
    sweep.get("name").and_then(Value::as_str)
}

/// Reads a scale of a plan file:
///
/// ```toml
/// [scale.quick]
/// seconds = 60            # what it keeps to; may be left out
/// sweep = [{ name = "modes", mode = ["tcp"], rtt = ["20ms"], repeat = 3 }]
///
/// [scale.modes]
/// from = { quick = ["modes"] }    # sweeps of another scale, which are taken before its own
/// ```
///
/// # Errors
/// The text is no plan, has no such scale, or names what the study does not know. Words are not read
/// yet: see [`Axes::points`].
pub fn read_scale<P>(
    text: &str,
    scale: &str,
    axes: &Axes<P>,
    numbers: &[Number],
) -> Result<Scale, PlanError> {
    let file: PlanFile = toml::from_str(text)?;
    let found = file.scale(scale)?;
    let sweeps = file.sweeps(found)?;
    let sweeps = sweeps.into_iter().map(|fields| Sweep::read(fields, axes, numbers));
    let sweeps = checked(sweeps.collect::<Result<_, _>>()?)?;
    Ok(Scale { budget: found.seconds.map(Duration::from_secs), sweeps })
}

/// Reads the sweeps of a plan in a manifest.
///
/// # Errors
/// They do not read.
pub fn sweeps_of<P>(
    plan: &Value,
    axes: &Axes<P>,
    numbers: &[Number],
) -> Result<Vec<Sweep>, PlanError> {
    let sweeps = plan.get("sweeps").and_then(Value::as_array).ok_or(PlanError::NotRecorded)?;
    let read = |value: &Value| {
        Sweep::read(value.as_object().ok_or(PlanError::NotRecorded)?, axes, numbers)
    };
    checked(sweeps.iter().map(read).collect::<Result<_, _>>()?)
}

/// Sweeps as a manifest has them: under `sweeps` of the study's plan.
#[must_use]
pub fn sweeps_value(sweeps: &[Sweep]) -> Value {
    sweeps.iter().map(Sweep::value).collect()
}

fn checked(sweeps: Vec<Sweep>) -> Result<Vec<Sweep>, PlanError> {
    if sweeps.is_empty() {
        return Err(PlanError::NoSweep);
    }
    let mut names = BTreeSet::new();
    match sweeps.iter().find(|sweep| !names.insert(&sweep.name)) {
        Some(twice) => Err(PlanError::Twice(twice.name.clone())),
        None => Ok(sweeps),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axis;

    #[derive(Debug, Clone, PartialEq, Default)]
    struct Point {
        mode: String,
        chain: u32,
    }

    const AXES: Axes<Point> = Axes {
        axes: &[
            axis!("mode", mode, "", "MODES", "Modes"),
            axis!("chain", chain, "1", "COUNTS", "Certificates"),
        ],
        canonical: |point| point,
        impossible: |_| None,
    };
    const NUMBERS: &[Number] =
        &[Number { name: "repeat", help: "Times", default: Some(3), least: 1, most: 1000 }];

    fn read(text: &str) -> Result<Scale, PlanError> {
        read_scale(text, "quick", &AXES, NUMBERS)
    }

    #[test]
    fn a_scale_has_sweeps_and_a_budget() {
        let text = r#"[scale.quick]
            seconds = 60
            sweep = [{ name = "a", mode = ["tcp"], chain = [1, 2], repeat = 5 }, { name = "b", mode = "x" }]"#;
        let scale = read(text).unwrap();
        assert_eq!(scale.budget, Some(Duration::from_secs(60)));
        assert_eq!(scale.sweeps[0].lists["chain"], ["1", "2"]);
        assert_eq!((scale.sweeps[0].repeat(), scale.sweeps[1].repeat()), (5, 3));
        assert_eq!(scale.sweeps[1].lists["mode"], ["x"]);
    }

    #[test]
    fn a_scale_takes_sweeps_of_another() {
        let file = |of_full: &str| {
            format!(
                r#"[scale.quick]
                from = {{ full = [{of_full}] }}
                sweep = [{{ name = "own", mode = ["x"] }}]
                [scale.full]
                from = {{ quick = ["own"] }}
                sweep = [{{ name = "a", mode = ["tcp"], repeat = 5 }}, {{ name = "b", mode = ["x"] }}]"#
            )
        };
        let names = |of_full: &str| {
            let scale = read(&file(of_full))?;
            Ok::<_, PlanError>(scale.sweeps.into_iter().map(|sweep| sweep.name).collect::<Vec<_>>())
        };
        assert_eq!(names(r#""b", "a""#).unwrap(), ["b", "a", "own"]);
        assert_eq!(read(&file(r#""a""#)).unwrap().sweeps[0].repeat(), 5);
        // What another takes from a third is not its own, so no scale can take from itself in a circle.
        let unknown = names(r#""own""#).unwrap_err();
        assert_eq!(unknown.to_string(), "scale `full` has no sweep called `own` of its own");
        assert_eq!(unknown.remedy().unwrap(), "there are: a, b");
        assert!(matches!(names(r#""a", "a""#), Err(PlanError::Twice(_))));
        let elsewhere = read("[scale.quick]\nfrom = { paper = [\"a\"] }").unwrap_err();
        assert!(matches!(elsewhere, PlanError::UnknownScale { .. }));
    }

    #[test]
    fn a_plan_in_a_manifest_reads_back() {
        let text = r#"[scale.quick]
            sweep = [{ name = "a", mode = ["tcp"], chain = [1, 2], repeat = 5 }]"#;
        let sweeps = read(text).unwrap().sweeps;
        let plan = serde_json::json!({ "sweeps": sweeps_value(&sweeps), "seed": 1 });
        assert_eq!(sweeps_of(&plan, &AXES, NUMBERS).unwrap(), sweeps);
        assert!(matches!(sweeps_of(&Value::Null, &AXES, NUMBERS), Err(PlanError::NotRecorded)));
    }

    #[test]
    fn what_is_wrong_is_said_with_what_there_is() {
        let sweep = |fields: &str| read(&format!("[scale.quick]\nsweep = [{{ {fields} }}]"));
        let text = |fields: &str| sweep(fields).unwrap_err().to_string();
        assert_eq!(text("mode = [\"a\"]"), "a sweep of the plan has no name");
        let unknown = sweep("name = \"a\", mode = [\"a\"], colour = 1").unwrap_err();
        assert_eq!(unknown.to_string(), "sweep `a`: there is no `colour`");
        let remedy = |error: PlanError| error.remedy().unwrap().into_owned();
        assert_eq!(remedy(unknown), "there are: name, mode, chain, repeat");
        let zero = text("name = \"a\", mode = [\"a\"], repeat = 0");
        assert_eq!(zero, "sweep `a`: repeat is 0; expected an integer from 1 to 1000");
        assert!(text("name = \"a\"").contains("its list `mode` is empty"));
        assert!(text("name = \"a\", mode = [true]").contains("not a list of words"));
        let other = read("[scale.full]\nsweep = []").unwrap_err();
        assert_eq!(other.to_string(), "no scale is called `quick`");
        assert_eq!(remedy(other), "there are: full");
        assert!(matches!(read("[scale.quick]\nsweep = []"), Err(PlanError::NoSweep)));
        let twice = "[scale.quick]\nsweep = [{ name = \"a\", mode = [\"a\"] }, { name = \"a\", mode = [\"a\"] }]";
        assert!(matches!(read(twice), Err(PlanError::Twice(_))));
        assert!(matches!(read("?"), Err(PlanError::NotAPlan(_))));
    }
}
