//! Values that begin with a minus: `--loss -1%` is read as an option `-1`, and refused as one that nobody has. What is wrong
//! with it is what its option says of the value.

use std::ffi::{OsStr, OsString};

use clap::error::ErrorKind;
use clap::{ArgMatches, Command, Error};

/// Parses the arguments that the program was started with; where an unknown option is a number behind an option, it is its value.
///
/// # Errors
/// As clap has them.
pub fn parse(command: impl Fn() -> Command) -> Result<ArgMatches, Error> {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let parsed = command().try_get_matches_from(&arguments);
    match parsed {
        Err(error) if error.kind() == ErrorKind::UnknownArgument => match joined(&arguments) {
            Some(arguments) => command().try_get_matches_from(arguments),
            None => Err(error),
        },
        parsed => parsed,
    }
}

/// The arguments with the first number that begins with a minus joined to the option before it; `None` without any.
fn joined(arguments: &[OsString]) -> Option<Vec<OsString>> {
    // What stands behind `--` is no option of ours.
    let ours = arguments.iter().position(|argument| argument == "--").unwrap_or(arguments.len());
    let (ours, others) = arguments.split_at(ours);
    let at = ours.windows(2).position(
        |pair| matches!(pair, [option, value] if is_long_option(option) && is_negative(value)),
    )?;
    let (before, from) = ours.split_at(at);
    let [option, value, after @ ..] = from else { return None };
    let mut joined = option.clone();
    joined.push("=");
    joined.push(value);
    Some([before, &[joined], after, others].concat())
}

fn is_long_option(argument: &OsStr) -> bool {
    argument
        .to_str()
        .is_some_and(|text| text.len() > 2 && text.starts_with("--") && !text.contains('='))
}

fn is_negative(argument: &OsStr) -> bool {
    let number = argument.to_str().and_then(|text| text.strip_prefix('-'));
    number.is_some_and(|number| {
        number.starts_with(|first: char| first.is_ascii_digit() || first == '.')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn join(line: &[&str]) -> Option<Vec<String>> {
        let line: Vec<OsString> = line.iter().map(OsString::from).collect();
        let joined = joined(&line)?;
        Some(joined.iter().map(|argument| argument.to_string_lossy().into_owned()).collect())
    }

    #[test]
    fn a_negative_number_belongs_to_the_option_before_it() {
        let joined = ["wiretax", "lab", "--loss=-1%", "--", "ping", "--count", "-3"];
        assert_eq!(
            join(&["wiretax", "lab", "--loss", "-1%", "--", "ping", "--count", "-3"]),
            Some(joined.map(str::to_owned).to_vec())
        );
        for other in [&["lab", "--loss=1%", "-1"][..], &["lab", "-1"], &["lab", "--", "--a", "-1"]]
        {
            assert_eq!(join(other), None, "{other:?}");
        }
    }
}
