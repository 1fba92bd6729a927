//! Printing data on stdout.

use std::io::Write;

use fault::{Fault, Problem};

/// Prints a text. A reader that has gone away (`| head`) is no failure.
pub fn say(text: &str) -> Result<(), Problem> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(|error| {
            Problem::of(Fault::Results, error)
                .while_doing("the result cannot be written to standard output")
                .with_remedy("send it elsewhere")
        }),
    }
}

/// Columns of the terminal; where stdout is none, as many as every table needs.
pub fn terminal_width() -> usize {
    const WIDE: usize = 240;
    terminal_size::terminal_size_of(std::io::stdout()).map_or(WIDE, |(width, _)| width.0.into())
}

/// Lines of the terminal that stdout is; `None` if it is none.
pub fn terminal_height() -> Option<usize> {
    terminal_size::terminal_size_of(std::io::stdout()).map(|(_, height)| height.0.into())
}
