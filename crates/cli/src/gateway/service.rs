//! What a program that runs for long owes its system: log lines, and word of its state to systemd.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::{SocketAddr, UnixDatagram};

use tracing_subscriber::EnvFilter;

use crate::output::{Form, stderr};

/// The form of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogForm {
    /// Lines for people to read.
    Text,
    /// A JSON object a line.
    Json,
}

/// Sends the log to stderr: warnings and what the gateway says of itself, with -v its connections
/// too, with -q errors only. RUST_LOG overrides it.
pub fn log_to_stderr(verbose: u8, quiet: bool, form: LogForm) {
    let default = match (quiet, verbose) {
        (true, _) => "error",
        (false, 0) => "warn,gateway=info,wiretax=info",
        (false, 1) => "info,gateway=debug,wiretax=debug",
        (false, _) => "debug",
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default));
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(move || {
            stderr(match form {
                LogForm::Text => Form::Line,
                LogForm::Json => Form::Json,
            })
        })
        .with_ansi(false)
        .with_target(false);
    match form {
        LogForm::Text => log.init(),
        LogForm::Json => log.json().flatten_event(true).init(),
    }
}

/// Tells systemd of our state, if it asked for that (sd_notify(3)).
pub fn tell(state: &str) {
    let Some(path) = std::env::var_os("NOTIFY_SOCKET") else { return };
    let address = match path.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(std::ffi::OsString::from_vec(path.as_bytes().to_vec())),
    };
    let reported = address
        .and_then(|address| UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address));
    if let Err(error) = reported {
        tracing::debug!("systemd could not be told {state}: {error}");
    }
}
