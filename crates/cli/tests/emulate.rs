//! `wiretax lab` as a user runs it: any program over an emulated path.

use std::fs;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::support::{
    at_terminal, data, files_below, has, namespaces_of, processes_of, run, still_there, talk,
    wait_until, wiretax,
};

/// Runs a shell script over a path.
fn over(folder: &Path, options: &[&str], script: &str) -> Output {
    run(folder, &[&["lab"], options, &["--", "sh", "-c", script]].concat())
}

#[test]
fn the_programs_exit_status_is_ours() {
    let folder = tempfile::tempdir().unwrap();
    for (script, code) in
        [("exit 0", 0), ("exit 7", 7), ("kill -KILL $$", 137), ("kill -TERM $$", 143)]
    {
        let output = over(folder.path(), &["--rtt", "2ms"], script);
        assert_eq!(output.status.code(), Some(code), "{script}: {}", talk(&output));
    }
    assert_eq!(processes_of(folder.path()), Vec::<u32>::new());
    assert_eq!(files_below(folder.path()), Vec::<String>::new());
}

#[test]
fn streams_and_environment_are_the_users_own() {
    let folder = tempfile::tempdir().unwrap();
    let script = "cat; echo \"$GREETING from $WIRETAX_NODE\" >&2; pwd";
    let mut command = wiretax(folder.path());
    command.args(["-q", "lab", "--", "sh", "-c", script]).env("GREETING", "good day");
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"what was typed\n").unwrap();
    let output = child.wait_with_output().unwrap();
    let here = folder.path().canonicalize().unwrap();
    assert_eq!(data(&output), format!("what was typed\n{}\n", here.display()));
    assert_eq!(talk(&output), "good day from client\n");
}

#[test]
fn the_nodes_know_each_other_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let output = over(folder.path(), &[], "cat /etc/hosts; cat /proc/net/dev");
    let text = data(&output);
    assert!(text.contains("10.77.1.1 client\n") && text.contains("10.77.1.2 server\n"), "{text}");
    let devices = text.lines().filter(|line| line.contains(": ")).count();
    assert_eq!(devices, 2, "lo and link1: {text}");
}

/// A server that the lab starts, found by its name; what it writes is shown, and it ends with the lab.
#[test]
fn a_server_is_waited_for_and_ended() {
    if !has("python3") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("page"), "over the path\n").unwrap();
    let fetch = "import urllib.request as u; print(u.urlopen('http://server:8080/page').read().decode(), end='')";
    let serve = "python3 -u -m http.server 8080";
    let arguments = [
        "lab",
        "--rtt",
        "4ms",
        "--pcap",
        "run.pcapng",
        "--stats",
        "stats.json",
        "--serve",
        serve,
        "python3",
        "-c",
        fetch,
    ];
    let output = run(folder.path(), &arguments);
    let text = talk(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert_eq!(data(&output), "over the path\n");
    assert!(text.contains("server: ") && text.contains("client to server"), "{text}");
    assert_eq!(processes_of(folder.path()), Vec::<u32>::new());
    let stats = fs::read_to_string(folder.path().join("stats.json")).unwrap();
    let stats: serde_json::Value = serde_json::from_str(&stats).unwrap();
    assert_eq!(stats["exit_status"], 0);
    assert!(stats["stats"]["forward"]["link"]["delivered"]["frames"].as_u64() > Some(3), "{stats}");
    let capture = fs::read(folder.path().join("run.pcapng")).unwrap();
    assert!(capture.starts_with(&[0x0a, 0x0d, 0x0d, 0x0a]), "a section header block");
}

#[test]
fn a_server_that_ends_before_the_program_is_reported() {
    if !has("python3") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let listen = "import socket, time; s = socket.create_server((\"\", 8080)); time.sleep(0.3)";
    for (code, hint) in [(3, "see what it wrote"), (0, "keep it in the foreground")] {
        let serve = format!("python3 -c '{listen}'; exit {code}");
        let output = run(folder.path(), &["lab", "--serve", &serve, "sleep", "1.5"]);
        let text = talk(&output);
        assert_eq!(output.status.code(), Some(0), "{text}");
        let said = format!("ended before the program (exit status: {code})");
        assert!(text.contains(&said) && text.contains(hint), "{text}");
    }
}

#[test]
fn a_server_that_ends_at_once_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let serve = "echo 'no such port' >&2; exit 3";
    let output = run(folder.path(), &["lab", "--serve", serve, "true"]);
    let text = talk(&output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(
        text.contains("ended before it listened") && text.contains("server: no such port"),
        "{text}"
    );
}

#[test]
fn what_cannot_be_run_is_said() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("text"), "no program").unwrap();
    for (arguments, code, says) in [
        (&["lab", "no-such-program"][..], 127, &["no program `no-such-program`", "hint:"][..]),
        (&["lab", "--", "./text"], 126, &["cannot be executed"]),
        (&["lab"], 2, &["<PROGRAM>"]),
        (&["lab", "--rt", "5ms", "true"], 2, &["--rt", "--rtt"]),
        (&["lab", "--link", "5g", "true"], 2, &["5g", "lte", "3g-0.9"]),
        (&["lab", "--queue", "long", "true"], 2, &["`long` is not a queue", "codel"]),
        (&["lab", "--rate", "20mbit/5", "true"], 2, &["no unit"]),
        (&["lab", "--profiles", "true"], 2, &["cannot be used with"]),
        (&["lab", "--rtt", "50", "true"], 2, &["no unit"]),
        (&["lab", "--trace-up", "nowhere", "true"], 2, &["nowhere"]),
        (&["lab", "--shell", "client", "true"], 2, &["cannot be used with"]),
        (&["lab", "--pcap", "no/such/folder.pcapng", "true"], 4, &["no/such/folder.pcapng"]),
    ] {
        let output = run(folder.path(), arguments);
        let text = talk(&output);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
        for part in says {
            assert!(text.contains(part), "{arguments:?} does not say `{part}`: {text}");
        }
        assert_eq!(text.matches("error:").count(), 1, "{arguments:?}: one error: {text}");
    }
    assert_eq!(files_below(folder.path()), ["text"]);
}

/// A folder of `PATH` that may not be looked into, as root's is to others, does not hide that.
#[test]
fn a_folder_without_rights_is_no_program() {
    let folder = tempfile::tempdir().unwrap();
    let closed = folder.path().join("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, std::os::unix::fs::PermissionsExt::from_mode(0o000)).unwrap();
    let path = format!("{}:{}", closed.display(), std::env::var("PATH").unwrap());
    let output =
        wiretax(folder.path()).args(["lab", "no-such-program"]).env("PATH", path).output().unwrap();
    assert_eq!(output.status.code(), Some(127), "{}", talk(&output));
}

/// A signal is for the program, which may take it as it likes; nothing is left when it has ended.
#[test]
fn an_interrupt_goes_to_the_program() {
    for whole_group in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let script = "trap 'echo interrupted; exit 9' INT; touch up; while :; do sleep 0.02; done";
        let mut command = wiretax(folder.path());
        command.args([
            "lab",
            "--rtt",
            "2ms",
            "--serve",
            "exec sleep 300",
            "--",
            "sh",
            "-c",
            script,
        ]);
        let child = command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = child.spawn().unwrap();
        wait_until("the program", || folder.path().join("up").exists());
        let own = namespaces_of(&[std::process::id()]);
        let theirs =
            namespaces_of(&processes_of(folder.path())).difference(&own).cloned().collect();
        let target = format!("{}{}", if whole_group { "-" } else { "" }, child.id());
        assert!(Command::new("kill").args(["-INT", "--", &target]).status().unwrap().success());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(9), "{}", talk(&output));
        assert_eq!(data(&output), "interrupted\n");
        wait_until("no process left", || processes_of(folder.path()).is_empty());
        wait_until("no namespace left", || still_there(&theirs).is_empty());
    }
}

#[test]
fn a_program_that_ignores_termination_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let script = "trap '' TERM; touch up; while :; do sleep 0.02; done";
    let mut command = wiretax(folder.path());
    command.args(["lab", "--pcap", "pcap", "--", "sh", "-c", script]).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    wait_until("the program", || folder.path().join("up").exists());
    // Those that come at once are one wish.
    let mut ended = false;
    while !ended {
        let id = child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        std::thread::sleep(std::time::Duration::from_millis(50));
        ended = child.try_wait().unwrap().is_some();
    }
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(143), "{}", talk(&output));
    wait_until("no process left", || processes_of(folder.path()).is_empty());
    assert_eq!(files_below(folder.path()), ["pcap", "up"], "what was captured is kept");
}

/// At a terminal: Ctrl-C ends the program, the shell has job control, and the terminal is given back.
#[test]
fn a_shell_has_the_terminal() {
    if !has("script") || !has("bash") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = wiretax(folder.path()).get_program().to_string_lossy().into_owned();
    let inside = format!("SHELL=/bin/bash {program} lab --shell client");
    let line = format!("sh -c '{inside}; echo code $?; read line; echo read $line'");
    let mut child = at_terminal(folder.path(), &line)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"touch started\n").unwrap();
    wait_until("the shell", || folder.path().join("started").exists());
    // Ctrl-C ends the sleep, not the shell.
    // One job says that it runs and sleeps, so that the signal finds it in the foreground.
    input.write_all(b"sh -c 'touch sleeping; exec sleep 300'\n").unwrap();
    wait_until("the sleep", || folder.path().join("sleeping").exists());
    input.write_all(b"\x03").unwrap();
    input.write_all(b"touch after; exit 4\n").unwrap();
    wait_until("the shell goes on", || folder.path().join("after").exists());
    input.write_all(b"a line\n").unwrap();
    let output = child.wait_with_output().unwrap();
    let text = data(&output);
    assert!(text.contains("code 4"), "{text}");
    assert!(text.contains("read a line"), "the terminal is given back: {text}");
    assert!(!text.contains("no job control"), "{text}");
}

/// A shell at the other end, fed by a pipe.
#[test]
fn a_shell_on_the_server_is_on_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = wiretax(folder.path());
    command.args(["lab", "--rtt", "2ms", "--shell", "server"]).env("SHELL", "/bin/sh");
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"echo \"$WIRETAX_NODE\"; grep -cw client /etc/hosts; exit 5\n").unwrap();
    let output = child.wait_with_output().unwrap();
    let said = talk(&output);
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert_eq!(data(&output), "server\n1\n", "{said}");
    assert!(said.contains("on the node server; the other node is called client"), "{said}");
    assert_eq!(processes_of(folder.path()), Vec::<u32>::new());
}

/// What the counters' file says.
fn stats(folder: &Path) -> serde_json::Value {
    let text = fs::read_to_string(folder.join("stats.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn a_named_link_and_a_trace_carry_a_download() {
    if !has("python3") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("www")).unwrap();
    fs::write(folder.path().join("www/page"), vec![b'x'; 30_000]).unwrap();
    // A packet of 1500 bytes each millisecond: 12 Mbit/s, in mahimahi's format.
    fs::write(folder.path().join("down"), "1\n2\n3\n4\n5\n").unwrap();
    let fetch =
        "import urllib.request as u; print(len(u.urlopen('http://server:8080/page').read()))";
    let serve = "exec python3 -u -m http.server --directory www 8080";
    let options = ["lab", "--link", "lte", "--trace-down", "down", "--stats", "stats.json"];
    let program = ["--serve", serve, "python3", "-c", fetch];
    let output = run(folder.path(), &[&options[..], &program[..]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", talk(&output));
    assert_eq!(data(&output), "30000\n");
    let stats = stats(folder.path());
    let path = &stats["path"];
    assert_eq!(path["forward"]["rate"], "12mbit/ip", "{path}");
    assert_eq!(path["backward"]["rate"]["trace"], serde_json::json!([1, 2, 3, 4, 5]), "{path}");
    for way in ["forward", "backward"] {
        assert_eq!(path[way]["delay"], "35ms", "{path}");
        assert_eq!(path[way]["queue"]["bytes"], "750kB", "{path}");
    }
    let delivered = &stats["stats"]["backward"]["link"]["delivered"]["bytes"];
    assert!(delivered.as_u64() > Some(30_000), "{stats}");
}

/// Nothing leaves before the trace's first opportunity, here after an hour.
#[test]
fn a_trace_without_an_opportunity_lets_nothing_through() {
    if !has("python3") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("up"), "3600000\n").unwrap();
    let send = "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
                for n in range(9): s.sendto(b'x', ('server', 9))";
    let options = ["lab", "--rtt", "2ms", "--trace-up", "up", "--stats", "stats.json"];
    let output = run(folder.path(), &[&options[..], &["python3", "-c", send]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", talk(&output));
    let stats = stats(folder.path());
    let forward = &stats["stats"]["forward"];
    assert_eq!(forward["link"]["delivered"]["frames"], 0, "{forward}");
}

/// A machine of its own, as far as networks go, with a default route and one host behind it: what the lab
/// joins is there, and gone afterwards.
const MACHINE: &str = r#"
set -eu
wiretax=$1
ip link set lo up
ip link add uplink type veth peer name internet
unshare --net sh -c 'echo up; exec sleep 60' >there 2>&1 & host=$!
until grep -q up there; do sleep 0.02; done
ip link set internet netns "$host"
inside() { nsenter --target "$host" --net "$@"; }
inside ip address add 198.51.100.1/24 dev internet
inside ip link set internet up
ip address add 198.51.100.2/24 dev uplink
ip link set uplink up
ip route add default via 198.51.100.1
nsenter --target "$host" --net python3 -c '
import socket
server = socket.create_server(("", 7000))
print("listens", flush=True)
while True:
    peer, address = server.accept()
    peer.sendall(address[0].encode())
    peer.close()' >listens 2>errors & server=$!
trap 'kill "$host" "$server"' EXIT
until grep -q listens listens; do sleep 0.02; done
ask='import socket; print(socket.create_connection(("198.51.100.1", 7000)).recv(99).decode())'
"$wiretax" -q lab --outside true 2>refused && exit 9 || echo "without forwarding: $?"
sysctl -q -w net.ipv4.conf.uplink.forwarding=1
"$wiretax" -q lab --rtt 4ms --outside -- python3 -c "$ask"
# Who is beyond the machine connects to no node; the machine itself may. No address is of a network that some
# route leads to, whatever its table.
ip route add blackhole 198.18.0.0/15 table 52
cat >serve.py <<'END'
import socket
server = socket.create_server(("", 7001))
while True:
    server.accept()[0].close()
END
mkfifo over
"$wiretax" -q lab --outside --serve 'python3 serve.py' -- sh -c 'echo >up; read line <over' & lab=$!
trap 'kill "$host" "$server" "$lab"' EXIT
until [ -e up ]; do sleep 0.02; done
outer=$(ip -4 -o address | grep -o 'inet 172[.][0-9.]*' | cut -c 6-)
inner=${outer%.*}.$((${outer##*.} + 1))
inside ip route add "$inner" via 198.51.100.2
connect="import socket; socket.create_connection(('$inner', 7001), 1)"
python3 -c "$connect" && echo "the machine connects"
inside python3 -c "$connect" 2>dropped || grep -o -m 1 'timed out' dropped
echo >over
wait "$lab"
trap 'kill "$host" "$server"' EXIT
# The kernel takes a namespace that nobody is in apart some time later.
for _ in $(seq 600); do
    [ "$(ip -brief link | wc -l)" -gt 2 ] || [ -n "$(nft list ruleset)" ] || break
    sleep 0.05
done
nft list ruleset
ip -brief link | wc -l
"#;

#[test]
fn the_way_out_hides_the_lab_behind_the_machine_and_leaves_nothing() {
    let root =
        fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
    if !root {
        lab_test::skipped(lab_test::Need::Root, "the way out is made by root");
        return;
    }
    if !["unshare", "nsenter", "ip", "nft", "python3", "sysctl"].iter().all(|program| has(program))
    {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("machine.sh"), MACHINE).unwrap();
    let program = wiretax(folder.path()).get_program().to_owned();
    let mut command = Command::new("unshare");
    command.args(["--net", "bash", "machine.sh"]).arg(program).current_dir(folder.path());
    let output = command.stdin(Stdio::null()).output().unwrap();
    let said = talk(&output);
    assert!(output.status.success(), "{said}");
    // The host sees the machine's address; afterwards there is no table, and no interface but the two.
    let wanted = "without forwarding: 3\n198.51.100.2\nthe machine connects\ntimed out\n2\n";
    assert_eq!(data(&output), wanted, "{said}");
    let refused = fs::read_to_string(folder.path().join("refused")).unwrap();
    assert!(refused.contains("does not forward") && refused.contains("hint:"), "{refused}");
}

/// A FIFO has a reader, as Wireshark; it gets the capture and stays a FIFO.
#[test]
fn a_capture_may_go_into_a_fifo() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let reader = std::thread::spawn({
        let fifo = fifo.clone();
        move || fs::read(fifo)
    });
    let output = over(folder.path(), &["--pcap", "fifo"], "true");
    assert_eq!(output.status.code(), Some(0), "{}", talk(&output));
    assert!(reader.join().unwrap().unwrap().starts_with(&[0x0a, 0x0d, 0x0d, 0x0a]));
    assert!(!fs::symlink_metadata(&fifo).unwrap().is_file());
}

/// Rates of each way reach the path, and a program's own receive buffer is named with what the path holds.
#[test]
fn each_way_has_its_rate_and_what_held_a_download_is_named() {
    if !has("python3") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let serve = "import socket\n\
                 s = socket.socket(); s.bind(('', 9000)); s.listen()\n\
                 c, _ = s.accept(); c.sendall(b'x' * 600000); c.close()\n";
    let fetch = "import socket\n\
                 s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 20000)\n\
                 s.connect(('server', 9000))\n\
                 while s.recv(65536): pass\n";
    fs::write(folder.path().join("serve.py"), serve).unwrap();
    fs::write(folder.path().join("fetch.py"), fetch).unwrap();
    let options = ["lab", "--rtt", "200ms", "--rate", "50mbit/5mbit", "--stats", "stats.json"];
    let programs = ["--serve", "python3 serve.py", "python3", "fetch.py"];
    let output = run(folder.path(), &[&options[..], &programs].concat());
    let text = talk(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    let stats = fs::read_to_string(folder.path().join("stats.json")).unwrap();
    let stats: serde_json::Value = serde_json::from_str(&stats).unwrap();
    assert_eq!(stats["path"]["backward"]["rate"], "50mbit");
    assert_eq!(stats["path"]["forward"]["rate"], "5mbit");
    // A kernel that lists no sockets says nothing of them.
    let Some(held) = stats["held"].as_array() else { return };
    let down = held.iter().find(|way| way["direction"] == "down").expect("a download");
    // 50 Mbit/s of 200 ms.
    assert_eq!(down["bandwidth_delay_bytes"], 1_250_000.0);
    let causes: Vec<_> = down["reasons"].as_array().unwrap().iter().collect();
    let window = causes.iter().find(|reason| reason["cause"] == "receive-window");
    let said = window.expect("the receive window")["text"].as_str().unwrap();
    assert!(said.contains("the path holds 1.2 MB in a round trip of 200 ms"), "{said}");
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("What held it: receive window for"), "{text}");
}

#[test]
fn named_links_and_the_format_of_a_profile_are_listed() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), &["lab", "--profiles"]);
    let text = data(&output);
    assert_eq!(output.status.code(), Some(0), "{}", talk(&output));
    assert!(text.contains("  lte ") && text.contains("[backward]"), "{text}");
    // The printed file is a profile.
    let (_, file) = text.split_once("\n\nname").expect("a file");
    fs::write(folder.path().join("own.toml"), format!("name{file}")).unwrap();
    let output = over(folder.path(), &["--link", "own.toml", "--stats", "stats.json"], "true");
    assert_eq!(output.status.code(), Some(0), "{}", talk(&output));
    let stats = fs::read_to_string(folder.path().join("stats.json")).unwrap();
    assert!(stats.contains("\"20mbit/ip\""), "{stats}");
}
