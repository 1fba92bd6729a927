//! Choosing the folder for results.

use std::path::PathBuf;

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
