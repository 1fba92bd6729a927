//! Files that the user names, and the folder for results.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgMatches, Command, ValueHint};
use fault::{Fault, Problem};

/// Options, in any command, whose file is written. All other files are read.
const OUTPUTS: &[&str] = &["html", "out", "pcap", "rtt_out", "save", "stats"];

/// Checks that outputs are names of files, that no command writes a file that it reads, or one file twice.
/// Devices and pipes may be named twice.
///
/// # Errors
/// One is a folder; one would be overwritten: the caller's fault.
pub fn check_command_line(command: &Command, matches: &ArgMatches) -> Result<(), Problem> {
    let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
    let mut at = Some((command, matches));
    while let Some((command, matches)) = at {
        for option in command.get_arguments().filter(|option| names_files(option)) {
            let id = option.get_id().as_str();
            let Ok(Some(values)) = matches.try_get_raw(id) else { continue };
            let paths = values.map(Path::new);
            match is_output(id) {
                true => outputs.extend(paths),
                false => inputs.extend(paths.map(opened)),
            }
        }
        at = matches
            .subcommand()
            .and_then(|(name, matches)| Some((command.find_subcommand(name)?, matches)));
    }
    outputs.iter().try_for_each(|output| check_no_folder(output))?;
    check_apart(&inputs, &outputs)
}

/// The file that an input stands for.
fn opened(input: &Path) -> &Path {
    match input.as_os_str() == capture::STDIN {
        true => Path::new("/dev/stdin"),
        false => input,
    }
}

/// Checks that an output is no folder's name, before anything is measured.
fn check_no_folder(output: &Path) -> Result<(), Problem> {
    let checked = match output.is_dir() {
        true => Err(ErrorKind::IsADirectory.into()),
        false => outfile::check_name(output),
    };
    checked.map_err(|error| {
        Problem::of(Fault::Results, error)
            .while_doing(format!("{} cannot be written", output.display()))
            .with_remedy("name a file")
    })
}

/// Whether an option's values are files.
fn names_files(option: &Arg) -> bool {
    matches!(option.get_value_hint(), ValueHint::FilePath | ValueHint::AnyPath)
}

fn is_output(id: &str) -> bool {
    OUTPUTS.contains(&id)
}

/// Checks that no output is also an input or another output, through links too. Devices and pipes may be.
///
/// # Errors
/// One is. The caller's fault.
pub fn check_apart(inputs: &[&Path], outputs: &[&Path]) -> Result<(), Problem> {
    for (at, output) in outputs.iter().enumerate() {
        let others = outputs.iter().take(at).chain(inputs);
        if let Some(other) = others.into_iter().find(|other| outfile::is_same_file(output, other)) {
            let what =
                format!("{} would be overwritten: it is {} too", output.display(), other.display());
            return Err(
                Problem::new(Fault::Caller, what).with_remedy("name another file for the output")
            );
        }
    }
    Ok(())
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

    /// Returns the options of a command and of all below it that name files.
    fn files_of(command: &Command) -> Vec<(String, Arg)> {
        let own = command.get_arguments().filter(|option| names_files(option)).cloned();
        let own = own.map(|option| (format!("{} {}", command.get_name(), option.get_id()), option));
        own.chain(command.get_subcommands().flat_map(files_of)).collect()
    }

    #[test]
    fn each_file_that_is_written_is_an_output() {
        let options = files_of(&crate::command_line::command());
        assert!(options.len() > 20, "{}", options.len());
        for (name, option) in options {
            let help = option.get_help().map(ToString::to_string).unwrap_or_default();
            let writes = ["Write", "Add", "Save"].iter().any(|verb| help.starts_with(verb));
            assert_eq!(is_output(option.get_id().as_str()), writes, "{name}: {help}");
        }
    }

    #[test]
    fn an_output_is_no_input_and_no_other_output() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("input"), "x").unwrap();
        std::os::unix::fs::symlink("input", at("link")).unwrap();
        std::os::unix::fs::symlink("new", at("dangling")).unwrap();
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
        for (inputs, outputs) in [
            (&["input"][..], &["input"][..]),
            (&["input"], &["a", "link"]),
            (&[], &["new", "new"]),
            (&[], &["dangling", "new"]),
        ] {
            assert!(!apart(inputs, outputs), "{inputs:?} {outputs:?}");
        }
    }
}
