//! Ctrl-C and SIGTERM: the measurement stops at the next connection, cleans up and keeps what it has.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::exit::{Exit, Failed, OrExit};

/// Whether the user wants to stop.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Listens from now on. A second signal ends the program at once.
    pub fn listen() -> Result<Interrupt, Failed> {
        let interrupt = Interrupt::default();
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // In this order: the first signal finds the flag unset, and sets it.
            let status = Exit::Interrupted as i32;
            signal_hook::flag::register_conditional_shutdown(signal, status, interrupt.flag())
                .and_then(|_| signal_hook::flag::register(signal, interrupt.flag()))
                .context("signals cannot be listened to")
                .or_exit(Exit::Machine)?;
        }
        Ok(interrupt)
    }

    /// Whether a signal came.
    pub fn came(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }
}
