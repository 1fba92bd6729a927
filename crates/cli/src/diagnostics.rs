//! Diagnostics on stderr: errors with hints, warnings, notes, progress. Data goes to stdout, not through
//! here. Colour is never the only sign.

use std::error::Error;
use std::fmt;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use clap::error::ContextValue;
use fault::{Explain, Problem, one_line, plain};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use crate::options::Colour;
use crate::output::{Form, stderr, talk, talks_to_terminal};
use crate::value::Refused;

/// The label of an error, as clap writes it.
const ERROR: &str = "error: ";
const RED: &str = "\x1b[31m";

/// How much is said, and in which colours.
#[derive(Debug, Clone, Copy)]
pub struct Diagnostics {
    quiet: bool,
    colour: bool,
}

impl Diagnostics {
    /// Diagnostics as the command line asks for it.
    pub fn new(quiet: bool, colour: Colour) -> Diagnostics {
        let colour = match colour {
            Colour::Always => true,
            Colour::Never => false,
            Colour::Auto => talks_to_terminal() && std::env::var_os("NO_COLOR").is_none(),
        };
        Diagnostics { quiet, colour }
    }

    /// Something that the user may want to know, in one line.
    pub fn note(&self, text: impl fmt::Display) {
        if !self.quiet {
            self.line("", "", &text.to_string());
        }
    }

    /// The same in several lines.
    pub fn notes(&self, text: &str) {
        text.lines().for_each(|line| self.note(line));
    }

    /// Something that makes the result worth less.
    pub fn warning(&self, text: impl fmt::Display) {
        if !self.quiet {
            self.line("warning: ", "\x1b[33m", &text.to_string());
        }
    }

    /// What went wrong, and on a line of its own what to do about it.
    pub fn error(&self, problem: &Problem) {
        self.line(ERROR, RED, &problem.to_string());
        if let Some(remedy) = problem.remedy() {
            self.hint(remedy);
        }
    }

    /// What the user may do about something that is no error.
    pub fn advice(&self, text: &str) {
        if !self.quiet {
            self.hint(text);
        }
    }

    fn hint(&self, text: &str) {
        self.line("hint: ", "\x1b[36m", text);
    }

    /// What is wrong with the command line, in clap's words; what to do about a value that cannot be
    /// read, in ours. Without clap's colours, for among them it quotes arguments as they are.
    pub fn usage(&self, error: clap::Error) {
        let error = quoting_lines(error);
        let text = error.render().to_string();
        let (first, rest) = text.split_once('\n').unwrap_or((&text, ""));
        self.line(ERROR, RED, first.strip_prefix(ERROR).unwrap_or(first));
        if let Some(remedy) = error.source().and_then(remedy_of) {
            self.hint(&remedy);
        }
        let _ = stderr(Form::Text).write_all(rest.as_bytes());
    }

    fn line(&self, label: &str, colour: &str, text: &str) {
        talk(label, if self.colour { colour } else { "" }, text);
    }

    /// Something that makes the result worth less, and what to do about it.
    pub fn warning_with_remedy(&self, what: impl fmt::Display, remedy: Option<&str>) {
        self.warning(what);
        if let Some(remedy) = remedy {
            self.advice(remedy);
        }
    }

    /// A progress bar over an expected time; hidden when quiet or when stderr is no terminal.
    pub fn progress(&self) -> Progress {
        let terminal = talks_to_terminal();
        let target = if self.quiet || !terminal {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr_with_hz(5)
        };
        let bar = ProgressBar::with_draw_target(Some(1), target);
        let end = Arc::new(Mutex::new(Instant::now()));
        // Fits 80 columns.
        let form = "{msg:36!} [{bar:16}] {percent:>3} %  {left} left";
        if let Ok(style) = ProgressStyle::with_template(form) {
            let end = Arc::clone(&end);
            let left = move |_: &ProgressState, out: &mut dyn fmt::Write| {
                let _ = out.write_str(&minutes_and_seconds(time_until(&end)));
            };
            bar.set_style(style.progress_chars("=> ").with_key("left", left));
        }
        Progress { bar, plain: !self.quiet && !terminal, end, began: None, said: None }
    }

    /// A view of several lines that changes in place; hidden when quiet or when stderr is no terminal.
    pub fn view(&self) -> View {
        let hidden = self.quiet || !talks_to_terminal();
        let target = match hidden {
            true => ProgressDrawTarget::hidden(),
            false => ProgressDrawTarget::stderr_with_hz(5),
        };
        let bar = ProgressBar::with_draw_target(None, target);
        if let Ok(style) = ProgressStyle::with_template("{msg}") {
            bar.set_style(style);
        }
        View(bar)
    }
}

/// The error with each argument that it quotes on one line.
fn quoting_lines(mut error: clap::Error) -> clap::Error {
    let line = |text: &str| one_line(text).into_owned();
    let quoted = error.context().filter_map(|(kind, value)| {
        let value = match value {
            ContextValue::String(text) => ContextValue::String(line(text)),
            ContextValue::Strings(texts) => {
                ContextValue::Strings(texts.iter().map(|text| line(text)).collect())
            }
            ContextValue::StyledStrs(texts) => ContextValue::StyledStrs(
                texts.iter().map(|text| line(&text.to_string()).into()).collect(),
            ),
            _ => return None,
        };
        Some((kind, value))
    });
    for (kind, value) in quoted.collect::<Vec<_>>() {
        error.insert(kind, value);
    }
    error
}

/// What to do about a value that cannot be read: of the program's own parsers, and of the quantities
/// that studies read.
fn remedy_of(cause: &(dyn std::error::Error + 'static)) -> Option<String> {
    match cause.downcast_ref::<Refused>() {
        Some(refused) => refused.remedy().map(str::to_owned),
        None => cause.downcast_ref::<units::ParseError>()?.remedy().map(Into::into),
    }
}

/// A view that changes in place.
pub struct View(ProgressBar);

impl View {
    /// Shows a text in place of the last one.
    pub fn show(&self, text: String) {
        self.0.set_message(plain(&text).into_owned());
        self.0.tick();
    }

    /// Takes it away.
    pub fn finish(&self) {
        self.0.finish_and_clear();
    }
}

/// How far a measurement is. On a terminal a bar; elsewhere a line now and then, if it takes longer
/// than a moment.
pub struct Progress {
    bar: ProgressBar,
    plain: bool,
    /// When all is expected to be done; the bar counts down to it between two steps too.
    end: Arc<Mutex<Instant>>,
    /// When it was first shown, and what was done by then.
    began: Option<(Instant, Duration)>,
    said: Option<Instant>,
}

/// What takes less than this needs no line of progress.
const MOMENT: Duration = Duration::from_secs(2);
/// Time between two looks of the bar at the clock.
const TICK: Duration = Duration::from_millis(250);
/// Time between two lines of progress where there is no terminal.
const BETWEEN_LINES: Duration = Duration::from_secs(10);

impl Progress {
    /// Shows that `step` is under way, `done` of `total` expected time has passed.
    pub fn show(&mut self, step: &str, done: Duration, total: Duration) {
        let now = Instant::now();
        if self.began.is_none() {
            self.tick();
        }
        let (began, done_then) = *self.began.get_or_insert((now, done));
        let pace = pace(now - began, done.saturating_sub(done_then), total);
        let left = total.saturating_sub(done).mul_f64(pace);
        *self.end.lock().unwrap_or_else(PoisonError::into_inner) = now + left;
        self.bar.set_message(one_line(step).into_owned());
        self.bar.set_length(total.as_millis().max(1) as u64);
        self.bar.set_position(done.as_millis() as u64);
        if total > MOMENT {
            self.say_now_and_then(now, || format!("{step} ({} left)", minutes_and_seconds(left)));
        }
    }

    /// Shows that `step` is under way, for a time that nobody knows.
    pub fn show_without_end(&mut self, step: &str) {
        let now = Instant::now();
        if self.began.is_none() {
            if let Ok(style) = ProgressStyle::with_template("{msg}") {
                self.bar.set_style(style);
            }
            self.tick();
        }
        let (began, _) = *self.began.get_or_insert((now, Duration::ZERO));
        self.bar.set_message(one_line(step).into_owned());
        if now - began > MOMENT {
            self.say_now_and_then(now, || step.to_owned());
        }
    }

    /// Moves the bar between two steps, from a thread of its own. Where there can be no thread, steps alone move it:
    /// indicatif's own thread would be a panic then.
    fn tick(&self) {
        if self.bar.is_hidden() {
            return;
        }
        let bar = self.bar.downgrade();
        let tick = move || {
            while let Some(bar) = bar.upgrade().filter(|bar| !bar.is_finished()) {
                bar.tick();
                drop(bar);
                std::thread::sleep(TICK);
            }
        };
        let _ = std::thread::Builder::new().name("progress".to_owned()).spawn(tick);
    }

    /// A line where there is no terminal, if the last one is long enough ago.
    fn say_now_and_then(&mut self, now: Instant, line: impl FnOnce() -> String) {
        if self.plain && self.said.is_none_or(|said| now - said >= BETWEEN_LINES) {
            talk("", "", &line());
            self.said = Some(now);
        }
    }

    /// Says something while the bar steps aside.
    pub fn aside(&self, say: impl FnOnce()) {
        self.bar.suspend(say);
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

fn time_until(end: &Mutex<Instant>) -> Duration {
    let end = *end.lock().unwrap_or_else(PoisonError::into_inner);
    end.saturating_duration_since(Instant::now())
}

/// How much longer things take than expected. Nothing is told of the first fiftieth: what is under way, perhaps several
/// things at once, has taken time and counts only when it is done.
fn pace(took: Duration, expected: Duration, total: Duration) -> f64 {
    let untold = MOMENT.max(total / 50);
    (took + untold).div_duration_f64(expected + untold).clamp(0.1, 10.0)
}

fn minutes_and_seconds(time: Duration) -> String {
    let seconds = time.as_secs_f64().ceil() as u64;
    match seconds {
        0..60 => format!("{seconds} s"),
        _ => format!("{} min {:02} s", seconds / 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pace_is_told_by_what_is_done_beyond_the_first_of_it() {
        let of = |took, expected, total| {
            pace(
                Duration::from_secs(took),
                Duration::from_secs(expected),
                Duration::from_secs(total),
            )
        };
        assert_eq!((of(0, 0, 30), of(6, 2, 30)), (1.0, 2.0));
        // Eight at once, of which the first is done: 20 s for two of 100 minutes'.
        assert_eq!(of(20, 2, 6000), 140.0 / 122.0);
        assert_eq!(of(6000, 3000, 6000), 6120.0 / 3120.0);
        assert_eq!((of(10_000, 4, 4), of(0, 1000, 1000)), (10.0, 0.1));
    }

    #[test]
    fn time_left_reads_well() {
        assert_eq!(minutes_and_seconds(Duration::from_millis(900)), "1 s");
        assert_eq!(minutes_and_seconds(Duration::from_secs(59)), "59 s");
        assert_eq!(minutes_and_seconds(Duration::from_secs(125)), "2 min 05 s");
    }
}
