//! What a job streams while it is worked on.

use fault::{Fault, Problem};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::frame::{Frame, Kind};

/// Bytes of an attachment's name at most.
const LONGEST_NAME: usize = 100;

/// Something that arose while a job was worked on.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Message {
    /// Text for people.
    Event(String),
    /// A sample, in the shape that the kind of job has.
    Sample(Value),
    /// A file that belongs to the samples.
    Attachment(Attachment),
}

/// A file that belongs to a job's samples: a capture, a time series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    /// Its name: 1 to 100 letters, digits, `.`, `-` or `_`, and no dot first. It can name a file.
    pub name: String,
    /// What is in it.
    pub bytes: Vec<u8>,
}

/// Whether an attachment may be called so.
pub(crate) fn is_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    (1..=LONGEST_NAME).contains(&name.len()) && !name.starts_with('.') && name.chars().all(allowed)
}

/// What a host sends: messages, then how the job ended.
#[derive(Debug)]
pub(crate) enum Incoming {
    Message(Message),
    Done(Value),
    Failed(Failure),
}

impl Incoming {
    /// Reads what a host sent, who may have sent anything.
    pub(crate) fn read(frame: Frame) -> Result<Incoming, String> {
        let json = |bytes: &[u8]| {
            let read = serde_json::from_slice::<Value>(bytes);
            read.map_err(|error| format!("a frame is not JSON: {error}"))
        };
        Ok(match frame.kind {
            Kind::Job => return Err("it sent a job".to_owned()),
            Kind::Event => Incoming::Message(Message::Event(text(&frame.payload))),
            Kind::Sample => Incoming::Message(Message::Sample(json(&frame.payload)?)),
            Kind::Attachment => Incoming::Message(Message::Attachment(attachment(&frame.payload)?)),
            Kind::Done => Incoming::Done(json(&frame.payload)?),
            Kind::Failed => {
                let read = serde_json::from_slice(&frame.payload);
                Incoming::Failed(read.map_err(|error| format!("its failure is not JSON: {error}"))?)
            }
        })
    }
}

/// Why a job has no answer: a [`Problem`] as data.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Failure {
    what: String,
    #[serde(with = "FaultName")]
    fault: Fault,
    remedy: Option<String>,
}

/// The names of faults in frames.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Fault", rename_all = "snake_case")]
enum FaultName {
    Caller,
    Machine,
    Results,
    Peer,
    Measurement,
}

impl From<&Problem> for Failure {
    fn from(problem: &Problem) -> Failure {
        Failure {
            what: problem.to_string(),
            fault: problem.fault(),
            remedy: problem.remedy().map(str::to_owned),
        }
    }
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Problem {
        let problem = Problem::new(failure.fault, text(failure.what.as_bytes()));
        match failure.remedy {
            Some(remedy) => problem.with_remedy(text(remedy.as_bytes())),
            None => problem,
        }
    }
}

fn attachment(payload: &[u8]) -> Result<Attachment, String> {
    let parts = payload.split_first().and_then(|(length, rest)| {
        let (name, bytes) = rest.split_at_checked(usize::from(*length))?;
        Some((std::str::from_utf8(name).ok()?, bytes))
    });
    match parts {
        Some((name, bytes)) if is_name(name) => {
            Ok(Attachment { name: name.to_owned(), bytes: bytes.to_vec() })
        }
        _ => Err("an attachment has no name that a file can have".to_owned()),
    }
}

/// Text from a host, without control characters.
pub(crate) fn text(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    fault::one_line(text.trim()).into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_of_attachments_are_names_of_files() {
        for name in ["a", "trace.pcapng", "rtt-20_ms.1", &"x".repeat(100)] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", ".", "..", ".hidden", "a/b", "a b", "é", "a\n", &"x".repeat(101)] {
            assert!(!is_name(name), "{name}");
        }
    }

    #[test]
    fn a_failure_says_whose_fault_it_is_and_what_to_do() {
        let problem = Problem::new(Fault::Machine, "no\x1b device").with_remedy("load tun");
        let payload = serde_json::to_vec(&Failure::from(&problem)).unwrap();
        let read = Incoming::read(Frame { kind: Kind::Failed, payload }).unwrap();
        let Incoming::Failed(failure) = read else { panic!("{read:?}") };
        let read = Problem::from(failure);
        assert_eq!((read.fault(), read.remedy()), (Fault::Machine, Some("load tun")));
        assert_eq!(read.to_string(), "no\u{fffd} device");
    }

    proptest! {
        #[test]
        fn no_payload_is_read_without_an_end(
            kind in prop::sample::select(vec![Kind::Event, Kind::Sample, Kind::Attachment, Kind::Done, Kind::Failed, Kind::Job]),
            payload in prop::collection::vec(any::<u8>(), 0..300),
        ) {
            match Incoming::read(Frame { kind, payload }) {
                Ok(Incoming::Message(Message::Attachment(attachment))) => prop_assert!(is_name(&attachment.name)),
                Ok(Incoming::Message(Message::Event(text))) => {
                    prop_assert!(!text.chars().any(char::is_control));
                }
                Ok(_) | Err(_) => {}
            }
        }
    }
}
