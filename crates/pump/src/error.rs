//! What can go wrong with a pump.

use std::io;

use thiserror::Error;

/// A pump that cannot do what it is asked. The message says what to do.
#[derive(Debug, Error)]
pub enum Error {
    /// The environment's fault: an interface or a TAP device cannot be opened.
    #[error("a link cannot be opened: {0}")]
    Port(#[from] packet::Error),
    /// The caller's fault: the link's configuration makes no sense.
    #[error("the link cannot be like that: {0}")]
    Config(#[from] linkmodel::ConfigError),
    /// The caller's fault: a TAP device does not fit the pump's mode.
    #[error(
        "this TAP device {} virtio_net_hdr but the pump's offload mode is {}: make it with \
         packet::Tap::{}", if *.device { "has a" } else { "has no" },
        if *.device { "off" } else { "on" },
        if *.device { "create" } else { "create_with_vnet_header" }
    )]
    OffloadMismatch {
        /// Whether the device has a header.
        device: bool,
    },
    /// The environment's fault: no memory for the buffers.
    #[error("no memory for {buffers} buffers ({source}); set a smaller number of buffers")]
    NoMemory {
        /// Buffers asked for.
        buffers: u32,
        /// What the system said.
        source: io::Error,
    },
    /// The environment's fault: a system call was refused.
    #[error("{doing} failed: {source}")]
    System {
        /// What was tried.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The caller's fault: no link has this number, or it was removed.
    #[error("the pump has no such link; it may have been removed")]
    NoSuchLink,
    /// The pump's thread has ended, so links are down: a defect, or the pump was stopped.
    #[error("the link pump has stopped; start a new one")]
    Stopped,
    /// The environment's fault: a frame sent for calibration did not arrive.
    #[error(
        "calibration: {lost} of {sent} frames did not arrive; see that both far ends are up and \
         that the rig's ports are joined to them"
    )]
    CalibrationLost {
        /// Frames sent.
        sent: usize,
        /// Frames that did not arrive in time.
        lost: usize,
    },
}
