//! A job done by a thread of this process.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::Instant;

use serde_json::Value;

use crate::HostError;
use crate::message::{Failure, Incoming, Message};
use crate::run::{Given, Next, Over, Watch};
use crate::worker::{Outlet, Registry};

/// Messages that wait to be taken.
const WAITING: usize = 1;

pub(crate) fn run(
    registry: &Registry,
    kind: &'static str,
    job: Value,
    watch: &mut Watch<'_>,
    take: &mut dyn FnMut(Message),
) -> Result<Value, HostError> {
    let (sender, given) = sync_channel(WAITING);
    let stop = Arc::new(AtomicBool::new(false));
    let (registry, asked_to_end) = (registry.clone(), Arc::clone(&stop));
    let work = move || {
        let mut give = |message| {
            let sent = sender.send(Ok(Incoming::Message(message)));
            sent.map_err(|_| io::ErrorKind::BrokenPipe.into())
        };
        let stopped = || asked_to_end.load(Ordering::Relaxed);
        let done = catch_unwind(AssertUnwindSafe(|| {
            registry.work(kind, job, &mut Outlet::new(&mut give, &stopped))
        }));
        let last = match done {
            Ok(Ok(answer)) => Ok(Incoming::Done(answer)),
            Ok(Err(problem)) => Ok(Incoming::Failed(Failure::from(&problem))),
            Err(panic) => Err(said(panic.as_ref())),
        };
        // Nobody waits for it any more only if it was late or to stop.
        let _ = sender.send(last);
    };
    thread::Builder::new().name(kind.to_owned()).spawn(work).map_err(HostError::Start)?;
    let who = watch.who.to_owned();
    loop {
        match watch.next(&given) {
            Next::Given(Ok(Incoming::Message(message))) => take(message),
            Next::Given(Ok(Incoming::Done(answer))) => return Ok(answer),
            Next::Given(Ok(Incoming::Failed(why))) => {
                return Err(HostError::Failed { who, problem: why.into() });
            }
            Next::Given(Err(panic)) => {
                let how = format!("it panicked: {panic}");
                return Err(HostError::Crashed { who, how, last_words: String::new() });
            }
            Next::Closed => return Err(watch.rubbish("it ended without an answer".to_owned())),
            Next::Quiet => {}
            Next::Over(over) => {
                stop.store(true, Ordering::Relaxed);
                if over == Over::Stopped && !watch.grace.is_zero() {
                    let until = Instant::now() + watch.grace;
                    take_the_rest(&given, until, take);
                }
                return Err(watch.error(over, String::new()));
            }
        }
    }
}

/// Takes what a thread still gives, until it ends or the time is over.
fn take_the_rest(given: &Receiver<Given>, until: Instant, take: &mut dyn FnMut(Message)) {
    let next = || given.recv_timeout(until.saturating_duration_since(Instant::now()));
    while let Ok(Ok(Incoming::Message(message))) = next() {
        take(message);
    }
}

fn said(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "no message".to_owned())
}
