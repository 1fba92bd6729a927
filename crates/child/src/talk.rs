//! A program that is spoken to in lines.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use crate::output::{Kept, keep_aside};
use crate::{Child, End, beside, last_words, stopping};

/// Longest line that a program may say, in bytes.
const LINE: u64 = 64 << 10;
/// How long it takes at most until a wish to stop is noticed.
const LOOK: Duration = Duration::from_millis(20);
/// What is kept of standard error, in bytes.
const WORDS: usize = 4 << 10;

/// A program that is spoken to in lines: bounded in what it says and in how long it is silent. Killed
/// when dropped.
#[derive(Debug)]
pub struct Talk {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Vec<u8>>,
    stderr: Receiver<Vec<u8>>,
}

/// Why there is no line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Silence {
    /// It said nothing for too long.
    Hung,
    /// It was ended: this process was asked to stop ([`crate::stop_when`]).
    Stopped,
    /// It ended; with the last of what it wrote to standard error.
    Ended(ExitStatus, String),
    /// It said what is no line of text: too long, cut, or not UTF-8.
    Rubbish(Vec<u8>),
}

impl Talk {
    /// Starts a program.
    ///
    /// # Errors
    /// As [`Command::spawn`]; the threads that listen to it cannot be started.
    pub fn start(command: &mut Command) -> io::Result<Talk> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = Child::spawn(command)?;
        let (stdin, stdout) = (child.stdin(), child.stdout());
        let (say, lines) = sync_channel(16);
        beside(move || {
            let Some(stdout) = stdout else { return };
            let mut reader = BufReader::new(stdout);
            loop {
                let mut line = Vec::new();
                let got = reader.by_ref().take(LINE).read_until(b'\n', &mut line);
                if !matches!(got, Ok(1..)) || say.send(line).is_err() {
                    return;
                }
            }
        })?;
        let stderr = keep_aside(child.stderr(), Kept::Last(WORDS))?;
        Ok(Talk { child, stdin, lines, stderr })
    }

    /// Says something to it; one that does not listen any more shows itself when it is heard next.
    pub fn say(&mut self, text: &str) {
        if let Some(stdin) = &mut self.stdin
            && stdin.write_all(text.as_bytes()).and_then(|()| stdin.flush()).is_err()
        {
            self.stdin = None;
        }
    }

    /// Its next line, without its end. One that is silent for longer than `patience`, or until this process
    /// is asked to stop, is killed.
    ///
    /// # Errors
    /// [`Silence`].
    pub fn hear(&mut self, patience: Duration) -> Result<String, Silence> {
        // A time beyond all clocks is none.
        let deadline = Instant::now().checked_add(patience);
        let left = || deadline.map_or(LOOK, |at| at.saturating_duration_since(Instant::now()));
        let heard = loop {
            match self.lines.recv_timeout(LOOK.min(left())) {
                Err(RecvTimeoutError::Timeout) if stopping() => {
                    self.child.kill();
                    return Err(Silence::Stopped);
                }
                Err(RecvTimeoutError::Timeout) if !left().is_zero() => {}
                heard => break heard,
            }
        };
        match heard {
            Ok(mut line) => match line.pop() {
                Some(b'\n') => {
                    String::from_utf8(line).map_err(|error| Silence::Rubbish(error.into_bytes()))
                }
                last => {
                    line.extend(last);
                    Err(Silence::Rubbish(line))
                }
            },
            Err(RecvTimeoutError::Timeout) => {
                self.child.kill();
                Err(Silence::Hung)
            }
            Err(RecvTimeoutError::Disconnected) => match self.wait(patience) {
                Some(status) => {
                    let said = self.stderr.recv_timeout(Duration::from_secs(1));
                    Err(Silence::Ended(status, last_words(&said.unwrap_or_default(), WORDS)))
                }
                None => Err(Silence::Hung),
            },
        }
    }

    /// Waits for its end, so long; `None` if it runs on.
    pub fn wait(&mut self, patience: Duration) -> Option<ExitStatus> {
        match self.child.wait(Some(patience), &mut || false) {
            Ok(End::Exited(status)) => Some(status),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn shell(script: &str) -> Talk {
        Talk::start(Command::new("sh").args(["-c", script])).unwrap()
    }

    #[test]
    fn lines_go_both_ways() {
        let mut talk = shell("read name; echo hello $name; read rest; exit 7");
        talk.say("you\n");
        assert_eq!(talk.hear(LONG).as_deref(), Ok("hello you"));
        talk.say("\n");
        assert_eq!(talk.wait(LONG).and_then(|status| status.code()), Some(7));
    }

    #[test]
    fn silence_has_its_reason() {
        assert_eq!(shell("sleep 1000").hear(Duration::from_millis(1)), Err(Silence::Hung));
        let ended = shell("echo sorry >&2; exit 3").hear(LONG);
        assert!(matches!(ended, Err(Silence::Ended(status, said))
            if status.code() == Some(3) && said == "sorry"));
        assert_eq!(shell("printf cut").hear(LONG), Err(Silence::Rubbish(b"cut".to_vec())));
        let invalid = shell(r"printf '\377\n'").hear(LONG);
        assert_eq!(invalid, Err(Silence::Rubbish(vec![0xff])));
        let Err(Silence::Rubbish(long)) = shell("yes | tr -d '\\n'").hear(LONG) else { panic!() };
        assert_eq!(long.len() as u64, LINE);
    }
}
