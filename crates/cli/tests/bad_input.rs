//! What bad input gets: one clear error that says what to do, a status of its own, nothing written.

use std::fs;

use crate::support::{
    QUICK, copy_folder, data, files_below, has, processes_of, run, talk, wiretax,
};

/// Runs with `arguments` in an empty folder; the status and every text must come, nothing else.
fn refuses(arguments: &[&str], status: i32, says: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), arguments);
    let text = talk(&output);
    assert_eq!(output.status.code(), Some(status), "{arguments:?}\n{text}");
    for part in says {
        assert!(text.contains(part), "{arguments:?} does not say `{part}`:\n{text}");
    }
    assert_eq!(text.matches("error:").count(), 1, "{arguments:?}: one error\n{text}");
    assert_eq!(data(&output), "", "{arguments:?}: no data");
    assert_eq!(processes_of(folder.path()), Vec::<u32>::new(), "{arguments:?}: nothing left");
    assert_eq!(files_below(folder.path()), Vec::<String>::new(), "{arguments:?}: nothing written");
}

#[test]
fn a_typo_is_answered_with_what_was_meant() {
    refuses(&["handshaek"], 2, &["handshaek", "handshake"]);
    refuses(&["handshake", "--rt", "20ms"], 2, &["--rt", "--rtt"]);
}

#[test]
fn wrong_quantities_say_how_to_write_them() {
    refuses(&["handshake", "--rtt", "20"], 2, &["no unit", "20ms"]);
    refuses(&["handshake", "--rtt", "20 lightyears"], 2, &["unit is not", "20ms"]);
    refuses(&["handshake", "--rtt", "20s"], 2, &["at most 10s"]);
    refuses(&["handshake", "--loss", "1.5"], 2, &["more than 100%"]);
    refuses(&["handshake", "--loss", "90%"], 2, &["at most 50%"]);
    refuses(&["handshake", "--rate", "10mbps"], 2, &["mbit"]);
    refuses(&["handshake", "--repeat", "0"], 2, &["--repeat", "0 is not in"]);
    refuses(&["handshake", "--chain", "0"], 2, &["chain is 0"]);
    refuses(&["handshake", "--timeout", "soon"], 2, &["soon", "hint: write it like"]);
    refuses(&["handshake", "--timeout", "0s"], 2, &["a timeout of 0"]);
    refuses(&["handshake", "--rtt", ""], 2, &["it does not begin with a number"]);
    refuses(&["handshake", "--seed=-1"], 2, &["--seed"]);
    refuses(&["handshake", "--loss", "-1%"], 2, &["`-1%` is not a probability", "0.5%"]);
    refuses(&["lab", "--rtt", "-5ms", "true"], 2, &["`-5ms` is not a delay", "20ms"]);
}

#[test]
fn wrong_names_list_the_right_ones() {
    refuses(&["handshake", "--mode", "tcp+tls14"], 2, &["tcp+tls14", "tcp+tls13-0rtt"]);
    refuses(&["handshake", "--from", "tls9", "--rtt", "1ms"], 2, &["tls9", "tcp+tls12"]);
    refuses(&["handshake", "--profile", "5g"], 2, &["5g", "lte"]);
    refuses(&["handshake", "--key", "rsa512"], 2, &["rsa512", "rsa-2048"]);
    refuses(&["handshake", "--group", "ffdhe"], 2, &["ffdhe", "x25519"]);
    refuses(&["handshake", "--library", "gnutls"], 2, &["gnutls", "rustls"]);
    refuses(&["handshake", "--scale", "huge"], 2, &["huge", "quick"]);
}

#[test]
fn what_no_library_can_do_is_said_before_anything_starts() {
    let arguments = ["handshake", "--mode", "tcp+tls12-rsa", "--library", "rustls"];
    refuses(&arguments, 2, &["rustls has no RSA key exchange"]);
}

#[test]
fn wrong_files_are_named() {
    refuses(&["handshake", "--plan", "nowhere.toml"], 2, &["nowhere.toml", "No such file"]);
    refuses(&["handshake", "--clients", "nowhere.txt", "--rtt", "1ms"], 2, &["nowhere.txt"]);
    refuses(&["report", "nowhere"], 4, &["nowhere"]);
    refuses(&["compare", "nowhere", "elsewhere"], 4, &["nowhere"]);
    refuses(&["handshake", "--resume", "nowhere"], 4, &["nowhere"]);
    refuses(&["run", "--resume", "nowhere"], 4, &["nowhere", "hint: give the folder"]);
    refuses(&["man", "/proc/nowhere"], 4, &["/proc/nowhere", "hint: choose another"]);
}

#[test]
fn options_of_live_captures_are_refused_with_files() {
    for option in
        [&["--port", "443"][..], &["--promiscuous"], &["--ring", "8"], &["--duration", "1s"]]
    {
        refuses(
            &[&["observe", "some.pcap"], option].concat(),
            2,
            &[option[0], "cannot be used with"],
        );
    }
}

#[test]
fn a_place_for_counters_is_looked_at_before_the_program_runs() {
    let arguments = ["lab", "--stats", "nowhere/s.json", "--", "touch", "ran"];
    refuses(&arguments, 4, &["nowhere/s.json cannot be written", "hint:"]);
}

#[test]
fn wrong_contents_say_where() {
    let folder = tempfile::tempdir().unwrap();
    let cases = [
        ("plan.toml", "--plan", "[scale.quick]\nsweep = 3\n", "not a plan"),
        ("empty.toml", "--plan", "", "not a plan"),
        ("clients.txt", "--clients", "25ms\nfast\n", "line 2"),
        ("none.txt", "--clients", "# nobody\n", "none.txt"),
        ("up.trace", "--trace-up", "0\n5\nsix\n", "line 3"),
        ("back.trace", "--trace-down", "0\n5\n4\n", "line 3"),
        ("empty.trace", "--trace-up", "", "empty.trace: the trace is empty"),
        ("path.toml", "--profile", "name = 1\n", "path.toml"),
        ("slow.toml", "--profile", "[forward]\ndelay = \"5 parsecs\"\n", "slow.toml"),
    ];
    for (name, option, contents, says) in cases {
        fs::write(folder.path().join(name), contents).unwrap();
        let output = run(folder.path(), &["handshake", "--rtt", "1ms", option, name]);
        // A plan cannot be combined with axes, and says so only once it is read.
        let output = match option {
            "--plan" => run(folder.path(), &["handshake", option, name]),
            _ => output,
        };
        let text = talk(&output);
        assert_eq!(output.status.code(), Some(2), "{name}: {text}");
        assert!(text.contains(says), "{name}: {text}");
        assert!(text.contains(name), "{name} is named: {text}");
        assert_eq!(text.matches("error:").count(), 1, "{name}: one error\n{text}");
        assert_eq!(data(&output), "", "{name}");
    }
    // A binary file, for which text was meant.
    fs::write(folder.path().join("plan.bin"), [0xff, 0xfe, 0x00]).unwrap();
    let output = run(folder.path(), &["handshake", "--plan", "plan.bin"]);
    assert!(talk(&output).contains("not text"), "{}", talk(&output));
}

#[test]
fn a_folder_that_cannot_be_written_leaves_nothing() {
    let arguments = ["handshake", "--rtt", "0.4ms", "--mode", "tcp", "--repeat", "1"];
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "in the way").unwrap();
    let output = run(folder.path(), &[&arguments[..], &["--out", "file/results"]].concat());
    let text = talk(&output);
    assert_eq!(output.status.code(), Some(4), "{text}");
    assert!(text.contains("file/results"), "{text}");
    assert_eq!(files_below(folder.path()), ["file"]);

    // A file system that nobody may write to, root included.
    let output = run(folder.path(), &[&arguments[..], &["--out", "/proc/results"]].concat());
    assert_eq!(output.status.code(), Some(4), "{}", talk(&output));
    assert_eq!(talk(&output).matches("error:").count(), 1, "{}", talk(&output));
}

#[test]
fn a_full_disk_is_one_error_and_the_samples_before_it_stay_whole() {
    if !(has("unshare") && has("mount")) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let script = "mount -t tmpfs -o size=32k none . && cd . && \
                  \"$0\" -q handshake --mode tcp --rtt 0.4ms --repeat 400 --no-calibration \
                  --out \"$PWD/full\"; code=$?; tail -c 1 full/samples.jsonl | od -An -c; \
                  ls full; exit $code";
    let mut command = wiretax(folder.path());
    let program = command.get_program().to_owned();
    let output = std::process::Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c"])
        .arg(script)
        .arg(program)
        .current_dir(folder.path())
        .env("NO_COLOR", "1")
        .output()
        .unwrap();
    command.arg("--version");
    let text = talk(&output);
    if text.contains("mount:") || text.contains("unshare:") {
        lab_test::skip!(lab_test::Need::Lab, "no mount in a user namespace here: {text}");
    }
    assert_eq!(output.status.code(), Some(4), "{text}");
    assert!(text.contains("the disk is full") && text.contains("hint: make room"), "{text}");
    assert_eq!(text.matches("error:").count(), 1, "{text}");
    assert!(data(&output).contains("Mode   RTT"), "what was found is shown: {}", data(&output));
    assert!(data(&output).contains("\\n"), "the last line is whole: {}", data(&output));
    assert!(!data(&output).contains("partial"), "nothing half-written: {}", data(&output));
}

#[test]
fn without_permission_for_namespaces_it_says_how_to_get_it() {
    if !(has("unshare") && has("setpriv")) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = wiretax(folder.path()).get_program().to_owned();
    // A user namespace that allows none inside, and a process in it without capabilities.
    let script = "echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-all \
                  --inh-caps=-all \"$0\" handshake --mode tcp --rtt 0.4ms --repeat 1";
    let output = std::process::Command::new("unshare")
        .args(["--user", "--map-root-user", "sh", "-c"])
        .arg(script)
        .arg(program)
        .current_dir(folder.path())
        .env("NO_COLOR", "1")
        .output()
        .unwrap();
    let text = talk(&output);
    if text.contains("unshare:") || text.contains("setpriv:") {
        lab_test::skip!(lab_test::Need::Lab, "cannot make a namespace without rights here: {text}");
    }
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(text.contains("max_user_namespaces") && text.contains("hint:"), "{text}");
    assert_eq!(files_below(folder.path()), Vec::<String>::new());
}

#[test]
fn a_chart_of_nothing_says_what_is_missing() {
    let captures = concat!(env!("CARGO_MANIFEST_DIR"), "/../proto/tracker/tests/data");
    let capture = format!("{captures}/openssl-3.0-modes.pcap");
    refuses(&["sequence", "nowhere.pcap"], 2, &["nowhere.pcap"]);
    refuses(&["sequence", &capture, "--key-log", "nowhere.txt"], 2, &["nowhere.txt", "hint: name"]);
    refuses(&["sequence", &capture], 2, &["there are no TLS secrets of it", "--key-log"]);
    refuses(&["sequence", &capture, "--key-log", &capture], 2, &["has no TLS secrets"]);
    let keys = format!("{captures}/README.md");
    refuses(&["sequence", &capture, "--keys", &keys], 2, &["has no TLS secrets", "SSLKEYLOGFILE"]);
}

#[test]
fn a_host_that_does_not_exist_is_one_error() {
    refuses(&["probe", "no-such-host.invalid", "--timeout", "1s"], 1, &["no-such-host.invalid"]);
    refuses(&["probe", "example.org:99999"], 2, &["99999"]);
    refuses(&["probe", "https://example.org/"], 2, &["URL", "hint: write example.org"]);
    refuses(&["probe", ""], 2, &[]);
    refuses(&["probe", "127.0.0.1", "--ca", "nowhere.pem"], 2, &["nowhere.pem"]);
    refuses(&["probe", "127.0.0.1", "--repeat", "11"], 2, &["11"]);
}

#[test]
fn a_plan_file_and_axes_exclude_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let plan = "[scale.quick]\nsweep = [{ name = \"s\", mode = [\"tcp\"], rtt = [\"1ms\"], repeat = 1 }]\n";
    fs::write(folder.path().join("plan.toml"), plan).unwrap();
    let output = run(folder.path(), &["handshake", "--plan", "plan.toml", "--rtt", "20ms"]);
    assert_eq!(output.status.code(), Some(2), "{}", talk(&output));
    assert!(talk(&output).contains("hint: put the axes into the plan"), "{}", talk(&output));
    let output = run(folder.path(), &["handshake", "--plan", "plan.toml", "--scale", "huge"]);
    assert_eq!(output.status.code(), Some(2), "{}", talk(&output));
    assert!(talk(&output).contains("no scale is called `huge`"), "{}", talk(&output));
    assert!(talk(&output).ends_with("hint: there are: quick\n"), "its own: {}", talk(&output));
}

#[test]
fn a_kernel_without_netem_says_where_to_get_it() {
    let folder = tempfile::tempdir().unwrap();
    let doctor = data(&run(folder.path(), &["doctor", "--json"]));
    let facts: Vec<serde_json::Value> = serde_json::from_str(&doctor).unwrap();
    if facts.iter().any(|fact| fact["name"] == "netem" && fact["ok"] == true) {
        lab_test::skip!(lab_test::Need::Host, "this kernel has netem");
    }
    refuses(
        &[&QUICK[..], &["--backend", "netem"]].concat(),
        3,
        &["no netem", "hint: load it with"],
    );
}

#[test]
fn results_that_are_damaged_say_where() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), &[&QUICK[..], &["--out", "good"]].concat());
    assert!(output.status.success(), "{}", talk(&output));
    let damage = |file: &str, change: &dyn Fn(String) -> String, says: &[&str]| {
        let bad = folder.path().join("bad");
        copy_folder(&folder.path().join("good"), &bad);
        let path = bad.join(file);
        fs::write(&path, change(fs::read_to_string(&path).unwrap())).unwrap();
        let before = files_below(&bad);
        for arguments in [
            &["report", "bad", "--html", "new.html"][..],
            &["compare", "bad", "good"],
            &["compare", "good", "bad"],
            &["handshake", "--resume", "bad"],
        ] {
            let output = run(folder.path(), arguments);
            let text = talk(&output);
            assert_eq!(output.status.code(), Some(4), "{arguments:?}: {text}");
            for part in says {
                assert!(text.contains(part), "{arguments:?} does not say `{part}`: {text}");
            }
            assert_eq!(text.matches("error:").count(), 1, "{arguments:?}: {text}");
            assert_eq!(data(&output), "", "{arguments:?}");
        }
        assert_eq!(files_below(&bad), before, "nothing was written");
        assert!(!folder.path().join("new.html").exists());
        fs::remove_dir_all(&bad).unwrap();
    };
    let cut = |text: String| text[..text.len() / 2].to_owned();
    damage("manifest.json", &cut, &["manifest.json: line ", "hint: restore the file"]);
    let newer = |text: String| text.replacen("\"schema\": \"1.", "\"schema\": \"99.", 1);
    damage("manifest.json", &newer, &["99.", "hint: use a newer wiretax"]);
    let garbled = |text: String| text.replacen("\"repeat\":1", "\"repeat\":one", 1);
    damage("samples.jsonl", &garbled, &["samples.jsonl: line 2: column", "hint: restore the file"]);
    // Whole lines, of what is no sample.
    let other = |text: String| format!("{{\"a\":1}}\n{text}");
    damage("samples.jsonl", &other, &["samples.jsonl: line 1"]);
}

#[test]
fn results_of_another_plan_are_not_mixed_with_this_one() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), &[&QUICK[..], &["--out", "a"]].concat());
    assert!(output.status.success(), "{}", talk(&output));
    let before = fs::read(folder.path().join("a/samples.jsonl")).unwrap();
    for other in [&["--mode", "tcp", "--rtt", "1ms"][..], &["--seed", "7"]] {
        let output = run(folder.path(), &[&["handshake", "--resume", "a"], other].concat());
        let text = talk(&output);
        assert_eq!(output.status.code(), Some(4), "{text}");
        assert!(text.contains("another plan") && text.contains("hint: use the same"), "{text}");
    }
    let output = run(folder.path(), &[&QUICK[..], &["--out", "a"]].concat());
    assert_eq!(output.status.code(), Some(4), "{}", talk(&output));
    assert!(talk(&output).contains("already holds results"), "{}", talk(&output));
    assert_eq!(fs::read(folder.path().join("a/samples.jsonl")).unwrap(), before);
    // The same options again: nothing is left to measure.
    let output = run(folder.path(), &[&QUICK[..], &["--resume", "a"]].concat());
    assert!(output.status.success(), "{}", talk(&output));
    assert_eq!(fs::read(folder.path().join("a/samples.jsonl")).unwrap(), before);
}

#[test]
fn results_without_samples_are_no_results_yet() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), &[&QUICK[..], &["--out", "a"]].concat());
    assert!(output.status.success(), "{}", talk(&output));
    fs::write(folder.path().join("a/samples.jsonl"), "").unwrap();
    let output = run(folder.path(), &["report", "a"]);
    assert_eq!(output.status.code(), Some(5), "{}", talk(&output));
    assert!(talk(&output).contains("hint: continue with --resume a"), "{}", talk(&output));
}

#[test]
fn a_read_only_file_system_leaves_nothing() {
    if !(has("unshare") && has("mount")) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let script = "mount -t tmpfs -o ro none . && cd . && exec \"$@\"";
    let mut command = std::process::Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"]);
    command.arg(wiretax(folder.path()).get_program()).args(QUICK).args(["--out", "results"]);
    let output = command.current_dir(folder.path()).env("NO_COLOR", "1").output().unwrap();
    let text = talk(&output);
    if text.contains("mount:") || text.contains("unshare:") {
        lab_test::skip!(lab_test::Need::Lab, "no mount in a user namespace here: {text}");
    }
    assert_eq!(output.status.code(), Some(4), "{text}");
    assert!(text.contains("read-only") && text.contains("hint: choose a folder"), "{text}");
    assert_eq!(data(&output), "");
}
