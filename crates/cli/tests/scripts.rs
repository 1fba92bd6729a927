//! The scripts that compare with other programs.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::{data, has, talk};

/// The folder of the workspace.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the checkout")
}

/// A program of a line of shell.
fn program(folder: &Path, name: &str, script: &str) -> PathBuf {
    let path = folder.join(name);
    lab_test::executable(&path, &format!("#!/bin/sh\n{script}\n"));
    path
}

/// `compare-observe.sh` on a capture of one connection, with these programs before all others.
fn compare_observe(folder: &Path, path: &str) -> Output {
    let capture = root().join("crates/proto/tracker/tests/data/tls1.2.pcap");
    let traffic = program(folder, "traffic", &format!("cat '{}'", capture.display()));
    Command::new("bash")
        .arg(root().join("scripts/compare-observe.sh"))
        .arg(env!("CARGO_BIN_EXE_wiretax"))
        .env("TRAFFIC", traffic)
        .env("PATH", path)
        .envs([("ROUNDS", "1"), ("RATE", "0")])
        .output()
        .unwrap()
}

#[test]
fn observe_is_compared_with_tshark_only_where_both_find_the_same_handshakes() {
    if !has("tshark") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = std::env::var("PATH").unwrap();
    let output = compare_observe(folder.path(), &path);
    assert!(output.status.success(), "{}", talk(&output));
    let said = data(&output);
    // Both packets' sizes: 22 packets to both, a ClientHello and a ServerHello in them; start-up apart.
    let rows: Vec<Vec<&str>> = said.lines().map(|line| line.split_whitespace().collect()).collect();
    for size in ["full", "small"] {
        let row = rows.iter().find(|row| row.first() == Some(&size)).unwrap();
        assert_eq!(row[1..3], ["22", "2"], "{said}");
    }
    assert!(said.contains("its start"), "{said}");
    // A tshark that leaves out what the server says.
    let real = lab_test::program("tshark").unwrap();
    let script = format!("'{real}' \"$@\" | grep -v '^68'");
    program(folder.path(), "tshark", &script);
    let output = compare_observe(folder.path(), &format!("{}:{path}", folder.path().display()));
    assert_eq!(output.status.code(), Some(1), "{}", data(&output));
    assert!(talk(&output).contains("do not find the same handshakes"), "{}", talk(&output));
}

#[test]
fn without_tshark_the_comparison_says_how_to_install_it() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["realpath", "dirname", "cat"] {
        if let Some(path) = lab_test::program(name) {
            std::os::unix::fs::symlink(path, folder.path().join(name)).unwrap();
        }
    }
    let bash = lab_test::program("bash").unwrap();
    let output = Command::new(bash)
        .arg(root().join("scripts/compare-observe.sh"))
        .arg(env!("CARGO_BIN_EXE_wiretax"))
        .env("PATH", folder.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", talk(&output));
    assert!(talk(&output).contains("apt-get install tshark"), "{}", talk(&output));
}

/// The toolchain that rust-toolchain.toml pins.
fn pinned() -> String {
    let text = std::fs::read_to_string(root().join("rust-toolchain.toml")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("channel = \"")).unwrap();
    line.trim_end_matches('"').to_owned()
}

#[test]
fn the_pinned_toolchain_is_one_version_and_no_older_than_the_least() {
    let workspace = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let least = workspace.lines().find_map(|line| line.strip_prefix("rust-version = \"")).unwrap();
    let numbers = |version: &str| -> Vec<u32> {
        version.trim_end_matches('"').split('.').map(|part| part.parse().unwrap()).collect()
    };
    let (pinned, least) = (numbers(&pinned()), numbers(least));
    assert_eq!(pinned.len(), 3, "a whole version, so that all machines have the same");
    assert!(pinned >= least, "{pinned:?} {least:?}");
}

/// `setup.sh` where these programs alone are to be found.
fn set_up(folder: &Path, cargo: Option<&str>) -> Output {
    for name in ["dirname", "sed", "head", "sort"] {
        if let Some(path) = lab_test::program(name) {
            let _ = std::os::unix::fs::symlink(path, folder.join(name));
        }
    }
    if let Some(version) = cargo {
        program(folder, "cargo", &format!("echo 'cargo {version} (0123 2022-08-11)'"));
    }
    let bash = lab_test::program("bash").unwrap();
    let mut command = Command::new(bash);
    command.arg(root().join("scripts/setup.sh")).arg("run").env("PATH", folder);
    command.output().unwrap()
}

#[test]
fn set_up_says_which_rust_is_needed_where_there_is_none_or_an_old_one() {
    for (cargo, has) in [(None, "none"), (Some("1.63.0"), "1.63.0")] {
        let folder = tempfile::tempdir().unwrap();
        let output = set_up(folder.path(), cargo);
        let said = talk(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        let needed = format!("or later is needed; this machine has {has}");
        assert!(said.contains(&needed) && said.contains("https://sh.rustup.rs"), "{said}");
        program(folder.path(), "rustup", "exit 1");
        let said = talk(&set_up(folder.path(), cargo));
        assert!(said.contains(&format!("rustup toolchain install {}", pinned())), "{said}");
    }
}

/// A distribution's package of rustup: `apt-get` installs it, and it installs a cargo of the version that the file
/// `version` names. Each leaves a line of how it was called.
const APT_GET: &str = r#"here=${0%/*}
echo "apt-get $*" >>"$here/called"
[ "$1" != install ] || mv "$here/rustup.deb" "$here/rustup""#;
const RUSTUP: &str = r#"here=${0%/*}
echo "rustup $*" >>"$here/called"
read -r version <"$here/version"
printf '#!/bin/sh\necho cargo %s\n' "$version" >"$here/cargo"
chmod 755 "$here/cargo""#;

#[test]
fn set_up_installs_rustup_from_the_distribution_and_the_pinned_toolchain_by_it() {
    let pinned = pinned();
    for (gets, code) in [(pinned.as_str(), 0), ("1.63.0", 1)] {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        std::fs::write(folder.join("version"), format!("{gets}\n")).unwrap();
        program(folder, "apt-cache", "[ \"$*\" = 'show rustup' ]");
        program(folder, "apt-get", APT_GET);
        program(folder, "rustup.deb", RUSTUP);
        program(folder, "id", "echo 0");
        for name in ["cc", "c++", "make", "perl", "git"] {
            program(folder, name, "exit 0");
        }
        for name in ["env", "mv", "chmod"] {
            let path = lab_test::program(name).unwrap();
            std::os::unix::fs::symlink(path, folder.join(name)).unwrap();
        }
        let output = set_up(folder, Some("1.63.0"));
        let said = talk(&output);
        assert_eq!(output.status.code(), Some(code), "{said}");
        let called = std::fs::read_to_string(folder.join("called")).unwrap();
        let called: Vec<&str> = called.lines().collect();
        let toolchain = format!(
            "rustup toolchain install {pinned} --profile minimal --component clippy,rustfmt"
        );
        assert_eq!(called.len(), 3, "{called:?}");
        assert_eq!(called[0], "apt-get update -qq");
        assert!(
            called[1].starts_with("apt-get install") && called[1].ends_with(" rustup"),
            "{called:?}"
        );
        assert_eq!(called[2], toolchain);
        let old = "this machine has 1.63.0";
        assert_eq!(said.contains(old), code == 1, "{said}");
    }
}
