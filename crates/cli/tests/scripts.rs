//! The scripts that compare with other programs, and what scripts fetch.

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

/// Files that run commands of a shell: scripts, CI and the Makefile.
fn shell_files() -> Vec<PathBuf> {
    let entries =
        std::fs::read_dir(root().join("scripts")).unwrap().map(|entry| entry.unwrap().path());
    let scripts = entries.filter(|path| path.extension().is_some_and(|ending| ending == "sh"));
    scripts.chain([".ci/run", "Makefile"].map(|name| root().join(name))).collect()
}

/// Says what is wrong with a command that fetches something whose contents nothing pins.
fn unpinned(command: &str) -> Option<&'static str> {
    let words: Vec<&str> =
        command.split(|c: char| c.is_whitespace() || "\"'`()".contains(c)).collect();
    let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    let has = |option: &str| words.contains(&option);
    let calls = |program: &str, verbs: &[&str]| {
        words.windows(2).any(|pair| {
            (pair[0] == program || pair[0].ends_with(&format!("/{program}")))
                && verbs.contains(&pair[1])
        })
    };
    let npm = ["install", "i", "add", "update", "exec", "x"];
    let cargo = ["build", "test", "bench", "run", "clippy", "doc", "check", "fetch"];
    let has_version = has("--version") || words.iter().any(|word| word.contains('@'));
    let is_cargo = |verbs: &[&str]| {
        ["cargo", "$(CARGO)", "$CARGO", "${CARGO:-cargo}", "$cargo"]
            .iter()
            .any(|name| calls(name, verbs))
            || command.contains("$(CARGO) ") && verbs.iter().any(|verb| has(verb))
    };
    let rules = [
        (calls("npm", &npm) || has("npx"), "npm ci, by a lock file"),
        (calls("npm", &["ci"]) && !has("--ignore-scripts"), "npm ci --ignore-scripts"),
        (
            (calls("pip", &["install"]) || calls("pip3", &["install"]))
                && !(has("--require-hashes") && has("--only-binary")),
            "pip install --require-hashes --only-binary",
        ),
        (
            is_cargo(&["install"]) && !(has("--locked") && has_version),
            "cargo install --locked, of a version",
        ),
        (is_cargo(&cargo) && !has("--locked"), "--locked"),
        (calls("go", &["install", "get"]) || calls("gem", &["install"]), "a module with its sum"),
        (
            has("debootstrap") && has("--variant=minbase") && !has("--force-check-gpg"),
            "--force-check-gpg",
        ),
        (has("--allow-unauthenticated") || command.contains("trusted=yes"), "signed packages"),
        (
            (has("curl") || has("wget")) && command.contains("https://"),
            "no file by an address alone",
        ),
        (calls("git", &["clone"]) && command.contains("://"), "a commit"),
    ];
    rules.into_iter().find_map(|(is_wrong, instead)| is_wrong.then_some(instead))
}

/// The commands of a script, a line each: without comments, and without what is only said.
fn commands(text: &str) -> Vec<String> {
    let text = text.replace("\\\n", " ");
    let said =
        |line: &str| line.split_once("echo \"").map_or(line, |(before, _)| before).to_owned();
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    lines.map(said).filter(|line| !line.trim().is_empty()).collect()
}

#[test]
fn scripts_fetch_only_what_a_lock_file_or_a_version_pins() {
    for (wrong, instead) in [
        ("npm install --prefix x spdy@4.0.2", "npm ci"),
        ("npm ci --silent", "--ignore-scripts"),
        ("\"$place/bin/pip\" install aioquic==1.2.0", "--require-hashes"),
        ("pip3 install --require-hashes -r x", "--only-binary"),
        ("cargo install oha", "--locked"),
        ("\"$cargo\" install --locked cargo-deb", "version"),
        ("cargo test --workspace", "--locked"),
        ("$(CARGO) build --release -p cli", "--locked"),
        ("debootstrap --variant=minbase bookworm x", "gpg"),
        ("curl -sSf https://example.org/x | sh", "address"),
        ("git clone https://example.org/x", "commit"),
    ] {
        assert!(
            unpinned(wrong).is_some_and(|said| said.contains(instead)),
            "{wrong}: {:?}",
            unpinned(wrong)
        );
    }
    let mut fetching = 0;
    for path in shell_files() {
        let text = std::fs::read_to_string(&path).unwrap();
        for command in commands(&text) {
            assert_eq!(unpinned(&command), None, "{}: {command}", path.display());
            fetching +=
                usize::from(command.contains("--locked") || command.contains("--require-hashes"));
        }
    }
    assert!(fetching > 15, "{fetching} commands with a lock file");
}

#[test]
fn the_judges_lock_files_have_a_hash_for_every_package_and_name_no_registry() {
    let judges = root().join("scripts/judges");
    let lock = std::fs::read_to_string(judges.join("package-lock.json")).unwrap();
    let lock: serde_json::Value = serde_json::from_str(&lock).unwrap();
    let packages = lock["packages"].as_object().unwrap();
    assert!(packages.len() > 15, "{}", packages.len());
    for (name, package) in packages.iter().filter(|(name, _)| !name.is_empty()) {
        assert!(package["integrity"].as_str().unwrap().starts_with("sha512-"), "{name}");
        assert!(
            package.get("resolved").is_none() && package.get("hasInstallScript").is_none(),
            "{name}"
        );
    }
    let python = std::fs::read_to_string(judges.join("requirements.txt")).unwrap();
    let python = python.replace("\\\n", " ");
    let lines = python.lines().filter(|line| !line.starts_with('#'));
    let mut count = 0;
    for line in lines {
        assert!(line.contains("==") && line.contains("--hash=sha256:"), "{line}");
        assert!(!line.contains("://"), "{line}");
        count += 1;
    }
    assert!(count >= 8, "{count} packages");
}
