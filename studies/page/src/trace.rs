//! Capacity traces of the user's own, in files of mahimahi's format.

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::path::Path;

use fault::{Fault, Problem, WhileDoing};
use linkmodel::Trace;
use sha2::{Digest, Sha256};
use study::Options;

/// Hex digits of a digest that a name has.
const DIGITS: usize = 16;

/// A file with a trace, as a link's name has it: `PATH`, or `PATH#DIGEST` once it was read, so that a command
/// measures over the same trace again or says that it is another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TraceFile {
    path: String,
    /// The first 16 hex digits of the content's SHA-256.
    digest: Option<String>,
}

impl TraceFile {
    /// Reads a name. `:` parts the files of a link and cannot be in it.
    pub(crate) fn of(text: &str) -> Option<TraceFile> {
        let is_digest = |digest: &&str| {
            digest.len() == DIGITS && digest.bytes().all(|byte| byte.is_ascii_hexdigit())
        };
        let (path, digest) = match text.rsplit_once('#') {
            Some((path, digest)) if is_digest(&digest) => (path, Some(digest.to_lowercase())),
            _ => (text, None),
        };
        (!path.is_empty()).then(|| TraceFile { path: path.to_owned(), digest })
    }
}

impl fmt::Display for TraceFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)?;
        self.digest.as_ref().map_or(Ok(()), |digest| write!(f, "#{digest}"))
    }
}

/// Origin of a trace's path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NamedBy {
    /// The command line or a plan file of the user.
    User,
    /// A results folder, which may be a stranger's.
    Results,
}

impl NamedBy {
    fn text(self, path: &Path) -> Result<String, Problem> {
        match self {
            NamedBy::User => Options::none().text_of(path, "trace"),
            NamedBy::Results => study::text_of_recorded(path, "trace"),
        }
    }
}

/// The traces of a plan, by the path of their file, with the digests of these.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Traces(BTreeMap<String, (String, Trace)>);

impl Traces {
    /// Reads a file, unless it was read before. Its name from now on has the digest.
    ///
    /// # Errors
    /// The file cannot be read, is no trace, or is another than its name says.
    pub(crate) fn read(
        &mut self,
        file: &TraceFile,
        named_by: NamedBy,
    ) -> Result<TraceFile, Problem> {
        let TraceFile { path, digest } = file;
        if !self.0.contains_key(path) {
            let text = named_by.text(Path::new(path))?;
            let trace = Trace::parse(&text).while_doing(|| path.clone())?;
            self.0.insert(path.clone(), (digest_of(&text), trace));
        }
        let found = self.0.get(path).map(|(found, _)| found.clone());
        if digest.is_some() && *digest != found {
            let what = format!("the trace {path} is another than the one that is named");
            let problem = Problem::new(Fault::Caller, what);
            return Err(problem.with_remedy("leave out `#` and what follows to take this one"));
        }
        Ok(TraceFile { path: path.clone(), digest: found })
    }

    /// The trace of a file that was read.
    pub(crate) fn get(&self, file: &TraceFile) -> Option<&Trace> {
        self.0.get(&file.path).map(|(_, trace)| trace)
    }
}

fn digest_of(text: &str) -> String {
    let mut digest = String::new();
    for byte in Sha256::digest(text.as_bytes()) {
        // Writing to a string does not fail.
        let _ = write!(digest, "{byte:02x}");
    }
    digest.truncate(DIGITS);
    digest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_printed() {
        for text in ["a.down", "dir/a b.down", "a#b.down", "a#0123456789abcdef"] {
            assert_eq!(TraceFile::of(text).unwrap().to_string(), text);
        }
        assert_eq!(TraceFile::of("a#b").unwrap().digest, None);
        assert!(TraceFile::of("").is_none());
    }

    #[test]
    fn a_file_is_known_by_its_content() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bus.down").display().to_string();
        let file = TraceFile::of(&path).unwrap();
        let read = |file: &TraceFile| Traces::default().read(file, NamedBy::User);
        let missing = read(&file).unwrap_err();
        assert!(missing.to_string().contains("bus.down cannot be read"), "{missing}");
        std::fs::write(&path, "1\n5\n5\n").unwrap();
        let mut traces = Traces::default();
        let named = traces.read(&file, NamedBy::User).unwrap();
        // printf '1\n5\n5\n' | sha256sum
        assert_eq!(named.digest.as_deref(), Some("403807aa34cc8ada"));
        assert_eq!(traces.get(&named).unwrap().millis(), [1, 5, 5]);
        assert_eq!(read(&named).unwrap(), named);
        std::fs::write(&path, "1\n5\n6\n").unwrap();
        let other = read(&named).unwrap_err();
        assert!(other.to_string().contains("is another than"), "{other}");
        std::fs::write(&path, "1\nx\n").unwrap();
        let broken = read(&file).unwrap_err();
        let text = broken.to_string();
        assert!(text.contains("bus.down") && text.contains("line 2 of the trace, `x`"), "{text}");
        assert_eq!(broken.fault(), Fault::Caller);
    }
}
