//! Ctrl-C and SIGTERM: the measurement stops at the next connection, cleans up and keeps what it has.
//! A signal that is ignored from the start stays ignored (`nohup`, a shell's background job), but for SIGTERM.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::{Duration, Instant};

use fault::{Fault, OrProblem, Problem, WhileDoing};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use tokio::signal::unix::{Signal, SignalKind, signal};

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
        let came = Arc::clone(&interrupt.0);
        on_thread(move |signals| follow(signals, &came))?;
        Ok(interrupt.asked_by_waits())
    }

    /// Listens from now on without a thread: before the lab is entered.
    pub fn by_flag() -> Result<Interrupt, Problem> {
        let interrupt = Interrupt::default();
        for signal in listened_to() {
            flag::register(signal, Arc::clone(&interrupt.0))
                .blame(Fault::Machine)
                .while_doing(|| DOING)?;
        }
        heard();
        Ok(interrupt.asked_by_waits())
    }

    /// Whether a signal came.
    pub fn came(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn asked_by_waits(self) -> Interrupt {
        let came = Arc::clone(&self.0);
        child::stop_when(move || came.load(Ordering::Relaxed));
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

/// Signals for a program that has a runtime.
pub struct Asked(Vec<Signal>);

impl Asked {
    /// Listens from now on.
    pub fn listen() -> Result<Asked, Problem> {
        let signals = listened_to().into_iter().map(|number| signal(SignalKind::from_raw(number)));
        let signals = signals.collect::<Result<_, _>>();
        let signals = signals.blame(Fault::Machine).while_doing(|| DOING)?;
        heard();
        Ok(Asked(signals))
    }

    /// Waits for the next signal.
    pub async fn next(&mut self) {
        std::future::poll_fn(|context| {
            let came = self.0.iter_mut().any(|signal| signal.poll_recv(context).is_ready());
            if came { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}

/// What is wrong where signals cannot be had.
const DOING: &str = "signals cannot be listened to";

/// Cleared once somebody listens to signals.
static UNHEARD: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Gives signals their meaning until a command listens: those that ask for the end have the exit status of
/// an interrupt, and a write beyond `ulimit -f` is an error and not the end. Programs that this one starts
/// have the defaults again.
pub fn begin() -> Result<(), Problem> {
    let unheard = UNHEARD.get_or_init(|| Arc::new(AtomicBool::new(true)));
    let registered = listened_to().into_iter().try_for_each(|number| {
        let status = Exit::Interrupted as i32;
        flag::register_conditional_shutdown(number, status, Arc::clone(unheard)).map(drop)
    });
    let registered = registered.and_then(|()| flag::register(SIGXFSZ, Arc::default()));
    registered.map(drop).blame(Fault::Machine).while_doing(|| DOING)
}

fn heard() {
    if let Some(unheard) = UNHEARD.get() {
        unheard.store(false, Ordering::Relaxed);
    }
}

fn listened_to() -> Vec<i32> {
    let heard = |signal: &i32| *signal == SIGTERM || !child::is_ignored(*signal);
    [SIGINT, SIGTERM, SIGHUP].into_iter().filter(heard).collect()
}

fn on_thread(hear: impl FnOnce(Signals) + Send + 'static) -> Result<(), Problem> {
    let signals = Signals::new(listened_to()).blame(Fault::Machine).while_doing(|| DOING)?;
    heard();
    let started =
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || hear(signals));
    started.map(drop).map_err(|error| {
        Problem::of(Fault::Machine, error)
            .while_doing("a thread could not be started")
            .with_remedy("raise `ulimit -u`")
    })
}

fn follow(mut signals: Signals, came: &AtomicBool) {
    let mut first: Option<Instant> = None;
    for _ in signals.forever() {
        let first = *first.get_or_insert_with(Instant::now);
        came.store(true, Ordering::Relaxed);
        if first.elapsed() > SAME_WISH {
            std::process::exit(Exit::Interrupted as i32);
        }
    }
}
