//! Folders of strangers: planted links, files that are none, samples without end.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use record::{
    AttachmentKind, Folder, LineProblem, PlanFiles, Problem, Recorder, Run, Session, content_name,
};
use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::{manifest, names, plan, sample};

/// Puts something in the place of a file.
type Plant = fn(&Path);

/// A file outside of every results folder, which nothing may change.
struct Victim {
    root: tempfile::TempDir,
    file: PathBuf,
}

const SECRET: &[u8] = b"ssh-ed25519 AAAA the user's own\n";

impl Victim {
    fn new() -> Victim {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("authorized_keys");
        fs::write(&file, SECRET).unwrap();
        fs::create_dir(root.path().join("folder")).unwrap();
        Victim { root, file }
    }

    fn results(&self) -> PathBuf {
        let dir = self.root.path().join("results");
        let mut recorder = Recorder::create(&dir, manifest()).unwrap();
        recorder.record(&sample(0)).unwrap();
        recorder.finish().unwrap();
        dir
    }

    /// Puts a link to the victim in the place of a file.
    fn plant(&self, dir: &Path, name: &str) {
        let _ = fs::remove_file(dir.join(name));
        symlink(&self.file, dir.join(name)).unwrap();
    }

    fn check(&self, what: &str) {
        assert_eq!(fs::read(&self.file).unwrap(), SECRET, "{what}");
        assert_eq!(fs::read_dir(self.root.path().join("folder")).unwrap().count(), 0, "{what}");
    }
}

fn resume(dir: &Path) -> Result<record::Resumed, record::Error> {
    Recorder::resume(dir, &plan(), Session::begin(false))
}

fn is_irregular<T>(result: Result<T, record::Error>) -> bool {
    matches!(result, Err(record::Error { problem: Problem::Irregular { .. }, .. }))
}

#[test]
fn links_in_a_folder_are_not_written_through() {
    for name in ["lock", "samples.jsonl", "manifest.json"] {
        let victim = Victim::new();
        let dir = victim.results();
        victim.plant(&dir, name);
        assert!(is_irregular(resume(&dir).map(drop)), "{name}");
        victim.check(name);
        // Nor are they when a new run begins in the folder.
        let dir = victim.root.path().join("new");
        fs::create_dir(&dir).unwrap();
        victim.plant(&dir, name);
        assert!(Recorder::create(&dir, manifest()).is_err(), "{name}");
        victim.check(name);
    }
    // The name that manifests had until they were replaced under a drawn one.
    let victim = Victim::new();
    let dir = victim.results();
    victim.plant(&dir, "manifest.json.new");
    resume(&dir).unwrap();
    victim.check("manifest.json.new");
}

#[test]
fn attachments_stay_in_the_folder() {
    let victim = Victim::new();
    let dir = victim.results();
    let kind = AttachmentKind::Har;
    let made = resume(&dir).unwrap().recorder.attach(&sample(1), "har", kind, b"{}").unwrap();
    victim.plant(&dir, &made.file);
    assert!(is_irregular(Run::attachment(&dir, &made)));
    // Written again, the link is replaced itself.
    let again = resume(&dir).unwrap().recorder.attach(&sample(1), "har", kind, b"{}").unwrap();
    assert_eq!(Run::attachment(&dir, &again).unwrap(), b"{}");
    assert!(fs::symlink_metadata(dir.join(&again.file)).unwrap().is_file());
    victim.check("an attachment");
    fs::remove_dir_all(dir.join("attachments")).unwrap();
    symlink(victim.root.path().join("folder"), dir.join("attachments")).unwrap();
    let mut recorder = resume(&dir).unwrap().recorder;
    assert!(is_irregular(recorder.attach(&sample(1), "har", kind, b"{}")));
    assert!(is_irregular(Run::attachment(&dir, &made)));
    victim.check("the folder of attachments");
}

#[test]
fn a_second_name_of_a_file_is_not_written_to() {
    for name in ["lock", "samples.jsonl"] {
        let victim = Victim::new();
        let dir = victim.results();
        fs::remove_file(dir.join(name)).unwrap();
        fs::hard_link(&victim.file, dir.join(name)).unwrap();
        assert!(resume(&dir).is_err(), "{name}");
        victim.check(name);
    }
}

#[test]
fn a_file_is_replaced_and_a_link_in_its_place_too() {
    let victim = Victim::new();
    let dir = victim.results();
    let folder = Folder::open(&dir).unwrap();
    let report = dir.join("report.html");
    victim.plant(&dir, "report.html");
    folder.replace("report.html", b"one").unwrap();
    assert!(fs::symlink_metadata(&report).unwrap().is_file());
    fs::set_permissions(&report, fs::Permissions::from_mode(0o640)).unwrap();
    folder.replace("report.html", b"two").unwrap();
    let mode = fs::metadata(&report).unwrap().permissions().mode() & 0o777;
    assert_eq!((fs::read(&report).unwrap(), mode), (b"two".to_vec(), 0o640));
    victim.check("report.html");
    fs::create_dir(dir.join("page.html")).unwrap();
    assert!(is_irregular(folder.replace("page.html", b"")));
    for outside in ["", ".", "..", "../x", "/x", "folder/x"] {
        assert!(folder.replace(outside, b"").is_err(), "{outside}");
        assert!(folder.read(outside, 1).is_err(), "{outside}");
    }
    let expected = ["lock", "manifest.json", "page.html", "report.html", "samples.jsonl"];
    assert_eq!(names(&dir), expected, "nothing half-written stays");
}

#[test]
fn the_name_that_the_user_gave_may_be_a_link() {
    let victim = Victim::new();
    let link = victim.root.path().join("link");
    symlink(victim.results(), &link).unwrap();
    assert_eq!(Run::open(&link).unwrap().samples.len(), 1);
    let mut resumed = resume(&link).unwrap();
    resumed.recorder.record(&sample(1)).unwrap();
    assert_eq!(Run::open(&link).unwrap().samples.len(), 2);
}

#[test]
fn only_regular_files_are_read() {
    for name in ["samples.jsonl", "manifest.json"] {
        let plant: [(&str, Plant); 4] = [
            ("endless", |path| symlink("/dev/zero", path).unwrap()),
            ("pipe", |path| {
                mknodat(CWD, path, FileType::Fifo, Mode::from(0o600), 0).unwrap();
            }),
            ("socket", |path| {
                std::os::unix::net::UnixListener::bind(path).unwrap();
            }),
            ("folder", |path| fs::create_dir(path).unwrap()),
        ];
        for (what, plant) in plant {
            let victim = Victim::new();
            let dir = victim.results();
            fs::remove_file(dir.join(name)).unwrap();
            plant(&dir.join(name));
            assert!(is_irregular(Run::open(&dir)), "{name}: {what}");
            assert!(resume(&dir).is_err(), "{name}: {what}");
        }
    }
}

#[test]
fn what_killed_writers_left_is_removed_and_nothing_else() {
    let victim = Victim::new();
    let dir = victim.results();
    fs::create_dir(dir.join("attachments")).unwrap();
    let left = [".manifest.json.0123.partial", "attachments/.a.har.0123.partial"];
    for name in left {
        fs::write(dir.join(name), "half").unwrap();
    }
    let written = File::create(dir.join(".report.html.4567.partial")).unwrap();
    rustix::fs::flock(&written, rustix::fs::FlockOperation::LockExclusive).unwrap();
    fs::write(dir.join(".kept"), "").unwrap();
    drop(resume(&dir).unwrap());
    assert!(left.iter().all(|name| !dir.join(name).exists()));
    assert!(dir.join(".report.html.4567.partial").exists(), "somebody is writing it");
    assert!(dir.join(".kept").exists());
}

#[test]
fn a_line_without_end_is_not_read_to_its_end() {
    let victim = Victim::new();
    let dir = victim.results();
    // Zeros, without blocks on the disk.
    let samples = File::options().append(true).open(dir.join("samples.jsonl")).unwrap();
    samples.set_len(1 << 40).unwrap();
    let error = Run::open(&dir).unwrap_err();
    let problem = LineProblem::TooLong { limit: record::MAX_LINE };
    assert!(matches!(&error.problem, Problem::Corrupt { line: 2, problem: p } if *p == problem));
    let manifest = File::options().append(true).open(dir.join("manifest.json")).unwrap();
    manifest.set_len(1 << 40).unwrap();
    let error = Run::open(&dir).unwrap_err();
    assert!(matches!(error.problem, Problem::TooLarge { .. }), "{error}");
}

#[test]
fn samples_of_too_many_points_are_refused_with_the_limit() {
    let victim = Victim::new();
    let dir = victim.results();
    let mut file = File::options().append(true).open(dir.join("samples.jsonl")).unwrap();
    let label = "x".repeat(100_000);
    for number in 0..50 {
        let line = serde_json::json!({
            "study": "s", "point": { "n": number.to_string() }, "repeat": 0, "seed": 0,
            "at_unix_ms": 0, "outcome": { "kind": "completed" }, "values": {},
            "labels": { "l": label }, "command": "",
        });
        writeln!(file, "{line}").unwrap();
    }
    for error in [Run::open(&dir).unwrap_err(), resume(&dir).map(drop).unwrap_err()] {
        assert!(matches!(error.problem, Problem::TooLarge { .. }), "{error}");
        assert!(error.to_string().contains("134217728"), "{error}");
    }
}

#[test]
fn a_sample_has_a_thousand_entries_at_most() {
    let victim = Victim::new();
    let dir = victim.results();
    let mut wide = sample(1);
    wide.values = (0..1001).map(|number| (number.to_string(), 1.0)).collect();
    let error = resume(&dir).unwrap().recorder.record(&wide).unwrap_err();
    let too_many = LineProblem::TooMany { limit: 1000 };
    assert!(matches!(&error.problem, Problem::BadSample { problem, .. } if *problem == too_many));
    let mut file = File::options().append(true).open(dir.join("samples.jsonl")).unwrap();
    writeln!(file, "{}", serde_json::to_string(&wide).unwrap()).unwrap();
    let error = Run::open(&dir).unwrap_err();
    assert!(matches!(&error.problem, Problem::Corrupt { problem, .. } if *problem == too_many));
}

#[test]
fn the_files_of_a_plan_are_kept_by_their_hash() {
    let victim = Victim::new();
    let dir = victim.root.path().join("traced");
    let trace = "1\n2\n".repeat(100_000).into_bytes();
    let files = PlanFiles::from([(content_name(&trace), trace.clone())]);
    Recorder::create_with(&dir, manifest(), &files).unwrap().finish().unwrap();
    assert!(fs::metadata(dir.join("manifest.json")).unwrap().len() < 20_000);
    let (manifest, read) = Run::plan(&dir).unwrap();
    assert_eq!(read, files);
    let file = dir.join(&manifest.files[0].file);
    let mut other = trace;
    other[0] = b'0';
    fs::write(&file, other).unwrap();
    let error = Run::plan(&dir).unwrap_err();
    assert!(matches!(error.problem, Problem::NotAttachment { .. }), "{error}");
    victim.plant(&dir, &manifest.files[0].file);
    assert!(is_irregular(Run::plan(&dir)));
}

#[test]
fn a_manifest_that_could_not_be_read_back_is_refused_before_measuring() {
    let victim = Victim::new();
    let dir = victim.root.path().join("large");
    let plan = serde_json::json!({ "text": "x".repeat(3 << 20) });
    let large = record::Manifest::new(plan, Session::begin(false));
    let error = Recorder::create(&dir, large).unwrap_err();
    assert!(matches!(error.problem, Problem::TooLarge { .. }), "{error}");
    assert!(!dir.exists(), "nothing stays");
}
