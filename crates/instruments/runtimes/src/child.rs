//! A child process that is spoken to in lines: bounded in what it says and in how long it is silent.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::{Error, Runtime};

/// Longest line that a program may say, in bytes.
const LINE: u64 = 64 << 10;
/// What is kept of standard error, in bytes.
const WORDS: usize = 4 << 10;

/// A running program; killed when dropped.
#[derive(Debug)]
pub(crate) struct Talker {
    pub(crate) runtime: Runtime,
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Vec<u8>>,
    stderr: Receiver<String>,
}

pub(crate) fn io(what: &str) -> impl FnOnce(std::io::Error) -> Error + '_ {
    move |source| Error::Io { what: what.to_owned(), source }
}

impl Talker {
    /// Starts a program.
    pub(crate) fn start(runtime: Runtime, command: &mut Command) -> Result<Self, Error> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(io(&format!("starting {runtime}")))?;
        let stdin = child.stdin.take();
        let (say, lines) = sync_channel(16);
        if let Some(stdout) = child.stdout.take() {
            thread::spawn(move || {
                let mut reader = BufReader::new(stdout);
                loop {
                    let mut line = Vec::new();
                    let got = reader.by_ref().take(LINE).read_until(b'\n', &mut line);
                    if !matches!(got, Ok(1..)) || say.send(line).is_err() {
                        return;
                    }
                }
            });
        }
        let (tell, stderr) = sync_channel(1);
        if let Some(stream) = child.stderr.take() {
            thread::spawn(move || {
                // A receiver that is gone has no use for it.
                let _ = tell.send(tail(stream));
            });
        }
        Ok(Self { runtime, child, stdin, lines, stderr })
    }

    /// Says something to it; a program that does not listen any more shows itself when it is heard next.
    pub(crate) fn say(&mut self, text: &str) {
        if let Some(stdin) = &mut self.stdin
            && stdin.write_all(text.as_bytes()).and_then(|()| stdin.flush()).is_err()
        {
            self.stdin = None;
        }
    }

    /// Its next line, without its end.
    pub(crate) fn hear(&mut self, patience: Duration) -> Result<String, Error> {
        let runtime = self.runtime;
        match self.lines.recv_timeout(patience) {
            Ok(line) => {
                let rubbish = |line: &[u8]| Error::Rubbish { runtime, line: cut(line) };
                let text = line.strip_suffix(b"\n").ok_or_else(|| rubbish(&line))?;
                String::from_utf8(text.to_vec()).map_err(|_| rubbish(text))
            }
            Err(RecvTimeoutError::Timeout) => {
                self.kill();
                Err(Error::Hung { runtime, after: patience })
            }
            Err(RecvTimeoutError::Disconnected) => Err(self.ended(patience)),
        }
    }

    /// Why there are no more lines.
    fn ended(&mut self, patience: Duration) -> Error {
        let runtime = self.runtime;
        match self.wait(patience) {
            Some(status) => {
                let stderr = self.stderr.recv_timeout(Duration::from_secs(1)).unwrap_or_default();
                Error::Crashed { runtime, status: status.to_string(), stderr }
            }
            None => {
                self.kill();
                Error::Hung { runtime, after: patience }
            }
        }
    }

    /// Waits for its end, so long.
    pub(crate) fn wait(&mut self, patience: Duration) -> Option<ExitStatus> {
        let until = Instant::now() + patience;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if Instant::now() < until => thread::sleep(Duration::from_millis(5)),
                _ => return None,
            }
        }
    }

    fn kill(&mut self) {
        // One that is dead already is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Talker {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The last that a stream says.
fn tail(mut stream: impl Read) -> String {
    let mut kept = Vec::new();
    let mut bytes = [0; 1024];
    while let Ok(len @ 1..) = stream.read(&mut bytes) {
        kept.extend_from_slice(bytes.get(..len).unwrap_or_default());
        let over = kept.len().saturating_sub(WORDS);
        kept.drain(..over);
    }
    String::from_utf8_lossy(&kept).trim().to_owned()
}

/// A line for a message.
fn cut(line: &[u8]) -> String {
    String::from_utf8_lossy(line.get(..120).unwrap_or(line)).escape_debug().to_string()
}

/// Runs a tool to its end: whether it succeeded, and the last of what it said.
pub(crate) fn run(command: &mut Command, patience: Duration) -> std::io::Result<(bool, String)> {
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let out = child.stdout.take().map(|stream| thread::spawn(move || tail(stream)));
    let err = child.stderr.take().map(|stream| thread::spawn(move || tail(stream)));
    let until = Instant::now() + patience;
    let status = loop {
        match child.try_wait()? {
            Some(status) => break Some(status),
            None if Instant::now() < until => thread::sleep(Duration::from_millis(10)),
            None => break None,
        }
    };
    if status.is_none() {
        child.kill()?;
        child.wait()?;
        return Ok((false, format!("nothing came of it in {} s", patience.as_secs())));
    }
    let text = [out, err].into_iter().flatten().map(|thread| thread.join().unwrap_or_default());
    let text = text.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n");
    Ok((status.is_some_and(|status| status.success()), text))
}
