//! A sweep: every combination of some lists, each measured some times.

use std::collections::BTreeMap;

use clap::{Arg, Command, value_parser};
use serde_json::{Map, Value, json};

use crate::axis::{Axes, Axis, HEADING};
use crate::options::Options;
use crate::plan_file::PlanError;

/// A number that a sweep has beside its lists: `repeat`.
#[derive(Debug, Clone, Copy)]
pub struct Number {
    /// Its name: in plan files and as an option.
    pub name: &'static str,
    /// What it is, for help.
    pub help: &'static str,
    /// Where it is not given; without it a sweep may lack it.
    pub default: Option<u64>,
    /// The least that is possible.
    pub least: u64,
    /// The most that is possible.
    pub most: u64,
}

impl Number {
    /// Adds an option for each of these numbers.
    #[must_use]
    pub fn options(numbers: &[Number], command: Command) -> Command {
        let options = numbers.iter().map(|number| {
            Arg::new(number.name)
                .long(number.name)
                .value_name("N")
                .value_parser(value_parser!(u64).range(number.least..=number.most))
                .help(number.help)
                .help_heading(HEADING)
        });
        command.args(options)
    }

    /// Whether the user gave any of these numbers.
    #[must_use]
    pub fn given(numbers: &[Number], options: &Options<'_>) -> bool {
        numbers.iter().any(|number| options.given(number.name))
    }

    /// Puts the numbers that the user gave into a sweep.
    pub fn overwrite(numbers: &[Number], sweep: &mut Sweep, options: &Options<'_>) {
        for number in numbers.iter().filter(|number| options.given(number.name)) {
            let given = options.get::<u64>(number.name);
            sweep.numbers.extend(given.map(|value| (number.name.to_owned(), value)));
        }
    }
}

/// Every combination of the lists, each measured some times.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sweep {
    /// Name, unique in the plan.
    pub name: String,
    /// The values of each axis that is given, as words.
    pub lists: BTreeMap<String, Vec<String>>,
    /// The numbers that are given or have a default.
    pub numbers: BTreeMap<String, u64>,
}

impl Sweep {
    /// A sweep in which everything has its default.
    #[must_use]
    pub fn of_defaults<P>(name: &str, axes: &Axes<P>, numbers: &[Number]) -> Sweep {
        let lists = axes.axes.iter().map(|axis| (axis.name.to_owned(), axis.defaults()));
        let numbers = numbers.iter().filter_map(|n| Some((n.name.to_owned(), n.default?)));
        Sweep { name: name.to_owned(), lists: lists.collect(), numbers: numbers.collect() }
    }

    /// The words of an axis: those given, or its default.
    #[must_use]
    pub fn list<P>(&self, axis: &Axis<P>) -> Vec<String> {
        self.lists.get(axis.name).cloned().unwrap_or_else(|| axis.defaults())
    }

    /// A number, if it is given or has a default.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<u64> {
        self.numbers.get(name).copied()
    }

    /// How often each point is measured: at least once.
    #[must_use]
    pub fn repeat(&self) -> u32 {
        self.number("repeat").and_then(|n| u32::try_from(n).ok()).unwrap_or(1).max(1)
    }

    /// Gives a planned sweep the numbers that the user gave, but no more repeats than it has.
    pub fn limit(&mut self, numbers: &[Number], options: &Options<'_>) {
        let planned = self.repeat();
        Number::overwrite(numbers, self, options);
        let repeat = u64::from(self.repeat().min(planned));
        self.numbers.insert("repeat".to_owned(), repeat);
    }

    /// Reads a sweep, of a plan file or of a manifest. A value may stand where a list is meant, and a
    /// number where a word is.
    pub(crate) fn read<P>(
        fields: &Map<String, Value>,
        axes: &Axes<P>,
        numbers: &[Number],
    ) -> Result<Sweep, PlanError> {
        let name = fields.get("name").and_then(Value::as_str).ok_or(PlanError::NoName)?;
        let out_of_range = |what: String| PlanError::OutOfRange { sweep: name.to_owned(), what };
        let mut sweep = Sweep::of_defaults(name, axes, numbers);
        for (key, value) in fields.iter().filter(|(key, _)| *key != "name") {
            if axes.axes.iter().any(|axis| axis.name == key) {
                let list = words(value);
                let list =
                    list.ok_or_else(|| out_of_range(format!("`{key}` is not a list of words")))?;
                sweep.lists.insert(key.clone(), list);
            } else if let Some(number) = numbers.iter().find(|number| number.name == key) {
                if value.is_null() {
                    continue;
                }
                let range = number.least..=number.most;
                let found = value.as_u64().filter(|value| range.contains(value));
                let found = found.ok_or_else(|| {
                    let Number { least, most, .. } = number;
                    out_of_range(format!(
                        "{key} is {value}; expected an integer from {least} to {most}"
                    ))
                })?;
                sweep.numbers.insert(key.clone(), found);
            } else {
                let known = axes.axes.iter().map(|axis| axis.name);
                let known = known.chain(numbers.iter().map(|number| number.name));
                let known = known.collect::<Vec<_>>().join(", ");
                return Err(PlanError::UnknownKey {
                    sweep: name.to_owned(),
                    key: key.clone(),
                    known,
                });
            }
        }
        for axis in axes.axes {
            if sweep.list(axis).is_empty() {
                return Err(PlanError::Empty { sweep: name.to_owned(), list: axis.name });
            }
        }
        Ok(sweep)
    }

    /// As a manifest has it.
    #[must_use]
    pub fn value(&self) -> Value {
        let mut value = json!({ "name": self.name });
        for (axis, words) in &self.lists {
            value[axis] = json!(words);
        }
        for (number, n) in &self.numbers {
            value[number] = json!(n);
        }
        value
    }
}

fn words(value: &Value) -> Option<Vec<String>> {
    let word = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    match value {
        Value::Array(list) => list.iter().map(word).collect(),
        one => Some(vec![word(one)?]),
    }
}
