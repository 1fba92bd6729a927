//! Plays scripts in packetdrill's notation on an endpoint, in virtual time.
//!
//! | file | content |
//! |---|---|
//! | `cursor`, `script` | the reader |
//! | `settings` | options, kernel parameters, socket options |
//! | `packet` | segments, made and compared |
//! | `world`, `calls`, `ready` | the endpoint, its time, sockets and system calls |
//! | `player`, `verdict` | the events in order, and what came of them |
//!
//! A script passes if every packet has the expected numbers, flags, options and time, and every call the expected
//! result. Sizes of windows and PSH differ between hosts: they are no failure and are named. A script that needs
//! what the endpoint has not (ECN, MPTCP, urgent data, TCP_CORK, a route's settings) is not applicable.

mod addresses;
mod calls;
mod cursor;
mod packet;
mod player;
mod ready;
mod script;
mod settings;
mod verdict;
mod world;

use std::path::{Path, PathBuf};

use player::play;
use verdict::Verdict;

/// A folder of scripts to be tried.
const FOLDER: &str = "WIRETAX_PACKETDRILL";

/// All scripts of a folder and those below it, in order.
fn scripts(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| {
            panic!("{}: {error}", folder.display());
        });
        for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "pkt") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn verdict(path: &Path) -> Verdict {
    match std::fs::read(path) {
        Ok(bytes) => play(&String::from_utf8_lossy(&bytes)),
        Err(error) => Verdict::NotApplicable { line: 0, reason: error.to_string() },
    }
}

/// The crate's own scripts pass as they are written.
#[test]
fn own_scripts_pass() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let scripts = scripts(&folder);
    assert!(scripts.len() >= 30, "{} scripts", scripts.len());
    let wrong: Vec<String> = scripts
        .iter()
        .map(|path| (path, verdict(path)))
        .filter(|(_, verdict)| *verdict != Verdict::Pass(Default::default()))
        .map(|(path, verdict)| format!("{}: {verdict}", path.display()))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The scripts of another folder: `WIRETAX_PACKETDRILL=DIR cargo test -p tcp --test it scripts_of_folders --
/// --ignored --nocapture`.
#[test]
#[ignore = "needs a folder of packetdrill scripts"]
fn scripts_of_folders() {
    let Some(folder) = std::env::var_os(FOLDER) else { panic!("{FOLDER} names no folder") };
    let folder = PathBuf::from(folder);
    let (mut passed, mut but, mut failed, mut left) = (0, 0, 0, 0);
    for path in scripts(&folder) {
        let name = path.strip_prefix(&folder).unwrap_or(&path).display().to_string();
        let verdict = std::panic::catch_unwind(|| verdict(&path)).unwrap_or_else(|_| {
            Verdict::Fail { line: 0, reason: "the endpoint or the player panicked".into() }
        });
        match &verdict {
            Verdict::Pass(notes) if notes.is_empty() => passed += 1,
            Verdict::Pass(_) => but += 1,
            Verdict::Fail { .. } => failed += 1,
            Verdict::NotApplicable { .. } => left += 1,
        }
        println!("{name}: {verdict}");
    }
    println!(
        "{passed} pass, {but} pass but for what is named, {failed} fail, {left} not applicable"
    );
}

/// A script that expects something else fails where it does.
#[test]
fn another_segment_is_found() {
    let script = |line: &str| {
        format!(
            "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 bind(3, ..., ...) = 0
+0 listen(3, 1) = 0
+0 < S 0:0(0) win 65535 <mss 1000>
{line}
"
        )
    };
    assert_eq!(play(&script("+0 > S. 0:0(0) ack 1 <mss 1460>")), Verdict::Pass(Default::default()));
    for line in [
        "+0 > S. 0:0(0) ack 2 <mss 1460>",
        "+0 > S. 0:1(1) ack 1 <mss 1460>",
        "+0 > S. 0:0(0) ack 1 <mss 1460,sackOK>",
        "+0 > S. 0:0(0) ack 1",
        "+0 > R. 0:0(0) ack 1 <mss 1460>",
        "+.1 > S. 0:0(0) ack 1 <mss 1460>",
        "+0 accept(3, ..., ...) = 4",
    ] {
        let verdict = play(&script(line));
        assert!(matches!(verdict, Verdict::Fail { line: 5, .. }), "{line}: {verdict}");
    }
    for line in [
        "+0 > [ect0] S. 0:0(0) ack 1 <...>",
        "+0 frobnicate(3) = 0",
        "+0 < ipv4 1.1.1.1 > 2.2.2.2: . 1:1(0) ack 1",
    ] {
        let verdict = play(&script(line));
        assert!(matches!(verdict, Verdict::NotApplicable { .. }), "{line}: {verdict}");
    }
}
