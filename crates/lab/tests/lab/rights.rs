//! Who may enter, and what those are told who may not.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use fault::Explain;
use lab_test::{Need, Scenario, Test, TestResult, judge, skip};

/// An ordinary user: nobody.
const NOBODY: u32 = 65534;

pub fn tests() -> Vec<Test> {
    vec![
        Test::helper("enter_with_threads", enter_with_threads),
        Test::helper("enter_only", || {
            crate::support::enter().map_err(|error| match error.downcast::<lab::EnterError>() {
                Ok(error) => error.in_one_text().into(),
                Err(other) => other,
            })?;
            println!("{:?}", lab::entered());
            Ok(())
        }),
        Test::helper("doctor", doctor),
        Test::new("an_ordinary_user_has_all_of_it", ordinary_user),
        Test::new("root_has_rights_over_the_lab_alone", root_in_user_namespace),
        Test::helper("harms_nothing_outside", harms_nothing),
        Test::new("real_time_comes_along_for_its_threads_alone", real_time),
        Test::helper("real_time_inside", real_time_inside),
        Test::new("without_user_namespaces_root_does_without", root_without),
        Test::new("forbidden_user_namespaces_are_named_with_the_remedy", forbidden),
        Test::helper("a_node", || {
            crate::support::enter()?;
            let made = lab::Lab::new(lab::LabOptions::default());
            println!("{}", made.map_or_else(|error| error.in_one_text(), |_| "made".to_owned()));
            Ok(())
        }),
        Test::new("settings_that_cannot_be_written_are_named_with_the_remedy", read_only),
        Test::new("threads_before_entering_are_an_error", threads),
        Test::new("a_stray_marker_is_an_error", stray),
        Test::new("doctor_outside_the_lab_inside_it_and_as_a_user", doctors),
        Test::new("inside_the_program_is_root_and_alone", alone),
    ]
}

fn is_root() -> bool {
    // SAFETY: cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// The test program where anybody may execute it.
fn public_copy() -> TestResult<(tempfile::TempDir, PathBuf)> {
    let folder = tempfile::tempdir()?;
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755))?;
    let program = folder.path().join("lab-test");
    fs::copy(std::env::current_exe()?, &program)?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
    Ok((folder, program))
}

fn ordinary_user() -> TestResult {
    if !is_root() {
        return skip(Need::Root, "this is an ordinary user already: all tests were");
    }
    let (_folder, program) = public_copy()?;
    for name in [
        "udp_takes_the_round_trip_time",
        "tcp_over_ipv4_and_ipv6",
        "bulk_data_arrives_whole_in_frames_of_the_mtu",
        "a_chain_of_nodes_routes",
        "a_bridge_joins_the_links_of_its_node",
        "a_link_that_is_down_has_no_carrier_and_loses_what_is_under_way",
        "a_program_has_a_run_of_its_own",
        "what_a_program_leaves_behind_dies_with_it",
        "a_capture_holds_exactly_the_frames_sent",
        "a_capture_file_is_read_back",
        "a_full_disk_costs_the_capture_and_not_the_run",
        "belief_fast_open_gets_a_cookie_then_sends_data_in_the_syn",
        "belief_the_server_answers_before_the_handshakes_last_ack",
        "belief_permanent_neighbours_keep_arp_and_ndp_off_the_link",
        "belief_settings_are_per_namespace",
        "inside_the_program_is_root_and_alone",
        "orphans_are_reaped",
    ] {
        let mut scenario = Scenario::of(&program, name);
        scenario.command.uid(NOBODY).gid(NOBODY).current_dir("/");
        judge(scenario.run()?).map_err(|error| format!("{name}: {error}"))?;
    }
    Ok(())
}

fn root_in_user_namespace() -> TestResult {
    if !is_root() {
        return skip(Need::Root, "an ordinary user has no rights to give up");
    }
    judge(Scenario::new("harms_nothing_outside").run()?)?;
    for name in ["udp_takes_the_round_trip_time", "a_capture_file_is_read_back"] {
        let mut scenario = Scenario::new(name);
        scenario.command.env("LAB_TEST_KEEP_RIGHTS", "1");
        judge(scenario.run()?).map_err(|error| format!("{name}: {error}"))?;
    }
    Ok(())
}

/// What root may do outside of a lab, a program in it may not.
fn harms_nothing() -> TestResult {
    let folder = std::env::temp_dir();
    crate::support::enter()?;
    if lab::entered().is_none_or(|entered| !entered.user_namespace) {
        return skip(Need::Lab, "this system makes no user namespace");
    }
    let own = tempfile::tempdir_in(folder)?;
    let device =
        std::ffi::CString::new(own.path().join("null").into_os_string().into_encoded_bytes())?;
    // SAFETY: the path ends with a null byte and outlives the call; the others take no memory. The first two
    // need rights over the machine.
    unsafe {
        let made = libc::mknod(device.as_ptr(), libc::S_IFCHR | 0o600, libc::makedev(1, 3));
        assert_eq!(made, -1, "devices can be made");
        assert_eq!(libc::setpriority(libc::PRIO_PROCESS, 0, -1), -1, "others can be put behind");
        let names = libc::unshare(libc::CLONE_NEWUTS);
        assert_eq!(names, 0, "no rights within the lab");
    }
    // By its owner's right alone root could write to these.
    for name in ["kernel/core_pattern", "kernel/panic", "vm/swappiness"] {
        let path = format!("/proc/sys/{name}");
        let value = fs::read_to_string(&path)?;
        assert!(fs::write(&path, value).is_err(), "{path} can be written");
    }
    assert!(fs::OpenOptions::new().write(true).open("/proc/sysrq-trigger").is_err());
    let irq = Path::new("/proc/irq/default_smp_affinity");
    if irq.exists() {
        assert!(fs::OpenOptions::new().write(true).open(irq).is_err(), "interrupts can be moved");
    }
    let mut lab = lab::Lab::new(lab::LabOptions::default())?;
    let node = lab.add_node("node")?;
    let write = "v=$(cat /proc/sys/kernel/panic); echo $v > /proc/sys/kernel/panic";
    let running = node.launch(&lab::Program::new("sh").args(["-c", write]))?;
    let status = running.wait(std::time::Duration::from_secs(30)).ok_or("it does not end")?;
    assert!(!status.success(), "a program in a node can write");
    let numbers = fs::read_to_string("/proc/self/uid_map")?;
    let fields: Vec<_> = numbers.lines().next().unwrap_or_default().split_whitespace().collect();
    assert_eq!(fields.first(), fields.get(1), "users have their own numbers: {numbers}");
    Ok(())
}

/// Whether the system grants this process real-time scheduling.
fn real_time() -> TestResult {
    let granted = packet::realtime::begin();
    packet::realtime::leave();
    if !granted {
        return skip(Need::Host, "no real-time scheduling is to be had");
    }
    judge(Scenario::new("real_time_inside").run()?)
}

fn real_time_inside() -> TestResult {
    crate::support::enter()?;
    // SAFETY: no memory is passed; 0 is the calling thread.
    let policy = || unsafe { libc::sched_getscheduler(0) };
    assert_eq!(policy() & !libc::SCHED_RESET_ON_FORK, libc::SCHED_OTHER);
    let asked = || packet::thread::try_round_robin(packet::realtime::PRIORITY);
    let thread = packet::realtime::spawn("asks", move || asked().map(|()| policy()))?;
    let kept = thread.join().map_err(|_| "the thread panicked")??;
    assert_eq!(kept & !libc::SCHED_RESET_ON_FORK, libc::SCHED_RR);
    let ordinary = std::thread::spawn(policy).join().map_err(|_| "the thread panicked")?;
    assert_eq!(ordinary, libc::SCHED_OTHER);
    let mut lab = lab::Lab::new(lab::LabOptions::default())?;
    let node = lab.add_node("node")?;
    // proc_pid_stat(5): field 41 is the policy.
    let ask = "set -- $(cat /proc/self/stat) && test ${41} = 0";
    let running = node.launch(&lab::Program::new("sh").args(["-c", ask]))?;
    let status = running.wait(std::time::Duration::from_secs(30)).ok_or("it does not end")?;
    assert!(status.success(), "a program in a node has real-time scheduling");
    Ok(())
}

/// In a user namespace whose limit of further ones is zero, as where a system forbids them.
fn without_user_namespaces(as_root: bool) -> std::io::Result<std::process::Output> {
    let drop = if as_root { "" } else { "setpriv --bounding-set=-all --inh-caps=-all" };
    let script = format!(
        "echo 0 > /proc/sys/user/max_user_namespaces && exec {drop} \"$0\" --scenario enter_only"
    );
    let program = std::env::current_exe()?;
    Command::new("unshare").args(["-Ur", "sh", "-c", &script]).arg(&program).output()
}

fn root_without() -> TestResult {
    let Ok(output) = without_user_namespaces(true) else {
        return skip(Need::UtilLinux, "unshare is not installed");
    };
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    if errors.contains("unshare") {
        return skip(Need::Host, errors.trim());
    }
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{errors}");
    assert!(text.contains("user_namespace: false"), "{text}");
    Ok(())
}

fn forbidden() -> TestResult {
    let output = without_user_namespaces(false);
    let Ok(output) = output else { return skip(Need::UtilLinux, "unshare is not installed") };
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    if text.contains("unshare") {
        return skip(Need::Host, text.trim());
    }
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("sysctl user.max_user_namespaces=15000"), "{text}");
    Ok(())
}

/// Where `/proc/sys` is mounted read-only, as in a container, an ordinary user has no other; root has.
fn read_only() -> TestResult {
    if !is_root() {
        return skip(Need::Root, "an ordinary user cannot mount");
    }
    let (_folder, program) = public_copy()?;
    let script = "mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys &&
        \"$0\" --scenario a_node && cd / && drop='setpriv --reuid 65534 --regid 65534 --clear-groups' &&
        $drop \"$0\" --scenario a_node && $drop \"$0\" --scenario doctor || echo failed: $?";
    let output = Command::new("unshare").args(["-m", "sh", "-c", script]).arg(program).output();
    let Ok(output) = output else { return skip(Need::UtilLinux, "unshare is not installed") };
    let text = String::from_utf8_lossy(&output.stdout);
    let mut lines = text.lines();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(lines.next(), Some("made"), "{text}{errors}");
    let said = lines.next().unwrap_or_default();
    assert!(said.contains("net.ipv4") && said.contains("systempaths=unconfined"), "{text}{errors}");
    // A required fact fails with the same remedy.
    let fact = lines.find(|line| line.contains("network settings")).unwrap_or_default();
    assert!(fact.contains("ok: false") && fact.contains("systempaths=unconfined"), "{text}");
    assert!(text.contains("failed: "), "{text}");
    Ok(())
}

fn enter_with_threads() -> TestResult {
    let (sender, receiver) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::spawn(move || receiver.recv().is_err());
    let error = lab::enter(&lab::EnterOptions::new()).unwrap_err();
    assert!(matches!(error, lab::EnterError::NotSingleThreaded { threads: 2 }), "{error}");
    drop(sender);
    assert!(thread.join().unwrap());
    assert_eq!(lab::entered(), None);
    Ok(())
}

fn threads() -> TestResult {
    judge(Scenario::new("enter_with_threads").run()?)
}

fn stray() -> TestResult {
    for marker in
        ["1", "0:0:0:00000000000000000000000000000000", "9:0:1:00000000000000000000000000000000"]
    {
        let mut scenario = Scenario::new("enter_only");
        scenario.command.env("WIRETAX_LAB_INNER", marker);
        let ended = scenario.run()?;
        assert_eq!(ended.status.code(), Some(1));
        assert!(ended.output.contains("unset it"), "{}", ended.output);
    }
    Ok(())
}

fn doctor() -> TestResult {
    if std::env::var_os("LAB_TEST_ENTER").is_some() {
        crate::support::enter()?;
    }
    let facts = lab::doctor();
    for fact in &facts {
        println!("{fact:?}");
    }
    let failed: Vec<_> = facts.iter().filter(|fact| fact.required && !fact.ok).collect();
    assert!(failed.is_empty(), "{failed:?}");
    Ok(())
}

fn doctors() -> TestResult {
    judge(Scenario::new("doctor").run()?)?;
    let mut inside = Scenario::new("doctor");
    inside.command.env("LAB_TEST_ENTER", "1");
    judge(inside.run()?)?;
    if is_root() {
        let (_folder, program) = public_copy()?;
        let mut user = Scenario::of(&program, "doctor");
        user.command.uid(NOBODY).gid(NOBODY).current_dir("/");
        judge(user.run()?)?;
    }
    Ok(())
}

fn alone() -> TestResult {
    crate::support::enter()?;
    let entered = lab::entered().ok_or("not entered")?;
    assert!(is_root());
    // Process 1 is init; a second call changes nothing.
    assert_eq!(std::process::id(), 2);
    assert_eq!(lab::enter(&lab::EnterOptions::new())?, entered);
    assert!(std::env::var_os("WIRETAX_LAB_INNER").is_none());
    if entered.own_proc {
        let processes = fs::read_dir("/proc")?
            .flatten()
            .filter(|e| e.file_name().to_string_lossy().chars().all(|c| c.is_ascii_digit()));
        assert_eq!(processes.count(), 2);
    }
    let devices = fs::read_to_string("/proc/net/dev")?;
    assert_eq!(devices.lines().count(), 3, "only lo, below two lines of heading: {devices}");
    Ok(())
}
