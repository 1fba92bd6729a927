//! `wiretax figures`: which results may stand on a page, and what stands there beside them. And results
//! whose plan cannot be read.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::{Value, json};

use crate::support::{data, run, talk};

/// A folder with results of two modes, made of the committed ones, and a page for their figures.
struct Results {
    folder: tempfile::TempDir,
}

const PAGE: &str = "# Page\n\n<!-- figures:handshake -->\n<!-- /figures -->\n";

impl Results {
    fn new() -> Results {
        let folder = tempfile::tempdir().unwrap();
        let committed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results/handshake");
        let samples = fs::read_to_string(committed.join("samples.jsonl")).unwrap();
        let wanted = ["\"mode\":\"tcp+tls12\"", "\"mode\":\"tcp+tls13\""];
        let few = samples.lines().filter(|line| wanted.iter().any(|mode| line.contains(mode)));
        let few: String = few.map(|line| format!("{line}\n")).collect();
        assert!(!few.is_empty());
        let results = folder.path().join("results");
        fs::create_dir(&results).unwrap();
        fs::write(results.join("samples.jsonl"), few).unwrap();
        fs::copy(committed.join("manifest.json"), results.join("manifest.json")).unwrap();
        fs::write(folder.path().join("page.md"), PAGE).unwrap();
        let results = Results { folder };
        // Whichever are committed: of this commit and day, with this warning.
        results.change(|manifest| {
            let session = &mut manifest["sessions"][0];
            session["tool"]["commit"] = json!(COMMIT);
            session["started"] = json!("2026-11-21T09:00:00Z");
            let warning = &mut manifest["warnings"][0];
            warning["what"] = json!("the load average was 1.15 on 2 processors");
        });
        results
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn change(&self, change: impl FnOnce(&mut Value)) {
        let path = self.path("results/manifest.json");
        let mut manifest = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        change(&mut manifest);
        fs::write(path, manifest.to_string()).unwrap();
    }

    fn page(&self) -> String {
        fs::read_to_string(self.path("page.md")).unwrap()
    }

    fn run(&self, arguments: &[&str]) -> Output {
        run(self.folder.path(), arguments)
    }
}

const COMMIT: &str = "fc0846a1d1087a4d618b654e8a9a9606f040dcf8";

/// A change of a manifest.
type Change<'a> = &'a dyn Fn(&mut Value);

/// One more session, of another commit.
fn add_session(manifest: &mut Value, commit: &str) {
    let mut other = manifest["sessions"][0].clone();
    other["tool"]["commit"] = json!(commit);
    manifest["sessions"].as_array_mut().unwrap().push(other);
}

#[test]
fn figures_name_the_commit_and_the_warnings() {
    let results = Results::new();
    let output = results.run(&["figures", "page.md", "results"]);
    assert!(output.status.success(), "{}", talk(&output));
    let (said, page) = (talk(&output), results.page());
    assert!(said.contains(&format!("session 1 is of {COMMIT}")), "{said}");
    assert!(said.contains("warning: results: the load average was 1.15"), "{said}");
    assert!(
        page.contains("Measured by commit `fc0846a1d108`. Warnings: the load average"),
        "{page}"
    );
    assert!(results.run(&["figures", "page.md", "results", "--check"]).status.success());
}

#[test]
fn figures_of_changed_sources_or_of_several_commits_are_refused() {
    let dirty = |manifest: &mut Value| {
        manifest["sessions"][0]["tool"]["commit"] = json!(format!("{COMMIT}-dirty"));
    };
    let mixed = |manifest: &mut Value| add_session(manifest, "87de933fceab1fe61332c3c2258a5e47");
    let unknown = |manifest: &mut Value| manifest["sessions"][0]["tool"]["commit"] = Value::Null;
    let changes: [(Change, &str); 3] = [
        (&dirty, "session 1 is of fc0846a1d108-dirty"),
        (&mixed, "session 1 is of fc0846a1d108, session 2 is of 87de933fceab"),
        (&unknown, "session 1 is of an unknown commit"),
    ];
    for (change, says) in changes {
        let results = Results::new();
        results.change(change);
        let output = results.run(&["figures", "page.md", "results"]);
        let said = talk(&output);
        assert_eq!(output.status.code(), Some(4), "{said}");
        let error = format!("error: results: it cannot be traced to one commit: {says}");
        assert!(said.contains(&error) && said.contains("hint: measure again"), "{said}");
        assert_eq!(results.page(), PAGE);
        // A check compares the texts, and says the same as a warning.
        let output = results.run(&["figures", "page.md", "results", "--check"]);
        let said = talk(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("warning: results: it cannot be traced"), "{said}");
        assert!(said.contains("does not say what the results say"), "{said}");
    }
}

#[test]
fn a_session_of_the_same_commit_is_no_mixture() {
    let results = Results::new();
    results.change(|manifest| add_session(manifest, COMMIT));
    let output = results.run(&["figures", "page.md", "results"]);
    assert!(output.status.success(), "{}", talk(&output));
    assert!(results.page().contains("Measured in 2 sessions: session 1 (2026-11-21) by commit"));
}

#[test]
fn a_plan_that_cannot_be_read_is_said_on_the_terminal_and_in_the_report() {
    for (plan, says) in [
        (json!({ "handshake": 5 }), "the plan of `handshake` in the manifest cannot be read"),
        (
            json!({ "handshaek": {} }),
            "the manifest has a plan of `handshaek`, which is not a known study",
        ),
        (json!(5), "the plan in the manifest is not a list of studies"),
    ] {
        let results = Results::new();
        results.change(|manifest| manifest["plan"] = plan);
        let output = results.run(&["report", "results"]);
        assert!(output.status.success(), "{}", talk(&output));
        assert!(talk(&output).contains(&format!("warning: {says}")), "{}", talk(&output));
        assert!(data(&output).contains("tcp+tls13"), "the samples are shown all the same");
        let html = fs::read_to_string(results.path("results/report.html")).unwrap();
        let plain = says.replace('`', "");
        assert!(html.contains(says) || html.contains(&plain), "the report says it");
    }
}

#[test]
fn a_run_is_not_resumed_without_a_study_whose_plan_cannot_be_read() {
    for (plan, says) in [
        (json!({ "handshake": 5 }), "the plan of `handshake` in the manifest"),
        (json!({ "handshaek": {} }), "has a plan of `handshaek`"),
        (json!({}), "the manifest has no plan of a study"),
    ] {
        let results = Results::new();
        results.change(|manifest| manifest["plan"] = plan);
        let output = results.run(&["run", "--resume", "results"]);
        let said = talk(&output);
        assert_eq!(output.status.code(), Some(4), "{said}");
        assert!(said.contains(says), "{said}");
    }
}

#[test]
fn samples_of_which_none_can_be_read_are_not_silently_absent() {
    let results = Results::new();
    let path = results.path("results/samples.jsonl");
    let samples = fs::read_to_string(&path).unwrap().replace("\"mode\":\"tcp", "\"mode\":\"pct");
    fs::write(path, samples).unwrap();
    let output = results.run(&["report", "results"]);
    let said = talk(&output);
    assert!(said.contains("samples of `handshake` can be read"), "{said}");
}

/// Marks of Markdown, HTML, code and a terminal, and the mark that ends a region of figures.
const STRANGER: &str = "\u{1b}[2J|x|</td><script>alert(1)</script> `x`\n\n# forged ![i](http://e.example/x) <!-- /figures -->\n";

/// Adds a stranger's text to each text but those that a folder cannot be read without.
fn spoil(value: &mut Value) {
    match value {
        Value::String(text) => text.push_str(STRANGER),
        Value::Array(items) => items.iter_mut().for_each(spoil),
        Value::Object(entries) => {
            let needed = [
                "schema",
                "plan_hash",
                "plan",
                "started",
                "ended",
                "files",
                "values",
                "commit",
                "touches",
            ];
            let others = entries.iter_mut().filter(|(name, _)| !needed.contains(&name.as_str()));
            others.for_each(|(_, value)| spoil(value));
        }
        _ => {}
    }
}

/// A sample with a stranger's texts: labels, here and there the point and the reason of a failure.
fn spoiled(line: &str, at: usize) -> Value {
    let mut sample: Value = serde_json::from_str(line).unwrap();
    spoil(&mut sample["labels"]);
    sample["labels"][STRANGER] = json!(STRANGER);
    sample["values"][STRANGER] = json!(1.0);
    sample["command"] = json!(STRANGER);
    if at.is_multiple_of(3) {
        let point = sample["point"].as_object_mut().unwrap();
        let named = ["key", "mode", "library", "page", "protocol"];
        point
            .iter_mut()
            .filter(|(axis, _)| named.contains(&axis.as_str()))
            .for_each(|(_, value)| spoil(value));
    }
    if at.is_multiple_of(7) {
        sample["outcome"] = json!({ "kind": "failed", "reason": STRANGER });
    }
    sample
}

#[test]
fn no_text_of_a_stranger_is_a_mark_in_figures() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results");
    for study in ["handshake", "page", "link", "roam", "stacks", "haproxy", "observe"] {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("results")).unwrap();
        let manifest = fs::read_to_string(docs.join(study).join("manifest.json")).unwrap();
        let mut manifest: Value = serde_json::from_str(&manifest).unwrap();
        spoil(&mut manifest);
        manifest["sessions"].as_array_mut().unwrap().truncate(1);
        manifest["sessions"][0]["tool"]["commit"] = json!(COMMIT);
        fs::write(at("results/manifest.json"), manifest.to_string()).unwrap();
        let samples = fs::read_to_string(docs.join(study).join("samples.jsonl")).unwrap();
        let samples = samples.lines().take(200).enumerate();
        let samples = samples.map(|(at, line)| format!("{}\n", spoiled(line, at)));
        fs::write(at("results/samples.jsonl"), samples.collect::<String>()).unwrap();
        let regions = ["", "-headline", "-claims", "-published", "-power"];
        let regions =
            regions.map(|part| format!("<!-- figures:{study}{part} -->\n<!-- /figures -->\n"));
        fs::write(at("page.md"), regions.concat() + "end\n").unwrap();
        let mut pages = Vec::new();
        for _ in 0..2 {
            let output = run(folder.path(), &["figures", "page.md", "results"]);
            assert!(output.status.success(), "{study}: {}", talk(&output));
            pages.push(fs::read_to_string(at("page.md")).unwrap());
        }
        let [first, second] = pages.as_slice() else { panic!("two pages") };
        assert_eq!(first, second, "{study}: a region grows");
        assert_eq!(first.matches("<!--").count(), 10, "{study}: {first}");
        assert!(first.contains("alert(1)"), "{study} shows such texts: {first}");
        for mark in ["<script", "<td", "</td", "`x`", "![i]", "|x|", "\n# forged", "\u{1b}"] {
            assert!(!first.contains(mark), "{study}: {mark:?} in {first}");
        }
    }
}
