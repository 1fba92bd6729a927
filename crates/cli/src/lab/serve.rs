//! What runs on the node `server` beside the program.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ::lab::{Event, Node, Program, Running};
use fault::{Fault, OrProblem, Problem};

use crate::diagnostics::Diagnostics;

/// How long it may take to listen, before the program is started all the same.
const LISTEN_LIMIT: Duration = Duration::from_secs(3);
/// How often that is looked for.
const LOOK: Duration = Duration::from_millis(5);
/// How long it may go on by itself once the program has ended: a server of one client is about to end.
const LAST_WORDS: Duration = Duration::from_millis(200);
/// How long it may take to end when asked to.
const END_LIMIT: Duration = Duration::from_secs(1);

/// A server that runs; what it writes goes to stderr.
pub struct Served {
    running: Arc<Running>,
    command: String,
    stop: Arc<AtomicBool>,
    /// When it was seen to have ended.
    ended: Arc<OnceLock<Instant>>,
    reader: JoinHandle<()>,
}

impl Served {
    /// Starts it, and waits until it listens on a port.
    ///
    /// # Errors
    /// It cannot be started, or ends before it listens.
    pub fn start(
        node: &Node,
        program: &Program,
        command: &str,
        diagnostics: Diagnostics,
    ) -> Result<Served, Problem> {
        let running = Arc::new(node.launch(program)?);
        let stop = Arc::new(AtomicBool::new(false));
        let ended = Arc::new(OnceLock::new());
        let (lines, stopped, seen) = (Arc::clone(&running), Arc::clone(&stop), Arc::clone(&ended));
        let reader = std::thread::Builder::new()
            .name("server".to_owned())
            .spawn(move || say_lines(&lines, &stopped, &seen, diagnostics))
            .blame(Fault::Machine)?;
        let served = Served { running, command: command.to_owned(), stop, ended, reader };
        let began = Instant::now();
        while !node.listens()? {
            if let Some(status) = served.running.wait(LOOK) {
                served.end();
                let what = format!("the server `{command}` ended before it listened ({status})");
                let remedy = "see what it wrote, or run it on its own";
                return Err(Problem::new(Fault::Caller, what).with_remedy(remedy));
            }
            if began.elapsed() > LISTEN_LIMIT {
                let limit = LISTEN_LIMIT.as_secs();
                diagnostics.note(format!("the server listens on no port after {limit} s"));
                break;
            }
        }
        Ok(served)
    }

    /// Says how it ended, if it did so before the program, which has just ended: a server of one client
    /// may in good order do so a moment before.
    pub fn note_ended(&self, diagnostics: &Diagnostics) {
        let Some(status) = self.running.wait(Duration::ZERO) else { return };
        let early = self.ended.get().is_some_and(|at| at.elapsed() > LAST_WORDS);
        if status.success() && !early {
            return;
        }
        let command = &self.command;
        diagnostics.warning_with_remedy(
            format!("the server `{command}` ended before the program ({status})"),
            Some(match status.success() {
                true => "if it went to the background, keep it in the foreground by its own option",
                false => "see what it wrote, or run it on its own",
            }),
        );
    }

    /// Lets it end, asks it to, or kills it.
    pub fn end(self) {
        let ended = self.running.wait(LAST_WORDS).or_else(|| {
            self.running.signal(SIGTERM);
            self.running.wait(END_LIMIT)
        });
        if ended.is_none() {
            // Dropping it kills it.
            tracing::info!("the server did not end when asked to");
        }
        self.stop.store(true, Ordering::Relaxed);
        // It only fails if that thread panicked.
        let _ = self.reader.join();
    }
}

/// The signal that asks a program to end.
const SIGTERM: i32 = signal_hook::consts::SIGTERM;

fn say_lines(
    running: &Running,
    stop: &AtomicBool,
    ended: &OnceLock<Instant>,
    diagnostics: Diagnostics,
) {
    loop {
        match running.next_event(Duration::from_millis(50)) {
            Some(Event::Line { text, .. }) => diagnostics.note(format!("server: {text}")),
            Some(Event::Ended { .. }) => {
                ended.get_or_init(Instant::now);
                return;
            }
            None if stop.load(Ordering::Relaxed) => return,
            None => {}
        }
    }
}
