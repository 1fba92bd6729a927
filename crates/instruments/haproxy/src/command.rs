//! Running the programs of a build: into a log, ended when the user wants to stop.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use child::{Child, End, Kept};

use crate::Error;

/// How long a program may take to end when it is asked to.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a short program may take.
const SHORT: Duration = Duration::from_secs(60);
/// As much is read of what a short program prints, in bytes.
const PRINTED: usize = 1 << 20;

/// Runs a program to its end with all that it says in a log. `look` is called now and then; when
/// `stop` is set, the program and all that it started are killed.
///
/// # Errors
/// [`Error::Missing`], [`Error::Build`], [`Error::Interrupted`], [`Error::Io`].
pub(crate) fn run(
    what: &str,
    command: &mut Command,
    log: &Path,
    stop: &AtomicBool,
    mut look: impl FnMut(),
) -> Result<(), Error> {
    let open = || {
        let out = OpenOptions::new().create(true).append(true).open(log)?;
        Ok((out.try_clone()?, out))
    };
    let (out, err) = open().map_err(Error::io("opening it", log))?;
    command.stdin(Stdio::null()).stdout(out).stderr(err);
    let mut child = Child::spawn(command).map_err(|error| missing(command, &error))?;
    let mut asked = 0u32;
    let mut stop = || {
        // Progress is read from the log: less often than the wish to stop.
        asked = asked.wrapping_add(1);
        if asked.is_multiple_of(10) {
            look();
        }
        stop.load(Ordering::Relaxed)
    };
    match child.wait(None, &mut stop).map_err(Error::io("waiting for a program", log))? {
        End::Exited(status) if status.success() => Ok(()),
        End::Exited(status) => {
            let reason = reason(log).unwrap_or_else(|| status.to_string());
            Err(Error::Build { what: what.to_owned(), reason, log: log.to_owned() })
        }
        End::Stopped | End::Late => {
            // make and the compiler then remove what they have half written.
            child.end(PATIENCE);
            Err(Error::Interrupted)
        }
    }
}

/// What a short program prints on its standard output.
///
/// # Errors
/// [`Error::Missing`] when it cannot be run; a failure is the caller's to judge.
pub(crate) fn output(command: &mut Command) -> Result<String, Error> {
    let kept = [Kept::First(PRINTED); 2];
    let output = child::run(command, Vec::new(), SHORT, kept);
    let output = output.map_err(|error| missing(command, &error))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn missing(command: &Command, error: &std::io::Error) -> Error {
    let program = command.get_program().to_string_lossy().into_owned();
    Error::Missing { program, reason: error.to_string() }
}

/// The last `most` bytes of a file, as text.
pub(crate) fn tail(path: &Path, most: u64) -> Option<String> {
    let mut file = File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(most))).ok()?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The line of a log that says best what went wrong.
fn reason(log: &Path) -> Option<String> {
    Some(explain(&tail(log, 64 << 10)?))
}

fn explain(log: &str) -> String {
    const TELLING: &[&str] =
        &["fatal error:", " error:", "undefined reference", "cannot find -l", "FAILED"];
    let lines = || log.lines().map(str::trim).filter(|line| !line.is_empty());
    let telling = lines().find(|line| TELLING.iter().any(|word| line.contains(word)));
    let line = telling.or_else(|| lines().next_back()).unwrap_or("it said nothing");
    line.chars().take(300).collect()
}

/// What to do about what a line of a log says, where it is known.
pub(crate) fn hint(line: &str) -> Option<&'static str> {
    const HINTS: &[(&str, &str)] = &[
        ("crypt.h", "apt install libcrypt-dev"),
        ("-lcrypt", "apt install libcrypt-dev"),
        ("stdio.h", "apt install libc6-dev"),
        ("linux/", "apt install linux-libc-dev"),
        ("No space left", "make room on the disk that holds the cache"),
    ];
    HINTS.iter().find(|(sign, _)| line.contains(sign)).map(|(_, hint)| *hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_s_first_error_is_reported_with_a_hint() {
        let log = "  CC      src/auth.o\nsrc/auth.c:21:10: fatal error: crypt.h: No such file or \
                   directory\ncompilation terminated.\nmake: *** [Makefile:1079: src/auth.o] Error 1\n";
        let said = explain(log);
        assert!(said.starts_with("src/auth.c:21:10: fatal error"), "{said}");
        assert_eq!(hint(&said), Some("apt install libcrypt-dev"));
        assert_eq!(explain("one\ntwo\n\n"), "two");
        assert_eq!(explain(""), "it said nothing");
    }

    #[test]
    fn a_failure_names_its_log_and_a_stop_ends_what_was_started() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let stop = AtomicBool::new(false);
        let fails =
            run("a test", Command::new("sh").args(["-c", "echo no; false"]), &log, &stop, || {});
        assert!(matches!(fails, Err(Error::Build { reason, .. }) if reason == "no"));
        let absent =
            run("a test", &mut Command::new("wiretax-no-such-program"), &log, &stop, || {});
        assert!(matches!(absent, Err(Error::Missing { .. })));
        // The shell's child holds the log open; it ends too.
        stop.store(true, Ordering::Relaxed);
        let mut sleeps = Command::new("sh");
        sleeps.args(["-c", "sleep 1000 & echo $! > child; wait"]).current_dir(folder.path());
        let child = folder.path().join("child");
        let stop = AtomicBool::new(false);
        let stopped = run("a test", &mut sleeps, &log, &stop, || {
            if std::fs::read_to_string(&child).is_ok_and(|text| text.ends_with('\n')) {
                stop.store(true, Ordering::Relaxed);
            }
        });
        assert!(matches!(stopped, Err(Error::Interrupted)));
        let pid = std::fs::read_to_string(&child).unwrap();
        let stat =
            std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        assert!(stat.is_empty() || stat.contains(" Z ") || stat.contains(" X "), "{stat}");
    }
}
