//! A host process that stays for further jobs: what it has loaded and made ready for one serves the
//! next.

use std::io::Write;
use std::process::Stdio;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel, sync_channel};
use std::time::Duration;

use child::{Child, Kept as Keep};
use serde_json::Value;

use crate::message::{Message, text};
use crate::process::{GRACE, LAST_WORDS, Said, hear, judge, read_frames, wait_for_end};
use crate::run::{Given, Next, Watch, read_answer};
use crate::worker::Worker;
use crate::{HostError, Launch, serve};

/// A host process for one job after another. Dropping it kills it, with all that it has started.
///
/// After an error other than [`HostError::Failed`] nothing more can be asked of it
/// ([`KeptHost::is_usable`]).
#[derive(Debug)]
pub struct KeptHost {
    child: Child,
    /// What is to be written to its standard input, which a thread does: a host that reads nothing
    /// holds up that thread and nobody else.
    questions: Sender<Vec<u8>>,
    given: Receiver<Given>,
    last: Receiver<Vec<u8>>,
    usable: bool,
}

impl KeptHost {
    /// Starts a host.
    ///
    /// # Errors
    /// [`HostError::Start`].
    pub fn start(launch: &Launch) -> Result<KeptHost, HostError> {
        let mut command = launch.command();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = Child::spawn(&mut command).map_err(HostError::Start)?;
        let (stdin, stdout, stderr) = (child.stdin(), child.stdout(), child.stderr());
        let last = child::keep_aside(stderr, Keep::Last(LAST_WORDS)).map_err(HostError::Start)?;
        let (sender, given) = sync_channel(1);
        child::beside(move || {
            let _ = stdout.map(|stdout| read_frames(stdout, &sender));
        })
        .map_err(HostError::Start)?;
        let (questions, asked) = channel::<Vec<u8>>();
        child::beside(move || {
            let Some(mut stdin) = stdin else { return };
            // One that ends without reading a question is judged by its status.
            while asked.recv().is_ok_and(|question| stdin.write_all(&question).is_ok()) {}
        })
        .map_err(HostError::Start)?;
        Ok(KeptHost { child, questions, given, last, usable: true })
    }

    /// Whether another job can be asked of it.
    #[must_use]
    pub fn is_usable(&self) -> bool {
        self.usable && !self.child.has_ended()
    }

    /// Has a job done within `limit`, as [`crate::Host::run_until`] does.
    ///
    /// # Errors
    /// As there. The process is killed at once where it did not answer.
    pub fn run_until<W: Worker>(
        &mut self,
        who: &str,
        job: &W::Job,
        limit: Duration,
        stop: &dyn Fn() -> bool,
        mut take: impl FnMut(Message),
    ) -> Result<W::Answer, HostError> {
        let job = serde_json::to_value(job).map_err(|error| HostError::Start(error.into()))?;
        let mut watch = Watch::new(limit, stop, who);
        let answered = self.ask(W::KIND, job, &mut watch, &mut take);
        let answered = answered.and_then(|answer| read_answer::<W>(answer, who));
        self.usable = matches!(answered, Ok(_) | Err(HostError::Failed { .. }));
        if !self.usable {
            self.child.kill();
        }
        answered
    }

    fn ask(
        &mut self,
        kind: &'static str,
        job: Value,
        watch: &mut Watch<'_>,
        take: &mut dyn FnMut(Message),
    ) -> Result<Value, HostError> {
        let question = serve::encode(kind, job).map_err(HostError::Start)?;
        match self.given.try_recv() {
            // Its end, should it have ended, is found below.
            Err(TryRecvError::Empty | TryRecvError::Disconnected) => {}
            Ok(_) => return Err(watch.rubbish("it went on after its answer".to_owned())),
        }
        // A host that has ended takes no question; its status says why.
        let _ = self.questions.send(question);
        let mut said = Said::default();
        let end = loop {
            match watch.next(&self.given) {
                Next::Given(given) => {
                    if hear(&mut said, given, take) {
                        return said.into_answer(watch);
                    }
                }
                Next::Closed => {
                    watch.grant(GRACE);
                    break wait_for_end(&mut self.child, watch)?;
                }
                Next::Quiet if self.child.has_ended() => {
                    break wait_for_end(&mut self.child, watch)?;
                }
                Next::Quiet => {}
                Next::Over(over) => break Err(over),
            }
            if said.is_rubbish() {
                watch.shorten(GRACE);
                break wait_for_end(&mut self.child, watch)?;
            }
        };
        self.child.kill();
        let last_words = text(&self.last.recv_timeout(GRACE).unwrap_or_default());
        judge(said, end, last_words, watch)
    }
}
