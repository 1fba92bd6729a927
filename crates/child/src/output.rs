//! What programs say, a part of it kept.

use std::io::{self, Read};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use crate::{Child, End, beside};

/// How long after its end what a program said is waited for: somebody else may hold its output open.
const AFTER: Duration = Duration::from_secs(2);

/// Which part of a stream is kept; the rest is read and forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// So many bytes from its beginning.
    First(usize),
    /// So many bytes from its end.
    Last(usize),
}

/// What came of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// How it ended; it is gone in every case.
    pub end: End,
    /// What is kept of its standard output.
    pub stdout: Vec<u8>,
    /// What is kept of its standard error.
    pub stderr: Vec<u8>,
}

impl Output {
    /// Whether it ended by itself, and well.
    #[must_use]
    pub fn succeeded(&self) -> bool {
        matches!(self.end, End::Exited(status) if status.success())
    }
}

/// Runs a program to its end, or until its time is up or [`crate::stop_when`] says so; it is killed then.
/// `input` is what it reads; `kept` is of its standard output and its standard error.
///
/// # Errors
/// It cannot be started or waited for, nor the threads that listen to it.
pub fn run(
    command: &mut Command,
    input: Vec<u8>,
    patience: Duration,
    kept: [Kept; 2],
) -> io::Result<Output> {
    command.stdin(if input.is_empty() { Stdio::null() } else { Stdio::piped() });
    let mut child = Child::spawn(command.stdout(Stdio::piped()).stderr(Stdio::piped()))?;
    child.feed(input)?;
    let [first, second] = kept;
    let (stdout, stderr) = (child.stdout(), child.stderr());
    let (stdout, stderr) = (keep_aside(stdout, first)?, keep_aside(stderr, second)?);
    let end = child.wait(Some(patience), &mut || false)?;
    drop(child);
    let said = |stream: Receiver<Vec<u8>>| stream.recv_timeout(AFTER).unwrap_or_default();
    Ok(Output { end, stdout: said(stdout), stderr: said(stderr) })
}

/// Reads a stream to its end on a thread of its own; what is kept of it comes then.
///
/// # Errors
/// The thread cannot be started.
pub fn keep_aside(
    stream: Option<impl Read + Send + 'static>,
    kept: Kept,
) -> io::Result<Receiver<Vec<u8>>> {
    let (sender, receiver) = sync_channel(1);
    beside(move || {
        // A receiver that is gone has no use for it.
        let _ = sender.send(stream.map(|stream| keep(stream, kept)).unwrap_or_default());
    })?;
    Ok(receiver)
}

fn keep(mut stream: impl Read, kept: Kept) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let len = match stream.read(&mut chunk) {
            Ok(0) => return bytes,
            Ok(len) => len,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return bytes,
        };
        let new = chunk.get(..len).unwrap_or_default();
        match kept {
            Kept::First(most) => {
                let room = most.saturating_sub(bytes.len()).min(new.len());
                bytes.extend_from_slice(new.get(..room).unwrap_or_default());
            }
            Kept::Last(most) => {
                bytes.extend_from_slice(new);
                bytes.drain(..bytes.len().saturating_sub(most));
            }
        }
    }
}

/// The last `most` bytes of what was said, as text in one piece: from the beginning of a character,
/// without what is blank around it.
#[must_use]
pub fn last_words(said: &[u8], most: usize) -> String {
    let said = said.trim_ascii();
    let mut end = said.get(said.len().saturating_sub(most)..).unwrap_or_default();
    while let Some((0x80..=0xbf, rest)) = end.split_first() {
        end = rest;
    }
    String::from_utf8_lossy(end).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(script: &str, kept: [Kept; 2]) -> Output {
        let mut shell = Command::new("sh");
        run(shell.args(["-c", script]), b"you\n".to_vec(), Duration::from_secs(60), kept).unwrap()
    }

    #[test]
    fn what_is_said_is_kept_within_bounds() {
        let output = said(
            "read name; echo 12$name; echo abcde >&2; exit 1",
            [Kept::First(3), Kept::Last(3)],
        );
        assert_eq!((&output.stdout[..], &output.stderr[..]), (&b"12y"[..], &b"de\n"[..]));
        assert!(!output.succeeded());
        let much = said("yes | head -c 3000000", [Kept::First(10), Kept::Last(10)]);
        assert!(much.succeeded() && much.stdout.len() == 10);
    }

    #[test]
    fn one_that_is_late_is_gone_and_one_that_is_absent_an_error() {
        let kept = [Kept::First(10); 2];
        let mut sleeps = Command::new("sleep");
        assert_eq!(
            run(sleeps.arg("1000"), Vec::new(), Duration::ZERO, kept).unwrap().end,
            End::Late
        );
        assert!(
            run(&mut Command::new("wiretax-no-such-program"), Vec::new(), AFTER, kept).is_err()
        );
    }

    #[test]
    fn last_words_begin_with_a_character() {
        assert_eq!(last_words(b" short \n", 400), "short");
        let long = last_words("ü".repeat(500).as_bytes(), 401);
        assert!(long.len() == 400 && long.starts_with('ü'));
        assert_eq!(last_words(&[0x80; 9], 4), "");
    }
}
