//! Inside a host process: a job in, messages and an answer out.

use std::io::{self, Read, Write};

use fault::Problem;
use rustix::process::{Resource, Rlimit, Signal, set_parent_process_death_signal, setrlimit};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::frame::{self, Frame, Kind};
use crate::message::{Failure, Incoming, Message};
use crate::worker::{Outlet, Registry, Worker};

/// A job on its way.
#[derive(Serialize, Deserialize)]
struct Question {
    kind: String,
    job: Value,
}

/// The bytes that ask a host process for a job: to be written to its standard input.
///
/// # Errors
/// If the job cannot be JSON, or is longer than a frame.
pub fn question<W: Worker>(job: &W::Job) -> io::Result<Vec<u8>> {
    encode(W::KIND, serde_json::to_value(job)?)
}

pub(crate) fn encode(kind: &str, job: Value) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let asked = serde_json::to_vec(&Question { kind: kind.to_owned(), job })?;
    frame::write(&mut bytes, Kind::Job, &[&asked])?;
    Ok(bytes)
}

/// The answer in all that a host process wrote to its standard output, its messages passed over.
///
/// # Errors
/// Why there is none.
pub fn answer_in<W: Worker>(mut output: &[u8]) -> Result<W::Answer, String> {
    loop {
        match frame::read(&mut output).map_err(|error| error.to_string())? {
            None => return Err("it ended without an answer".to_owned()),
            Some(frame) => match Incoming::read(frame)? {
                Incoming::Message(_) => {}
                Incoming::Done(answer) => {
                    return serde_json::from_value(answer).map_err(|error| error.to_string());
                }
                Incoming::Failed(why) => return Err(Problem::from(why).to_string()),
            },
        }
    }
}

/// Does one job after another, until the input ends: a frame in, frames out. The whole of a host
/// process, but for [`serve_stdio`].
///
/// # Errors
/// If there is no job at all, one cannot be read, or an answer not be written.
pub fn serve(
    registry: &Registry,
    input: &mut impl Read,
    output: &mut impl Write,
) -> io::Result<()> {
    let mut next = frame::read(input).map_err(io::Error::other)?;
    loop {
        let asked = match next {
            Some(Frame { kind: Kind::Job, payload }) => payload,
            _ => return Err(io::ErrorKind::InvalidData.into()),
        };
        let Question { kind, job } = serde_json::from_slice(&asked)?;
        let answered = {
            let mut give = |message| send(output, message);
            registry.work(&kind, job, &mut Outlet::new(&mut give, &|| false))
        };
        match answered {
            Ok(answer) => frame::write(output, Kind::Done, &[&serde_json::to_vec(&answer)?])?,
            Err(problem) => {
                let failure = serde_json::to_vec(&Failure::from(&problem))?;
                frame::write(output, Kind::Failed, &[&failure])?;
            }
        }
        next = frame::read(input).map_err(io::Error::other)?;
        if next.is_none() {
            return Ok(());
        }
    }
}

/// Does the jobs that come on standard input. The process dies with the one that started it, and
/// leaves no core file.
///
/// # Errors
/// As [`serve`].
pub fn serve_stdio(registry: &Registry) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    serve(registry, &mut io::stdin().lock(), &mut io::stdout())
}

fn send(output: &mut impl Write, message: Message) -> io::Result<()> {
    match message {
        Message::Event(text) => frame::write(output, Kind::Event, &[text.as_bytes()]),
        Message::Sample(sample) => {
            frame::write(output, Kind::Sample, &[&serde_json::to_vec(&sample)?])
        }
        Message::Attachment(attachment) => {
            // A name is shorter than 256 bytes, which the outlet has checked.
            let length = attachment.name.len() as u8;
            let parts = [&[length][..], attachment.name.as_bytes(), &attachment.bytes];
            frame::write(output, Kind::Attachment, &parts)
        }
    }
}
