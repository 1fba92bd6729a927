//! What can go wrong in the lab.

use std::borrow::Cow;
use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use fault::{Explain, Fault};
use thiserror::Error;

/// A failure of the lab.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// Links would be made in the namespaces that the user works in.
    #[error("this process is not in a lab")]
    NotEntered,
    /// The kernel refused a namespace or thread for a node.
    #[error("node {node} cannot be made: {doing} failed")]
    Node {
        /// The node's name.
        node: String,
        /// What was tried.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// Another node has this name, or it cannot name a thread and a file.
    #[error("`{name}` cannot name a node: {problem}")]
    NodeName {
        /// The name as given.
        name: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The node was used after the lab was shut down.
    #[error("node {node} is stopped")]
    NodeStopped {
        /// The node's name.
        node: String,
    },
    /// What ran on the node panicked.
    #[error("a task on node {node} panicked: {message}")]
    Panicked {
        /// The node's name.
        node: String,
        /// What the panic said.
        message: String,
    },
    /// What ran on the node did not end in time. It may still be running.
    #[error("a task on node {node} has not ended within {} s", limit.as_secs_f64())]
    TimedOut {
        /// The node's name.
        node: String,
        /// The time that it had.
        limit: Duration,
    },
    /// The node has no link, and so no address.
    #[error("node {node} has no link yet")]
    NoLink {
        /// The node's name.
        node: String,
    },
    /// The kernel runs without IPv6.
    #[error("node {node} has no IPv6 address: IPv6 is off in this kernel (ipv6.disable=1?)")]
    NoIpv6 {
        /// The node's name.
        node: String,
    },
    /// The link was made without such an address.
    #[error("{interface} of node {node} has no {family} address")]
    NoAddress {
        /// The node's name.
        node: String,
        /// The interface's name, as `ip link` shows it.
        interface: String,
        /// IPv4 or IPv6.
        family: &'static str,
    },
    /// The kernel has no such kind of device.
    #[error("the kernel of node {node} has no devices of the kind {what}")]
    Unsupported {
        /// The node's name.
        node: String,
        /// The kernel's name of the kind, which is that of its module too.
        what: &'static str,
    },
    /// What is outside of the lab is another's.
    #[error("taking {interface} into the lab needs root's rights outside of it")]
    NoRights {
        /// The interface's name, as `ip link` shows it.
        interface: String,
    },
    /// The lab cannot be joined to the machine's own network.
    #[error("there is no way out of the lab: {problem}")]
    NoWayOut {
        /// What is missing or was refused.
        problem: String,
        /// What to do about it.
        remedy: Option<Cow<'static, str>>,
    },
    /// A program could not be started inside a node.
    #[error("{program} cannot be run on node {node}: {doing} failed")]
    Program {
        /// The program, as it was asked for.
        program: String,
        /// The node's name.
        node: String,
        /// What was tried.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// A program ended before it was ready.
    #[error("{program} on node {node} ended before it was ready ({status}){}", wrote(.last))]
    ProgramEnded {
        /// The program, as it was asked for.
        program: String,
        /// The node's name.
        node: String,
        /// How it ended.
        status: ExitStatus,
        /// The last lines that it wrote.
        last: Vec<String>,
    },
    /// A program was not ready in time. It was killed.
    #[error(
        "{program} on node {node} was not ready within {} s: there was not {condition}{}",
        limit.as_secs_f64(), wrote(.last)
    )]
    NotReady {
        /// The program, as it was asked for.
        program: String,
        /// The node's name.
        node: String,
        /// What was waited for.
        condition: String,
        /// The time that it had.
        limit: Duration,
        /// The last lines that it wrote.
        last: Vec<String>,
    },
    /// A link joins two different nodes of this lab.
    #[error("a link joins two nodes of one lab, but {node} was given {problem}")]
    Ends {
        /// The node's name.
        node: String,
        /// What is wrong.
        problem: &'static str,
    },
    /// This backend has no links of this MTU.
    #[error("a link of the backend {backend} has an MTU from {least} to {most}, not {mtu}")]
    Mtu {
        /// The MTU as asked for, in bytes.
        mtu: u32,
        /// What carries the link's frames.
        backend: crate::Backend,
        /// The least that it can have.
        least: u32,
        /// The most that it can have.
        most: u32,
    },
    /// No link can be as asked for.
    #[error("there is no such link: {problem}")]
    LinkOptions {
        /// What is wrong.
        problem: &'static str,
    },
    /// Addresses are 10.77.N.1 with N up to 254.
    #[error("a lab has at most 254 links")]
    TooManyLinks,
    /// The kernel refused to set something up.
    #[error("{doing} failed")]
    Netlink {
        /// What was tried.
        doing: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// Only names under `net.` of letters, digits, `_`, `-` and dots.
    #[error("`{key}` is not the name of a network setting")]
    SettingName {
        /// The name as given.
        key: String,
    },
    /// The kernel has no such setting, or not per namespace, or refused the value.
    #[error("setting {key} on node {node} failed")]
    Setting {
        /// The node's name.
        node: String,
        /// The setting's name, as `net.ipv4.tcp_fastopen`.
        key: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// The kernel does not say what sockets a node has.
    #[error("the TCP sockets of node {node} cannot be listed")]
    Sockets {
        /// The node's name.
        node: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// Raw frames could not be had.
    #[error(transparent)]
    Packet(#[from] packet::Error),
    /// The link pump could not be had.
    #[error(transparent)]
    Pump(#[from] pump::Error),
    /// The link's configuration makes no sense.
    #[error(transparent)]
    Config(#[from] linkmodel::ConfigError),
    /// The kernel has no netem.
    #[error("this kernel has no netem")]
    NoNetem,
    /// Netem cannot do what the link's configuration asks for.
    #[error("netem cannot express {what}")]
    NotNetem {
        /// The part of the configuration.
        what: &'static str,
    },
    /// A direct link emulates nothing.
    #[error("a direct link can only be perfect")]
    NotDirect,
    /// A netem or direct link has no pump to ask.
    #[error("a link without a pump counts nothing")]
    NoStats,
    /// A capture file could not be written. The run went on; the file was removed.
    #[error("the capture {} could not be written", path.display())]
    CaptureFile {
        /// Path of the capture file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A capture could not be ended in time: its file's device does not answer.
    #[error("a capture did not end within {} s", limit.as_secs())]
    CaptureStuck {
        /// The time that it had.
        limit: Duration,
    },
    /// No more threads.
    #[error("a thread could not be started")]
    Thread(#[source] io::Error),
}

impl Explain for Error {
    fn fault(&self) -> Fault {
        match self {
            Error::NotEntered
            | Error::NodeName { .. }
            | Error::NodeStopped { .. }
            | Error::NoLink { .. }
            | Error::NoAddress { .. }
            | Error::Ends { .. }
            | Error::Mtu { .. }
            | Error::LinkOptions { .. }
            | Error::TooManyLinks
            | Error::SettingName { .. }
            | Error::NotNetem { .. }
            | Error::NotDirect
            | Error::NoStats => Fault::Caller,
            Error::Node { .. }
            | Error::NoIpv6 { .. }
            | Error::Netlink { .. }
            | Error::Setting { .. }
            | Error::Sockets { .. }
            | Error::NoNetem
            | Error::Unsupported { .. }
            | Error::NoRights { .. }
            | Error::NoWayOut { .. }
            | Error::Program { .. }
            | Error::Thread(_) => Fault::Machine,
            Error::Panicked { .. }
            | Error::TimedOut { .. }
            | Error::ProgramEnded { .. }
            | Error::NotReady { .. } => Fault::Measurement,
            Error::CaptureFile { .. } | Error::CaptureStuck { .. } => Fault::Results,
            Error::Packet(error) => error.fault(),
            Error::Pump(error) => error.fault(),
            Error::Config(error) => error.fault(),
        }
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        let doctor = || "`wiretax doctor` says what is missing".into();
        self.own_remedy().or_else(|| (self.fault() == Fault::Machine).then(doctor))
    }
}

impl Error {
    /// What to do about this error and no other.
    fn own_remedy(&self) -> Option<Cow<'static, str>> {
        let remedy = match self {
            Error::NotEntered => "call lab::enter first thing in main",
            Error::NoLink { .. } => "connect it first",
            Error::NoAddress { .. } => "give its link one",
            Error::SettingName { .. } => "write it like net.ipv4.tcp_fastopen",
            Error::Setting { source, .. } if source.kind() == io::ErrorKind::ReadOnlyFilesystem => {
                crate::doctor::READ_ONLY_SETTINGS
            }
            Error::Setting { .. } => {
                "check whether this kernel has the setting, and in each network namespace"
            }
            Error::NoNetem => {
                "load it with `sudo modprobe sch_netem` (on Fedora and Red Hat it is in the package \
                 kernel-modules-extra), or use the backend veth"
            }
            Error::NotNetem { .. } | Error::NotDirect | Error::NoStats => "use the backend veth",
            Error::Unsupported { what, .. } => {
                return Some(format!("load it with `sudo modprobe {what}`").into());
            }
            Error::NoRights { .. } => "run with sudo",
            Error::NoWayOut { remedy, .. } => return remedy.clone(),
            Error::CaptureFile { .. } => "free space there or choose another place",
            Error::CaptureStuck { .. } => "check whether its disk hangs",
            Error::Thread(_) => "raise `ulimit -u`",
            Error::Packet(error) => return error.remedy(),
            Error::Pump(error) => return error.remedy(),
            Error::Config(error) => return error.remedy(),
            _ => return None,
        };
        Some(remedy.into())
    }
}

/// The last lines of a program, for a message.
fn wrote(lines: &[String]) -> String {
    if lines.is_empty() { String::new() } else { format!("; it last wrote: {}", lines.join(" | ")) }
}
