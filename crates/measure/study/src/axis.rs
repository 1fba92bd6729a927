//! Axes: what a study varies. Each is declared once, on one line of its study; parser, default,
//! crossing, command-line option, the sample's field and the command that measures a row again all
//! come from there.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::str::FromStr;

use clap::{Arg, Command};
use fault::{Explain, Fault};
use thiserror::Error;

use crate::options::{Options, quoted};
use crate::sweep::Sweep;

/// A word that is no value of its axis. The caller's fault.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{word}` is not a value of `{axis}`: {why}")]
pub struct UnknownValue {
    /// The axis' name, as on the command line.
    pub axis: &'static str,
    /// The word as given.
    pub word: String,
    /// What is wrong.
    pub why: String,
    /// What to do about it.
    pub remedy: Option<Cow<'static, str>>,
}

impl Explain for UnknownValue {
    fn fault(&self) -> Fault {
        Fault::Caller
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        self.remedy.clone()
    }
}

/// Reads a value of an axis: for [`axis!`](macro@crate::axis).
///
/// # Errors
/// [`UnknownValue`].
pub fn read_value<T: FromStr<Err: Explain>>(
    axis: &'static str,
    word: &str,
) -> Result<T, UnknownValue> {
    word.parse().map_err(|error: T::Err| UnknownValue {
        axis,
        word: word.to_owned(),
        why: error.to_string(),
        remedy: error.remedy(),
    })
}

/// Most points of a sweep, those that are the same or impossible included.
const MOST_POINTS: usize = 200_000;

/// The words that a word stands for (`all`), if it stands for others than itself.
pub type Words<'a> = &'a dyn Fn(&str) -> Option<Vec<String>>;

/// One axis of a study's points. Made by [`axis!`](macro@crate::axis).
#[derive(Debug)]
pub struct Axis<P> {
    /// Its name: of the option, in plan files, in samples.
    pub name: &'static str,
    /// What a list of its values is called in help: `MODES`.
    pub values: &'static str,
    /// What it is, for help.
    pub help: &'static str,
    /// Its values where none are given, separated by commas; without them it must be given in a plan.
    pub default: &'static str,
    /// The value with which samples and commands do not name it: it came later than they did.
    pub usual: Option<&'static str>,
    /// Reads a value into a point.
    pub read: fn(&mut P, &str) -> Result<(), UnknownValue>,
    /// The value of a point.
    pub write: fn(&P) -> String,
}

impl<P> Axis<P> {
    fn is_named(&self, point: &P) -> bool {
        self.usual.is_none_or(|usual| (self.write)(point) != usual)
    }

    /// The default as a list.
    pub(crate) fn defaults(&self) -> Vec<String> {
        let words = self.default.split(',').map(str::trim);
        words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
    }
}

/// Declares an axis over a field of a point: `axis!("loss", loss, "0%", "SHARES", "Loss each way")`.
/// The field's type has [`FromStr`] and [`Display`](std::fmt::Display). An axis that came later than the first results ends
/// in `unnamed "VALUE"`: samples and commands do not name it where it has that value.
#[macro_export]
macro_rules! axis {
    ($name:literal, $($field:ident).+, $default:expr, $values:literal, $help:expr) => {
        $crate::axis!(@ $name, $($field).+, $default, $values, $help, None)
    };
    ($name:literal, $($field:ident).+, $default:expr, $values:literal, $help:expr, unnamed $usual:literal) => {
        $crate::axis!(@ $name, $($field).+, $default, $values, $help, Some($usual))
    };
    (@ $name:literal, $($field:ident).+, $default:expr, $values:literal, $help:expr, $usual:expr) => {
        $crate::Axis {
            name: $name,
            values: $values,
            help: $help,
            default: $default,
            usual: $usual,
            read: |point, word| {
                point.$($field).+ = $crate::read_value($name, word)?;
                Ok(())
            },
            write: |point| point.$($field).+.to_string(),
        }
    };
}

/// The axes of a study, in the order in which they are crossed: the first changes slowest.
#[derive(Debug, Clone, Copy)]
pub struct Axes<P: 'static> {
    /// The axes, in the order in which they are crossed.
    pub axes: &'static [Axis<P>],
    /// Gives what is the same measurement one name: QUIC has one library, whatever a sweep says.
    pub canonical: fn(P) -> P,
    /// Why a point cannot be measured, if it cannot.
    pub impossible: fn(&P) -> Option<&'static str>,
}

impl<P: Clone + PartialEq> Axes<P> {
    /// The axis of a name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&'static Axis<P>> {
        self.axes.iter().find(|axis| axis.name == name)
    }

    /// Adds an option for each axis.
    #[must_use]
    pub fn options(&self, command: Command) -> Command {
        let options = self.axes.iter().map(|axis| {
            let default = match axis.default {
                "" => String::new(),
                default => format!(" [default: {default}]"),
            };
            Arg::new(axis.name)
                .long(axis.name)
                .value_name(axis.values)
                .value_delimiter(',')
                .help(format!("{}{default}", axis.help))
                .help_heading(HEADING)
        });
        command.args(options)
    }

    /// Whether the user gave any axis.
    #[must_use]
    pub fn given(&self, options: &Options<'_>) -> bool {
        self.axes.iter().any(|axis| options.given(axis.name))
    }

    /// Whether the user gave any axis beside this one.
    #[must_use]
    pub fn given_beside(&self, name: &str, options: &Options<'_>) -> bool {
        self.axes.iter().any(|axis| axis.name != name && options.given(axis.name))
    }

    /// Puts the axes that the user gave into a sweep.
    pub fn overwrite(&self, sweep: &mut Sweep, options: &Options<'_>) {
        for axis in self.axes.iter().filter(|axis| options.given(axis.name)) {
            sweep.lists.insert(axis.name.to_owned(), options.all(axis.name));
        }
    }

    /// Writes each word of a sweep as its axis writes its value, so that one plan has one spelling. `words`
    /// says what a word of an axis stands for.
    ///
    /// # Errors
    /// A word that is no value of its axis.
    pub fn respell(
        &self,
        sweep: &mut Sweep,
        base: &P,
        words: &dyn Fn(&str, &str) -> Option<Vec<String>>,
    ) -> Result<(), UnknownValue> {
        let mut point = base.clone();
        for axis in self.axes {
            for word in sweep.lists.get_mut(axis.name).into_iter().flatten() {
                if words(axis.name, word).is_none() {
                    (axis.read)(&mut point, word)?;
                    *word = (axis.write)(&point);
                }
            }
        }
        Ok(())
    }

    /// The points of a sweep, each once: `base` with each combination of the values. `words` says what
    /// a word of an axis stands for.
    ///
    /// # Errors
    /// A word that is no value of its axis.
    pub fn points(
        &self,
        sweep: &Sweep,
        base: &P,
        words: &dyn Fn(&str, &str) -> Option<Vec<String>>,
    ) -> Result<Vec<P>, UnknownValue> {
        let mut points = vec![base.clone()];
        for axis in self.axes {
            let list = sweep.list(axis);
            let expanded =
                |word: String| words(axis.name, &word).unwrap_or_else(|| vec![word.clone()]);
            let values: Vec<String> = list.into_iter().flat_map(expanded).collect();
            if points.len().saturating_mul(values.len()) > MOST_POINTS {
                return Err(UnknownValue {
                    axis: axis.name,
                    word: values.last().cloned().unwrap_or_default(),
                    why: format!("with it the sweep has more than {MOST_POINTS} points"),
                    remedy: Some("name fewer values".into()),
                });
            }
            // A wrong word is wrong even where there is nothing to cross it with.
            values.iter().try_for_each(|value| (axis.read)(&mut base.clone(), value))?;
            let mut crossed = Vec::with_capacity(points.len() * values.len());
            for point in &points {
                for value in &values {
                    let mut point = point.clone();
                    (axis.read)(&mut point, value)?;
                    crossed.push(point);
                }
            }
            points = crossed;
        }
        let mut once: Vec<P> = Vec::with_capacity(points.len());
        // Places in `once` by a hash of the fields: a stranger's plan may have many points.
        let mut places: HashMap<u64, Vec<usize>> = HashMap::new();
        for point in points.into_iter().map(self.canonical) {
            let mut hasher = DefaultHasher::new();
            self.fields(&point).hash(&mut hasher);
            let like = places.entry(hasher.finish()).or_default();
            if !like.iter().any(|place| once.get(*place) == Some(&point)) {
                like.push(once.len());
                once.push(point);
            }
        }
        Ok(once)
    }

    /// The point as the fields of a sample.
    #[must_use]
    pub fn fields(&self, point: &P) -> BTreeMap<String, String> {
        let named = self.axes.iter().filter(|axis| axis.is_named(point));
        named.map(|axis| (axis.name.to_owned(), (axis.write)(point))).collect()
    }

    /// The point that a sample's fields name: `base` with these values. `None` where an axis is missing
    /// that samples always have, or a value is none.
    #[must_use]
    pub fn of_fields(&self, fields: &BTreeMap<String, String>, base: &P) -> Option<P> {
        let mut point = base.clone();
        for axis in self.axes {
            let value = fields.get(axis.name).map(String::as_str).or(axis.usual)?;
            (axis.read)(&mut point, value).ok()?;
        }
        Some(point)
    }

    /// The options that name the point on a command line: ` --mode tcp --rtt 20ms`.
    #[must_use]
    pub fn command_line(&self, point: &P) -> String {
        let named = self.axes.iter().filter(|axis| axis.is_named(point));
        named.map(|axis| format!(" --{} {}", axis.name, quoted(&(axis.write)(point)))).collect()
    }
}

/// The heading of the axes in help.
pub(crate) const HEADING: &str = "Axes (any of these replaces the plan by one sweep)";

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone, PartialEq, Default)]
    struct Point {
        mode: String,
        rtt: u32,
        box_: Inner,
    }

    #[derive(Debug, Clone, PartialEq, Default)]
    struct Inner {
        kind: u8,
    }

    const AXES: Axes<Point> = Axes {
        axes: &[
            axis!("rtt", rtt, "10", "TIMES", "Round-trip times"),
            axis!("mode", mode, "", "MODES", "Modes, or `all`"),
            axis!("kind", box_.kind, "0", "KINDS", "Kinds", unnamed "0"),
        ],
        canonical: |point| match point.mode.as_str() {
            "b" => Point { box_: Inner { kind: 0 }, ..point },
            _ => point,
        },
        impossible: |_| None,
    };

    fn sweep(lists: &[(&str, &str)]) -> Sweep {
        let words = |text: &str| text.split(',').map(str::to_owned).collect();
        Sweep {
            name: "demo".to_owned(),
            lists: lists.iter().map(|(axis, text)| ((*axis).to_owned(), words(text))).collect(),
            ..Sweep::default()
        }
    }

    fn words(axis: &str, word: &str) -> Option<Vec<String>> {
        (axis == "mode" && word == "all").then(|| vec!["a".to_owned(), "b".to_owned()])
    }

    #[test]
    fn a_sweep_is_every_combination_once_the_first_axis_slowest() {
        let sweep = sweep(&[("rtt", "1,2"), ("mode", "all"), ("kind", "0,7")]);
        let points = AXES.points(&sweep, &Point::default(), &words).unwrap();
        let shown = points.iter().map(|p| format!("{}{}{}", p.rtt, p.mode, p.box_.kind));
        assert_eq!(shown.collect::<Vec<_>>(), ["1a0", "1a7", "1b0", "2a0", "2a7", "2b0"]);
    }

    #[test]
    fn what_is_not_given_has_its_default() {
        let points = AXES.points(&sweep(&[("mode", "a")]), &Point::default(), &words).unwrap();
        assert_eq!(points.len(), 1);
        assert_eq!((points[0].rtt, points[0].box_.kind), (10, 0));
    }

    #[test]
    fn a_wrong_word_names_its_axis() {
        let error = AXES.points(&sweep(&[("rtt", "x"), ("mode", "a")]), &Point::default(), &words);
        let text = error.unwrap_err().to_string();
        assert_eq!(text, "`x` is not a value of `rtt`: invalid digit found in string");
        let unknown = read_value::<units::Delay>("rtt", "20").unwrap_err();
        assert!(unknown.remedy().unwrap().contains("20ms"), "{unknown:?}");
    }

    #[test]
    fn one_plan_has_one_spelling() {
        let mut sweep = sweep(&[("rtt", "01,2"), ("mode", "all,b")]);
        AXES.respell(&mut sweep, &Point::default(), &words).unwrap();
        assert_eq!(
            (sweep.lists["rtt"].join(","), sweep.lists["mode"].join(",")),
            ("1,2".into(), "all,b".into())
        );
        sweep.lists.insert("kind".to_owned(), vec!["x".to_owned()]);
        assert_eq!(AXES.respell(&mut sweep, &Point::default(), &words).unwrap_err().axis, "kind");
    }

    #[test]
    fn fields_name_a_point_and_read_back() {
        let usual = Point { mode: "a".into(), rtt: 5, box_: Inner { kind: 0 } };
        let fields = AXES.fields(&usual);
        assert!(!fields.contains_key("kind"));
        assert_eq!(AXES.of_fields(&fields, &Point::default()), Some(usual.clone()));
        assert_eq!(AXES.command_line(&usual), " --rtt 5 --mode a");
        let other = Point { box_: Inner { kind: 3 }, ..usual };
        assert_eq!(AXES.fields(&other)["kind"], "3");
        assert_eq!(AXES.of_fields(&AXES.fields(&other), &Point::default()), Some(other));
        assert_eq!(AXES.of_fields(&BTreeMap::new(), &Point::default()), None);
    }

    #[test]
    fn each_axis_is_an_option() {
        let matches = AXES.options(Command::new("x")).get_matches_from(["x", "--rtt", "1,2"]);
        let options = Options::new(&matches);
        assert!(AXES.given(&options));
        let mut sweep = sweep(&[("mode", "a")]);
        AXES.overwrite(&mut sweep, &options);
        assert_eq!(sweep.lists["rtt"], ["1", "2"]);
        assert_eq!(sweep.lists["mode"], ["a"]);
        assert!(!AXES.given(&Options::none()));
    }
}
