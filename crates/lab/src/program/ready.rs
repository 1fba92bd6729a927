//! When a program is ready.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::{Program, Running};
use crate::Error;
use crate::node::Node;

/// How often ports and files are looked for.
const LOOK: Duration = Duration::from_millis(5);

/// What shows that a program is ready.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ready {
    /// It was started.
    Started,
    /// It has written a line, to standard output or error, that contains this.
    Line(String),
    /// The node listens for TCP connections on this port.
    Tcp(u16),
    /// The node has a UDP socket on this port.
    Udp(u16),
    /// There is such a file or socket; below `/run`, in the program's own.
    File(PathBuf),
}

impl fmt::Display for Ready {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ready::Started => f.write_str("its start"),
            Ready::Line(text) => write!(f, "a line with `{text}`"),
            Ready::Tcp(port) => write!(f, "a listener on TCP port {port}"),
            Ready::Udp(port) => write!(f, "a socket on UDP port {port}"),
            Ready::File(path) => write!(f, "the file {}", path.display()),
        }
    }
}

/// Waits until the program is ready.
pub(super) fn wait(node: &Node, program: &Program, running: &Running) -> Result<(), Error> {
    let deadline = Instant::now() + program.limit;
    loop {
        // Asked before the condition, so that what it did last counts.
        let ended = running.status();
        if is_ready(node, &program.ready, running)? {
            return Ok(());
        }
        let (name, node) = (program.name(), node.name().to_owned());
        if let Some(status) = ended {
            let last = running.last_lines();
            return Err(Error::ProgramEnded { program: name, node, status, last });
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Error::NotReady {
                program: name,
                node,
                condition: program.ready.to_string(),
                limit: program.limit,
                last: running.last_lines(),
            });
        }
        running.wait_for_news(left.min(LOOK));
    }
}

fn is_ready(node: &Node, ready: &Ready, running: &Running) -> Result<bool, Error> {
    Ok(match ready {
        Ready::Started => true,
        Ready::Line(_) => running.line_seen(),
        Ready::Tcp(port) => has_socket(node, TCP, Some(TCP_LISTEN), Some(*port))?,
        Ready::Udp(port) => has_socket(node, UDP, None, Some(*port))?,
        Ready::File(path) => match path.strip_prefix("/run") {
            Ok(below) => running.run_dir().join(below).exists(),
            Err(_) => path.exists(),
        },
    })
}

/// The kernel's tables of sockets.
const TCP: [&str; 2] = ["tcp", "tcp6"];
const UDP: [&str; 2] = ["udp", "udp6"];
/// The state of a listening socket in /proc/net/tcp (net/tcp_states.h).
const TCP_LISTEN: u8 = 10;

impl Node {
    /// Whether a program on the node listens for TCP connections or has a UDP socket, on any port.
    ///
    /// # Errors
    /// [`Error::NodeStopped`].
    pub fn listens(&self) -> Result<bool, Error> {
        Ok(has_socket(self, TCP, Some(TCP_LISTEN), None)? || has_socket(self, UDP, None, None)?)
    }
}

fn has_socket(
    node: &Node,
    tables: [&'static str; 2],
    state: Option<u8>,
    port: Option<u16>,
) -> Result<bool, Error> {
    node.run(move || {
        tables.iter().any(|table| {
            // Of the calling thread's namespace. Without IPv6 there is no second table.
            let path = Path::new("/proc/thread-self/net").join(table);
            let text = fs::read_to_string(path).unwrap_or_default();
            text.lines().skip(1).any(|line| {
                let found = socket(line);
                found.is_some_and(|(at, is)| {
                    port.is_none_or(|port| port == at) && state.is_none_or(|state| state == is)
                })
            })
        })
    })
}

/// The local port and the state of a line of /proc/net/tcp or the like.
fn socket(line: &str) -> Option<(u16, u8)> {
    let mut fields = line.split_ascii_whitespace().skip(1);
    let (_, port) = fields.next()?.rsplit_once(':')?;
    let state = fields.nth(1)?;
    Some((u16::from_str_radix(port, 16).ok()?, u8::from_str_radix(state, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_are_read_from_the_kernels_table() {
        let line = "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0";
        assert_eq!(socket(line), Some((8080, TCP_LISTEN)));
        let line =
            "  12: 00000000000000000000000000000000:0016 00000000000000000000000000000000:0000 01";
        assert_eq!(socket(line), Some((22, 1)));
        for wrong in ["", "sl local", "0: x:y z:0 0A", "0: 00:1F90 00:0 zz"] {
            assert_eq!(socket(wrong), None, "{wrong}");
        }
    }
}
