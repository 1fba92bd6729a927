//! Ctrl-C and SIGTERM: the measurement stops at the next connection, cleans up and keeps what it has.
//! A signal that is ignored from the start stays ignored (`nohup`, a shell's background job), but for SIGTERM.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

use fault::{Fault, OrProblem, Problem, WhileDoing};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;
use tokio::signal::unix::{SignalKind, signal};

use crate::diagnostics::Diagnostics;
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
        let flag = Arc::clone(&interrupt.0);
        on_thread(move |signals| follow(signals, &flag))?;
        Ok(interrupt.asked_by_waits())
    }

    /// Listens from now on without a thread: before the lab is entered.
    pub fn by_flag() -> Result<Interrupt, Problem> {
        let interrupt = Interrupt::default();
        for signal in listened_to() {
            signal_hook::flag::register(signal, Arc::clone(&interrupt.0))
                .blame(Fault::Machine)
                .while_doing(|| "signals cannot be listened to")?;
        }
        Ok(interrupt.asked_by_waits())
    }

    /// Whether a signal came.
    pub fn came(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn asked_by_waits(self) -> Interrupt {
        let flag = Arc::clone(&self.0);
        child::stop_when(move || flag.load(Ordering::Relaxed));
        self
    }
}

/// Ends the program at once when a signal comes: for commands that have nothing to keep.
pub fn ends_at_once(diagnostics: &Diagnostics) -> Result<(), Problem> {
    let diagnostics = *diagnostics;
    on_thread(move |mut signals| {
        if signals.forever().next().is_some() {
            diagnostics.note("interrupted");
            std::process::exit(Exit::Interrupted as i32);
        }
    })
}

/// Waits for a signal, beside other things that a runtime waits for.
pub async fn came() {
    let kinds = listened_to().into_iter().map(SignalKind::from_raw);
    let mut signals: Vec<_> = kinds.filter_map(|kind| signal(kind).ok()).collect();
    std::future::poll_fn(|context| {
        let came = signals.iter_mut().any(|signal| signal.poll_recv(context).is_ready());
        if came { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

/// Makes a write beyond `ulimit -f` an error in place of the program's death. Programs that it starts
/// have the default again.
pub fn survive_file_limits() -> Result<(), Problem> {
    signal_hook::flag::register(SIGXFSZ, Arc::default())
        .map(drop)
        .blame(Fault::Machine)
        .while_doing(|| "signals cannot be listened to")
}

fn listened_to() -> Vec<i32> {
    let heard = |signal: &i32| *signal == SIGTERM || !child::is_ignored(*signal);
    [SIGINT, SIGTERM, SIGHUP].into_iter().filter(heard).collect()
}

fn on_thread(hear: impl FnOnce(Signals) + Send + 'static) -> Result<(), Problem> {
    let signals = Signals::new(listened_to())
        .blame(Fault::Machine)
        .while_doing(|| "signals cannot be listened to")?;
    let started =
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || hear(signals));
    started.map(drop).map_err(|error| {
        Problem::of(Fault::Machine, error)
            .while_doing("a thread could not be started")
            .with_remedy("raise `ulimit -u`")
    })
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
