//! Files that the user names, and the folder for results.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use fault::{Fault, Problem};

/// Checks that no output is also an input or another output, through links too. Devices and pipes may be.
///
/// # Errors
/// One is. The caller's fault.
pub fn check_apart(inputs: &[&Path], outputs: &[&Path]) -> Result<(), Problem> {
    for (at, output) in outputs.iter().enumerate() {
        let others = outputs.iter().take(at).chain(inputs);
        if let Some(other) = others.into_iter().find(|other| is_same(output, other)) {
            let what =
                format!("{} would be overwritten: it is {} too", output.display(), other.display());
            return Err(
                Problem::new(Fault::Caller, what).with_remedy("name another file for the output")
            );
        }
    }
    Ok(())
}

/// Whether two names lead to one regular file, or are one name of a file that is not there yet.
fn is_same(one: &Path, other: &Path) -> bool {
    match (std::fs::metadata(one), std::fs::metadata(other)) {
        (Ok(one), Ok(other)) => {
            one.is_file() && (one.dev(), one.ino()) == (other.dev(), other.ino())
        }
        (Err(_), Err(_)) => std::path::absolute(one).ok() == std::path::absolute(other).ok(),
        _ => false,
    }
}

/// A folder for new results that does not exist yet: `results/2026-11-21-handshake`, or with a
/// number behind it.
pub fn new_results_folder(command: &str, date: &str) -> PathBuf {
    let base = PathBuf::from("results");
    let first = base.join(format!("{date}-{command}"));
    if !first.exists() {
        return first;
    }
    (2u32..)
        .map(|number| base.join(format!("{date}-{command}-{number}")))
        .find(|folder| !folder.exists())
        .unwrap_or(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_is_no_input_and_no_other_output() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("input"), "x").unwrap();
        std::os::unix::fs::symlink("input", at("link")).unwrap();
        let apart = |inputs: &[&str], outputs: &[&str]| {
            let paths = [inputs, outputs]
                .map(|names| names.iter().map(|name| at(name)).collect::<Vec<_>>());
            let [inputs, outputs] = paths
                .each_ref()
                .map(|paths| paths.iter().map(PathBuf::as_path).collect::<Vec<_>>());
            check_apart(&inputs, &outputs).is_ok()
        };
        assert!(apart(&["input"], &["a", "b"]) && apart(&["input", "input"], &[]));
        assert!(apart(&["/dev/null"], &["/dev/null", "/dev/null"]));
        for (inputs, outputs) in
            [(&["input"][..], &["input"][..]), (&["input"], &["a", "link"]), (&[], &["new", "new"])]
        {
            assert!(!apart(inputs, outputs), "{inputs:?} {outputs:?}");
        }
    }
}
