//! A workload's name as people write it: `full`, `chain:10`.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use fault::{Explain, Fault};
use thiserror::Error;

use crate::Workload;

/// A text that names no workload. The caller's fault.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("no workload is called `{0}`")]
pub struct UnknownWorkload(pub String);

impl Explain for UnknownWorkload {
    fn fault(&self) -> Fault {
        Fault::Caller
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        let names = format!(
            "choose from full, resume, chain[:PROXIES up to {MOST_PROXIES}], bulk[:BYTES up to {RECORD}], \
             footprint[:CONNECTIONS up to {MOST_CONNECTIONS}]"
        );
        Some(names.into())
    }
}

/// Proxies of a chain, as HAProxy 2025 has them, and at most.
const PROXIES: usize = 10;
const MOST_PROXIES: usize = 64;
/// Bytes of a full record (RFC 8446 §5.1).
const RECORD: usize = 16_384;
/// Connections held at once for their memory, and at most.
const CONNECTIONS: usize = 200;
const MOST_CONNECTIONS: usize = 100_000;

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Workload::Full => f.write_str("full"),
            Workload::Resume => f.write_str("resume"),
            Workload::Chain { proxies } => write!(f, "chain:{proxies}"),
            Workload::Bulk { record } => write!(f, "bulk:{record}"),
            Workload::Footprint { connections } => write!(f, "footprint:{connections}"),
        }
    }
}

impl FromStr for Workload {
    type Err = UnknownWorkload;

    /// Reads `full`, `resume`, `chain[:PROXIES]`, `bulk[:RECORD BYTES]` or `footprint[:CONNECTIONS]`.
    fn from_str(text: &str) -> Result<Workload, UnknownWorkload> {
        let unknown = || UnknownWorkload(text.to_owned());
        let (name, number) = match text.split_once(':') {
            None => (text, None),
            Some((name, number)) => (name, Some(number.parse().map_err(|_| unknown())?)),
        };
        let within = |usual: usize, most: usize| {
            let number: usize = number.unwrap_or(usual);
            (1..=most).contains(&number).then_some(number).ok_or_else(unknown)
        };
        Ok(match (name, number) {
            ("full", None) => Workload::Full,
            ("resume", None) => Workload::Resume,
            ("chain", _) => Workload::Chain { proxies: within(PROXIES, MOST_PROXIES)? },
            ("bulk", _) => Workload::Bulk { record: within(RECORD, RECORD)? },
            ("footprint", _) => {
                Workload::Footprint { connections: within(CONNECTIONS, MOST_CONNECTIONS)? }
            }
            _ => return Err(unknown()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workloads_are_read_as_they_are_written() {
        for name in ["full", "resume", "chain:3", "bulk:1350", "footprint:50"] {
            assert_eq!(name.parse::<Workload>().unwrap().to_string(), name);
        }
        assert_eq!("chain".parse(), Ok(Workload::Chain { proxies: 10 }));
        for wrong in ["half", "full:1", "chain:0", "bulk:16385", "chain:x", ""] {
            let error = wrong.parse::<Workload>().unwrap_err();
            assert_eq!(error.to_string(), format!("no workload is called `{wrong}`"));
            assert!(error.remedy().unwrap().contains("footprint[:CONNECTIONS"), "{error:?}");
        }
    }
}
