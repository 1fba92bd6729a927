//! Who does the work.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use fault::{Explain, Fault, Problem};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::message::{Attachment, Message, is_name};

/// Does jobs of one kind. What they are made of and answered by is data, so that it can be done
/// anywhere.
pub trait Worker: Send + Sync + 'static {
    /// The kind's name, of which a registry has one.
    const KIND: &'static str;
    /// What is to be done.
    type Job: Serialize + DeserializeOwned;
    /// What came of it.
    type Answer: Serialize + DeserializeOwned;

    /// Does a job. What arises meanwhile goes to the outlet.
    ///
    /// # Errors
    /// Why there is no answer. Whose fault it is and what to do about it go with it.
    fn work(&self, job: Self::Job, outlet: &mut Outlet<'_>) -> Result<Self::Answer, Problem>;
}

/// Nobody takes messages any more: the work is to end.
#[derive(Debug, thiserror::Error)]
#[error("nobody takes what the job has to say")]
pub struct Gone(#[source] pub(crate) io::Error);

impl Explain for Gone {
    fn fault(&self) -> Fault {
        Fault::Measurement
    }
}

/// Where a message goes.
pub(crate) type Give<'a> = dyn FnMut(Message) -> io::Result<()> + 'a;

/// Takes what arises while a job is worked on. Each call waits until there is room for it.
pub struct Outlet<'a> {
    give: &'a mut Give<'a>,
    stopped: &'a dyn Fn() -> bool,
}

impl<'a> Outlet<'a> {
    pub(crate) fn new(give: &'a mut Give<'a>, stopped: &'a dyn Fn() -> bool) -> Outlet<'a> {
        Outlet { give, stopped }
    }

    /// Gives text for people.
    ///
    /// # Errors
    /// [`Gone`].
    pub fn event(&mut self, text: impl Into<String>) -> Result<(), Gone> {
        (self.give)(Message::Event(text.into())).map_err(Gone)
    }

    /// Gives a sample.
    ///
    /// # Errors
    /// [`Gone`], also if it cannot be JSON.
    pub fn sample(&mut self, sample: &impl Serialize) -> Result<(), Gone> {
        let sample = serde_json::to_value(sample).map_err(|error| Gone(error.into()))?;
        (self.give)(Message::Sample(sample)).map_err(Gone)
    }

    /// Gives a file, of at most 16 MiB less 101 bytes.
    ///
    /// # Errors
    /// [`Gone`], also if it is longer, or its name is none that a file can have (see
    /// [`Attachment::name`]).
    pub fn attachment(&mut self, name: &str, bytes: Vec<u8>) -> Result<(), Gone> {
        if !is_name(name) {
            let what = format!("`{name}` cannot name an attachment");
            return Err(Gone(io::Error::new(io::ErrorKind::InvalidInput, what)));
        }
        let name = name.to_owned();
        (self.give)(Message::Attachment(Attachment { name, bytes })).map_err(Gone)
    }

    /// Whether the work is wanted no more. In a process nobody asks: it is ended.
    #[must_use]
    pub fn stopped(&self) -> bool {
        (self.stopped)()
    }
}

/// A worker without its types.
type Erased = dyn Fn(Value, &mut Outlet<'_>) -> Result<Value, Problem> + Send + Sync;

/// Workers by the kinds of their jobs.
#[derive(Clone, Default)]
pub struct Registry(BTreeMap<&'static str, Arc<Erased>>);

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Registry {
    /// A registry without workers; [`Registry::with`] adds them.
    #[must_use]
    pub fn new() -> Registry {
        Registry::default()
    }

    /// The same with one more worker, in place of one of the same kind.
    #[must_use]
    pub fn with<W: Worker>(mut self, worker: W) -> Registry {
        let erased = move |job: Value, outlet: &mut Outlet<'_>| {
            let wrong = |what: String| Problem::new(Fault::Measurement, what);
            let job = serde_json::from_value(job).map_err(|error| {
                wrong(format!("this is not a job of the kind {}: {error}", W::KIND))
            })?;
            let answer = worker.work(job, outlet)?;
            serde_json::to_value(answer)
                .map_err(|error| wrong(format!("its answer is not JSON: {error}")))
        };
        self.0.insert(W::KIND, Arc::new(erased));
        self
    }

    /// The same with all workers of another, in place of those of the same kinds.
    #[must_use]
    pub fn and(mut self, other: Registry) -> Registry {
        self.0.extend(other.0);
        self
    }

    /// Does a job of some kind.
    pub(crate) fn work(
        &self,
        kind: &str,
        job: Value,
        outlet: &mut Outlet<'_>,
    ) -> Result<Value, Problem> {
        match self.0.get(kind) {
            Some(worker) => worker(job, outlet),
            None => Err(Problem::new(
                Fault::Measurement,
                format!("nobody here does jobs of the kind `{}`", fault::excerpt(kind, 60)),
            )),
        }
    }
}
