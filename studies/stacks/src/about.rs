//! What is known before anything is measured: the libraries, in their own words, and what locks
//! cost on this machine. It is recorded as samples too, so that a report can be built again anywhere.

use std::collections::BTreeMap;

use fault::Problem;
use record::{Outcome, Sample};
use serde::Serialize;
use study::Session;
use tls_drivers::hosts::{Contended, Hosts};

use crate::roster::{Build, Fact, Library, Roster};
use crate::sample::{STUDY, now_ms, printable};

/// Axis of these samples: `library` names one, `machine` is the machine's.
const LIBRARY: &str = "about";
const MACHINE: &str = "machine";

/// Why it is not known what locks cost, in the machine's sample.
const NOT_CONTENDED: &str = "contended_failure";
const LOCKS_REMEDY: &str =
    "locks are counted all the same; to reckon what they cost takes two idle cores";

/// A library as the report knows it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct About {
    /// Its driver's name.
    pub name: String,
    /// Family and version, by its driver.
    pub title: String,
    /// Licence as an SPDX expression.
    pub licence: String,
    /// Whether it belongs to the default set.
    pub default: bool,
    /// What a test cannot show.
    pub facts: Vec<Fact>,
    /// Why it was not measured.
    pub absent: Option<String>,
    /// Its own version string.
    pub version: String,
    /// Flags that it was built with.
    pub build_flags: String,
    /// CPU features that it uses.
    pub cpu_features: String,
    /// Bits of its functions (`enum wt_function`).
    pub functions: u64,
}

/// The machine that it was measured on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Machine {
    /// Cores that the program may use.
    pub cores: u32,
    /// What locks cost between two of them.
    pub contended: Option<Contended>,
    /// Why that is not known, where it was tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_contended: Option<String>,
}

fn blank(axis: &str, name: &str, seed: u64) -> Sample {
    Sample {
        study: STUDY.to_owned(),
        point: BTreeMap::from([(axis.to_owned(), name.to_owned())]),
        repeat: 0,
        seed,
        at_unix_ms: now_ms(),
        outcome: Outcome::Completed,
        values: BTreeMap::new(),
        labels: BTreeMap::new(),
        attachments: Vec::new(),
        command: "wiretax drivers list".to_owned(),
    }
}

/// Records libraries with their places in the report, unless it was done before. A driver that cannot say
/// what it is is reported by name.
///
/// # Errors
/// A sample cannot be written.
pub(crate) fn record_libraries(
    hosts: &dyn Hosts,
    libraries: &[(usize, &Library)],
    seed: u64,
    session: &mut Session<'_>,
) -> Result<(), Problem> {
    for (order, library) in libraries {
        let mut sample = blank(LIBRARY, &library.name, seed);
        if session.is_finished(&sample.point, 0) {
            continue;
        }
        sample.values.insert("order".to_owned(), *order as f64);
        sample.values.insert("default".to_owned(), f64::from(u8::from(library.default)));
        let facts = serde_json::to_string(&library.facts).unwrap_or_default();
        let mut label = |name: &str, text: &str| {
            sample.labels.insert(name.to_owned(), text.to_owned());
        };
        label("title", &library.title());
        label("licence", &library.licence);
        label("facts", &facts);
        let absent = match &library.build {
            Build::Failed(reason) => Some(format!("its build failed: {reason}")),
            Build::NotBuilt => Some("not built".to_owned()),
            Build::Program { absent: Some(why) } => Some(why.clone()),
            Build::Built(_) | Build::Program { absent: None } => {
                let described = match &library.build {
                    Build::Built(object) => hosts.describe(object),
                    _ => hosts.describe_program(&library.name),
                };
                match described {
                    Ok(described) => {
                        label("version", &printable(&described.version));
                        label("build_flags", &printable(&described.build_flags));
                        label("cpu_features", &printable(&described.cpu_features));
                        label("functions", &described.functions.to_string());
                        None
                    }
                    Err(failure) => {
                        session.watcher().warning(&format!("{}: {failure}", library.name), None);
                        Some(failure.to_string())
                    }
                }
            }
        };
        // What ended since the user stops says nothing of the library.
        if session.interrupted() {
            return Ok(());
        }
        if let Some(why) = absent {
            label("absent", &printable(&why));
        }
        session.record(&sample)?;
    }
    Ok(())
}

/// Records the machine, unless it was done before.
///
/// # Errors
/// A sample cannot be written.
pub(crate) fn record_machine(
    hosts: &dyn Hosts,
    cores: usize,
    seed: u64,
    session: &mut Session<'_>,
) -> Result<(), Problem> {
    let mut sample = blank(MACHINE, "this", seed);
    if !session.is_finished(&sample.point, 0) {
        sample.values.insert("cores".to_owned(), cores as f64);
        let contended = hosts.contended();
        if session.interrupted() {
            return Ok(());
        }
        match contended {
            Ok(contended) => {
                let values = names(&contended).map(|(name, ns)| (name.to_owned(), ns));
                sample.values.extend(values);
            }
            Err(why) => {
                let what = format!("what a lock costs between two cores is not known: {why}");
                session.watcher().warning(&what, Some(LOCKS_REMEDY));
                sample.labels.insert(NOT_CONTENDED.to_owned(), printable(&why));
            }
        }
        sample.values.retain(|_, value| value.is_finite());
        session.record(&sample)?;
    }
    Ok(())
}

fn names(contended: &Contended) -> [(&'static str, f64); 4] {
    [
        ("contended_read_ns", contended.read_ns),
        ("contended_write_ns", contended.write_ns),
        ("contended_mutex_ns", contended.mutex_ns),
        ("contended_atomic_ns", contended.atomic_ns),
    ]
}

/// A library for people, by its description and its own version string.
fn title(described: &str, reported: &str) -> String {
    // A family alone has no versions: `BoringSSL BoringSSL`.
    if let Some((family, version)) = described.split_once(' ')
        && family == version
    {
        return family.to_owned();
    }
    // What the distribution decides ends with a dot, `NSS 3.`: the library itself says the rest.
    let Some((family, beginning)) = described.rsplit_once(' ') else { return described.to_owned() };
    let whole = reported.split_whitespace().find(|word| word.starts_with(beginning));
    match whole.filter(|_| beginning.ends_with('.')) {
        Some(version) => format!("{family} {version}"),
        None => described.to_owned(),
    }
}

/// Reads a sample back: whether it was one of these.
pub(crate) fn read(
    sample: &Sample,
    libraries: &mut Vec<(f64, About)>,
    machine: &mut Option<Machine>,
) -> bool {
    if let Some(name) = sample.point.get(LIBRARY) {
        let text = |label: &str| sample.labels.get(label).cloned().unwrap_or_default();
        let order = sample.values.get("order").copied().unwrap_or(f64::MAX);
        let about = About {
            name: name.clone(),
            title: title(&text("title"), &text("version")),
            licence: text("licence"),
            default: sample.values.get("default").is_some_and(|default| *default > 0.0),
            facts: serde_json::from_str(&text("facts")).unwrap_or_default(),
            absent: sample.labels.get("absent").cloned(),
            version: text("version"),
            build_flags: text("build_flags"),
            cpu_features: text("cpu_features"),
            functions: text("functions").parse().unwrap_or(0),
        };
        libraries.push((order, about));
        return true;
    }
    if !sample.point.contains_key(MACHINE) {
        return false;
    }
    let value = |name: &str| sample.values.get(name).copied();
    let contended = (|| {
        Some(Contended {
            read_ns: value("contended_read_ns")?,
            write_ns: value("contended_write_ns")?,
            mutex_ns: value("contended_mutex_ns")?,
            atomic_ns: value("contended_atomic_ns")?,
        })
    })();
    let cores = value("cores").unwrap_or(1.0).clamp(1.0, 65_536.0);
    let not_contended = sample.labels.get(NOT_CONTENDED).cloned();
    *machine = Some(Machine { cores: cores as u32, contended, not_contended });
    true
}

/// The libraries of a roster that a plan names, in the roster's order.
pub(crate) fn named<'a>(
    roster: &'a Roster,
    names: &std::collections::BTreeSet<String>,
) -> Vec<&'a Library> {
    roster.libraries.iter().filter(|library| names.contains(&library.name)).collect()
}

#[cfg(test)]
mod tests {
    use super::title;

    #[test]
    fn a_title_has_the_version_that_the_library_reports_where_its_package_does_not() {
        assert_eq!(title("NSS 3.", "3.87.1"), "NSS 3.87.1");
        assert_eq!(title("Mbed TLS 2.28.", "mbed TLS 2.28.3"), "Mbed TLS 2.28.3");
        assert_eq!(title("NSS 3.", ""), "NSS 3.");
        assert_eq!(title("BoringSSL BoringSSL", "BoringSSL (x)"), "BoringSSL");
        assert_eq!(title("OpenSSL 3.5.5", "OpenSSL 3.5.5 27 Jan 2026"), "OpenSSL 3.5.5");
    }
}
