//! A daemon that runs.

use std::time::Duration;

use handoff::{Source, What};
use lab::{Event, Node, Program, Running};
use units::Time;

use crate::Error;

/// Something that a daemon said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// When it was read: CLOCK_MONOTONIC.
    pub at: Time,
    /// Who said it.
    pub source: Source,
    /// What it means, if it means anything.
    pub what: Option<What>,
    /// The line as it was written, without its end.
    pub line: String,
}

/// A daemon that runs on a node. It dies when this is dropped, with all that it has started.
#[derive(Debug)]
pub struct Daemon {
    name: &'static str,
    node: Node,
    running: Running,
    source: Source,
    meaning: fn(&str) -> Option<What>,
}

impl Daemon {
    /// Starts a program on a node and waits until it is ready; its lines will be understood by `meaning`.
    ///
    /// # Errors
    /// [`Error::Lab`].
    pub fn start(
        node: &Node,
        name: &'static str,
        program: &Program,
        source: Source,
        meaning: fn(&str) -> Option<What>,
    ) -> Result<Daemon, Error> {
        let running = node.launch(program)?;
        Ok(Daemon { name, node: node.clone(), running, source, meaning })
    }

    /// Its program's name, as `hostapd`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Where it runs.
    #[must_use]
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// Its process in the lab.
    #[must_use]
    pub fn running(&self) -> &Running {
        &self.running
    }

    /// What it said since it was last asked. Does not wait.
    ///
    /// # Errors
    /// [`Error::Ended`].
    pub fn take(&self) -> Result<Vec<Seen>, Error> {
        let mut all = Vec::new();
        while let Some(event) = self.running.next_event(Duration::ZERO) {
            match event {
                Event::Line { at, text, .. } => {
                    let what = (self.meaning)(&text);
                    all.push(Seen { at, source: self.source, what, line: text });
                }
                Event::Ended { status, .. } => {
                    let (daemon, node) = (self.name, self.node.name().to_owned());
                    let status = status.to_string();
                    return Err(Error::Ended { daemon, node, status });
                }
            }
        }
        Ok(all)
    }
}
