//! qlog files of QUIC connections: what draft-ietf-quic-qlog-main-schema and -quic-events have of what passes
//! quinn's interface to cryptography. There each packet is seen with its number and its frames in clear.
//!
//! ```text
//! DIR/ODCID_client.sqlog      DIR/ODCID_server.sqlog
//! ```
//!
//! ODCID is the client's first Destination Connection ID in hexadecimal, which both sides of a connection
//! have in common.
//!
//! A program that is killed loses at most the last MiB of each file; a file is written when its connection
//! closes.
//!
//! Times are milliseconds by CLOCK_MONOTONIC, when a packet was sealed or opened: of all nodes of a lab the
//! same clock. Packets that cannot be decrypted at all, datagrams (`datagram_id`), timers and losses are not
//! seen there, and neither are a server's Retry packets.

mod file;
mod frames;
mod keys;
mod packets;
mod parameters;
#[cfg(test)]
mod tests;
mod trace;

use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

use fault::{Fault, OrProblem, Problem, WhileDoing};

pub(super) use self::keys::{First, KeySet, first_keys};
pub(super) use self::trace::{Trace, Vantage};

/// Where files go, if they are wanted.
static FOLDER: RwLock<Option<PathBuf>> = RwLock::new(None);

/// Writes a qlog file of each QUIC connection that this process begins or accepts from now on; `None` ends
/// it. The folder is made if it is missing.
///
/// # Errors
/// The folder cannot be made.
pub fn write_to(folder: Option<&Path>) -> Result<(), Problem> {
    let made = folder.map(|folder| {
        // Relative to the directory of now, which the program may leave.
        let whole = std::path::absolute(folder)?;
        std::fs::create_dir_all(&whole).map(|()| whole)
    });
    let made = made.transpose().blame(Fault::Results);
    let made = made.while_doing(|| match folder {
        Some(folder) => format!("the folder {} cannot be made", folder.display()),
        None => String::new(),
    })?;
    *FOLDER.write().unwrap_or_else(PoisonError::into_inner) = made;
    Ok(())
}

fn folder() -> Option<PathBuf> {
    FOLDER.read().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Bytes in hexadecimal: qlog's hexstring.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
