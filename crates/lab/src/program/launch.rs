//! Starting a program: what happens between fork and exec.

use std::ffi::{CStr, CString};
use std::fs;
use std::io::{self, Seek, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use packet::privileges::{self, Identity};
use rustix::fs::{MemfdFlags, Mode, OFlags, memfd_create, mkdirat, openat};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags};
use rustix::mount::{fsconfig_create, fsconfig_set_string, fsmount, fsopen};
use rustix::pipe::{PipeFlags, pipe_with};

use super::foreground;
use super::running::{self, Pipes};
use super::{Input, Program, Ready, Running};
use crate::enter::{self, Report, Signals, attend, mount, mount_proc, send};
use crate::{Error, Node};

/// Bytes that a program may keep in its /run.
const RUN_BYTES: &str = "size=64m";

/// What can fail between fork and exec, so that it can be said.
const STEPS: [&str; 7] = [
    "making its namespaces",
    "starting its guard",
    "making its mounts private",
    "mounting its /run",
    "starting it in its namespace",
    "giving it its own files in /etc",
    "taking its rights",
];
const NAMESPACES: u8 = 0;
const GUARD: u8 = 1;
const PRIVATE: u8 = 2;
const RUN: u8 = 3;
const FORK: u8 = 4;
const ETC: u8 = 5;
const RIGHTS: u8 = 6;

/// What the processes between need; made before the fork, since nothing may be allocated after it.
struct Plan {
    /// A detached mount of a tmpfs.
    run: RawFd,
    /// Takes a [`Report`] to this process.
    report: RawFd,
    /// Closed when the program is to be killed.
    life_line: RawFd,
    /// `/var/run` is a directory of its own, and not a link to `/run`.
    var_run: bool,
    own_proc: bool,
    user_namespace: bool,
    /// It keeps this process's session, and so its terminal.
    foreground: bool,
    /// The signals to be blocked in it, where that is not what this process has.
    mask: Option<libc::sigset_t>,
    /// Files of its /run, and what they are mounted on.
    mounts: Vec<(CString, CString)>,
    /// It is to have no rights; whom it becomes.
    unprivileged: Option<Option<Identity>>,
}

/// Starts a program on a node.
pub(super) fn start(node: &Node, program: &Program) -> Result<Running, Error> {
    let failed = |doing| {
        let (program, node) = (program.name(), node.name().to_owned());
        move |source: io::Error| Error::Program { program, node, doing, source }
    };
    let own = own_files(program).map_err(failed(STEPS[usize::from(ETC)]))?;
    let unprivileged = program.unprivileged.then(privileges::identity_after);
    let run = make_run(program, &own, unprivileged.flatten()).map_err(failed("making its /run"))?;
    let pipe = || pipe_with(PipeFlags::CLOEXEC).map_err(io::Error::from);
    let (report_reader, report) = pipe().map_err(failed("making a pipe"))?;
    let (life_line, life_line_held) = pipe().map_err(failed("making a pipe"))?;
    let plan = Plan {
        run: run.as_raw_fd(),
        report: report.as_raw_fd(),
        life_line: life_line.as_raw_fd(),
        var_run: fs::symlink_metadata("/var/run").is_ok_and(|found| found.is_dir()),
        own_proc: enter::entered().is_some_and(|entered| entered.own_proc),
        user_namespace: enter::entered().is_some_and(|entered| entered.user_namespace),
        foreground: program.foreground,
        mask: foreground::mask_of_programs(),
        mounts: own.into_iter().filter_map(|file| file.mount).collect(),
        unprivileged,
    };
    let mut command = program.command();
    if !program.foreground {
        let input = program.input.as_ref().map(make_input).transpose();
        let input = input.map_err(failed("making its standard input"))?;
        command.stdin(input.map_or_else(Stdio::null, Stdio::from));
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
    }
    // SAFETY: `become_program` makes system calls only, on memory that was made before.
    unsafe { command.pre_exec(move || become_program(&plan)) };
    // On the node's thread: the child is in its network namespace, and on its processor.
    let spawned = node.run(move || {
        let child = command.spawn();
        // Held until now, since the plan has their numbers alone.
        drop((report, life_line));
        child
    })?;
    let mut child = match spawned {
        Ok(child) => child,
        Err(source) => return Err(failed(failed_step(&report_reader))(source)),
    };
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let pipes = Pipes { out: out.map(Into::into), err: err.map(Into::into), report: report_reader };
    let ready = match &program.ready {
        Ready::Line(text) => Some(text.clone()),
        _ => None,
    };
    running::attend(program.name(), child, pipes, life_line_held, run, ready).map_err(Error::Thread)
}

/// The step that was reported, or that of executing the program, which reports nothing.
fn failed_step(report: &OwnedFd) -> &'static str {
    let mut bytes = [0; Report::LENGTH];
    // All writers are gone: it does not wait.
    match rustix::io::read(report, &mut bytes) {
        Ok(Report::LENGTH) => match Report::from_bytes(bytes) {
            Report::Failed(step, _) => STEPS.get(usize::from(step)).copied().unwrap_or("a step"),
            Report::Ended(_) => "executing it",
        },
        _ => "executing it",
    }
}

/// A tmpfs that is mounted nowhere yet, with the program's files in it.
fn make_run(program: &Program, own: &[OwnFile], owner: Option<Identity>) -> io::Result<OwnedFd> {
    let context = fsopen(c"tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    let (key, value) = RUN_BYTES.split_once('=').unwrap_or((RUN_BYTES, ""));
    fsconfig_set_string(&context, key, value)?;
    fsconfig_set_string(&context, "mode", "0755")?;
    if let Some(Identity { user, group }) = owner {
        fsconfig_set_string(&context, "uid", user.to_string())?;
        fsconfig_set_string(&context, "gid", group.to_string())?;
    }
    fsconfig_create(&context)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    let run = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?;
    for (name, contents) in &program.files {
        write(&run, Path::new(name), contents)?;
    }
    for OwnFile { below_run, contents, .. } in own {
        let folders = below_run.parent().into_iter().flat_map(Path::ancestors).collect::<Vec<_>>();
        for folder in folders.into_iter().rev().filter(|folder| *folder != Path::new("")) {
            match mkdirat(&run, folder, Mode::from_raw_mode(0o755)) {
                Ok(()) | Err(rustix::io::Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
        write(&run, below_run, contents.as_bytes())?;
    }
    Ok(run)
}

/// A file without a name, that is read from its beginning. Unlike a pipe, it takes any length at once.
fn make_input(input: &Input) -> io::Result<fs::File> {
    let mut file = fs::File::from(memfd_create(c"input", MemfdFlags::CLOEXEC)?);
    file.write_all(&input.0)?;
    file.rewind()?;
    Ok(file)
}

fn write(run: &OwnedFd, name: &Path, contents: &[u8]) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let file = openat(run, name, flags, Mode::from_raw_mode(0o644))?;
    fs::File::from(file).write_all(contents)
}

/// A file of the system of which a program has its own.
struct OwnFile {
    /// Where it is in the program's /run.
    below_run: PathBuf,
    contents: String,
    /// That place, and the system's file on which it is mounted; `None` where the system's is a link to
    /// a file in /run.
    mount: Option<(CString, CString)>,
}

impl OwnFile {
    fn of(system: &str, contents: String) -> io::Result<OwnFile> {
        let path = fs::canonicalize(system)?;
        if let Ok(below) = path.strip_prefix("/run") {
            return Ok(OwnFile { below_run: below.to_owned(), contents, mount: None });
        }
        let name = Path::new(system).file_name().map(PathBuf::from).unwrap_or_default();
        let c_string = |path: PathBuf| CString::new(path.into_os_string().into_encoded_bytes());
        let mount = (c_string(Path::new("/run").join(&name))?, c_string(path)?);
        Ok(OwnFile { below_run: name, contents, mount: Some(mount) })
    }
}

/// Whom the C library asks for names (resolv.conf(5)), and what it knows itself (hosts(5)).
fn own_files(program: &Program) -> io::Result<Vec<OwnFile>> {
    // As a browser of its own would ask: soon again, and not for ever.
    let resolver = program.name_server.map(|address| {
        let contents = format!("nameserver {address}\noptions timeout:1 attempts:3\n");
        OwnFile::of("/etc/resolv.conf", contents)
    });
    let hosts = program.hosts.clone().map(|lines| OwnFile::of("/etc/hosts", lines));
    resolver.into_iter().chain(hosts).collect()
}

/// Between fork and exec: returns in the program's process, and in a process that failed.
fn become_program(plan: &Plan) -> io::Result<()> {
    let failed = |step| {
        let error = io::Error::last_os_error();
        send(plan.report, Report::Failed(step, error.raw_os_error().unwrap_or(0)));
        Err(error)
    };
    // SAFETY: plain calls; the value is live. A session of its own, unless it is in the foreground: a
    // terminal's signals are not for it. No core files.
    unsafe {
        if !plan.foreground {
            libc::setsid();
        }
        let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        libc::setrlimit(libc::RLIMIT_CORE, &raw const none);
    }
    let signals = Signals::block()?;
    // SAFETY: constant flags; this process has one thread.
    if unsafe { libc::unshare(libc::CLONE_NEWNS | libc::CLONE_NEWPID) } != 0 {
        return failed(NAMESPACES);
    }
    // SAFETY: this process has one thread, and makes system calls only.
    match unsafe { libc::fork() } {
        -1 => return failed(GUARD),
        0 => {}
        init => {
            close_all_but([signals.descriptor(), -1, -1]);
            attend(init, &signals, None);
            // SAFETY: ends the process at once.
            unsafe { libc::_exit(0) }
        }
    }
    if !mount(c"none", c"/", None, libc::MS_REC | libc::MS_PRIVATE) {
        return failed(PRIVATE);
    }
    if !mount_run(plan) {
        return failed(RUN);
    }
    for (own, system) in &plan.mounts {
        if !mount(own, system, None, libc::MS_BIND) {
            return failed(ETC);
        }
    }
    let quiet = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    // Where a container masks parts of them, the ones that are there stay.
    if plan.own_proc {
        mount_proc(plan.user_namespace);
    }
    mount(c"sysfs", c"/sys", Some(c"sysfs"), quiet);
    // SAFETY: as above.
    match unsafe { libc::fork() } {
        -1 => failed(FORK),
        0 => {
            signals.restore();
            if let Some(mask) = &plan.mask {
                // SAFETY: a set that the kernel filled.
                unsafe {
                    libc::sigprocmask(libc::SIG_SETMASK, mask, std::ptr::null_mut());
                }
            }
            if plan.unprivileged.is_some_and(|becomes| privileges::give_up(becomes).is_err()) {
                return failed(RIGHTS);
            }
            Ok(())
        }
        program => {
            close_all_but([signals.descriptor(), plan.report, plan.life_line]);
            // Ends by itself when the life line is closed; the kernel then kills the rest.
            let status = attend(program, &signals, Some(plan.life_line));
            send(plan.report, Report::Ended(status));
            // SAFETY: as above.
            unsafe { libc::_exit(0) }
        }
    }
}

/// Puts the tmpfs at /run, and at /var/run if that is another place.
fn mount_run(plan: &Plan) -> bool {
    const EMPTY_PATH: libc::c_uint = 4;
    let (from, to): (&CStr, &CStr) = (c"", c"/run");
    // SAFETY: both strings end with a null byte and outlive the call.
    let moved = unsafe {
        libc::syscall(
            libc::SYS_move_mount,
            plan.run,
            from.as_ptr(),
            libc::AT_FDCWD,
            to.as_ptr(),
            EMPTY_PATH,
        )
    };
    moved == 0 && (!plan.var_run || mount(c"/run", c"/var/run", None, libc::MS_BIND))
}

/// Closes all descriptors but these; -1 stands for none.
fn close_all_but(mut keep: [RawFd; 3]) {
    keep.sort_unstable();
    let mut from = 0;
    for fd in keep.into_iter().filter(|fd| *fd >= 0) {
        close_range(from, fd - 1);
        from = fd + 1;
    }
    close_range(from, RawFd::MAX);
}

/// Closes descriptors from `first` to `last`; none if that is less.
fn close_range(first: RawFd, last: RawFd) {
    if last < first {
        return;
    }
    // SAFETY: what is closed is not used any more: this process only waits.
    let closed = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
    if closed != 0 {
        // Before Linux 5.9: one by one, up to the usual limit.
        for fd in first..=last.min(first.saturating_add(4096)) {
            // SAFETY: as above.
            unsafe { libc::close(fd) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_has_a_name() {
        for step in [NAMESPACES, GUARD, PRIVATE, RUN, FORK, ETC, RIGHTS] {
            assert!(STEPS.get(usize::from(step)).is_some());
        }
    }
}
