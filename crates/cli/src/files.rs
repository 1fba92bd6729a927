//! Reading the small text files that a user names, and choosing the folder for results.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};

use crate::exit::{Exit, Failed, OrExit};

/// Most bytes of a plan, a distribution or a certificate file.
const LARGEST: u64 = 16 << 20;

/// The text of a file that the user named. `what` says what it should be: "plan".
pub fn read_text(path: &Path, what: &str) -> Result<String, Failed> {
    let shown = path.display();
    let unreadable = || format!("the {what} {shown} cannot be read; name a file that you may read");
    let read = || -> anyhow::Result<String> {
        let mut bytes = Vec::new();
        let file = File::open(path).with_context(unreadable)?;
        file.take(LARGEST + 1).read_to_end(&mut bytes).with_context(unreadable)?;
        if bytes.len() as u64 > LARGEST {
            let most = LARGEST >> 20;
            return Err(anyhow!(
                "the {what} {shown} is larger than {most} MiB; hint: is it the right file?"
            ));
        }
        String::from_utf8(bytes)
            .map_err(|_| anyhow!("the {what} {shown} is not text; hint: is it the right file?"))
    };
    read().or_exit(Exit::Usage)
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

/// A word as a shell reads it back.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "./_-+=:,@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_survive_a_shell() {
        for (word, shell) in [
            ("lte", "lte"),
            ("up/a-1.trace", "up/a-1.trace"),
            ("my trace", "'my trace'"),
            ("it's", r"'it'\''s'"),
            ("", "''"),
        ] {
            assert_eq!(quoted(word), shell);
        }
    }
}
