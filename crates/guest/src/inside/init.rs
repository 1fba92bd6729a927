//! The first process of a guest.

use std::fs::{self, File};
use std::io::{self, Read, Write as _};
use std::os::fd::AsFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::mount::{MountFlags, mount};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use rustix::system::{RebootCommand, reboot};

use super::{ROLE, WORKER, list, load, ports};

/// Where the job is until it is read.
const JOB_FILE: &str = "/run/job";
/// Bytes that are carried at once.
const CHUNK: usize = 64 << 10;

/// Sets the machine up, has the job done, ends the machine.
pub(super) fn run() -> bool {
    let ended = catch_unwind(AssertUnwindSafe(machine));
    let well = match ended {
        Ok(Ok(status)) if status.success() => true,
        Ok(Ok(status)) => {
            say(&format!("the guest's job ended by {status}\n"));
            false
        }
        Ok(Err(error)) => {
            say(&format!("the guest could not be set up: {error}\n"));
            false
        }
        // Said by the panic itself.
        Err(_) => false,
    };
    ports::end(well);
    // Another machine than ours, which has no such ports.
    let _ = reboot(RebootCommand::PowerOff);
    false
}

/// Says something as standard error of the guest as a whole.
fn say(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
    ports::write(ports::WORDS, text.as_bytes());
}

fn machine() -> io::Result<ExitStatus> {
    for (kind, place) in [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev")] {
        match mount(kind, place, kind, MountFlags::empty(), None::<&std::ffi::CStr>) {
            Ok(()) | Err(Errno::BUSY) => {}
            Err(error) => return Err(of("mounting", place, &error.into())),
        }
    }
    ports::allow().map_err(|error| of("using", "the machine's ports", &error))?;
    for name in list().names() {
        if let Err(error) = load(name) {
            // Some are for processors that this one is not.
            eprintln!("module {name}: {error}");
        }
    }
    fs::write(JOB_FILE, ports::job()?).map_err(|error| of("writing", JOB_FILE, &error))?;
    let mut worker = Command::new("/proc/self/exe");
    worker.env_clear().env(ROLE, WORKER).env("PATH", "/usr/bin").env("HOME", "/root");
    worker.stdin(File::open(JOB_FILE)?).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut worker = worker.current_dir("/root").spawn()?;
    carry(&mut worker)?;
    worker.wait()
}

fn of(doing: &str, what: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{doing} {what}: {error}"))
}

/// A stream of the worker, and the port that takes what comes.
struct Stream<'a> {
    from: &'a mut dyn ReadFd,
    port: u16,
}

/// Something to be read when it is ready.
trait ReadFd: Read + AsFd {}

impl<T: Read + AsFd> ReadFd for T {}

/// Carries what the worker says out of the guest, until it has ended and all is said.
fn carry(worker: &mut Child) -> io::Result<()> {
    let pid = i32::try_from(worker.id()).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| io::Error::other("the worker has no number"))?;
    let end = pidfd_open(pid, PidfdFlags::empty())?;
    let (mut stdout, mut stderr) = (worker.stdout.take(), worker.stderr.take());
    let mut streams: Vec<Stream<'_>> = Vec::new();
    if let Some(stdout) = &mut stdout {
        streams.push(Stream { from: stdout, port: ports::ANSWERS });
    }
    if let Some(stderr) = &mut stderr {
        streams.push(Stream { from: stderr, port: ports::WORDS });
    }
    let mut bytes = vec![0; CHUNK];
    loop {
        let mut polled: Vec<PollFd<'_>> = streams
            .iter()
            .map(|stream| PollFd::from_borrowed_fd(stream.from.as_fd(), PollFlags::IN))
            .collect();
        polled.push(PollFd::new(&end, PollFlags::IN));
        match poll(&mut polled, None) {
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
        let ready: Vec<bool> = polled.iter().map(|polled| !polled.revents().is_empty()).collect();
        drop(polled);
        let (of_streams, has_ended) = (&ready[..streams.len()], ready[streams.len()]);
        if has_ended && !of_streams.contains(&true) {
            return Ok(());
        }
        // A stream that has ended is not looked at again.
        let mut over = None;
        for (at, stream) in streams.iter_mut().enumerate().filter(|(at, _)| of_streams[*at]) {
            match stream.from.read(&mut bytes)? {
                0 => over = Some(at),
                count => ports::write(stream.port, bytes.get(..count).unwrap_or_default()),
            }
        }
        if let Some(at) = over {
            streams.remove(at);
        }
    }
}
