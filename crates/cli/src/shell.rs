//! Completion scripts and man pages, generated from the definition of the command line.

use std::fs;
use std::path::Path;

use anyhow::Context;

use crate::args::documented;
use crate::exit::{Exit, OrExit, Outcome};
use crate::output::say;

/// Prints the completion script of a shell.
pub fn completions(shell: clap_complete::Shell) -> Outcome {
    // Into memory first: clap_complete panics on a closed pipe.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut documented(), "wiretax", &mut script);
    say(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}

/// Writes a page for the program and one for each command: `wiretax.1`, `wiretax-run.1`, ….
pub fn man(folder: &Path) -> Outcome {
    let write = || -> anyhow::Result<()> {
        fs::create_dir_all(folder).with_context(|| {
            format!("the folder {} cannot be made; choose another one", folder.display())
        })?;
        clap_mangen::generate_to(documented(), folder).with_context(|| {
            format!("man pages cannot be written to {}; choose another folder", folder.display())
        })
    };
    write().or_exit(Exit::Results)?;
    Ok(Exit::Done)
}
