//! Ctrl-C and SIGTERM: the measurement stops at the next connection, cleans up and keeps what it has.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fault::{Fault, OrProblem, Problem, WhileDoing};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::exit::Exit;

/// Signals this soon after the first are the same wish: `timeout` and `kill -- -GROUP` send theirs
/// to the outer process, which passes it on, and to this one.
const SAME_WISH: Duration = Duration::from_millis(500);

/// Whether the user wants to stop.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Listens from now on, on a thread of its own: inside the lab only. A second signal, later,
    /// ends the program at once.
    pub fn listen() -> Result<Interrupt, Problem> {
        let interrupt = Interrupt::default();
        let signals = Signals::new([SIGINT, SIGTERM, SIGHUP])
            .blame(Fault::Machine)
            .while_doing(|| "signals cannot be listened to")?;
        let flag = Arc::clone(&interrupt.0);
        std::thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || follow(signals, &flag))
            .map_err(|error| {
                Problem::of(Fault::Machine, error)
                    .while_doing("a thread could not be started")
                    .with_remedy("raise `ulimit -u`")
            })?;
        Ok(interrupt)
    }

    /// Listens from now on without a thread: before the lab is entered.
    pub fn by_flag() -> Result<Interrupt, Problem> {
        let interrupt = Interrupt::default();
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&interrupt.0))
                .blame(Fault::Machine)
                .while_doing(|| "signals cannot be listened to")?;
        }
        Ok(interrupt)
    }

    /// Whether a signal came.
    pub fn came(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

fn follow(mut signals: Signals, flag: &AtomicBool) {
    let mut first: Option<Instant> = None;
    for _ in signals.forever() {
        let first = *first.get_or_insert_with(Instant::now);
        flag.store(true, Ordering::Relaxed);
        if first.elapsed() > SAME_WISH {
            std::process::exit(Exit::Interrupted as i32);
        }
    }
}
