//! A job done by a process of its own.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use serde_json::Value;

use crate::message::{Incoming, Message, text};
use crate::run::{Given, Next, Over, Watch};
use crate::{HostError, frame, serve};

/// Bytes of a host's last words.
const LAST_WORDS: usize = 500;
/// How long a host may take to end once it has answered.
const GRACE: Duration = Duration::from_secs(2);

/// How a host process is started: this program, or one that answers as it does
/// ([`crate::serve_stdio`]).
#[derive(Debug, Clone)]
pub struct Launch {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
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
struct Said {
    answer: Option<Result<Value, String>>,
    rubbish: Option<String>,
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
    command.process_group(0);
    let mut child = command.spawn().map_err(HostError::Start)?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    // A host that is gone already, or reads nothing, is reported by its status or its silence.
    thread::spawn(move || stdin.map(|mut stdin| stdin.write_all(&question)));
    let err = thread::spawn(move || last_of(stderr));
    // Room for no more than one: what a host writes beyond waits in its pipe, and so does the host.
    let (sender, given) = sync_channel(1);
    thread::spawn(move || stdout.map(|stdout| read_frames(stdout, &sender)));
    let mut said = Said::default();
    let over = loop {
        match watch.next(&given) {
            Next::Given(given) => {
                if hear(&mut said, given, take) {
                    watch.grant(GRACE);
                }
            }
            Next::Closed => {
                watch.grant(GRACE);
                break wait_for_end(&child, watch);
            }
            // One that has ended writes no more, but what it has started may hold its output open.
            Next::Quiet if has_ended(&child) => end_group(&child),
            Next::Quiet => {}
            Next::Over(over) => break Some(over),
        }
        if said.rubbish.is_some() {
            // How it ends by itself, soon, says more than what it wrote.
            watch.shorten(GRACE);
            break wait_for_end(&child, watch).filter(|over| *over == Over::Stopped);
        }
    };
    end_group(&child);
    // The reader ends with the next frame, which nobody takes.
    drop(given);
    let status = child.wait().map_err(HostError::Start)?;
    let last_words = text(&err.join().unwrap_or_default());
    judge(said, over, status, last_words, watch)
}

/// Notes what was given; true if it was the answer.
fn hear(said: &mut Said, given: Given, take: &mut dyn FnMut(Message)) -> bool {
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
        Ok(Incoming::Failed(what)) => said.answer = Some(Err(what)),
        Err(what) => {
            said.rubbish = Some(what);
            return false;
        }
    }
    true
}

/// What came of it: a bad end counts more than what was said before.
fn judge(
    said: Said,
    over: Option<Over>,
    status: ExitStatus,
    last_words: String,
    watch: &Watch<'_>,
) -> Result<Value, HostError> {
    let who = watch.who.to_owned();
    match (over, said) {
        (Some(over), _) => Err(watch.error(over, last_words)),
        // Killed by us, because of what it wrote.
        (None, Said { rubbish: Some(what), .. })
            if status.success() || status.signal() == Some(Signal::KILL.as_raw()) =>
        {
            Err(watch.rubbish(what))
        }
        (None, _) if !status.success() => {
            Err(HostError::Crashed { who, how: how(status), last_words })
        }
        (None, Said { answer: Some(Ok(answer)), .. }) => Ok(answer),
        (None, Said { answer: Some(Err(what)), .. }) => Err(HostError::Failed { who, what }),
        (None, _) => Err(watch.rubbish("it ended without an answer".to_owned())),
    }
}

/// Waits for the end of one of which nothing more is read; gives why it was not waited for.
fn wait_for_end(child: &Child, watch: &Watch<'_>) -> Option<Over> {
    while !has_ended(child) {
        if let Some(over) = watch.over() {
            return Some(over);
        }
        thread::sleep(Duration::from_millis(1));
    }
    None
}

/// Whether a child has ended; it stays a zombie, so that its number is nobody else's.
#[must_use]
pub fn has_ended(child: &Child) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let Some(pid) = pid(child) else { return true };
    !matches!(waitid(WaitId::Pid(pid), options), Ok(None))
}

/// Ends what is left of a child's process group, which is named after it. To be called before the
/// child is waited for, so that the number cannot be another group's.
pub fn end_group(child: &Child) {
    if let Some(group) = pid(child) {
        // Nobody left in it is as good.
        let _ = kill_process_group(group, Signal::KILL);
    }
}

fn pid(child: &Child) -> Option<Pid> {
    Pid::from_raw(i32::try_from(child.id()).ok()?)
}

fn how(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal), _) => format!("signal {signal}"),
        (None, Some(code)) => format!("exit status {code}"),
        (None, None) => "for no known reason".to_owned(),
    }
}

/// Reads frames until the output ends, is rubbish, or nobody takes them.
fn read_frames(mut output: impl Read, given: &SyncSender<Given>) {
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

/// Reads to the end; what is kept is the end.
fn last_of(source: Option<impl Read>) -> Vec<u8> {
    let mut kept = VecDeque::new();
    let mut buffer = [0; 4096];
    let Some(mut source) = source else { return Vec::new() };
    loop {
        match source.read(&mut buffer) {
            Ok(0) => return kept.into(),
            Ok(read) => kept.extend(buffer.iter().take(read)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return kept.into(),
        }
        kept.drain(..kept.len().saturating_sub(LAST_WORDS));
    }
}
