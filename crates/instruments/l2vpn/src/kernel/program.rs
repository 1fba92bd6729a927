//! Programs that configure a node, to their end.

use std::time::Duration;

use lab::{Event, Node, Program, Stream};

use crate::Error;

/// How long a program may take; where time is virtual, it is of that.
const LIMIT: Duration = Duration::from_secs(60);

/// Hexadecimal digits of the shortest key, or of half of one.
const SHORTEST_KEY: usize = 16;

/// How a program ended, and what it wrote.
#[derive(Debug)]
pub struct Ended {
    /// Whether its exit status was zero.
    pub succeeded: bool,
    /// Lines of standard output.
    pub out: Vec<String>,
    /// Lines of standard error.
    pub err: Vec<String>,
}

/// Runs a program on a node, with this on its standard input.
///
/// # Errors
/// It cannot be started, or did not end.
pub fn run(
    node: &Node,
    program: &'static str,
    arguments: &[&str],
    input: &str,
) -> Result<Ended, Error> {
    let running = node.launch(&Program::new(program).args(arguments).stdin(input))?;
    let mut ended = Ended { succeeded: false, out: Vec::new(), err: Vec::new() };
    loop {
        match running.next_event(LIMIT) {
            Some(Event::Line { stream: Stream::Out, text, .. }) => ended.out.push(text),
            Some(Event::Line { stream: Stream::Err, text, .. }) => ended.err.push(text),
            Some(Event::Ended { status, .. }) => {
                ended.succeeded = status.success();
                return Ok(ended);
            }
            None => {
                let said = vec!["it did not end".to_owned()];
                return Err(Error::Program { program, node: node.name().to_owned(), said });
            }
        }
    }
}

/// The same for a program that must succeed; what it wrote on standard output.
///
/// # Errors
/// Nor did it succeed.
pub fn must(
    node: &Node,
    program: &'static str,
    arguments: &[&str],
    input: &str,
) -> Result<Vec<String>, Error> {
    let ended = run(node, program, arguments, input)?;
    match ended.succeeded {
        true => Ok(ended.out),
        false => {
            let said = ended.err.iter().map(|line| without_keys(line)).collect();
            Err(Error::Program { program, node: node.name().to_owned(), said })
        }
    }
}

/// A line without what may be a key: a program that takes a word for wrong repeats it.
fn without_keys(line: &str) -> String {
    let is_key = |word: &&str| {
        let digits = word.trim_matches(|letter: char| !letter.is_ascii_alphanumeric());
        let digits = digits.strip_prefix("0x").unwrap_or(digits);
        digits.len() >= SHORTEST_KEY && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let words = line.split(' ').map(|word| if is_key(&word) { "(a key)" } else { word });
    words.collect::<Vec<_>>().join(" ")
}

/// Has `ip` or `tc` do the lines of a script; does nothing for an empty one. Scripts go by standard input: keys are
/// among them.
///
/// # Errors
/// As [`must`].
pub fn batch(
    node: &Node,
    program: &'static str,
    options: &[&str],
    script: &str,
) -> Result<(), Error> {
    if script.is_empty() {
        return Ok(());
    }
    let arguments: Vec<&str> = options.iter().copied().chain(["-batch", "-"]).collect();
    must(node, program, &arguments, script).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_not_repeated() {
        let key = "0x00112233445566778899aabbccddeeff";
        let line = format!("Error: argument \"{key}\" is wrong: key {key}, of 02:00:00:00:01:02");
        let shown = without_keys(&line);
        assert_eq!(shown, "Error: argument (a key) is wrong: key (a key) of 02:00:00:00:01:02");
        assert_eq!(without_keys("Command failed -:3"), "Command failed -:3");
    }
}
