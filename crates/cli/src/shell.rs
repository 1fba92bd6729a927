//! Completion scripts and man pages, generated from the definition of the command line.

use std::fs;
use std::io;
use std::path::Path;

use anyhow::Context;
use clap::CommandFactory;

use crate::args::Cli;
use crate::exit::{Exit, OrExit, Outcome};

/// Prints the completion script of a shell.
pub fn completions(shell: clap_complete::Shell) -> Outcome {
    // Into memory first: clap_complete panics on a closed pipe.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "wiretax", &mut script);
    io::Write::write_all(&mut io::stdout().lock(), &script).or_exit(Exit::Results)?;
    Ok(Exit::Done)
}

/// Writes a page for the program and one for each command: `wiretax.1`, `wiretax-run.1`, ….
pub fn man(folder: &Path) -> Outcome {
    let write = || -> anyhow::Result<()> {
        fs::create_dir_all(folder)
            .with_context(|| format!("the folder {} cannot be made", folder.display()))?;
        clap_mangen::generate_to(Cli::command(), folder)
            .with_context(|| format!("man pages cannot be written to {}", folder.display()))
    };
    write().or_exit(Exit::Results)?;
    Ok(Exit::Done)
}
