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

/// As [`say`], with sentences that are wider than the terminal wrapped. Not for JSON.
pub fn say_text(text: &str) -> Result<(), Problem> {
    match terminal_size::terminal_size_of(std::io::stdout()) {
        Some((width, _)) => say(&wrapped(text, width.0.into())),
        None => say(text),
    }
}

/// Lines of more than `width` columns broken between words. What follows stands under the text: behind
/// the indentation, or the name that two spaces set apart.
pub fn wrapped(text: &str, width: usize) -> String {
    text.split_inclusive('\n').map(|line| wrapped_line(line, width)).collect()
}

fn wrapped_line(line: &str, width: usize) -> String {
    let text = line.trim_end();
    if text.chars().count() <= width {
        return line.to_owned();
    }
    let (mut indent, mut bytes, mut spaces) = (0, 0, 0);
    for (column, (at, letter)) in text.char_indices().enumerate().take(width / 2) {
        if letter != ' ' && spaces >= 2 {
            (indent, bytes) = (column, at);
        }
        spaces = if letter == ' ' { spaces + 1 } else { 0 };
    }
    let (head, rest) = text.split_at(bytes);
    let (mut out, mut column) = (head.to_owned(), indent);
    for word in rest.split_whitespace() {
        let letters = word.chars().count();
        if column > indent && column + 1 + letters > width {
            out = out + "\n" + &" ".repeat(indent);
            column = indent;
        } else if column > indent {
            out.push(' ');
            column += 1;
        }
        out += word;
        column += letters;
    }
    if line.ends_with('\n') {
        out.push('\n');
    }
    out
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

#[cfg(test)]
mod tests {
    use super::wrapped;

    #[test]
    fn long_lines_are_broken_between_words_and_stand_under_their_text() {
        let text =
            "no  name      what is to be said of it\nshort  row\none two three four five six\n";
        let broken = "no  name      what is to be said\n              of it\nshort  row\n\
                      one two three four five six\n";
        assert_eq!(wrapped(text, 32), broken);
        assert_eq!(wrapped("  one two three", 10), "  one two\n  three");
        assert_eq!(wrapped("x https://example.org/long", 10), "x\nhttps://example.org/long");
        assert_eq!(wrapped("", 10), "");
    }
}
