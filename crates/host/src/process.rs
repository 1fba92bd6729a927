//! A job done by a process of its own.

use std::ffi::OsString;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use child::{Child, End, Kept};
use fault::Problem;
use serde_json::Value;

use crate::message::{Incoming, Message, text};
use crate::run::{Given, Next, Over, Watch};
use crate::{HostError, frame, serve};

/// Bytes of a host's last words.
pub(crate) const LAST_WORDS: usize = 500;
/// How long a host may take to end once it has answered.
pub(crate) const GRACE: Duration = Duration::from_secs(2);

/// How a host process is started: this program, or one that answers as it does
/// ([`crate::serve_stdio`]).
#[derive(Debug, Clone)]
pub struct Launch {
    /// Path of the program.
    pub program: PathBuf,
    /// Its arguments, without the program's name.
    pub arguments: Vec<OsString>,
    /// All of its environment: nothing is passed on, since variables steer libraries.
    pub environment: Vec<(OsString, OsString)>,
}

impl Launch {
    /// The command that a host is started by, for those who run it under another program.
    #[must_use]
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).env_clear();
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }
}

/// What a process has said so far of its job.
#[derive(Default)]
pub(crate) struct Said {
    answer: Option<Result<Value, Problem>>,
    rubbish: Option<String>,
}

impl Said {
    pub(crate) fn is_rubbish(&self) -> bool {
        self.rubbish.is_some()
    }

    /// The answer of a host that goes on.
    pub(crate) fn into_answer(self, watch: &Watch<'_>) -> Result<Value, HostError> {
        match self.answer {
            Some(Ok(answer)) => Ok(answer),
            Some(Err(problem)) => Err(HostError::Failed { who: watch.who.to_owned(), problem }),
            None => Err(watch.rubbish("it ended without an answer".to_owned())),
        }
    }
}

pub(crate) fn run(
    launch: &Launch,
    kind: &'static str,
    job: Value,
    watch: &mut Watch<'_>,
    take: &mut dyn FnMut(Message),
) -> Result<Value, HostError> {
    let question = serve::encode(kind, job).map_err(HostError::Start)?;
    let mut command = launch.command();
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // What it starts, against the rules, is ended with it.
    let mut child = Child::spawn(&mut command).map_err(HostError::Start)?;
    child.feed(question).map_err(HostError::Start)?;
    let (stdout, stderr) = (child.stdout(), child.stderr());
    let last = child::keep_aside(stderr, Kept::Last(LAST_WORDS)).map_err(HostError::Start)?;
    // Room for no more than one: what a host writes beyond waits in its pipe, and so does the host.
    let (sender, given) = sync_channel(1);
    child::beside(move || {
        let _ = stdout.map(|stdout| read_frames(stdout, &sender));
    })
    .map_err(HostError::Start)?;
    let mut said = Said::default();
    let end = loop {
        match watch.next(&given) {
            Next::Given(given) => {
                if hear(&mut said, given, take) {
                    watch.grant(GRACE);
                }
            }
            Next::Closed => {
                watch.grant(GRACE);
                break wait_for_end(&mut child, watch)?;
            }
            // One that has ended writes no more, but what it has started may hold its output open, and
            // is killed by this.
            Next::Quiet if child.has_ended() => drop(wait_for_end(&mut child, watch)?),
            Next::Quiet => {}
            Next::Over(over) => break Err(over),
        }
        if said.rubbish.is_some() {
            // How it ends by itself, soon, says more than what it wrote.
            watch.shorten(GRACE);
            break wait_for_end(&mut child, watch)?;
        }
    };
    // Kills it with its group if it runs on. The reader ends with the next frame, which nobody takes.
    drop((child, given));
    let last_words = text(&last.recv_timeout(GRACE).unwrap_or_default());
    judge(said, end, last_words, watch)
}

/// Notes what was given; true if it was the answer.
pub(crate) fn hear(said: &mut Said, given: Given, take: &mut dyn FnMut(Message)) -> bool {
    match given {
        _ if said.answer.is_some() => {
            said.rubbish = Some("it went on after its answer".to_owned());
            return false;
        }
        Ok(Incoming::Message(message)) => {
            take(message);
            return false;
        }
        Ok(Incoming::Done(answer)) => said.answer = Some(Ok(answer)),
        Ok(Incoming::Failed(why)) => said.answer = Some(Err(why.into())),
        Err(what) => {
            said.rubbish = Some(what);
            return false;
        }
    }
    true
}

/// What came of it: a bad end counts more than what was said before.
pub(crate) fn judge(
    mut said: Said,
    end: Result<ExitStatus, Over>,
    last_words: String,
    watch: &Watch<'_>,
) -> Result<Value, HostError> {
    let who = watch.who.to_owned();
    let status = match (end, said.rubbish.take()) {
        (Err(Over::Late), Some(what)) => return Err(watch.rubbish(what)),
        (Ok(status), Some(what)) if status.success() => return Err(watch.rubbish(what)),
        (Err(over), _) => return Err(watch.error(over, last_words)),
        (Ok(status), _) => status,
    };
    if !status.success() {
        return Err(HostError::Crashed { who, how: how(status), last_words });
    }
    said.into_answer(watch)
}

/// Waits for the end of one of which nothing more is read, and kills what is left of its group; or
/// says why it was not waited for.
pub(crate) fn wait_for_end(
    child: &mut Child,
    watch: &Watch<'_>,
) -> Result<Result<ExitStatus, Over>, HostError> {
    let end = child.wait(Some(watch.left()), &mut || watch.over() == Some(Over::Stopped));
    Ok(match end.map_err(HostError::Start)? {
        End::Exited(status) => Ok(status),
        End::Late => Err(Over::Late),
        End::Stopped => Err(Over::Stopped),
    })
}

fn how(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal), _) => format!("signal {signal}"),
        (None, Some(code)) => format!("exit status {code}"),
        (None, None) => "for no known reason".to_owned(),
    }
}

/// Reads frames until the output ends, is rubbish, or nobody takes them.
pub(crate) fn read_frames(mut output: impl Read, given: &SyncSender<Given>) {
    loop {
        let next = match frame::read(&mut output) {
            Ok(None) => return,
            Ok(Some(frame)) => Incoming::read(frame),
            Err(error) => Err(error.to_string()),
        };
        let over = next.is_err();
        if given.send(next).is_err() || over {
            return;
        }
    }
}
