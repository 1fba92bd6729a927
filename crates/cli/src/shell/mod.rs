//! Completion scripts and man pages, generated from the definition of the command line.

use std::fs;
use std::path::Path;

use fault::{Fault, Problem};
use outfile::Folder;

use crate::exit::{Exit, Outcome};
use crate::output::say;

/// The mode of a page before the umask.
const PAGE: u32 = 0o666;

/// Prints the completion script of a shell.
pub fn completions(shell: clap_complete::Shell, command: &mut clap::Command) -> Outcome {
    // Into memory first: clap_complete panics on a closed pipe.
    let mut script = Vec::new();
    clap_complete::generate(shell, command, "wiretax", &mut script);
    say(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}

/// Writes a page for the program and one for each command: `wiretax.1`, `wiretax-run.1`, …. A link in the
/// place of a page is replaced itself.
pub fn man(folder: &Path, command: clap::Command) -> Outcome {
    let named = |what: &str, error: std::io::Error| {
        Problem::of(Fault::Results, error)
            .while_doing(format!("{what} {}", folder.display()))
            .with_remedy("choose another folder")
    };
    fs::create_dir_all(folder).map_err(|error| named("cannot make the folder", error))?;
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let opened = Folder::open(folder).map_err(|error| named("cannot open the folder", error))?;
    opened.clear_partial();
    pages(&command, &opened).map_err(|error| named("cannot write man pages to", error))?;
    Ok(Exit::Done)
}

/// Writes the page of a command and those of the commands below it.
fn pages(command: &clap::Command, folder: &Folder) -> std::io::Result<()> {
    let page = clap_mangen::Man::new(command.clone());
    let mut text = Vec::new();
    page.render(&mut text)?;
    folder.replace(&page.get_filename(), &text, PAGE)?;
    let mut shown = command.get_subcommands().filter(|inner| !inner.is_hide_set());
    shown.try_for_each(|inner| pages(inner, folder))
}
