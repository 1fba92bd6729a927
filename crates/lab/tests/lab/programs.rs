//! Programs that run inside nodes.

use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::time::Duration;

use lab::{Error, Event, Lab, Node, Program, Ready, Running, Stream};
use lab_test::{Test, TestResult, until};

use crate::support::{enter, options, pair};

const WAIT: Duration = Duration::from_secs(20);

pub fn tests() -> Vec<Test> {
    vec![
        Test::helper("listen", listen),
        Test::new("a_programs_lines_and_end_are_events", events),
        Test::new("a_program_has_a_run_of_its_own", run_folder),
        Test::new("a_program_reads_what_it_is_given_and_nobody_else_does", input),
        Test::new("a_program_without_rights_has_its_run_and_no_more", unprivileged),
        Test::new("a_program_is_in_its_nodes_network", network),
        Test::new("a_program_has_a_name_server_of_its_own", name_server),
        Test::new("a_program_has_hosts_of_its_own", hosts),
        Test::new("a_program_in_the_foreground_has_our_streams", foreground),
        Test::new("a_program_is_ready_when_it_says_so", ready),
        Test::new("a_program_that_is_not_ready_is_reported_with_its_last_lines", not_ready),
        Test::new("a_program_gets_signals", signals),
        Test::new("what_a_program_leaves_behind_dies_with_it", daemons),
        Test::new("a_program_dies_with_its_lab", with_its_lab),
        Test::new("a_program_that_cannot_be_started_is_reported", not_started),
        Test::new("a_program_that_writes_without_end_is_bounded", bounded),
    ]
}

fn shell(script: &str) -> Program {
    Program::new("sh").args(["-c", script])
}

fn node() -> TestResult<(Lab, Node)> {
    enter()?;
    let mut lab = Lab::new(options())?;
    let node = lab.add_node("host")?;
    Ok((lab, node))
}

fn unprivileged() -> TestResult {
    let (_lab, node) = node()?;
    let outside = tempfile::tempdir()?;
    // The folder is for all to see, and the file in it root's, or this user's, alone to write.
    fs::set_permissions(outside.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    let file = outside.path().join("file");
    fs::write(&file, "text")?;
    let script = format!(
        "id -u; grep -h -e ^CapEff -e ^CapPrm -e ^NoNewPrivs /proc/self/status
         echo x >/run/own && echo writes its run; echo x 2>&- >{} && echo writes",
        file.display()
    );
    let running = node.launch(&shell(&script).unprivileged())?;
    let events = all(&running);
    let said = lines(&events, Stream::Out);
    // In a user namespace with one user that one is an ordinary user outside.
    let numbers = fs::read_to_string("/proc/self/uid_map")?;
    let one = numbers.split_whitespace().last() == Some("1");
    let none = "0000000000000000";
    let rights = [&format!("CapPrm:\t{none}"), &format!("CapEff:\t{none}"), "NoNewPrivs:\t1"];
    assert_eq!(said.first() == Some(&"0"), one, "{events:?}");
    assert_eq!(said.get(1..4), Some(&rights[..]), "{events:?}");
    let own: &[&str] = if one { &["writes its run", "writes"] } else { &["writes its run"] };
    assert_eq!(said.get(4..), Some(own), "{events:?}");
    Ok(())
}

/// All events up to the end.
fn all(running: &Running) -> Vec<Event> {
    let mut events = Vec::new();
    while let Some(event) = running.next_event(WAIT) {
        events.push(event);
    }
    events
}

/// The lines of one stream.
fn lines(events: &[Event], of: Stream) -> Vec<&str> {
    let texts = events.iter().filter_map(|event| match event {
        Event::Line { text, stream, .. } if *stream == of => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

/// Its own resolv.conf is in place of the system's, which stays as it is.
fn name_server() -> TestResult {
    let before = fs::read_to_string("/etc/resolv.conf")?;
    let (_lab, node) = node()?;
    let program = shell("cat /etc/resolv.conf").name_server([10, 7, 8, 9].into());
    let events = all(&node.launch(&program)?);
    assert_eq!(lines(&events, Stream::Out)[0], "nameserver 10.7.8.9");
    assert_eq!(fs::read_to_string("/etc/resolv.conf")?, before);
    Ok(())
}

fn hosts() -> TestResult {
    let before = fs::read_to_string("/etc/hosts")?;
    let (_lab, node) = node()?;
    let program = shell("cat /etc/hosts").hosts("10.7.8.9 other\n");
    let events = all(&node.launch(&program)?);
    assert_eq!(lines(&events, Stream::Out), ["10.7.8.9 other"]);
    assert_eq!(fs::read_to_string("/etc/hosts")?, before);
    Ok(())
}

/// Its streams are files, not pipes of ours; it stays in our session, and has our environment.
fn foreground() -> TestResult {
    let (_lab, node) = node()?;
    let folder = tempfile::tempdir()?;
    let seen = folder.path().join("seen");
    // Field 6 of stat is the session, 0 where its leader is in another process namespace.
    let script =
        format!("read -r stat < /proc/$$/stat; echo \"$stat\" > {}; exit 6", seen.display());
    let program = shell(&script).inherit_env().in_foreground();
    let running = node.launch(&program)?;
    assert_eq!(running.wait(WAIT).and_then(|status| status.code()), Some(6));
    assert!(all(&running).iter().all(|event| matches!(event, Event::Ended { .. })));
    let stat = fs::read_to_string(seen)?;
    if lab::entered().is_some_and(|entered| entered.own_proc) {
        assert_eq!(stat.split_whitespace().nth(5), Some("0"), "{stat}");
    }
    assert!(!node.listens()?);
    Ok(())
}

/// More than a pipe takes at once; it is not printed with the program, and a program without input has none.
fn input() -> TestResult {
    let (_lab, node) = node()?;
    let given = "secret\n".repeat(20_000);
    let program = shell("wc -c").stdin(given.as_str());
    assert!(!format!("{program:?}").contains("secret"), "{program:?}");
    let events = all(&node.launch(&program)?);
    assert_eq!(lines(&events, Stream::Out)[0].trim(), "140000");
    let events = all(&node.launch(&shell("wc -c"))?);
    assert_eq!(lines(&events, Stream::Out)[0].trim(), "0");
    Ok(())
}

fn events() -> TestResult {
    let (_lab, node) = node()?;
    let began = packet::clock::monotonic();
    let program = shell("echo one; echo \"$GREETING\" >&2; printf 'no end'; exit 3");
    let running = node.launch(&program.env("GREETING", "good day"))?;
    let events = all(&running);
    assert_eq!(lines(&events, Stream::Out), ["one", "no end"]);
    assert_eq!(lines(&events, Stream::Err), ["good day"]);
    let stamps: Vec<_> = events
        .iter()
        .map(|event| match event {
            Event::Line { at, .. } | Event::Ended { at, .. } => *at,
        })
        .collect();
    assert!(stamps.is_sorted() && stamps[0] >= began);
    let Some(Event::Ended { status, .. }) = events.last() else { return Err("no end".into()) };
    assert_eq!(status.code(), Some(3));
    assert_eq!((running.wait(WAIT), running.lost()), (Some(*status), 0));
    // By a signal of its own.
    let killed = node.launch(&shell("kill -KILL $$"))?.wait(WAIT).ok_or("it did not end")?;
    assert_eq!(killed.signal(), Some(libc::SIGKILL));
    Ok(())
}

fn run_folder() -> TestResult {
    let (_lab, node) = node()?;
    let script = "ls /run; cat /run/given; echo mine > /run/made; echo ready; exec sleep 300";
    let program = shell(script).run_file("given", "a line\n");
    let program = program.ready_when(Ready::Line("ready".to_owned()), WAIT);
    let first = node.launch(&program)?;
    let second = node.launch(&program)?;
    for running in [&first, &second] {
        let mut seen = Vec::new();
        while let Some(Event::Line { text, .. }) = running.next_event(WAIT) {
            seen.push(text);
            if seen.last().is_some_and(|line| line == "ready") {
                break;
            }
        }
        assert_eq!(seen, ["given", "a line", "ready"]);
        assert_eq!(fs::read_to_string(running.run_dir().join("made"))?, "mine\n");
    }
    assert!(!Path::new("/run/made").exists() && !Path::new("/run/given").exists());
    fs::write(first.run_dir().join("made"), "changed")?;
    assert_eq!(fs::read_to_string(second.run_dir().join("made"))?, "mine\n");
    // On most systems a link to it, on some a directory.
    let other = node.launch(&shell("ls /var/run; echo $$; echo /proc/[0-9]*"))?;
    let events = all(&other);
    let reported = lines(&events, Stream::Out);
    if lab::entered().is_some_and(|entered| entered.own_proc) {
        // Process 1 and the shell, which is the second.
        assert_eq!((reported[0], reported[1]), ("2", "/proc/1 /proc/2"), "{events:?}");
    }
    Ok(())
}

fn network() -> TestResult {
    let (_lab, client, server, _) = pair("0")?;
    for node in [&client, &server] {
        let running = node.launch(&shell("cat /proc/net/dev"))?;
        let events = all(&running);
        let devices = lines(&events, Stream::Out).len();
        assert_eq!(devices, 4, "lo and link1 below two lines of heading: {events:?}");
    }
    Ok(())
}

/// No test: listens where it is told to, and waits to be killed.
fn listen() -> TestResult {
    let _tcp = TcpListener::bind("127.0.0.1:7000")?;
    let _udp = UdpSocket::bind("[::1]:7001").or_else(|_| UdpSocket::bind("127.0.0.1:7001"))?;
    std::thread::sleep(Duration::from_secs(300));
    Ok(())
}

fn ready() -> TestResult {
    let (_lab, node) = node()?;
    let listener = Program::new(std::env::current_exe()?).args(["--scenario", "listen"]);
    for condition in [Ready::Tcp(7000), Ready::Udp(7001)] {
        let running = node.launch(&listener.clone().ready_when(condition, WAIT))?;
        let connected = node.run(|| std::net::TcpStream::connect("127.0.0.1:7000").map(drop))?;
        connected?;
        assert_eq!(running.status(), None);
    }
    // Gone with it: the port is free again.
    assert!(node.run(|| TcpListener::bind("127.0.0.1:7000").is_ok())?);
    let folder = tempfile::tempdir()?;
    let outside = folder.path().join("file");
    let script = format!("touch {}; touch /run/socket; exec sleep 300", outside.display());
    for path in [outside.as_path(), Path::new("/run/socket")] {
        let ready = Ready::File(path.to_path_buf());
        drop(node.launch(&shell(&script).ready_when(ready, WAIT))?);
    }
    // What it did last counts, even if it has ended by now.
    let brief = shell("echo up").ready_when(Ready::Line("up".to_owned()), WAIT);
    drop(node.launch(&brief)?);
    Ok(())
}

fn not_ready() -> TestResult {
    let (_lab, node) = node()?;
    let never = Ready::Line("up".to_owned());
    let slow = shell("echo starting; exec sleep 300").ready_when(never.clone(), WAIT / 40);
    let error = node.launch(&slow).map(drop).unwrap_err();
    assert!(matches!(&error, Error::NotReady { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("sh on node host") && text.contains("a line with `up`"), "{text}");
    let failing = shell("echo 'cannot bind' >&2; exit 4").ready_when(never, WAIT);
    let error = node.launch(&failing).map(drop).unwrap_err();
    let Error::ProgramEnded { status, last, .. } = &error else { return Err(error.into()) };
    assert_eq!((status.code(), last.as_slice()), (Some(4), &["cannot bind".to_owned()][..]));
    assert!(error.to_string().contains("it last wrote: cannot bind"), "{error}");
    Ok(())
}

fn signals() -> TestResult {
    let (_lab, node) = node()?;
    let script = "trap 'echo ending; exit 5' TERM; echo up; while :; do sleep 0.02; done";
    let ready = Ready::Line("up".to_owned());
    let running = node.launch(&shell(script).ready_when(ready, WAIT))?;
    running.signal(libc::SIGTERM);
    assert!(running.next_line_with("ending", WAIT).is_some());
    assert_eq!(running.wait(WAIT).and_then(|status| status.code()), Some(5));
    running.signal(libc::SIGTERM);
    Ok(())
}

/// Numbers of the processes that have this variable.
fn marked(mark: &str) -> Vec<String> {
    let mark = format!("LAB_TEST_MARK={mark}");
    let processes = fs::read_dir("/proc").expect("/proc").flatten().filter(|entry| {
        let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes())
    });
    processes.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Waits until the program and its daemon are seen: one that is being executed has no environment.
fn both_run(mark: &str) -> TestResult {
    until("the program and its daemon", WAIT, || Ok((marked(mark).len() == 2).then_some(())))
}

/// A program that leaves a daemon behind in a session of its own.
fn with_daemon(mark: &str) -> Program {
    let script = "setsid --fork sleep 300 > /dev/null 2>&1; echo up; exec sleep 300";
    let program = shell(script).env("LAB_TEST_MARK", mark);
    program.ready_when(Ready::Line("up".to_owned()), WAIT)
}

fn daemons() -> TestResult {
    let (_lab, node) = node()?;
    let running = node.launch(&with_daemon("dropped"))?;
    both_run("dropped")?;
    drop(running);
    assert!(marked("dropped").is_empty());
    // One that ends by itself takes its daemon with it.
    let leaves = shell("setsid --fork sleep 300 > /dev/null 2>&1").env("LAB_TEST_MARK", "ended");
    let running = node.launch(&leaves)?;
    assert_eq!(running.wait(WAIT).and_then(|status| status.code()), Some(0));
    assert!(marked("ended").is_empty());
    Ok(())
}

fn with_its_lab() -> TestResult {
    let (lab, node) = node()?;
    let running = node.launch(&with_daemon("lab"))?;
    both_run("lab")?;
    lab.shutdown();
    assert!(marked("lab").is_empty());
    assert_eq!(running.status().and_then(|status| status.signal()), Some(libc::SIGKILL));
    assert!(matches!(node.launch(&shell("true")), Err(Error::NodeStopped { .. })));
    Ok(())
}

fn not_started() -> TestResult {
    let (_lab, node) = node()?;
    let error = node.launch(&Program::new("/no/such/program")).map(drop).unwrap_err();
    let Error::Program { doing, source, .. } = &error else { return Err(error.into()) };
    assert_eq!((*doing, source.raw_os_error()), ("executing it", Some(libc::ENOENT)));
    let misplaced = shell("true").run_file("no/such/folder", "");
    assert!(matches!(node.launch(&misplaced), Err(Error::Program { .. })));
    Ok(())
}

fn bounded() -> TestResult {
    let (_lab, node) = node()?;
    let running = node.launch(&shell("head -c 60000000 /dev/zero; echo; yes | head -n 9000"))?;
    assert_eq!(running.wait(WAIT).and_then(|status| status.code()), Some(0));
    let lost = running.lost();
    let events = all(&running);
    assert_eq!(events.len(), 4096);
    assert!(lost > 60_000_000 / 8192, "{lost}");
    assert!(lines(&events, Stream::Out).iter().all(|line| *line == "y"));
    Ok(())
}
