//! Output files: until a command ends well they have the content that they had.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use lab_test::Need;

use crate::support::{QUICK, data, files_below, processes_of, run, talk, wait_until, wiretax};

const BEFORE: &str = "what was there\n";
const OUTPUTS: [&str; 2] = ["one", "two"];

fn capture() -> String {
    concat!(env!("CARGO_MANIFEST_DIR"), "/../proto/tracker/tests/data/tls1.2.pcap").to_owned()
}

/// A folder with two outputs of an earlier command.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    OUTPUTS.iter().for_each(|name| fs::write(folder.path().join(name), BEFORE).unwrap());
    folder
}

/// Nothing but these is in the folder, and they are as they were.
fn are_untouched(folder: &Path, others: &[&str], after: &str) {
    for name in OUTPUTS {
        assert_eq!(fs::read_to_string(folder.join(name)).unwrap(), BEFORE, "{name} after {after}");
    }
    let mut expected = [&OUTPUTS[..], others].concat();
    expected.sort_unstable();
    assert_eq!(files_below(folder), expected, "after {after}");
}

/// This user's program, and that of an ordinary user if this is root and may become another.
fn users(folder: &Path) -> Vec<Vec<String>> {
    let own = wiretax(folder).get_program().to_str().unwrap().to_owned();
    let mut users = vec![vec![own.clone()]];
    let nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"];
    let may = Command::new(nobody[0]).args(&nobody[1..]).arg("true").output();
    if may.is_ok_and(|tried| tried.status.success()) {
        // Where the build is may be closed to others.
        let place = folder.join("program");
        fs::create_dir(&place).unwrap();
        fs::copy(own, place.join("wiretax")).unwrap();
        let program = place.join("wiretax").display().to_string();
        users.push(nobody.map(str::to_owned).into_iter().chain([program]).collect());
    }
    users
}

fn command(user: &[String], folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(&user[0]);
    child::with_default_signals(&mut command);
    command.args(&user[1..]).args(arguments).current_dir(folder);
    command.env("NO_COLOR", "1").env("WIRETAX_TEST_FOLDER", folder).stdin(Stdio::null());
    command.env_remove("SUDO_UID").env_remove("SUDO_GID").env_remove("RUST_LOG");
    command
}

/// Lets an ordinary user write to the folder and to the outputs in it.
fn open_to_all(folder: &Path) {
    fs::set_permissions(folder, PermissionsExt::from_mode(0o777)).unwrap();
    for name in OUTPUTS {
        fs::set_permissions(folder.join(name), PermissionsExt::from_mode(0o666)).unwrap();
    }
}

/// Each file of a command line has one purpose, whatever name leads to it.
#[test]
fn no_command_writes_a_file_that_it_reads() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name).display().to_string();
    std::os::unix::fs::symlink("one", folder.path().join("link")).unwrap();
    let (one, two, link) = (at("one"), at("two"), at("link"));
    for line in [
        &["observe", one.as_str(), "--html", &one][..],
        &["observe", &one, "--rtt-out", &link],
        &["observe", &two, "--anonymise=hash", "--anonymise-key", &one, "--html", &link],
        &["observe", &two, "--html", &one, "--rtt-out", &link],
        &["chain", "--server", "127.0.0.1:1", "--ca", &one, "--save", &link],
        &["lab", "--trace-up", &one, "--pcap", &one, "true"],
        &["lab", "--pcap", &one, "--stats", &link, "true"],
    ] {
        let output = run(folder.path(), line);
        assert_eq!(output.status.code(), Some(2), "{line:?}: {}", talk(&output));
        assert!(talk(&output).contains("would be overwritten"), "{line:?}: {}", talk(&output));
        are_untouched(folder.path(), &["link"], &line.join(" "));
    }
}

/// A file that is not there yet has one name only, too.
#[test]
fn no_command_writes_two_outputs_into_one_new_file() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("x")).unwrap();
    std::os::unix::fs::symlink("x", at("y")).unwrap();
    std::os::unix::fs::symlink("x/new", at("dangling")).unwrap();
    let good = capture();
    for (one, other) in [
        ("x/new", "y/new"),
        ("x/../new", "new"),
        ("dangling", "x/new"),
        ("y/new", "dangling"),
        ("./new", "new"),
    ] {
        for line in [
            &["observe", good.as_str(), "--html", one, "--rtt-out", other][..],
            &["observe", "--interface", "lo", "--html", one, "--rtt-out", other],
            &["lab", "--pcap", one, "--stats", other, "--", "touch", "ran"],
        ] {
            let output = run(folder.path(), line);
            assert_eq!(output.status.code(), Some(2), "{line:?}: {}", talk(&output));
            assert!(talk(&output).contains("would be overwritten"), "{line:?}: {}", talk(&output));
            assert_eq!(files_below(&at("x")), [""; 0], "{line:?}");
            are_untouched(folder.path(), &["dangling"], &line.join(" "));
        }
    }
}

#[test]
fn no_command_writes_its_standard_input() {
    let folder = folder();
    let good = fs::read(capture()).unwrap();
    fs::write(folder.path().join("input"), &good).unwrap();
    for line in [
        &["observe", "-", "--html", "input"][..],
        &["observe", "-", "--rtt-out", "/dev/stdin"],
        &["observe", "/dev/fd/0", "--html", "input"],
    ] {
        let mut command = wiretax(folder.path());
        let input = fs::File::options().read(true).write(true).open(folder.path().join("input"));
        let output = command.args(line).stdin(input.unwrap()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{line:?}: {}", talk(&output));
        assert!(talk(&output).contains("would be overwritten"), "{line:?}: {}", talk(&output));
        assert_eq!(fs::read(folder.path().join("input")).unwrap(), good, "{line:?}");
        are_untouched(folder.path(), &["input"], &line.join(" "));
    }
}

/// A program that ran before its output was refused would leave a file.
#[test]
fn an_output_that_is_a_folders_name_is_refused_before_anything_runs() {
    let folder = folder();
    fs::create_dir(folder.path().join("deep")).unwrap();
    std::os::unix::fs::symlink("new/", folder.path().join("link")).unwrap();
    let good = capture();
    for name in ["new/", "deep", "deep/", "new/.", "deep/..", "link"] {
        for line in [
            &["lab", "--pcap", name, "--", "touch", "ran"][..],
            &["lab", "--stats", name, "--", "touch", "ran"],
            &["observe", good.as_str(), "--html", name, "--prometheus", "127.0.0.1:0"],
            &["observe", good.as_str(), "--json", "--rtt-out", name],
        ] {
            let output = run(folder.path(), line);
            assert_ne!(output.status.code(), Some(0), "{line:?}");
            if name != "link" || line[0] != "lab" {
                assert_eq!(output.status.code(), Some(4), "{line:?}: {}", talk(&output));
            }
            assert_eq!(data(&output), "", "{line:?}");
            are_untouched(folder.path(), &["link"], &line.join(" "));
        }
    }
}

/// Runs a line of sh with `$W` for the program and `$P` for a capture.
fn shell(folder: &Path, line: &str) -> std::process::Output {
    let own = wiretax(folder).get_program().to_owned();
    let mut shell = Command::new("sh");
    shell.args(["-c", line]).env("W", own).env("P", capture()).current_dir(folder);
    shell.env("NO_COLOR", "1").stdin(Stdio::null()).output().unwrap()
}

#[test]
fn an_open_file_is_written_at_the_end_and_appended_to() {
    let folder = folder();
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    for open in ["9>>one", "9<>one"] {
        let line = format!("exec {open}; $W observe $P --html /dev/fd/9 --rtt-out nowhere/x");
        let output = shell(folder.path(), &line);
        assert_eq!(output.status.code(), Some(4), "{}", talk(&output));
        are_untouched(folder.path(), &[], &line);
    }
    for line in [
        "exec 9>>one; $W observe $P --html /dev/fd/9 >out",
        "$W observe $P --json --html /dev/stdout >>one",
        "{ printf 'what was there\\n'; $W observe $P --json --html /dev/stdout; echo behind; } >one",
    ] {
        fs::write(folder.path().join("one"), BEFORE).unwrap();
        let output = shell(folder.path(), line);
        assert!(output.status.success(), "{line}: {}", talk(&output));
        let one = read("one");
        assert!(one.starts_with(BEFORE) && one.contains("</html>"), "{line}: {one}");
        if line.contains("--json") {
            assert!(one.lines().any(|line| line.starts_with('{')), "{line}: {one}");
        }
        assert!(!line.contains("behind") || one.ends_with("behind\n"), "{line}: {one}");
    }
    assert_eq!(read("two"), BEFORE);
}

/// Holds for any `fs.protected_symlinks`.
#[test]
fn a_link_that_another_user_planted_is_not_followed() {
    use std::os::unix::fs::{lchown, symlink};
    let folder = folder();
    let open = folder.path().join("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, PermissionsExt::from_mode(0o1777)).unwrap();
    symlink("../one", open.join("link")).unwrap();
    symlink("../new", open.join("dangling")).unwrap();
    for name in ["link", "dangling"] {
        if let Err(error) = lchown(open.join(name), Some(65534), Some(65534)) {
            lab_test::skip!(Need::Root, "this user may not own files as another: {error}");
        }
    }
    let good = capture();
    for name in ["open/link", "open/dangling"] {
        for line in [
            &["observe", good.as_str(), "--html", name][..],
            &["lab", "--stats", name, "--", "touch", "ran"],
            &["lab", "--pcap", name, "--", "touch", "ran"],
        ] {
            let output = run(folder.path(), line);
            assert!(!output.status.success(), "{line:?}");
            are_untouched(folder.path(), &["open/dangling", "open/link"], &line.join(" "));
        }
    }
}

#[test]
fn man_pages_replace_what_is_planted_in_their_place() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("pages")).unwrap();
    std::os::unix::fs::symlink("../one", at("pages/wiretax.1")).unwrap();
    std::os::unix::fs::symlink("../new", at("pages/wiretax-lab.1")).unwrap();
    let made = Command::new("mkfifo").arg(at("pages/wiretax-probe.1")).status().unwrap();
    assert!(made.success());
    // A page that goes into the FIFO waits for a reader for ever.
    let output = run(folder.path(), &["man", "pages"]);
    assert!(output.status.success(), "{}", talk(&output));
    for name in ["wiretax.1", "wiretax-lab.1", "wiretax-probe.1"] {
        assert!(fs::symlink_metadata(at("pages").join(name)).unwrap().is_file(), "{name}");
    }
    assert_eq!(fs::read_to_string(at("one")).unwrap(), BEFORE);
    assert!(!at("new").exists());
    assert!(files_below(&at("pages")).iter().all(|name| name.ends_with(".1")));
}

#[test]
fn a_command_that_fails_leaves_outputs_as_they_were() {
    let programs = tempfile::tempdir().unwrap();
    fs::set_permissions(programs.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let captures = tempfile::tempdir().unwrap();
    fs::set_permissions(captures.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let (good, text) = (captures.path().join("good"), captures.path().join("text"));
    fs::copy(capture(), &good).unwrap();
    fs::write(&text, "neither a capture nor results\n").unwrap();
    let (good, text) = (good.to_str().unwrap(), text.to_str().unwrap());
    let both = ["--html", "one", "--rtt-out", "two"];
    // A wrong argument, then something that is found later.
    let observe = [
        &[good, "--anonymise", "--anonymise-key", "nowhere"][..],
        &[good, "--key-log", text],
        &[good, "--prometheus", "0.0.0.0:0"],
        &[good, "nowhere"],
        &[good, "--parquet", "/proc/nowhere"],
        &[text],
        &[good, text],
    ];
    let observe = observe.map(|case| [&["observe"], case, &both[..]].concat());
    let others = [
        &["observe", good, "--html", "one", "--rtt-out", "nowhere/two"][..],
        &["report", "nowhere", "--html", "one"],
        &["report", "/", "--html", "one"],
        &["figures", "one", "nowhere"],
        &["chain", "--server", "127.0.0.1:1", "--save", "one", "--ca", "nowhere"],
        &["chain", "--server", "127.0.0.1:1", "--save", "one"],
        &["lab", "--pcap", "one", "--stats", "two", "--link", "nowhere", "true"],
        &["lab", "--pcap", "one", "--stats", "nowhere/two", "true"],
        &["lab", "--pcap", "one", "--stats", "two", "no-such-program"],
        &["gateway", "survey", "127.0.0.1", "--out", "one", "--interface", "nowhere"],
    ];
    for user in users(programs.path()) {
        let folder = folder();
        open_to_all(folder.path());
        let lines = observe.iter().map(Vec::as_slice).chain(others);
        for line in lines {
            let output = command(&user, folder.path(), line).output().unwrap();
            assert!(!output.status.success(), "{line:?}: {}", talk(&output));
            are_untouched(folder.path(), &[], &line.join(" "));
        }
    }
}

/// Starts a command, waits until it says so on stderr or stdout, and kills it.
fn killed(mut command: Command, ready: &str) {
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = child.spawn().unwrap();
    said(&mut child, ready);
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Waits until a command says so.
fn said(child: &mut Child, ready: &str) {
    let (stdout, stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let (sender, lines) = std::sync::mpsc::channel();
    for stream in [Box::new(stdout) as Box<dyn Read + Send>, Box::new(stderr)] {
        let sender = sender.clone();
        std::thread::spawn(move || {
            BufReader::new(stream)
                .lines()
                .map_while(Result::ok)
                .for_each(|line| drop(sender.send(line)));
        });
    }
    drop(sender);
    let all: Vec<String> = lines.iter().take_while(|line| !line.contains(ready)).collect();
    let ended = child.try_wait().unwrap();
    assert!(ended.is_none(), "it ended ({ended:?}) before it said `{ready}`: {all:?}");
}

#[test]
fn a_command_that_is_killed_leaves_outputs_as_they_were() {
    let programs = tempfile::tempdir().unwrap();
    fs::set_permissions(programs.path(), PermissionsExt::from_mode(0o755)).unwrap();
    for user in users(programs.path()) {
        let folder = folder();
        open_to_all(folder.path());
        let at = folder.path();
        // It reads from a pipe that says nothing.
        let line =
            ["observe", "-", "--html", "one", "--rtt-out", "two", "--prometheus", "127.0.0.1:0"];
        killed(command(&user, at, &line), "metrics at");
        are_untouched(at, &[], "observe");
        // A server that takes the connection and says nothing.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = listener.local_addr().unwrap().to_string();
        let mut child = command(&user, at, &["chain", "--server", &server, "--save", "one"]);
        let mut child = child.stderr(Stdio::null()).spawn().unwrap();
        let connection = listener.accept().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        drop(connection);
        are_untouched(at, &[], "chain");
        let line =
            ["lab", "--pcap", "one", "--stats", "two", "sh", "-c", "echo ready; exec sleep 600"];
        killed(command(&user, at, &line), "ready");
        wait_until("no process left", || processes_of(at).is_empty());
        are_untouched(at, &[], "lab");
    }
}

/// A live capture gives up root, and its outputs appear all the same, where only root may write.
#[test]
fn outputs_of_root_appear_whole_after_it_has_given_up_its_rights() {
    let folder = folder();
    let at = folder.path();
    let own = [wiretax(at).get_program().to_str().unwrap().to_owned()];
    let line = ["observe", "--interface", "lo", "--html", "one", "--rtt-out", "new"];
    let root = fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    let tried = command(&own, at, &["observe", "--interface", "lo", "--duration", "10ms"]).output();
    let tried = talk(&tried.unwrap());
    if !root || !tried.contains("captures continue as user") {
        lab_test::skip!(Need::Root, "this user may not capture as root: {tried}");
    }
    fs::set_permissions(at, PermissionsExt::from_mode(0o700)).unwrap();
    fs::set_permissions(at.join("one"), PermissionsExt::from_mode(0o640)).unwrap();
    killed(command(&own, at, &line), "Ctrl-C ends it");
    wait_until("no process left", || processes_of(at).is_empty());
    are_untouched(at, &[], "kill");

    let mut child = command(&own, at, &line);
    let mut child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    said(&mut child, "Ctrl-C ends it");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    stream.write_all(b"a frame to read").unwrap();
    let interrupt = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(interrupt.success());
    assert!(child.wait().unwrap().success());
    let (one, new) = (fs::metadata(at.join("one")).unwrap(), fs::metadata(at.join("new")).unwrap());
    assert!(fs::read_to_string(at.join("one")).unwrap().contains("</html>"));
    assert!(fs::read_to_string(at.join("new")).unwrap().contains("points"));
    // The new file belongs to whom the capture ran as, the old one to whom it belonged.
    assert_eq!((one.uid(), one.mode() & 0o777, new.uid() == 0), (0, 0o640, false));
    assert_eq!(files_below(at), ["new", "one", "two"]);
    wait_until("no process left", || processes_of(at).is_empty());
}

#[test]
fn what_is_written_at_the_end_replaces_whole_files() {
    let folder = folder();
    let made = run(folder.path(), &[&QUICK[..], &["--out", "results"]].concat());
    assert!(made.status.success(), "{}", talk(&made));
    // A reader that has the old file open goes on to read the old content.
    for (line, name) in [
        (&["report", "results", "--html", "one"][..], "one"),
        (&["man", "pages"], "pages/wiretax-probe.1"),
    ] {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, BEFORE).unwrap();
        let mut old = fs::File::open(&path).unwrap();
        let output = run(folder.path(), line);
        assert!(output.status.success(), "{line:?}: {}{}", data(&output), talk(&output));
        let mut text = String::new();
        old.read_to_string(&mut text).unwrap();
        assert_eq!(text, BEFORE, "{line:?} wrote into the old file");
        assert_ne!(fs::read_to_string(&path).unwrap(), BEFORE, "{line:?}");
    }
}
