//! Tests in the lab: two nodes and a link between them, our TCP beside the kernel's on it, streams
//! that are compared byte by byte, segments captured and made, floods.
//!
//! The modules' public items are for tests; their names and types say what they are.
#![allow(missing_docs, reason = "support for tests, read beside them")]

pub mod pattern;
pub mod peers;
pub mod segments;
pub mod sides;
pub mod syn_flood;

use std::time::Duration;

use lab::{Backend, EnterError, EnterOptions, Lab, LabOptions, Link, Node};
use linkmodel::Path;

use crate::{Need, TestResult, skip};

/// The longest that one step of a test may take.
pub const WAIT: Duration = Duration::from_secs(30);

/// Enters the lab; skips the test where the system forbids it.
///
/// # Errors
/// The skip, or why it cannot be entered.
pub fn enter() -> TestResult {
    enter_by(EnterOptions::new())
}

/// As [`enter`]; root keeps its rights, without which the kernel's MACsec takes no keys.
///
/// # Errors
/// As [`enter`].
pub fn enter_with_rights() -> TestResult {
    enter_by(EnterOptions::new().keep_rights(true))
}

fn enter_by(options: EnterOptions) -> TestResult {
    match lab::enter(&options) {
        Ok(_) => Ok(()),
        Err(error @ (EnterError::UserNamespaces(_) | EnterError::Namespaces(_))) => {
            skip(Need::Lab, error.to_string())
        }
        Err(error) => Err(error.into()),
    }
}

/// A lab whose pump sleeps rather than spins, for tests that care less for microseconds than for
/// what else runs on this machine.
#[must_use]
pub fn sleeping(seed: u64) -> LabOptions {
    let pump = pump::Options { timing: pump::Timing::Block, ..pump::Options::default() };
    LabOptions { seed, backend: Backend::Veth, pump, node_cpu: None }
}

/// Two nodes and the link between them.
#[derive(Debug)]
pub struct Pair {
    pub lab: Lab,
    pub client: Node,
    pub server: Node,
    pub link: Link,
}

/// Enters the lab and joins a client and a server by the pump.
///
/// # Errors
/// The lab cannot be entered or made.
pub fn pair(path: &Path) -> TestResult<Pair> {
    joined(Backend::Veth, path)
}

/// Enters the lab and joins a client and a server by a veth pair alone.
///
/// # Errors
/// The lab cannot be entered or made.
pub fn direct() -> TestResult<Pair> {
    joined(Backend::Direct, &Path::default())
}

fn joined(backend: Backend, path: &Path) -> TestResult<Pair> {
    enter()?;
    let mut lab = Lab::new(LabOptions { seed: 7, backend, ..LabOptions::default() })?;
    let client = lab.add_node("client")?;
    let server = lab.add_node("server")?;
    let link = lab.connect(&client, &server, path)?;
    Ok(Pair { lab, client, server, link })
}
