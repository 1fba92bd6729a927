//! What is measured: sweeps, and the runs that they come to.

use std::time::Duration;

use fault::Problem;
use haproxy::Release;
use serde_json::{Value, json};
use study::{Commands, Number, PlanError, Sweep, read_scale, sweeps_of, sweeps_value, threads};

use crate::point::{AXES, Point};

/// The plans that come with the study, by scale.
pub(crate) const BUILT_IN: &str = include_str!("../plan.toml");

/// Seconds that a run takes beside its measured time: HAProxy's start and end, warming up.
const AROUND: Duration = Duration::from_millis(1200);
/// The part of a run's time for which it is loaded before: tickets are there, ports open, memory taken.
pub(crate) const WARM_UP: u32 = 4;
/// HAProxy takes so many threads.
const MOST_THREADS: usize = 256;
const MOST_PROXIES: usize = 100;

/// What a sweep has beside its lists.
pub(crate) const NUMBERS: &[Number] = &[
    Number {
        name: "repeat",
        help: "Runs per point [default: 3]",
        default: Some(3),
        least: 1,
        most: 1000,
    },
    Number {
        name: "connections",
        help: "Connections of the load generator at once [default: 32]",
        default: Some(32),
        least: 1,
        most: 10_000,
    },
    Number {
        name: "load-threads",
        help: "Threads of the load generator [default: the processors]",
        default: None,
        least: 1,
        most: 256,
    },
    MILLISECONDS,
];

/// How long each run is measured; on the command line it is `--duration`.
pub(crate) const MILLISECONDS: Number = Number {
    name: "milliseconds",
    help: "How long each run is measured",
    default: Some(2000),
    least: 100,
    most: 600_000,
};

/// All that is to be measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The sweeps, in order.
    pub sweeps: Vec<Sweep>,
    /// Time that it may take, if it has such a limit.
    pub budget: Option<Duration>,
}

/// One run at a point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// The point of the plan that was measured.
    pub point: Point,
    /// Which, from 0.
    pub repeat: u32,
    /// How long it is measured.
    pub measured: Duration,
    /// Connections of the load generator at once.
    pub connections: usize,
    /// Threads of the load generator.
    pub load_threads: usize,
    /// The command that measures the point again.
    pub command: String,
}

impl Run {
    /// About how long it takes.
    #[must_use]
    pub fn expected(&self) -> Duration {
        self.measured + self.measured / WARM_UP + AROUND
    }
}

impl Plan {
    /// The plan of scale `scale` in the text of a plan file.
    ///
    /// # Errors
    /// The text is no plan or has no such scale.
    pub fn parse(text: &str, scale: &str) -> Result<Plan, Problem> {
        let found = read_scale(text, scale, &AXES, NUMBERS)?;
        Ok(Plan { sweeps: found.sweeps, budget: found.budget })
    }

    /// Reads back what [`Plan::value`] gave, or what a manifest from before had: one sweep in fields of
    /// its own.
    ///
    /// # Errors
    /// It does not read.
    pub fn recorded(value: &Value) -> Result<Plan, Problem> {
        let before;
        let value = match value.get("sweeps") {
            Some(_) => value,
            None => {
                before = of_before(value);
                &before
            }
        };
        let seconds = value.get("seconds").and_then(Value::as_u64);
        let sweeps = sweeps_of(value, &AXES, NUMBERS)?;
        Ok(Plan { sweeps, budget: seconds.map(Duration::from_secs) })
    }

    /// As a manifest has it.
    #[must_use]
    pub fn value(&self) -> Value {
        let seconds = self.budget.map(|budget| budget.as_secs());
        json!({ "sweeps": sweeps_value(&self.sweeps), "seconds": seconds })
    }

    /// The libraries that it names, each once; `built` is none.
    #[must_use]
    pub fn libraries(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for sweep in &self.sweeps {
            for name in list(sweep, "library") {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        names
    }

    /// Puts names in the place of `built`, so that the same is measured when it is resumed.
    pub fn name_libraries(&mut self, built: &[String]) {
        for sweep in &mut self.sweeps {
            let names = list(sweep, "library").into_iter().flat_map(|name| match name.as_str() {
                "built" => built.to_vec(),
                _ => vec![name],
            });
            sweep.lists.insert("library".to_owned(), names.collect());
        }
    }

    /// Every run in its order. Builds are innermost, forwards and backwards in turn (A B B A), so that
    /// what drifts falls on all of them alike.
    ///
    /// # Errors
    /// The plan asks for what cannot be, or for nothing that can.
    pub fn runs(&self, cores: usize) -> Result<Vec<Run>, Problem> {
        let mut runs = Vec::new();
        let mut impossible = None;
        let mut named = false;
        // A point of two sweeps is measured by the first.
        let mut seen: Vec<Point> = Vec::new();
        for sweep in &self.sweeps {
            let points = points(sweep, cores)?;
            named |= !points.is_empty();
            let is_possible = |point: &Point| {
                let why = (AXES.impossible)(point);
                impossible = impossible.or(why);
                why.is_none()
            };
            let new = points.into_iter().filter(|point| !seen.contains(point));
            let points: Vec<Point> = new.filter(is_possible).collect();
            seen.extend(points.iter().cloned());
            runs.extend(runs_of(sweep, &points, cores));
        }
        match (named && runs.is_empty(), impossible) {
            (true, Some(why)) => Err(PlanError::NothingLeft(why.to_owned()).into()),
            _ => Ok(runs),
        }
    }
}

fn list(sweep: &Sweep, axis: &str) -> Vec<String> {
    AXES.find(axis).map(|axis| sweep.list(axis)).unwrap_or_default()
}

fn points(sweep: &Sweep, cores: usize) -> Result<Vec<Point>, Problem> {
    for release in list(sweep, "haproxy") {
        Release::find(&release)?;
    }
    for word in list(sweep, "threads") {
        threads(&word, 1, MOST_THREADS, 0)?;
    }
    let proxies =
        |word: &String| word.parse().is_ok_and(|count: usize| (1..=MOST_PROXIES).contains(&count));
    if !list(sweep, "proxies").iter().all(proxies) {
        let what = format!("1 to {MOST_PROXIES} proxies can stand in a row");
        return Err(PlanError::OutOfRange { sweep: sweep.name.clone(), what }.into());
    }
    let words = |axis: &str, word: &str| match axis {
        "threads" => {
            let counts = threads(word, cores, MOST_THREADS, 0).ok()?;
            Some(counts.iter().map(ToString::to_string).collect())
        }
        _ => None,
    };
    Ok(AXES.points(sweep, &Point::default(), &words)?)
}

/// The runs at a sweep's points. Those that differ in the build only take turns.
fn runs_of(sweep: &Sweep, points: &[Point], cores: usize) -> Vec<Run> {
    let number = |name: &str| sweep.number(name).and_then(|number| usize::try_from(number).ok());
    let milliseconds = sweep.number(MILLISECONDS.name).unwrap_or_default();
    let connections = number("connections").unwrap_or(1);
    let load_threads = number("load-threads").unwrap_or(cores);
    let repeats = sweep.repeat();
    let place = |point: &Point| Point {
        library: String::new(),
        locks: haproxy::Locks::Pthread,
        ..point.clone()
    };
    let mut runs = Vec::new();
    for builds in points.chunk_by(|a, b| place(a) == place(b)) {
        for repeat in 0..repeats {
            let mut turn: Vec<&Point> = builds.iter().collect();
            if repeat % 2 == 1 {
                turn.reverse();
            }
            runs.extend(turn.into_iter().map(|point| Run {
                point: point.clone(),
                repeat,
                measured: Duration::from_millis(milliseconds),
                connections,
                load_threads,
                command: command(sweep, point, Some(load_threads)),
            }));
        }
    }
    runs
}

/// Makes the commands that measure runs again.
pub(crate) fn commands(plan: &Value) -> Commands {
    let sweeps = Plan::recorded(plan).map(|plan| plan.sweeps).unwrap_or_default();
    Box::new(move |sample| {
        let point = Point::of_fields(&sample.point)?;
        let sweep = sweeps.iter().find(|sweep| has_point(sweep, &point))?;
        Some(command(sweep, &point, None))
    })
}

/// Whether a sweep has a point. Words that stand for several values are not looked at.
fn has_point(sweep: &Sweep, point: &Point) -> bool {
    AXES.axes.iter().all(|axis| {
        let value = (axis.write)(point);
        let is_value = |word: String| {
            let mut own = point.clone();
            let read = (axis.read)(&mut own, &word);
            read.is_err() || (axis.write)(&(AXES.canonical)(own)) == value
        };
        sweep.list(axis).into_iter().any(is_value)
    })
}

/// The command that measures a point of a sweep again, with so many threads of the load generator where the sweep
/// does not say how many.
fn command(sweep: &Sweep, point: &Point, load_threads: Option<usize>) -> String {
    let number = |name: &str| sweep.number(name);
    let (repeats, milliseconds) = (sweep.repeat(), number(MILLISECONDS.name).unwrap_or_default());
    let connections = number("connections").unwrap_or(1);
    let threads = number("load-threads").or(load_threads.map(|threads| threads as u64));
    let threads = threads.map(|threads| format!(" --load-threads {threads}")).unwrap_or_default();
    format!(
        "wiretax stacks haproxy{} --repeat {repeats} --duration {milliseconds}ms \
         --connections {connections}{threads}",
        AXES.command_line(point)
    )
}

/// The plan of a manifest from before there was a plan file.
fn of_before(value: &Value) -> Value {
    let names = [
        ("library", "libraries"),
        ("locks", "locks"),
        ("scenario", "scenarios"),
        ("threads", "threads"),
        ("tls", "versions"),
        ("key", "key"),
        ("group", "group"),
        ("proxies", "proxies"),
        ("haproxy", "release"),
        ("repeat", "repeat"),
        ("milliseconds", "milliseconds"),
        ("connections", "connections"),
        ("load-threads", "load_threads"),
    ];
    let mut sweep = json!({ "name": "cli" });
    for (now, before) in names {
        if let Some(found) = value.get(before) {
            sweep[now] = found.clone();
        }
    }
    json!({ "sweeps": [sweep] })
}

#[cfg(test)]
mod tests {
    use super::*;
    use haproxy::Locks;

    fn plan(fields: &str) -> Plan {
        let text = format!("[scale.x]\nsweep = [{{ name = \"a\", {fields} }}]\n");
        Plan::parse(&text, "x").unwrap()
    }

    const TWO: &str =
        r#"library = ["openssl-1.1.1w", "openssl-3.0.2"], locks = ["pthread", "light"]"#;

    #[test]
    fn threads_go_to_the_cores_and_past_them() {
        let counts = |cores| {
            let mut counts: Vec<usize> =
                plan(r#"library = "boringssl", scenario = "full", repeat = 1"#)
                    .runs(cores)
                    .unwrap()
                    .iter()
                    .map(|run| run.point.threads)
                    .collect();
            counts.dedup();
            counts
        };
        assert_eq!(counts(1), [1, 2]);
        assert_eq!(counts(2), [1, 2, 4]);
        assert_eq!(counts(6), [1, 2, 4, 6, 12]);
        assert_eq!(counts(64), [1, 2, 4, 8, 16, 32, 64, 128]);
    }

    #[test]
    fn builds_alternate_and_every_point_is_run_as_often_as_asked() {
        let runs = plan(&format!("{TWO}, threads = [1, 2]")).runs(2).unwrap();
        assert_eq!(runs.len(), 2 * 2 * 4 * 3);
        let names = |runs: &[Run]| -> Vec<String> {
            runs.iter().map(|run| format!("{} {}", run.point.library, run.point.locks)).collect()
        };
        let (first, second) = (names(&runs[..4]), names(&runs[4..8]));
        assert_eq!(first.iter().rev().collect::<Vec<_>>(), second.iter().collect::<Vec<_>>());
        let mut points: Vec<_> = runs.iter().map(|run| (run.point.clone(), run.repeat)).collect();
        points.sort();
        points.dedup();
        assert_eq!(points.len(), runs.len());
    }

    #[test]
    fn a_point_is_read_back_from_its_sample() {
        for run in plan(TWO).runs(2).unwrap() {
            assert_eq!(Point::of_fields(&run.point.fields()), Some(run.point));
        }
        assert_eq!(Point::of_fields(&Default::default()), None);
    }

    #[test]
    fn a_command_measures_its_point_again() {
        let runs = plan(r#"library = "openssl-3.0.2", threads = 2, repeat = 1"#).runs(2).unwrap();
        let line = &runs[1].command;
        let start =
            "wiretax stacks haproxy --haproxy 3.0.11 --scenario chain --tls tls1.3 --key rsa";
        assert!(line.starts_with(start), "{line}");
        assert!(
            line.ends_with("--repeat 1 --duration 2000ms --connections 32 --load-threads 2"),
            "{line}"
        );
    }

    #[test]
    fn what_cannot_be_measured_is_refused() {
        assert!(plan(TWO).runs(2).is_ok());
        for (fields, said) in [
            (r#"haproxy = "2.6.12", locks = "light""#, "no light locks"),
            (r#"haproxy = "1.0""#, "3.0.11, 2.6.12"),
            ("threads = 0", "1 to 256 threads"),
            ("proxies = 0", "1 to 100 proxies"),
            (r#"group = "x25519mlkem768", tls = "tls1.2""#, "TLS 1.3 only"),
            (r#"scenario = "half""#, "full, chain, quic"),
            (r#"scenario = "quic", tls = "tls1.2""#, "TLS 1.3 only"),
        ] {
            let error = plan(&format!(r#"library = "boringssl", {fields}"#)).runs(2).unwrap_err();
            let remedy = error.remedy().unwrap_or_default().to_string();
            assert!(error.to_string().contains(said) || remedy.contains(said), "{error}: {remedy}");
        }
        let light = plan(
            r#"library = "boringssl", haproxy = ["2.6.12", "3.0.11"], locks = "light", threads = 1"#,
        );
        assert!(light.runs(2).unwrap().iter().all(|run| run.point.locks == Locks::Light));
    }

    #[test]
    fn built_is_what_is_built_and_plans_read_back() {
        for scale in ["quick", "default", "full"] {
            let mut plan = Plan::parse(BUILT_IN, scale).unwrap();
            assert_eq!(plan.libraries(), ["built"]);
            plan.name_libraries(&["boringssl".to_owned(), "openssl-3.5.5".to_owned()]);
            assert_eq!(plan.libraries(), ["boringssl", "openssl-3.5.5"]);
            assert!(!plan.runs(2).unwrap().is_empty());
            assert_eq!(Plan::recorded(&plan.value()).unwrap(), plan);
        }
        assert!(Plan::recorded(&json!({ "sweeps": 1 })).is_err());
    }

    #[test]
    fn the_document_s_plan_has_every_library_with_both_locks() {
        let plan = Plan::parse(BUILT_IN, "paper").unwrap();
        let runs = plan.runs(2).unwrap();
        let libraries = plan.libraries().len();
        assert_eq!(runs.len(), libraries * 2 * 2 * 2 * 3);
        let known = |name: &String| haproxy::Library::is_known(name);
        assert!(libraries == 18 && plan.libraries().iter().all(known));
        assert!(runs.iter().all(|run| run.point.key == tls::KeyType::Rsa2048));
    }

    #[test]
    fn the_plan_for_64_cores_has_the_threads_of_the_curves() {
        let mut plan = Plan::parse(BUILT_IN, "64-cores").unwrap();
        plan.name_libraries(&["openssl-3.0.2".to_owned()]);
        let runs = plan.runs(64).unwrap();
        assert_eq!(runs.len(), 2 * 2 * 10 * 5);
        assert_eq!(runs.iter().map(|run| run.point.threads).max(), Some(64));
        assert!(plan.budget.is_none());
    }
}
