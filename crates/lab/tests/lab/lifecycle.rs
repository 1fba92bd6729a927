//! Whatever ends the program, nothing is left: no process, no namespace, no device.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use lab_test::{Need, Running, Scenario, Test, TestResult, skip, until};

use crate::support::pair;

/// In the environment of all processes of one scenario, and of no others.
const TOKEN: &str = "LAB_TEST_TOKEN";

/// How long the kernel may take to clear up.
const GONE: Duration = Duration::from_secs(10);

pub fn tests() -> Vec<Test> {
    vec![
        Test::helper("hold", hold),
        Test::helper("end", ended),
        Test::helper("panic", panic),
        Test::helper("count_interrupts", count_interrupts),
        Test::helper("exit_7", || std::process::exit(enter_and(7))),
        Test::helper("abort", || {
            crate::support::enter()?;
            // No core file of it.
            let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            // SAFETY: the value is live.
            unsafe { libc::setrlimit(libc::RLIMIT_CORE, &raw const none) };
            std::process::abort()
        }),
        Test::new("nothing_is_left_after_success", || ends("end", |_, _| {}, Some(0), None)),
        Test::new("nothing_is_left_after_a_panic", || ends("panic", |_, _| {}, Some(101), None)),
        Test::new("nothing_is_left_after_sigint", || by_signal(libc::SIGINT)),
        Test::new("nothing_is_left_after_sigterm", || by_signal(libc::SIGTERM)),
        Test::new("nothing_is_left_after_sighup", || by_signal(libc::SIGHUP)),
        Test::new("nothing_is_left_after_kill_9", || by_signal(libc::SIGKILL)),
        Test::new("nothing_is_left_after_kill_9_of_init", || by_kill_of(|left| left.get(1))),
        Test::new("nothing_is_left_after_kill_9_of_the_program", || by_kill_of(|left| left.get(2))),
        Test::new("the_exit_status_is_the_programs", exit_status),
        Test::new("a_second_interrupt_is_harmless", second_interrupt),
        Test::new("a_terminals_interrupt_arrives_once", terminal),
        Test::new("ignored_signals_stay_ignored", ignored),
        Test::new("orphans_are_reaped", orphans),
    ]
}

fn enter_and(status: i32) -> i32 {
    crate::support::enter().map_or(1, |()| status)
}

/// Builds a lab, leaves an orphan that would outlive it, and tells what there is.
fn build() -> TestResult<impl Sized> {
    let kept = pair("1ms")?;
    // A daemon in a session of its own: no signal of the group's reaches it.
    let sleeper = Command::new("setsid").args(["--fork", "sleep", "300"]).status()?;
    assert!(sleeper.success());
    let ready = lab::Ready::Line("up".to_owned());
    let script = "setsid --fork sleep 300; echo up; exec sleep 300";
    let program = lab::Program::new("sh").args(["-c", script]).ready_when(ready, GONE);
    let token = std::env::var(TOKEN).unwrap_or_default();
    let program = kept.1.launch(&program.env(TOKEN, token))?;
    let mut namespaces = vec![net_namespace()?];
    for node in [&kept.1, &kept.2] {
        namespaces.push(node.run(|| net_namespace().map_err(|e| e.to_string()))??);
    }
    println!("READY {}", namespaces.join(" "));
    Ok((kept, program))
}

fn net_namespace() -> TestResult<String> {
    Ok(fs::read_link("/proc/thread-self/ns/net")?.display().to_string())
}

fn hold() -> TestResult {
    let _lab = build()?;
    std::thread::sleep(Duration::from_secs(50));
    Err("nobody ended this".into())
}

fn ended() -> TestResult {
    build().map(drop)
}

fn panic() -> TestResult {
    let _lab = build()?;
    panic!("as asked");
}

/// The folders of all processes in /proc.
fn all_processes() -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir("/proc").expect("/proc").flatten();
    entries
        .filter(|entry| entry.file_name().to_string_lossy().chars().all(|c| c.is_ascii_digit()))
        .map(|entry| entry.path())
}

fn has_token(process: &Path, token: &str) -> bool {
    let mark = format!("{TOKEN}={token}");
    let environment = fs::read(process.join("environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes())
}

/// The numbers of the scenario's processes, the oldest first.
fn processes(token: &str) -> Vec<u32> {
    let number = |path: PathBuf| path.file_name()?.to_str()?.parse().ok();
    let mut found: Vec<u32> =
        all_processes().filter(|path| has_token(path, token)).filter_map(number).collect();
    found.sort_by_key(|pid| (started(&Path::new("/proc").join(pid.to_string())), *pid));
    found
}

/// Processes and namespaces of the scenario that are still there.
fn left(token: &str, namespaces: &BTreeSet<String>, since: u64) -> Vec<String> {
    let mut left = Vec::new();
    for path in all_processes() {
        if has_token(&path, token) {
            left.push(format!("process {}", path.display()));
        }
        // Numbers of namespaces are given out again: those of younger processes are others.
        if started(&path).is_none_or(|at| at > since) {
            continue;
        }
        for task in fs::read_dir(path.join("task")).into_iter().flatten().flatten() {
            let namespace = fs::read_link(task.path().join("ns/net")).unwrap_or_default();
            if namespaces.contains(&*namespace.to_string_lossy()) {
                left.push(format!("namespace {} of {}", namespace.display(), path.display()));
            }
        }
    }
    // A namespace that is mounted somewhere outlives its processes.
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let ours = |mount: &&str| mount.split(' ').any(|field| namespaces.contains(field));
    left.extend(mounts.lines().filter(ours).map(str::to_owned));
    left
}

/// When a process started, in ticks since boot: field 22 of its stat.
fn started(process: &Path) -> Option<u64> {
    let stat = fs::read_to_string(process.join("stat")).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(19)?.parse().ok()
}

/// The names of the interfaces in the namespace of the test program.
fn devices() -> BTreeSet<String> {
    let net = fs::read_to_string("/proc/net/dev").unwrap_or_default();
    net.lines().filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned())).collect()
}

/// Starts a scenario under a token, waits until it is up, does something to it, and expects its
/// end and that nothing is left.
fn ends(
    name: &str,
    act: impl FnOnce(&mut Running, &[u32]),
    code: Option<i32>,
    signal: Option<i32>,
) -> TestResult {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let token = format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let before = devices();
    let mut scenario = Scenario::new(name);
    scenario.command.env(TOKEN, &token);
    let mut running = scenario.start()?;
    let namespaces: BTreeSet<String> =
        running.wait_for("READY ")?.split(' ').map(str::to_owned).collect();
    assert_eq!(namespaces.len(), 3);
    let since = fs::read_to_string("/proc/uptime")?;
    let seconds: f64 = since.split(' ').next().unwrap_or("0").parse()?;
    // SAFETY: plain call.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as f64;
    let since = (seconds * ticks) as u64;
    let present = left(&token, &namespaces, since);
    // That they are seen now shows that the test can fail.
    if code.is_none() {
        assert!(present.len() >= 4 + 4, "{present:?}");
    }
    act(&mut running, &processes(&token));
    let ended = running.wait()?;
    assert_eq!((ended.status.code(), ended.status.signal()), (code, signal), "{}", ended.output);
    until("all to be gone", GONE, || Ok(left(&token, &namespaces, since).is_empty().then_some(())))
        .map_err(|error| format!("{error}: {:?}", left(&token, &namespaces, since)))?;
    assert_eq!(devices(), before);
    Ok(())
}

fn send(pid: u32, signal: i32) {
    // SAFETY: plain call.
    unsafe { libc::kill(pid as i32, signal) };
}

fn by_signal(signal: i32) -> TestResult {
    ends("hold", |running, _| send(running.child.id(), signal), None, Some(signal))
}

/// Kills one of outer process, init, program: in the order of their start.
fn by_kill_of(choose: fn(&[u32]) -> Option<&u32>) -> TestResult {
    let act = |_: &mut Running, processes: &[u32]| {
        send(*choose(processes).expect("a process"), libc::SIGKILL);
    };
    ends("hold", act, None, Some(libc::SIGKILL))
}

fn exit_status() -> TestResult {
    for (name, code, signal) in [("exit_7", Some(7), None), ("abort", None, Some(libc::SIGABRT))] {
        let status = Scenario::new(name).run()?.status;
        assert_eq!((status.code(), status.signal()), (code, signal), "{name}");
    }
    Ok(())
}

static INTERRUPTS: AtomicU32 = AtomicU32::new(0);

extern "C" fn note_interrupt(_: i32) {
    INTERRUPTS.fetch_add(1, Ordering::SeqCst);
}

/// A program that tidies up after an interrupt: it goes on for a while, then ends with 3.
fn count_interrupts() -> TestResult {
    crate::support::enter()?;
    // SAFETY: the handler only touches an atomic.
    unsafe { libc::signal(libc::SIGINT, note_interrupt as *const () as libc::sighandler_t) };
    println!("READY");
    until("an interrupt", Duration::from_secs(50), || {
        Ok((INTERRUPTS.load(Ordering::SeqCst) > 0).then_some(()))
    })?;
    println!("TIDYING");
    std::thread::sleep(Duration::from_millis(500));
    println!("INTERRUPTS {}", INTERRUPTS.load(Ordering::SeqCst));
    std::process::exit(3)
}

fn second_interrupt() -> TestResult {
    let mut running = Scenario::new("count_interrupts").start()?;
    running.wait_for("READY")?;
    send(running.child.id(), libc::SIGINT);
    running.wait_for("TIDYING")?;
    send(running.child.id(), libc::SIGINT);
    let ended = running.wait()?;
    assert_eq!(ended.status.code(), Some(3), "{}", ended.output);
    assert!(ended.output.contains("INTERRUPTS 2"), "{}", ended.output);
    Ok(())
}

fn terminal() -> TestResult {
    let (mut master, mut slave) = (0, 0);
    let none = std::ptr::null_mut();
    // SAFETY: writes two descriptors.
    let opened =
        unsafe { libc::openpty(&raw mut master, &raw mut slave, none, none.cast(), none.cast()) };
    if opened != 0 {
        return skip(Need::Host, "there is no pseudo-terminal to be had");
    }
    let mut scenario = Scenario::new("count_interrupts");
    // SAFETY: only system calls between fork and exec.
    unsafe {
        scenario.command.pre_exec(move || {
            if libc::setsid() < 0 || libc::ioctl(slave, libc::TIOCSCTTY, 0) != 0 {
                return Err(std::io::Error::last_os_error());
            }
            Ok(())
        });
    }
    let mut running = scenario.start()?;
    running.wait_for("READY")?;
    // What Ctrl-C types.
    // SAFETY: one byte from a live buffer.
    assert_eq!(unsafe { libc::write(master, [3u8].as_ptr().cast(), 1) }, 1);
    let ended = running.wait()?;
    assert_eq!(ended.status.code(), Some(3), "{}", ended.output);
    assert!(ended.output.contains("INTERRUPTS 1"), "{}", ended.output);
    // SAFETY: ours, and used no more.
    unsafe {
        libc::close(master);
        libc::close(slave);
    }
    Ok(())
}

fn ignored() -> TestResult {
    let mut scenario = Scenario::new("hold");
    // SAFETY: only a system call between fork and exec.
    unsafe {
        scenario.command.pre_exec(|| {
            libc::signal(libc::SIGHUP, libc::SIG_IGN);
            Ok(())
        });
    }
    let mut running = scenario.start()?;
    running.wait_for("READY")?;
    send(running.child.id(), libc::SIGHUP);
    send(running.child.id(), libc::SIGTERM);
    let ended = running.wait()?;
    assert_eq!(ended.status.signal(), Some(libc::SIGTERM));
    Ok(())
}

fn orphans() -> TestResult {
    crate::support::enter()?;
    // The shell ends before its child, whose parent then is init.
    let shell = Command::new("sh").args(["-c", "sleep 0.05 & echo $!"]).output()?;
    let orphan = String::from_utf8(shell.stdout)?.trim().to_owned();
    until("the orphan to be reaped", GONE, || {
        Ok((!Path::new("/proc").join(&orphan).exists()).then_some(()))
    })
}
