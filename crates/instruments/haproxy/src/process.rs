//! A HAProxy process: started, asked, and ended with its owner.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use child::Child;
use outfile::Scratch;
use tls::Identity;

use crate::command::tail;
use crate::config::{Config, FAILED};
use crate::counters::{Counted, MAX_ANSWER, parse_counted, parse_info};
use crate::{Built, Error, Locks};

/// HAProxy has started, or has not, within this time.
const START: Duration = Duration::from_secs(30);
/// An answer of the admin socket comes within this time.
const ANSWER: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(10);
/// As much of its log is read, in bytes, and so many kinds of failures are told.
const LOGGED: u64 = 64 << 10;
const KINDS: usize = 2;

/// A running HAProxy. Dropping it ends it.
#[derive(Debug)]
pub struct Process {
    child: Child,
    library: String,
    folder: Scratch,
}

/// CPU time of all threads of a process.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cpu {
    /// All of it, in nanoseconds.
    pub ns: u64,
    /// Of it the kernel's, in clock ticks, and the user's.
    system_ticks: u64,
    user_ticks: u64,
}

impl Cpu {
    /// What was used since, in nanoseconds, and the kernel's share of it; no share where no tick of
    /// the clock fell into it.
    #[must_use]
    pub fn since(self, before: Self) -> (u64, Option<f64>) {
        let system = self.system_ticks.saturating_sub(before.system_ticks);
        let all = system + self.user_ticks.saturating_sub(before.user_ticks);
        let share = (all > 0).then(|| system as f64 / all as f64);
        (self.ns.saturating_sub(before.ns), share)
    }
}

impl Process {
    /// Starts a build with a configuration, in a folder of its own that only this user may read, and
    /// waits until it answers.
    ///
    /// # Errors
    /// [`Error::Process`] with its last words; [`Error::NoLightLocks`]; [`Error::Folder`]; [`Error::Io`];
    /// [`Error::Interrupted`].
    pub fn start(
        built: &Built,
        locks: Locks,
        identity: &Identity,
        config: &dyn Fn(&Path) -> Result<String, Error>,
    ) -> Result<Self, Error> {
        let program = built
            .program(locks)
            .ok_or_else(|| Error::NoLightLocks { haproxy: built.haproxy.clone() })?;
        let parent = std::env::temp_dir();
        let folder = Scratch::new_in(&parent, "wiretax-haproxy-run-");
        let folder = folder.map_err(|source| Error::Temporary { path: parent, source })?;
        let at = |name: &str| folder.path().join(name);
        let pem = format!("{}{}", identity.chain_pem()?, identity.private_key_pem()?);
        write(&at("server.pem"), &pem)?;
        write(&at("roots.pem"), &identity.root_pem()?)?;
        write(&at("haproxy.cfg"), &config(folder.path())?)?;
        let log = at("log");
        let open = || {
            let out = File::create(&log)?;
            Ok((out.try_clone()?, out))
        };
        let (out, err) = open().map_err(Error::io("opening it", &log))?;
        // In the foreground, so that it is this child that listens.
        let mut command = Command::new(&program);
        command.arg("-db").arg("-f").arg(at("haproxy.cfg"));
        let child = Child::spawn(command.stdin(Stdio::null()).stdout(out).stderr(err));
        let child = child.map_err(Error::io("running it", &program))?;
        let mut process = Self { child, library: built.library.clone(), folder };
        process.wait_until_ready()?;
        Ok(process)
    }

    fn wait_until_ready(&mut self) -> Result<(), Error> {
        let until = Instant::now() + START;
        loop {
            self.alive()?;
            match self.ask("show info") {
                Ok(text) => return parse_info(&text).map(drop),
                Err(_) if child::stopping() => return Err(Error::Interrupted),
                Err(_) if Instant::now() < until => std::thread::sleep(LOOK),
                Err(_) => return Err(self.failed("does not answer on its socket")),
            }
        }
    }

    /// # Errors
    /// [`Error::Process`] when it has ended.
    pub fn alive(&mut self) -> Result<(), Error> {
        if self.child.has_ended() { Err(self.failed("ended")) } else { Ok(()) }
    }

    fn failed(&self, what: &'static str) -> Error {
        let said = tail(&self.log(), 4000).unwrap_or_default();
        let mut said = said.lines().filter(|line| !line.trim().is_empty());
        // Its errors say more than its notices.
        let alert = said.clone().find(|line| line.contains("[ALERT]"));
        let said =
            alert.or_else(|| said.next_back()).unwrap_or("it said nothing").trim().to_owned();
        Error::Process { library: self.library.clone(), what, said }
    }

    /// Why connections failed, by what it logged last; `None` where none did.
    #[must_use]
    pub fn failures(&self) -> Option<String> {
        failures(&tail(&self.log(), LOGGED)?)
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    /// What it answers to a command on its admin socket.
    fn ask(&self, command: &str) -> std::io::Result<String> {
        let mut socket = UnixStream::connect(self.folder.path().join("admin.sock"))?;
        socket.set_read_timeout(Some(ANSWER))?;
        socket.set_write_timeout(Some(ANSWER))?;
        writeln!(socket, "{command}")?;
        let mut text = Vec::new();
        socket.take(MAX_ANSWER as u64 + 1).read_to_end(&mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// The handshakes and responses that it has counted.
    ///
    /// # Errors
    /// [`Error::Process`], [`Error::Answer`].
    pub fn counted(&self) -> Result<Counted, Error> {
        let text =
            self.ask("show stat").map_err(|_| self.failed("does not answer on its socket"))?;
        parse_counted(&text)
    }

    /// Its own figure of the last second: the share of clients' handshakes that resumed, in percent.
    ///
    /// # Errors
    /// [`Error::Process`], [`Error::Answer`].
    pub fn frontend_reuse_percent(&self) -> Result<Option<u64>, Error> {
        let text =
            self.ask("show info").map_err(|_| self.failed("does not answer on its socket"))?;
        let info = parse_info(&text)?;
        Ok(info.get("SslFrontendSessionReuse_pct").and_then(|value| value.parse().ok()))
    }

    /// The CPU time that it has used.
    ///
    /// # Errors
    /// [`Error::Io`] when it has ended.
    pub fn cpu(&self) -> Result<Cpu, Error> {
        let folder = PathBuf::from(format!("/proc/{}", self.child.id()));
        let stat = folder.join("stat");
        let text = fs::read_to_string(&stat).map_err(Error::io("reading it", &stat))?;
        let ticks = ticks(&text).ok_or_else(|| self.failed("has no CPU time in /proc"))?;
        let (user_ticks, system_ticks) = ticks;
        let tick = 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1);
        // Ticks are 10 ms; the scheduler's own clock is exact, where the kernel has it.
        let ns = scheduled(&folder.join("task")).unwrap_or((user_ticks + system_ticks) * tick);
        Ok(Cpu { ns, system_ticks, user_ticks })
    }
}

/// The configuration of a process, for [`Process::start`].
pub fn in_folder<'a>(config: Config<'a>) -> impl Fn(&Path) -> Result<String, Error> + 'a {
    move |folder| Config { folder, ..config.clone() }.text()
}

fn write(path: &Path, text: &str) -> Result<(), Error> {
    let file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(Error::io("writing it", path))
}

/// The most frequent failures in a log. A proxy that hands on what the next one answered has no reason of its
/// own: it counts only where nobody has one.
fn failures(log: &str) -> Option<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for line in log.lines().filter_map(|line| line.strip_prefix(FAILED)) {
        *counts.entry(line.trim()).or_default() += 1;
    }
    let mut kinds: Vec<(&str, usize)> = counts.into_iter().collect();
    kinds.sort_by_key(|(line, count)| (!has_reason(line), Reverse(*count)));
    let told = kinds.into_iter().take(KINDS).map(|(line, count)| match count {
        1 => line.to_owned(),
        _ => format!("{line} ({count} times)"),
    });
    let told: Vec<String> = told.collect();
    (!told.is_empty()).then(|| told.join("; "))
}

fn has_reason(line: &str) -> bool {
    let (_, reasons) = line.split_once(": ").unwrap_or_default();
    reasons.split(", ").any(|reason| !["", "-", "Success"].contains(&reason))
}

/// `utime` and `stime` of `/proc/<pid>/stat` (proc_pid_stat(5)). The program's name before them is in
/// parentheses and may hold anything.
fn ticks(stat: &str) -> Option<(u64, u64)> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace();
    let user = fields.nth(11)?.parse().ok()?;
    Some((user, fields.next()?.parse().ok()?))
}

/// The time that all threads have run, in nanoseconds, by `/proc/<pid>/task/*/schedstat`.
fn scheduled(tasks: &Path) -> Option<u64> {
    let entries = fs::read_dir(tasks).ok()?;
    let times = entries.map(|entry| {
        let text = fs::read_to_string(entry.ok()?.path().join("schedstat")).ok()?;
        text.split_ascii_whitespace().next()?.parse::<u64>().ok()
    });
    times.sum::<Option<u64>>().filter(|sum| *sum > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_read_past_any_name() {
        let stat = "42 (ha) 1 (x)) S 1 42 42 0 -1 4194560 1 2 3 4 150 50 0 0 20 0 3 0 100 1 1";
        assert_eq!(ticks(stat), Some((150, 50)));
        for wrong in ["", "42 (x) S 1", "42 x S", "1 (a) S 1 2 3 4 5 6 7 8 9 10 x y"] {
            assert_eq!(ticks(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn the_log_s_reasons_are_told_before_what_has_none() {
        let handed_on = "failed: hop1 -- 503: Success, -\n".repeat(9);
        let log = format!(
            "[NOTICE] (1) : started\n{handed_on}failed: hop2 SC 503: SSL handshake failure, no list\n\
             failed: hop2 SC 503: SSL handshake failure, no list\nfailed: hop3: Connection closed, -\n"
        );
        assert_eq!(
            failures(&log).unwrap(),
            "hop2 SC 503: SSL handshake failure, no list (2 times); hop3: Connection closed, -"
        );
        assert_eq!(failures(&handed_on).unwrap(), "hop1 -- 503: Success, - (9 times)");
        assert_eq!(failures("failed: hop1").unwrap(), "hop1");
        assert_eq!(failures("[ALERT] (1) : cannot bind\n"), None);
    }

    #[test]
    fn the_kernel_s_share_is_of_the_ticks_between() {
        let before = Cpu { ns: 10, system_ticks: 1, user_ticks: 2 };
        let after = Cpu { ns: 110, system_ticks: 2, user_ticks: 5 };
        assert_eq!(after.since(before), (100, Some(0.25)));
        assert_eq!(before.since(before), (0, None));
    }

    #[test]
    fn this_process_has_run() {
        let tasks = Path::new("/proc/self/task");
        let first = scheduled(tasks).unwrap();
        let mut sum = 0u64;
        while scheduled(tasks).unwrap() <= first {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
    }
}
