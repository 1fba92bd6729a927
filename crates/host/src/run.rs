//! Having a job done.

use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::message::{Incoming, Message, text};
use crate::worker::{Registry, Worker};
use crate::{HostError, Launch, process, thread};

/// How long it takes at most until a wish to stop is noticed.
const STOP_CHECKED: Duration = Duration::from_millis(20);

/// Where a job is done.
#[derive(Debug, Clone)]
pub enum Place {
    /// By a thread of this process. It can be asked to end, and not be made to: one that does not look
    /// at [`crate::Outlet::stopped`] goes on alone until it next gives a message.
    Thread(Registry),
    /// By a process of its own, which is killed when it is to end, with all that it has started.
    Process(Launch),
}

/// Has jobs done at a place.
#[derive(Clone)]
pub struct Host {
    place: Place,
    stop: Arc<dyn Fn() -> bool + Send + Sync>,
    grace: Duration,
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").field("place", &self.place).finish_non_exhaustive()
    }
}

impl Host {
    /// Has jobs done at this place.
    #[must_use]
    pub fn new(place: Place) -> Host {
        Host { place, stop: Arc::new(|| false), grace: Duration::ZERO }
    }

    /// Ends what is running as soon as `stop` says so, or the wish of [`child::stop_when`]. Processes have a group of their own, so that a
    /// terminal's Ctrl-C does not reach them.
    #[must_use]
    pub fn stopping_when(mut self, stop: impl Fn() -> bool + Send + Sync + 'static) -> Host {
        self.stop = Arc::new(stop);
        self
    }

    /// Gives a thread that is asked to end this long to finish what it is at, and takes what it gives
    /// meanwhile. Without, it is left alone at once.
    #[must_use]
    pub fn granting(self, grace: Duration) -> Host {
        Host { grace, ..self }
    }

    /// Has a job done within `limit`, for `who`, whose name errors say. Messages are given to `take` as
    /// they arise; a job that has more to say waits for it.
    ///
    /// # Errors
    /// There is no answer: the host crashed, hung, said what cannot be read, or why it cannot.
    pub fn run<W: Worker>(
        &self,
        who: &str,
        job: &W::Job,
        limit: Duration,
        take: impl FnMut(Message),
    ) -> Result<W::Answer, HostError> {
        self.run_until::<W>(who, job, limit, &*self.stop, take)
    }

    /// The same, ended as soon as `stop` says so, in place of what [`Host::stopping_when`] was given: for
    /// a caller who knows only while he waits. It is asked on the caller's thread.
    ///
    /// # Errors
    /// As [`Host::run`].
    pub fn run_until<W: Worker>(
        &self,
        who: &str,
        job: &W::Job,
        limit: Duration,
        stop: &dyn Fn() -> bool,
        mut take: impl FnMut(Message),
    ) -> Result<W::Answer, HostError> {
        let job = serde_json::to_value(job).map_err(|error| HostError::Start(error.into()))?;
        let mut watch = Watch { grace: self.grace, ..Watch::new(limit, stop, who) };
        let answer = match &self.place {
            Place::Thread(registry) => thread::run(registry, W::KIND, job, &mut watch, &mut take),
            Place::Process(launch) => process::run(launch, W::KIND, job, &mut watch, &mut take),
        }?;
        read_answer::<W>(answer, who)
    }
}

/// An answer as a worker of this kind gives it.
pub(crate) fn read_answer<W: Worker>(answer: Value, who: &str) -> Result<W::Answer, HostError> {
    let shown = text(answer.to_string().chars().take(500).collect::<String>().as_bytes());
    serde_json::from_value(answer).map_err(|error| HostError::Rubbish {
        who: who.to_owned(),
        what: format!("{error}: {shown}"),
    })
}

/// What a host gave: something, or why nothing can be read of it any more.
pub(crate) type Given = Result<Incoming, String>;

/// Why a host is not waited for any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Over {
    Late,
    Stopped,
}

/// Watches the time, and the wish to stop.
pub(crate) struct Watch<'a> {
    deadline: Instant,
    pub(crate) limit: Duration,
    pub(crate) grace: Duration,
    stop: &'a dyn Fn() -> bool,
    pub(crate) who: &'a str,
}

/// What came next.
pub(crate) enum Next {
    Given(Given),
    /// All was said.
    Closed,
    /// Nothing, for a while.
    Quiet,
    Over(Over),
}

impl<'a> Watch<'a> {
    /// For `limit` from now.
    pub(crate) fn new(limit: Duration, stop: &'a dyn Fn() -> bool, who: &'a str) -> Watch<'a> {
        Watch { deadline: Instant::now() + limit, limit, grace: Duration::ZERO, stop, who }
    }

    pub(crate) fn next(&self, given: &Receiver<Given>) -> Next {
        if let Some(over) = self.over() {
            return Next::Over(over);
        }
        match given.recv_timeout(STOP_CHECKED) {
            Ok(given) => Next::Given(given),
            Err(RecvTimeoutError::Disconnected) => Next::Closed,
            Err(RecvTimeoutError::Timeout) => Next::Quiet,
        }
    }

    pub(crate) fn over(&self) -> Option<Over> {
        if (self.stop)() || child::stopping() {
            Some(Over::Stopped)
        } else {
            (Instant::now() >= self.deadline).then_some(Over::Late)
        }
    }

    /// What is left of the time.
    pub(crate) fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Leaves a host that has answered this long to end.
    pub(crate) fn grant(&mut self, grace: Duration) {
        self.deadline = self.deadline.max(Instant::now() + grace);
    }

    /// Gives a host no more than this long to end.
    pub(crate) fn shorten(&mut self, grace: Duration) {
        self.deadline = self.deadline.min(Instant::now() + grace);
    }

    pub(crate) fn error(&self, over: Over, last_words: String) -> HostError {
        let who = self.who.to_owned();
        match over {
            Over::Late => HostError::Hung { who, limit: self.limit, last_words },
            Over::Stopped => HostError::Stopped { who },
        }
    }

    pub(crate) fn rubbish(&self, what: String) -> HostError {
        HostError::Rubbish { who: self.who.to_owned(), what }
    }
}
