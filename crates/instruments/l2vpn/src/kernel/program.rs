//! Programs that configure a node, to their end.

use std::time::Duration;

use lab::{Event, Node, Program, Stream};

use crate::Error;

/// How long a program may take; where time is virtual, it is of that.
const LIMIT: Duration = Duration::from_secs(60);

/// How a program ended, and what it wrote.
pub(super) struct Ended {
    pub(super) succeeded: bool,
    pub(super) out: Vec<String>,
    pub(super) err: Vec<String>,
}

/// Runs a program on a node, with this on its standard input.
///
/// # Errors
/// It cannot be started, or did not end.
pub(super) fn run(
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
pub(super) fn must(
    node: &Node,
    program: &'static str,
    arguments: &[&str],
    input: &str,
) -> Result<Vec<String>, Error> {
    let ended = run(node, program, arguments, input)?;
    match ended.succeeded {
        true => Ok(ended.out),
        false => Err(Error::Program { program, node: node.name().to_owned(), said: ended.err }),
    }
}

/// Has `ip` or `tc` do the lines of a script; does nothing for an empty one. Scripts go by standard input: keys are
/// among them.
///
/// # Errors
/// As [`must`].
pub(super) fn batch(
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
