//! A runtime's program, spoken to in lines, and its toolchain's, run to their end.

use std::process::Command;
use std::process::ExitStatus;
use std::time::Duration;

use child::{End, Kept, Silence, Talk, last_words};

use crate::{Error, Runtime};

/// What is kept of what a tool says, in bytes of each stream.
const WORDS: usize = 4 << 10;

/// A running program; killed when dropped.
#[derive(Debug)]
pub(crate) struct Talker {
    pub(crate) runtime: Runtime,
    talk: Talk,
}

pub(crate) fn io(what: &str) -> impl FnOnce(std::io::Error) -> Error + '_ {
    move |source| Error::Io { what: what.to_owned(), source }
}

impl Talker {
    /// Starts a program.
    pub(crate) fn start(runtime: Runtime, command: &mut Command) -> Result<Self, Error> {
        let talk = Talk::start(command).map_err(io(&format!("starting {runtime}")))?;
        Ok(Self { runtime, talk })
    }

    /// Says something to it; a program that does not listen any more shows itself when it is heard next.
    pub(crate) fn say(&mut self, text: &str) {
        self.talk.say(text);
    }

    /// Its next line, without its end.
    pub(crate) fn hear(&mut self, patience: Duration) -> Result<String, Error> {
        let runtime = self.runtime;
        self.talk.hear(patience).map_err(|silence| match silence {
            Silence::Hung => Error::Hung { runtime, after: patience },
            Silence::Stopped => Error::Stopped { runtime },
            Silence::Ended(status, stderr) => {
                Error::Crashed { runtime, status: status.to_string(), stderr }
            }
            Silence::Rubbish(line) => Error::Rubbish { runtime, line: cut(&line) },
        })
    }

    /// Waits for its end, so long.
    pub(crate) fn wait(&mut self, patience: Duration) -> Option<ExitStatus> {
        self.talk.wait(patience)
    }
}

/// A line for a message.
fn cut(line: &[u8]) -> String {
    fault::excerpt(&String::from_utf8_lossy(line), 120)
}

/// Runs a tool to its end: whether it succeeded, and the last of what it said.
pub(crate) fn run(command: &mut Command, patience: Duration) -> std::io::Result<(bool, String)> {
    let output = child::run(command, Vec::new(), patience, [Kept::Last(WORDS); 2])?;
    let status = match output.end {
        End::Exited(status) => status,
        End::Late => {
            return Ok((false, format!("it did not finish within {} s", patience.as_secs())));
        }
        End::Stopped => return Ok((false, "it was ended: you stopped".to_owned())),
    };
    let said = [output.stdout, output.stderr].map(|said| last_words(&said, WORDS));
    let said = said.into_iter().filter(|said| !said.is_empty()).collect::<Vec<_>>();
    Ok((status.success(), said.join("\n")))
}
