//! Process 1 of the lab's process namespace.

use std::ffi::{CStr, CString, c_char};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use packet::realtime;

use super::outer::{Plan, Report, end_init, token};
use super::signals::{Arrived, Signals, reap};
use super::{Denied, EnterError, MARKER};

/// What can fail in init, so that the outer process can say it.
const STEPS: [&str; 8] = [
    "tying the lab to the outer process",
    "making the lab's mounts private",
    "making a pipe",
    "starting the program again",
    "executing /proc/self/exe",
    "waiting for the user namespace",
    "bringing the loopback interface up",
    "drawing a token",
];
const TIE: u8 = 0;
const PRIVATE: u8 = 1;
const PIPE: u8 = 2;
const FORK: u8 = 3;
const EXEC: u8 = 4;
const GO: u8 = 5;
const LOOPBACK: u8 = 6;
const TOKEN: u8 = 7;

/// The error behind a report of failure.
pub(super) fn failure(step: u8, errno: i32, user_namespace: bool) -> EnterError {
    // AppArmor lets a user namespace be made and then denies what is done in it.
    let denied = user_namespace && matches!(errno, libc::EPERM | libc::EACCES);
    match Denied::diagnose(errno) {
        reason @ (Denied::AppArmor | Denied::Seccomp) if denied => {
            EnterError::UserNamespaces(reason)
        }
        _ => EnterError::Setup {
            step: STEPS.get(usize::from(step)).copied().unwrap_or("an unknown step"),
            source: io::Error::from_raw_os_error(errno),
        },
    }
}

/// Sets the namespaces up, runs the program, reaps, ends with the program.
pub(super) fn run(plan: Plan) -> ! {
    let program = match start(&plan) {
        Ok(program) => program,
        Err(step) => fail(&plan.report, step),
    };
    let status = attend(program, &plan.signals, Some(plan.life_line.as_raw_fd()));
    send(plan.report.as_raw_fd(), Report::Ended(status));
    // SAFETY: ends the process at once; the kernel kills what is left in the namespace.
    unsafe { libc::_exit(0) }
}

fn start(plan: &Plan) -> Result<i32, u8> {
    // SAFETY: constant arguments.
    if unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } != 0 {
        return Err(TIE);
    }
    // Blocks until the maps are written; the end of the pipe means that they never will be, or
    // that the outer process went before the line above.
    let mut byte = [0];
    // SAFETY: a buffer of one byte.
    let go = unsafe { libc::read(plan.go.as_raw_fd(), byte.as_mut_ptr().cast(), 1) };
    if go != 1 {
        return Err(GO);
    }
    if !mount(c"none", c"/", None, libc::MS_REC | libc::MS_PRIVATE) {
        return Err(PRIVATE);
    }
    let own_proc = mount_proc(plan.user_namespace);
    if !loopback_up() {
        return Err(LOOPBACK);
    }
    let token = token().map_err(|_| TOKEN)?;
    // Not closed on execution: the program reads its token from it.
    let (token_reader, token_writer) =
        rustix::pipe::pipe_with(rustix::pipe::PipeFlags::empty()).map_err(|_| PIPE)?;
    rustix::io::write(&token_writer, &token).map_err(|_| PIPE)?;
    drop(token_writer);
    let network = plan.network.as_ref().map(AsRawFd::as_raw_fd);
    let marker = Marker {
        fd: token_reader.as_raw_fd(),
        network,
        user_namespace: plan.user_namespace,
        own_proc,
        outer: plan.outer,
        token,
    };
    let mut environment = plan.environment.clone();
    environment.push(CString::new(format!("{MARKER}={marker}")).map_err(|_| TOKEN)?);
    // SAFETY: init has one thread.
    match unsafe { libc::fork() } {
        -1 => Err(FORK),
        0 => {
            plan.signals.restore();
            if let Some(network) = network {
                // Not closed on execution, either.
                // SAFETY: plain call on a descriptor of ours.
                unsafe { libc::fcntl(network, libc::F_SETFD, 0) };
            }
            let (arguments, environment) = (pointers(&plan.arguments), pointers(&environment));
            // SAFETY: both lists end with a null pointer and outlive the call.
            unsafe {
                libc::execve(c"/proc/self/exe".as_ptr(), arguments.as_ptr(), environment.as_ptr());
            }
            send(plan.report.as_raw_fd(), Report::Failed(EXEC, errno()));
            end_init()
        }
        program => {
            realtime::leave();
            Ok(program)
        }
    }
}

/// Reaps and passes signals on until the program has ended, or the outer process has.
///
/// A life line that is not given is never closed.
pub(crate) fn attend(program: i32, signals: &Signals, life_line: Option<RawFd>) -> i32 {
    loop {
        while let Some(arrived) = signals.next() {
            if let Arrived::PassOn(signal) = arrived {
                // SAFETY: plain call; the program is not reaped yet, so that the number is its.
                unsafe { libc::kill(program, signal) };
            }
        }
        while let Some((pid, status)) = reap() {
            if pid == program {
                return status;
            }
        }
        if signals.wait(life_line) {
            end_init()
        }
    }
}

/// What the program finds in its environment: where its token is, and what was set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Marker {
    pub(super) fd: i32,
    /// The descriptor of the network namespace outside, where the program may go back to it.
    pub(super) network: Option<i32>,
    pub(super) user_namespace: bool,
    pub(super) own_proc: bool,
    /// The number of the outer process, outside.
    pub(super) outer: u32,
    pub(super) token: [u8; 16],
}

impl std::fmt::Display for Marker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let token = u128::from_be_bytes(self.token);
        let (user, proc) = (u8::from(self.user_namespace), u8::from(self.own_proc));
        let (network, outer) = (self.network.unwrap_or(-1), self.outer);
        write!(f, "{}:{network}:{user}:{proc}:{outer}:{token:032x}", self.fd)
    }
}

impl Marker {
    pub(super) fn parse(text: &str) -> Option<Marker> {
        let mut parts = text.split(':');
        let fd = parts.next()?.parse().ok().filter(|fd| *fd > 2)?;
        let network = match parts.next()?.parse().ok()? {
            -1 => None,
            network if network > 2 && network != fd => Some(network),
            _ => return None,
        };
        let mut flag = || match parts.next()? {
            "0" => Some(false),
            "1" => Some(true),
            _ => None,
        };
        let (user_namespace, own_proc) = (flag()?, flag()?);
        let outer = parts.next()?.parse().ok()?;
        let token = parts.next().filter(|hex| hex.len() == 32)?;
        let token = u128::from_str_radix(token, 16).ok()?.to_be_bytes();
        let marker = Marker { fd, network, user_namespace, own_proc, outer, token };
        parts.next().is_none().then_some(marker)
    }
}

/// Mounts a `/proc` of the calling process's namespaces; whether it could. In a user namespace the kernel's settings in
/// it are read-only, but for those of the network namespace: as the owner of their files, root could write to them by
/// mistake without any right over the machine.
pub(crate) fn mount_proc(user_namespace: bool) -> bool {
    let quiet = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    if !mount(c"proc", c"/proc", Some(c"proc"), quiet) {
        return false;
    }
    if !user_namespace {
        return true;
    }
    let bind = |place: &CStr, flags| mount(place, place, None, libc::MS_BIND | flags);
    let close = libc::MS_REMOUNT | libc::MS_BIND | libc::MS_RDONLY | quiet;
    if bind(c"/proc/sys/net", 0) && bind(c"/proc/sys", libc::MS_REC) {
        mount(c"none", c"/proc/sys", None, close);
    }
    // The machine's interrupts, devices and kernel threads; some kernels lack some of these.
    for place in [c"/proc/sysrq-trigger", c"/proc/irq", c"/proc/bus", c"/proc/fs"] {
        if bind(place, libc::MS_REC) {
            mount(c"none", place, None, close);
        }
    }
    true
}

/// Mounts in the calling process's mount namespace, by one system call; whether it worked.
pub(crate) fn mount(
    source: &CStr,
    target: &CStr,
    kind: Option<&CStr>,
    flags: libc::c_ulong,
) -> bool {
    let kind = kind.map_or(std::ptr::null(), CStr::as_ptr);
    // SAFETY: all strings end with a null byte and outlive the call.
    unsafe { libc::mount(source.as_ptr(), target.as_ptr(), kind, flags, std::ptr::null()) == 0 }
}

/// Sets the loopback interface of the calling thread's network namespace up.
pub(crate) fn loopback_up() -> bool {
    // SAFETY: plain calls; the request is a valid `ifreq` that names the interface.
    unsafe {
        let fd = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        if fd < 0 {
            return false;
        }
        let mut request: libc::ifreq = std::mem::zeroed();
        request.ifr_name[0] = b'l' as c_char;
        request.ifr_name[1] = b'o' as c_char;
        request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as i16;
        let up = libc::ioctl(fd, libc::SIOCSIFFLAGS, &raw const request) == 0;
        let error = errno();
        libc::close(fd);
        *libc::__errno_location() = error;
        up
    }
}

fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|s| s.as_ptr()).chain([std::ptr::null()]).collect()
}

fn errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

fn fail(report: &OwnedFd, step: u8) -> ! {
    send(report.as_raw_fd(), Report::Failed(step, errno()));
    end_init()
}

/// Writes a report to a pipe.
pub(crate) fn send(pipe: RawFd, report: Report) {
    let bytes = report.to_bytes();
    // If it fails, the outer process is gone and nobody is to be told.
    // SAFETY: the buffer is as long as stated.
    unsafe { libc::write(pipe, bytes.as_ptr().cast(), bytes.len()) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_is_read_back_and_nothing_else_is() {
        let token = [0xab; 16];
        let (user_namespace, own_proc, outer) = (true, false, 4321);
        let marker = Marker { fd: 7, network: None, user_namespace, own_proc, outer, token };
        let text = marker.to_string();
        assert_eq!(Marker::parse(&text), Some(marker));
        let rooted = Marker { network: Some(8), user_namespace: false, ..marker };
        assert_eq!(Marker::parse(&rooted.to_string()), Some(rooted));
        for wrong in [
            "",
            "1",
            "0:1:1:ab",
            "7:-1:2:0:1:",
            "7:7:0:0:1:",
            &format!("{text}:"),
            &text[1..],
            "-1:0:0:0",
        ] {
            assert_eq!(Marker::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn every_step_has_a_name() {
        for step in [TIE, PRIVATE, PIPE, FORK, EXEC, GO, LOOPBACK, TOKEN] {
            let text = failure(step, libc::EIO, false).to_string();
            assert!(!text.contains("unknown"), "{text}");
        }
    }
}
