//! Reading the small text files that a user names, and choosing the folder for results.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use fault::{Fault, Problem};

/// Most bytes of a plan, a distribution or a certificate file.
const LARGEST: u64 = 16 << 20;

/// The text of a file that the user named. `what` says what it should be: "plan".
pub fn read_text(path: &Path, what: &str) -> Result<String, Problem> {
    let shown = path.display();
    let unreadable = |error: std::io::Error| {
        Problem::of(Fault::Caller, error)
            .while_doing(format!("the {what} {shown} cannot be read"))
            .with_remedy("name a file that you may read")
    };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    let wrong = |is: &str| {
        Problem::new(Fault::Caller, format!("the {what} {shown} is {is}"))
            .with_remedy("check that it is the right file")
    };
    if bytes.len() as u64 > LARGEST {
        return Err(wrong(&format!("larger than {} MiB", LARGEST >> 20)));
    }
    String::from_utf8(bytes).map_err(|_| wrong("not text"))
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
