//! Talk on stderr: errors with hints, warnings, notes, progress. Data goes to stdout, not through
//! here. Colour is never the only sign.

use std::fmt;
use std::io::{IsTerminal, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::args::Colour;

/// How much is said, and in which colours.
#[derive(Debug, Clone, Copy)]
pub struct Talk {
    quiet: bool,
    colour: bool,
}

impl Talk {
    /// Talk as the command line asks for it.
    pub fn new(quiet: bool, colour: Colour) -> Talk {
        let colour = match colour {
            Colour::Always => true,
            Colour::Never => false,
            Colour::Auto => {
                std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none()
            }
        };
        Talk { quiet, colour }
    }

    /// Something that the user may want to know.
    pub fn note(&self, text: impl fmt::Display) {
        if !self.quiet {
            self.line("", "", &text.to_string());
        }
    }

    /// Something that makes the result worth less.
    pub fn warning(&self, text: impl fmt::Display) {
        if !self.quiet {
            self.line("warning: ", "\x1b[33m", &text.to_string());
        }
    }

    /// What went wrong, and on lines of their own the hints in it (after `; hint:`).
    pub fn error(&self, text: impl fmt::Display) {
        let text = text.to_string();
        let mut parts = text.split("; hint: ");
        self.line("error: ", "\x1b[31m", parts.next().unwrap_or_default());
        for hint in parts {
            self.line("hint: ", "\x1b[36m", hint);
        }
    }

    fn line(&self, label: &str, colour: &str, text: &str) {
        let mut stderr = std::io::stderr().lock();
        // Nobody can be told that stderr is gone.
        let _ = if self.colour && !label.is_empty() {
            writeln!(stderr, "{colour}{label}\x1b[0m{text}")
        } else {
            writeln!(stderr, "{label}{text}")
        };
    }

    /// A progress bar over an expected time; hidden when quiet or when stderr is no terminal.
    pub fn progress(&self) -> Progress {
        let target = if self.quiet || !std::io::stderr().is_terminal() {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr_with_hz(5)
        };
        let bar = ProgressBar::with_draw_target(Some(1), target);
        let form = "{msg:40!} [{bar:30}] {percent:>3} %  {prefix}";
        if let Ok(style) = ProgressStyle::with_template(form) {
            bar.set_style(style.progress_chars("=> "));
        }
        Progress { bar, plain: !self.quiet && !std::io::stderr().is_terminal(), said: None }
    }
}

/// How far a measurement is. On a terminal a bar; elsewhere a line for each new step.
pub struct Progress {
    bar: ProgressBar,
    plain: bool,
    said: Option<String>,
}

impl Progress {
    /// Shows that `step` is under way, `done` of `total` expected time has passed.
    pub fn show(&mut self, step: &str, done: Duration, total: Duration) {
        let left = total.saturating_sub(done);
        self.bar.set_length(total.as_millis().max(1) as u64);
        self.bar.set_position(done.as_millis() as u64);
        self.bar.set_prefix(format!("{} left", minutes_and_seconds(left)));
        self.bar.set_message(step.to_owned());
        if self.plain && self.said.as_deref() != Some(step) {
            let mut stderr = std::io::stderr().lock();
            let _ = writeln!(stderr, "{step} ({} left)", minutes_and_seconds(left));
            self.said = Some(step.to_owned());
        }
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
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
    fn time_left_reads_well() {
        assert_eq!(minutes_and_seconds(Duration::from_millis(900)), "1 s");
        assert_eq!(minutes_and_seconds(Duration::from_secs(59)), "59 s");
        assert_eq!(minutes_and_seconds(Duration::from_secs(125)), "2 min 05 s");
    }
}
