//! Why a path does not stand.

use std::borrow::Cow;

use fault::{Explain, Fault};
use seclink::path::TopologyError;
use thiserror::Error;

/// Why a path cannot be stood up, or does not say what it did.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no such path.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// A key does not fit.
    #[error(transparent)]
    Key(#[from] seclink::KeyError),
    /// The lab cannot have its nodes or links.
    #[error(transparent)]
    Lab(#[from] lab::Error),
    /// Raw frames or interfaces cannot be had.
    #[error(transparent)]
    Packet(#[from] packet::Error),
    /// The kernel, or what configures it, lacks what the path is made of.
    #[error("this needs {}, which the kernel here does not have", .0.join(", "))]
    Lacking(Vec<&'static str>),
    /// The kernel's features are not made a path in PPPoE of here.
    #[error("the kernel's features carry no PPPoE here")]
    NoPppoe,
    /// A program refused what it was to configure.
    #[error("{program} on node {node} failed{}", wrote(.said))]
    Program {
        /// The program's name, as `ip`.
        program: &'static str,
        /// Name of the lab node.
        node: String,
        /// What it wrote on standard error; keys are not among it.
        said: Vec<String>,
    },
    /// The kernel refused what it was asked by netlink.
    #[error("{doing} on node {node} failed")]
    Netlink {
        /// What was tried.
        doing: &'static str,
        /// Name of the lab node.
        node: String,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// The two ends of a tunnel do not hear each other.
    #[error("the tunnel from {node} did not come up within {seconds} s")]
    NoTunnel {
        /// The node at one end.
        node: String,
        /// The time that it had.
        seconds: u64,
    },
    /// The path has no link of this number.
    #[error("a path of {hops} hops has no link {link}")]
    NoLink {
        /// The number asked for.
        link: u8,
        /// What there are.
        hops: u8,
    },
    /// What the kernel counts cannot be read.
    #[error("what node {node} counted cannot be read: {problem}")]
    Counters {
        /// Name of the lab node.
        node: String,
        /// What is wrong.
        problem: String,
    },
    /// Our engine's nodes cannot be made.
    #[error(transparent)]
    Plane(#[from] seclink::plane::PlaneError),
    /// Our engine does not run.
    #[error(transparent)]
    Engine(#[from] dataplane::Error),
}

impl Explain for Error {
    fn fault(&self) -> Fault {
        match self {
            Error::Topology(error) => error.fault(),
            Error::Key(error) => error.fault(),
            Error::Lab(error) => error.fault(),
            Error::Packet(error) => error.fault(),
            Error::NoLink { .. } | Error::NoPppoe => Fault::Caller,
            Error::Plane(error) => error.fault(),
            Error::Engine(error) => error.fault(),
            Error::Lacking(_) | Error::Program { .. } | Error::Netlink { .. } => Fault::Machine,
            Error::NoTunnel { .. } | Error::Counters { .. } => Fault::Measurement,
        }
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        match self {
            Error::Topology(error) => error.remedy(),
            Error::Key(error) => error.remedy(),
            Error::Lab(error) => error.remedy(),
            Error::Packet(error) => error.remedy(),
            Error::Plane(error) => error.remedy(),
            Error::Engine(error) => error.remedy(),
            Error::Lacking(_) => {
                Some("the guest's kernel has it: `make guest` once, then `--backend guest`".into())
            }
            Error::NoPppoe => Some("take `--backend own`".into()),
            Error::NoLink { hops, .. } => Some(format!("ask for 1 to {hops}").into()),
            _ => None,
        }
    }
}

/// What a program wrote, for a message.
fn wrote(lines: &[String]) -> String {
    if lines.is_empty() { String::new() } else { format!(": {}", lines.join(" | ")) }
}
