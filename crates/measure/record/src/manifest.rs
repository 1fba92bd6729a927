//! What made the samples: `manifest.json`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::sync::OnceLock;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::line::without_place;
use crate::{
    Attachment, Environment, Problem, Touches, ValueKind, Warning, plan_hash, short_commit,
};

/// The version of the files' schema, written `1.0`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Schema {
    /// Changes when a reader of the old would misread the new.
    pub major: u32,
    /// Changes when fields are added.
    pub minor: u32,
}

impl Schema {
    /// What this program writes.
    pub const CURRENT: Schema = Schema { major: 1, minor: 0 };
}

impl fmt::Display for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl Serialize for Schema {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Schema {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let parts = text.split_once('.');
        let version = parts.and_then(|(major, minor)| {
            Some(Schema { major: major.parse().ok()?, minor: minor.parse().ok()? })
        });
        version.ok_or_else(|| serde::de::Error::custom("the schema is not a version like 1.0"))
    }
}

/// The program that measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tool {
    /// The version of Wiretax.
    pub version: String,
    /// The commit it was built from, with `-dirty` when the sources differed from it; `None` when
    /// it was built outside a repository.
    pub commit: Option<String>,
}

/// The commit that the program was built from: see [`Tool::built_from`].
static COMMIT: OnceLock<Option<String>> = OnceLock::new();

impl Tool {
    /// States the commit that the program was built from, once and before any session begins. Only the
    /// program's own build script looks at the repository, so that a commit does not build every crate
    /// anew.
    pub fn built_from(commit: Option<&str>) {
        COMMIT.get_or_init(|| commit.map(str::to_owned));
    }

    /// The program that runs now.
    #[must_use]
    pub fn current() -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: COMMIT.get().cloned().flatten(),
        }
    }
}

/// One process that wrote samples: the first, and each that resumed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// When it began (RFC 3339, UTC).
    pub started: Timestamp,
    /// When it ended in order; `None` when it was killed, or still runs.
    pub ended: Option<Timestamp>,
    /// Its command line.
    pub command: String,
    /// The program that measured.
    pub tool: Tool,
    /// The machine that it measured on.
    pub environment: Environment,
}

/// The number of the process that the user started: see [`Session::of_process`].
static PROCESS: OnceLock<u32> = OnceLock::new();

impl Session {
    /// States the number by which the user knows this process, before any session begins: in a process
    /// namespace of its own it has another.
    pub fn of_process(number: u32) {
        PROCESS.get_or_init(|| number);
    }

    /// The number of this process as its user sees it.
    pub(crate) fn process() -> u32 {
        PROCESS.get().copied().unwrap_or_else(std::process::id)
    }

    /// A session that begins now on this machine, with the arguments of this process as its
    /// command. `with_host` puts the host's name in.
    #[must_use]
    pub fn begin(with_host: bool) -> Self {
        Self {
            started: Timestamp::now(),
            ended: None,
            command: command_line(std::env::args_os()),
            tool: Tool::current(),
            environment: Environment::read(with_host),
        }
    }
}

/// Arguments as one line for a POSIX shell.
#[must_use]
pub fn command_line(arguments: impl Iterator<Item = OsString>) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./,:=@%+".contains(c);
    let quoted: Vec<String> = arguments
        .map(|argument| match argument.into_string() {
            Ok(argument) if !argument.is_empty() && argument.chars().all(plain) => argument,
            Ok(argument) => format!("'{}'", argument.replace('\'', r"'\''")),
            // Bytes in hexadecimal between `$'` and `'` (POSIX.1-2024, dollar-single-quotes).
            Err(bytes) => format!("$'{}'", bytes.as_encoded_bytes().escape_ascii()),
        })
        .collect();
    quoted.join(" ")
}

/// What made the samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of this file's schema.
    pub schema: Schema,
    /// What was to be measured: sweep, repeats, seeds. Any JSON.
    pub plan: Value,
    /// [`plan_hash`] of the plan.
    pub plan_hash: String,
    /// Who measured: the first session, and one for each resumption.
    pub sessions: Vec<Session>,
    /// Libraries that were measured or used to measure, with their versions.
    #[serde(default)]
    pub libraries: BTreeMap<String, String>,
    /// The files that the plan was made of, and names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<Attachment>,
    /// What the lab found out about itself.
    #[serde(default)]
    pub calibration: Option<Value>,
    /// What makes the result worse than it could be.
    #[serde(default)]
    pub warnings: Vec<Warning>,
    /// What each value of a sample is, by study and by the value's name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, BTreeMap<String, ValueKind>>,
}

impl Manifest {
    /// The manifest of a run of `plan` that begins with `session`, with the warnings of its
    /// machine.
    #[must_use]
    pub fn new(plan: Value, session: Session) -> Self {
        Self {
            schema: Schema::CURRENT,
            plan_hash: plan_hash(&plan),
            plan,
            warnings: session.environment.warnings(),
            sessions: vec![session],
            libraries: BTreeMap::new(),
            files: Vec::new(),
            calibration: None,
            values: BTreeMap::new(),
        }
    }

    /// When the first session began.
    #[must_use]
    pub fn started(&self) -> Option<Timestamp> {
        self.sessions.first().map(|session| session.started)
    }

    /// When the last session ended in order.
    #[must_use]
    pub fn ended(&self) -> Option<Timestamp> {
        self.sessions.last().and_then(|session| session.ended)
    }

    /// Adds a warning once.
    pub fn warn(&mut self, warning: Warning) {
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    /// Adds a session that resumes, and a warning when it is not of the same build or machine as
    /// the first: medians over both would mix two things.
    pub(crate) fn resume_with(&mut self, session: Session) {
        for warning in session.environment.warnings() {
            self.warn(warning);
        }
        if let Some(first) = self.sessions.first() {
            let remedy = "samples of both are mixed; measure again into another folder to be sure";
            let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "unknown".into());
            let (was, is) = (&first.environment, &session.environment);
            let mut changes = Vec::new();
            let mut change = |what: &str, was: String, is: String| {
                if was != is {
                    changes.push(format!("resumed with another {what}: {was}, then {is}"));
                }
            };
            change("version", first.tool.version.clone(), session.tool.version.clone());
            let commit = |commit: &Option<String>| {
                commit.as_deref().map_or("unknown".into(), |text| short_commit(text).into_owned())
            };
            change("commit", commit(&first.tool.commit), commit(&session.tool.commit));
            change("kernel", text(&was.kernel), text(&is.kernel));
            change("processor", text(&was.cpu_model), text(&is.cpu_model));
            change("set of processors", text(&was.cpus_online), text(&is.cpus_online));
            for what in changes {
                self.warn(Warning::new(what, remedy).touching(Touches::All));
            }
        }
        self.sessions.push(session);
    }

    /// The file's text.
    pub(crate) fn to_json(&self) -> Result<Vec<u8>, serde_json::Error> {
        let mut text = serde_json::to_vec_pretty(self)?;
        text.push(b'\n');
        Ok(text)
    }
}

/// Most lists and objects of a manifest, and most commas: in memory an object takes a hundred times what it
/// takes in the file. Ours have some hundred.
const MOST_LISTS: usize = 20_000;
const MOST_COMMAS: usize = 200_000;

/// Whether JSON is small in memory, too.
fn is_small(text: &[u8]) -> bool {
    let (mut lists, mut commas) = (0, 0);
    let (mut in_text, mut escaped) = (false, false);
    for byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b'[' | b'{' if !in_text => lists += 1,
            b',' if !in_text => commas += 1,
            _ => {}
        }
    }
    lists <= MOST_LISTS && commas <= MOST_COMMAS
}

/// Reads a manifest. The bytes are not trusted; the caller bounds their number. A newer minor
/// version's fields are ignored.
///
/// # Errors
/// [`Problem::NewerSchema`], also where the rest would not read; [`Problem::CorruptManifest`].
pub fn parse_manifest(text: &[u8]) -> Result<Manifest, Problem> {
    /// The one field whose place is the same for ever.
    #[derive(Deserialize)]
    struct Version {
        schema: Schema,
    }
    let corrupt = |error: &serde_json::Error| Problem::CorruptManifest {
        line: error.line(),
        column: error.column(),
        problem: without_place(error),
    };
    if !is_small(text) {
        let (what, limit) = ("the number of lists and objects in it", MOST_LISTS as u64);
        let (verb, remedy) = ("read", "check that this is the right folder");
        return Err(Problem::TooLarge { what, limit, verb, remedy });
    }
    let version: Version = serde_json::from_slice(text).map_err(|error| corrupt(&error))?;
    if version.schema.major > Schema::CURRENT.major {
        return Err(Problem::NewerSchema { found: version.schema });
    }
    serde_json::from_slice(text).map_err(|error| corrupt(&error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn manifest() -> Manifest {
        Manifest::new(json!({"repeat": 20}), Session::begin(false))
    }

    #[test]
    fn it_reads_back() {
        let manifest = manifest();
        let text = manifest.to_json().unwrap();
        assert_eq!(parse_manifest(&text).unwrap(), manifest);
        assert!(String::from_utf8(text).unwrap().contains("\"schema\": \"1.0\""));
        assert_eq!(manifest.plan_hash, plan_hash(&manifest.plan));
        assert!(manifest.ended().is_none() && manifest.started().is_some());
    }

    #[test]
    fn newer_versions() {
        let mut value = serde_json::to_value(manifest()).unwrap();
        value["schema"] = json!("1.7");
        value["more"] = json!([1]);
        assert_eq!(parse_manifest(value.to_string().as_bytes()).unwrap().schema.minor, 7);
        let text = br#"{"schema": "2.0", "all": "different"}"#;
        assert!(matches!(
            parse_manifest(text),
            Err(Problem::NewerSchema { found: Schema { major: 2, minor: 0 } })
        ));
    }

    #[test]
    fn what_does_not_read_is_said_with_its_place() {
        let problem = parse_manifest(b"{\n  \"schema\": 1\n}").unwrap_err();
        assert!(
            matches!(problem, Problem::CorruptManifest { line: 2, column: 13, .. }),
            "{problem:?}"
        );
        for text in [&b""[..], b"{", b"[]", br#"{"schema":"1"}"#, br#"{"schema":"1.0"}"#, b"\xff"] {
            assert!(matches!(parse_manifest(text), Err(Problem::CorruptManifest { .. })));
        }
    }

    #[test]
    fn what_would_be_large_in_memory_is_not_read() {
        for part in ["[0],", "{\"a\":0},", "0,"] {
            let list = part.repeat(300_000);
            let text = format!("{{\"schema\":\"1.0\",\"plan\":[{}0]}}", list);
            let problem = parse_manifest(text.as_bytes()).unwrap_err();
            assert!(matches!(problem, Problem::TooLarge { .. }), "{part}");
        }
        assert!(is_small(format!("[\"{}\"]", "[\\\"{,".repeat(300_000)).as_bytes()));
    }

    #[test]
    fn another_build_or_kernel_is_a_warning() {
        let mut manifest = manifest();
        let same = Session::begin(false);
        let before = manifest.warnings.len();
        manifest.warnings.clear();
        manifest.resume_with(same);
        assert!(manifest.warnings.len() <= before + 1, "{:?}", manifest.warnings);
        let mut other = Session::begin(false);
        other.environment.kernel = Some("0.99".into());
        manifest.resume_with(other);
        assert!(manifest.warnings.iter().any(|w| w.what.contains("another kernel")));
        assert_eq!(manifest.sessions.len(), 3);
    }

    #[test]
    fn commands_can_be_pasted() {
        let arguments = ["wiretax", "run", "--rtt", "20ms,50ms", "a b", "it's", ""];
        assert_eq!(
            command_line(arguments.map(OsString::from).into_iter()),
            r"wiretax run --rtt 20ms,50ms 'a b' 'it'\''s' ''"
        );
        let no_text: OsString = std::os::unix::ffi::OsStringExt::from_vec(b"it's\xff".to_vec());
        assert_eq!(command_line([no_text].into_iter()), r"$'it\'s\xff'");
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse_manifest(&bytes);
        }
    }
}
