//! All that this program writes on stdout and stderr. Texts of strangers are made harmless here: nothing
//! else in the tree writes there, which a test holds.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Stderr, Stdout, Write};
use std::os::fd::AsFd;

use export::WholeLines;
use fault::{Fault, OrProblem, Problem, one_line, plain, steers};

/// The form of a text: it says how a character that steers a terminal is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// U+FFFD stands for the character.
    Text,
    /// An escape in a JSON string, which is the same data.
    Json,
    /// As text; each write is one line, with spaces for line breaks inside it.
    Line,
}

impl Form {
    fn clean<'a>(self, text: &'a str) -> Cow<'a, str> {
        match self {
            Form::Text => plain(text),
            Form::Json => escaped(text),
            Form::Line => match text.strip_suffix('\n') {
                Some(line) => one_line(line) + "\n",
                None => one_line(text),
            },
        }
    }
}

/// JSON in which no character steers: they stand only inside strings.
fn escaped(json: &str) -> Cow<'_, str> {
    if !json.contains(steers) {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len() + 64);
    for c in json.chars() {
        if steers(c) {
            // Each is below U+10000. Writing to a String cannot fail.
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// A writer through which nothing gets that steers a terminal.
pub struct Clean<W> {
    inner: W,
    form: Form,
    /// The first bytes of a character whose others are yet to come.
    begun: Vec<u8>,
}

impl<W: Write> Clean<W> {
    fn new(inner: W, form: Form) -> Clean<W> {
        Clean { inner, form, begun: Vec::new() }
    }
}

impl<W: Write> Write for Clean<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let tame = |byte: &u8| matches!(byte, b' '..=b'~' | b'\n' | b'\t');
        if self.begun.is_empty() && self.form != Form::Line && bytes.iter().all(tame) {
            return self.inner.write_all(bytes).map(|()| bytes.len());
        }
        let mut all = std::mem::take(&mut self.begun);
        all.extend_from_slice(bytes);
        self.begun = all.split_off(all.len() - unfinished(&all));
        let text = String::from_utf8_lossy(&all);
        self.inner.write_all(self.form.clean(&text).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Bytes at the end that begin a character and do not end it.
fn unfinished(bytes: &[u8]) -> usize {
    let invalid = bytes.utf8_chunks().last().map_or(&[][..], |chunk| chunk.invalid());
    match std::str::from_utf8(invalid) {
        Err(error) if error.error_len().is_none() => invalid.len(),
        _ => 0,
    }
}

/// Standard output, for what is written while it is made.
pub fn stdout(form: Form) -> Clean<Stdout> {
    Clean::new(io::stdout(), form)
}

/// Standard output, for lines of JSON: it ends with a whole one where it cannot be written.
pub fn json_lines() -> Result<Clean<WholeLines>, Problem> {
    let file = io::stdout().as_fd().try_clone_to_owned().blame(Fault::Machine)?;
    Ok(Clean::new(WholeLines::new(file.into()), Form::Json))
}

/// Standard error, for logs.
pub fn stderr(form: Form) -> Clean<Stderr> {
    Clean::new(io::stderr(), form)
}

/// Prints a text. A reader that has gone away (`| head`) is no failure.
pub fn say(text: &str) -> Result<(), Problem> {
    print(text, Form::Text)
}

/// As [`say`], of JSON.
pub fn say_json(text: &str) -> Result<(), Problem> {
    print(text, Form::Json)
}

fn print(text: &str, form: Form) -> Result<(), Problem> {
    let mut stdout = stdout(form);
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(|error| {
            Problem::of(Fault::Results, error)
                .while_doing("the result cannot be written to standard output")
                .with_remedy("send it elsewhere")
        }),
    }
}

/// As [`say`], with sentences that are wider than the terminal wrapped.
pub fn say_text(text: &str) -> Result<(), Problem> {
    match terminal_size::terminal_size_of(io::stdout()) {
        Some((width, _)) => say(&wrapped(text, width.0.into())),
        None => say(text),
    }
}

/// Says a line on stderr, wrapped to the terminal: a label of our own in a colour (an escape sequence,
/// or empty), then a text, which stays one line whoever it is of.
pub fn talk(label: &str, colour: &str, text: &str) {
    let mut stderr = io::stderr().lock();
    let text = one_line(text);
    let wide = terminal_size::terminal_size_of(&stderr);
    let whole = wide.map(|(width, _)| wrapped(&format!("{label}{text}"), width.0.into()));
    let text = whole.as_deref().and_then(|all| all.strip_prefix(label)).unwrap_or(&text);
    // Nobody can be told that stderr is gone.
    let _ = match colour {
        "" => writeln!(stderr, "{label}{text}"),
        colour => writeln!(stderr, "{colour}{label}\x1b[0m{text}"),
    };
}

/// Whether stderr is a terminal.
pub fn talks_to_terminal() -> bool {
    io::stderr().is_terminal()
}

/// Reports panics here, too: a message may quote a stranger.
pub fn report_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let thread = std::thread::current();
        let mut text = format!("thread '{}' {panic}\n", thread.name().unwrap_or("without a name"));
        let trace = Backtrace::capture();
        if trace.status() == BacktraceStatus::Captured {
            let _ = writeln!(text, "{trace}");
        }
        let _ = stderr(Form::Text).write_all(text.as_bytes());
    }));
}

/// Lines of more than `width` columns broken between words. What follows stands under the text: behind
/// the indentation, or the name that two spaces set apart.
pub fn wrapped(text: &str, width: usize) -> String {
    text.split_inclusive('\n').map(|line| wrapped_line(line, width)).collect()
}

/// Spaces before what is carried over to the next line.
const CARRIED: usize = 2;

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
    // What begins a line is ours: a word of a stranger's that is carried over stands behind spaces.
    let next = indent.max(CARRIED);
    let mut begun = indent;
    for word in rest.split_whitespace() {
        let letters = word.chars().count();
        if column > begun && column + 1 + letters > width {
            out = out + "\n" + &" ".repeat(next);
            (column, begun) = (next, next);
        } else if column > begun {
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
    terminal_size::terminal_size_of(io::stdout()).map_or(WIDE, |(width, _)| width.0.into())
}

/// Lines of the terminal that stdout is; `None` if it is none.
pub fn terminal_height() -> Option<usize> {
    terminal_size::terminal_size_of(io::stdout()).map(|(_, height)| height.0.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A window's title, a cleared screen, red by C1, a returned carriage, and text from right to left.
    const STRANGER: &str = "a\u{1b}]0;x\u{7}\u{1b}[2J\u{9b}31m\r\u{202e}b";

    fn written(form: Form, parts: &[&[u8]]) -> String {
        let mut out = Vec::new();
        let mut clean = Clean::new(&mut out, form);
        parts.iter().for_each(|part| clean.write_all(part).unwrap());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn nothing_that_is_written_steers() {
        let text = written(Form::Text, &[STRANGER.as_bytes(), b"\n\tc\xff\n"]);
        assert_eq!(
            text,
            "a\u{fffd}]0;x\u{fffd}\u{fffd}[2J\u{fffd}31m\u{fffd}\u{fffd}b\n\tc\u{fffd}\n"
        );
        let line = written(Form::Line, &[b"warn a\r\nerror: b\n", b"c\n"]);
        assert_eq!(line, "warn a  error: b\nc\n");
    }

    #[test]
    fn json_is_the_same_data() {
        let data = serde_json::json!({ STRANGER: [STRANGER, "\u{7f}\u{feff}é\n"] });
        let text = serde_json::to_string_pretty(&data).unwrap();
        let shown = written(Form::Json, &[text.as_bytes()]);
        assert!(!shown.contains(steers), "{shown:?}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), data);
    }

    #[test]
    fn a_character_may_come_in_parts() {
        let text = "é\u{9b}\u{202e}\u{1f980}z".as_bytes();
        for size in 1..text.len() {
            let parts: Vec<_> = text.chunks(size).collect();
            assert_eq!(written(Form::Text, &parts), "é\u{fffd}\u{fffd}\u{1f980}z", "{size}");
        }
    }

    #[test]
    fn long_lines_are_broken_between_words_and_stand_under_their_text() {
        let text =
            "no  name      what is to be said of it\nshort  row\none two three four five six\n";
        let broken = "no  name      what is to be said\n              of it\nshort  row\n\
                      one two three four five six\n";
        assert_eq!(wrapped(text, 32), broken);
        assert_eq!(wrapped("  one two three", 10), "  one two\n  three");
        assert_eq!(wrapped("x https://example.org/long", 10), "x\n  https://example.org/long");
        assert_eq!(wrapped("", 10), "");
    }
}
