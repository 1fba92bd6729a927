//! `wiretax drivers` as a user runs it. Sources, cache and cargo are the tests' own: what the packages
//! build is the driver without cryptography.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::documented::root;
use crate::support::{data, files_below, processes_of, talk, wait_until, wiretax};
use serde_json::Value;

/// What stands in for cargo. Each package's `build.sh` is run with the place of what it is to make.
const CARGO: &str = "#!/bin/sh
set -e
mkdir -p \"$CARGO_TARGET_DIR/release\"
for manifest; do :; done
. \"$(dirname \"$manifest\")/build.sh\"
";
/// A package that builds.
const GOOD: &str = "cp \"$(dirname \"$0\")/null.so\" \"$CARGO_TARGET_DIR/release/libdriver.so\"\n\
                    mkdir -p \"$WIRETAX_SDK/lib\"; echo lib >\"$WIRETAX_SDK/lib/libnull.a\"\n";
/// One whose build fails and says why.
const BAD: &str = "echo compiling; echo 'error: no such compiler' >&2; exit 101\n";
/// One that builds what is no driver.
const NO_DRIVER: &str = "echo text >\"$CARGO_TARGET_DIR/release/libdriver.so\"\n";
/// One that takes long, in processes of its own, some of which would rather not end.
const SLOW: &str =
    "(trap '' TERM; sleep 1000) & echo begun >\"$CARGO_TARGET_DIR/begun\"; sleep 1000\n";

/// Sources of drivers, with these packages: name, version and build.
fn sources(folder: &Path, packages: &[(&str, &str, &str)]) {
    let sources = folder.join("sources");
    fs::create_dir_all(sources.join("include")).unwrap();
    fs::write(sources.join("include/wiretax_driver.h"), "").unwrap();
    for (name, version, build) in packages {
        let package = sources.join(name);
        fs::create_dir_all(&package).unwrap();
        let text = format!(
            "name = '{name}'\nlibrary = 'Null'\nversion = '{version}'\ndefault = {}\nkind = 'null'\n\
             about = 'for tests'\nlicence = 'MIT'\n",
            *name != "extra"
        );
        fs::write(package.join("driver.toml"), text).unwrap();
        fs::write(package.join("Cargo.toml"), "").unwrap();
        fs::write(package.join("build.sh"), build).unwrap();
    }
    for empty in ["shim", "build"] {
        fs::create_dir_all(sources.join(empty)).unwrap();
    }
    fs::create_dir_all(folder.join("bin")).unwrap();
    fs::write(folder.join("bin/null.so"), tls_drivers::NULL).unwrap();
    lab_test::executable(&folder.join("bin/cargo"), CARGO);
}

/// Arguments and surroundings of a run.
fn prepared(mut command: Command, folder: &Path, arguments: &[&str]) -> Command {
    command.env("XDG_CACHE_HOME", folder.join("cache")).env("CARGO", folder.join("bin/cargo"));
    command.arg("drivers").args(arguments).args(["--drivers", "sources"]);
    command
}

fn drivers(folder: &Path, arguments: &[&str]) -> Output {
    prepared(wiretax(folder), folder, arguments).output().expect("the program starts")
}

/// Names and states as `list --json` has them.
fn states(folder: &Path) -> Vec<(String, String)> {
    let output = drivers(folder, &["list", "--json"]);
    assert!(output.status.success(), "{}", talk(&output));
    let list: Vec<Value> = serde_json::from_str(&data(&output)).unwrap();
    let text = |one: &Value, field: &str| one[field].as_str().unwrap().to_owned();
    list.iter().map(|one| (text(one, "name"), text(one, "state"))).collect()
}

/// The folders in which whole drivers lie.
fn built(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder.join("cache/wiretax/drivers")).into_iter().flatten();
    let paths = entries.flatten().map(|entry| entry.path());
    paths.filter(|path| path.extension().is_none_or(|end| end != "failed")).collect()
}

#[test]
fn the_list_says_what_there_is_and_what_is_built() {
    let folder = tempfile::tempdir().unwrap();
    sources(folder.path(), &[("one-10", "1", GOOD), ("one-9", "1", GOOD), ("extra", "1", GOOD)]);
    let output = drivers(folder.path(), &["list"]);
    assert_eq!(output.status.code(), Some(0), "{}", talk(&output));
    let text = data(&output);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert!(lines[0].starts_with("extra ") && !lines[0].contains("default"), "{text}");
    assert!(lines[1].starts_with("one-9 ") && lines[1].contains("default  not built"), "{text}");
    assert!(lines[2].starts_with("one-10 "), "by number: {text}");

    let output = drivers(folder.path(), &["build", "one-9"]);
    assert_eq!(output.status.code(), Some(0), "{}", talk(&output));
    assert!(talk(&output).contains("one-9: built in"), "{}", talk(&output));
    assert!(data(&output).is_empty(), "{}", data(&output));
    let expected = [("extra", "not built"), ("one-9", "built"), ("one-10", "not built")];
    assert_eq!(states(folder.path()), expected.map(|(a, b)| (a.to_owned(), b.to_owned())));

    let output = drivers(folder.path(), &["list", "--json"]);
    let list: Value = serde_json::from_str(&data(&output)).unwrap();
    let object = list[1]["object"].as_str().unwrap();
    assert!(Path::new(object).is_file(), "{object}");
    for field in ["library", "version", "about", "licence"] {
        assert!(list[1][field].is_string(), "{field}: {list:#}");
    }
    assert!(list[1]["default"] == true && list[0]["default"] == false, "{list:#}");
    let place = Path::new(object).parent().unwrap();
    let files = files_below(place);
    for file in ["build.log", "driver.so", "driver.toml", "manifest.json", "sdk/lib/libnull.a"] {
        assert!(files.iter().any(|name| name == file), "{file}: {files:?}");
    }
    assert!(files_below(&folder.path().join("cache/wiretax/building")).is_empty());

    // A second time nothing is built.
    let output = drivers(folder.path(), &["build", "one-9"]);
    assert!(talk(&output).contains("one-9: was built before"), "{}", talk(&output));
}

#[test]
fn an_unknown_name_is_answered_by_what_there_is() {
    let folder = tempfile::tempdir().unwrap();
    sources(folder.path(), &[("one", "1", GOOD), ("two", "1", GOOD)]);
    for name in ["onne", "three*", "./none.so"] {
        let output = drivers(folder.path(), &["build", name]);
        assert_eq!(output.status.code(), Some(2), "{}", talk(&output));
        let said = talk(&output);
        assert!(said.contains(&format!("`{name}`")) && said.contains("one, two"), "{said}");
    }
    assert!(built(folder.path()).is_empty());
    let output = drivers(folder.path(), &["bulid"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(talk(&output).contains("'build'"), "{}", talk(&output));
    let output = wiretax(folder.path()).args(["drivers", "list", "--drivers", "."]).output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", talk(&output));
    assert!(talk(&output).contains("hint: run `make drivers`"), "{}", talk(&output));
}

#[test]
fn what_cannot_be_built_is_named_and_the_others_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let packages = [
        ("a-bad", "1", BAD),
        ("b-good", "1", GOOD),
        ("c-text", "1", NO_DRIVER),
        ("d-1.2.0", "7.7", GOOD),
        ("d-1.2.3", "1", GOOD),
        ("e-good", "1", GOOD),
    ];
    sources(folder.path(), &packages);
    let output = drivers(folder.path(), &["build"]);
    let said = talk(&output);
    assert_eq!(output.status.code(), Some(3), "{said}");
    for part in [
        "warning: a-bad: error: no such compiler",
        "a-bad-", // The folder of its log.
        "warning: c-text: ",
        "warning: d-1.2.0: version 7.7 was wanted, the library says `null 1`",
        "b-good: built",
        "e-good: built",
        "3 of 6 were not built: a-bad, c-text, d-1.2.0",
    ] {
        assert!(said.contains(part), "no `{part}`: {said}");
    }
    let found: Vec<String> = states(folder.path()).into_iter().map(|(_, state)| state).collect();
    assert_eq!(found, ["failed", "built", "failed", "failed", "built", "built"]);
    let output = drivers(folder.path(), &["list", "--json"]);
    let list: Value = serde_json::from_str(&data(&output)).unwrap();
    assert_eq!(list[0]["reason"], "error: no such compiler", "{list:#}");
    let log = fs::read_to_string(list[0]["log"].as_str().unwrap()).unwrap();
    assert!(log.contains("compiling"), "{log}");
    assert_eq!(built(folder.path()).len(), 3);

    // Mended, it is built; the failure is forgotten.
    sources(folder.path(), &[("a-bad", "1", GOOD)]);
    let output = drivers(folder.path(), &["build", "a-bad"]);
    assert_eq!(output.status.code(), Some(0), "{}", talk(&output));
    assert_eq!(states(folder.path())[0].1, "built");
}

#[test]
fn without_cargo_it_says_what_is_needed() {
    let folder = tempfile::tempdir().unwrap();
    sources(folder.path(), &[("one", "1", GOOD)]);
    fs::remove_file(folder.path().join("bin/cargo")).unwrap();
    let output = drivers(folder.path(), &["build"]);
    assert_eq!(output.status.code(), Some(3), "{}", talk(&output));
    assert!(talk(&output).contains("hint: install a Rust toolchain"), "{}", talk(&output));
}

#[test]
fn an_interrupt_keeps_what_was_built_and_leaves_no_half() {
    let folder = tempfile::tempdir().unwrap();
    sources(folder.path(), &[("a-good", "1", GOOD), ("b-slow", "1", SLOW), ("c-good", "1", GOOD)]);
    let mut command = prepared(wiretax(folder.path()), folder.path(), &["build"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let begun = folder.path().join("cache/wiretax/building/b-slow/target/begun");
    wait_until("the slow build is under way", || begun.is_file());
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(sent.unwrap().success());
    let output = child.wait_with_output().unwrap();
    let said = talk(&output);
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains("interrupted at b-slow; what was built is kept"), "{said}");
    wait_until("no process left", || processes_of(folder.path()).is_empty());
    let whole = built(folder.path());
    assert_eq!(whole.len(), 1, "{whole:?}");
    assert!(whole[0].join("driver.so").is_file() && whole[0].join("manifest.json").is_file());
    let half = folder.path().join("cache/wiretax/building/b-slow/staged");
    assert!(!half.exists(), "{}", half.display());
    let found: Vec<String> = states(folder.path()).into_iter().map(|(_, state)| state).collect();
    assert_eq!(found, ["built", "not built", "not built"]);

    // The same command goes on from there.
    sources(folder.path(), &[("b-slow", "1", GOOD)]);
    let output = drivers(folder.path(), &["build"]);
    assert_eq!(output.status.code(), Some(0), "{}", talk(&output));
    assert!(talk(&output).contains("a-good: was built before"), "{}", talk(&output));
    assert_eq!(built(folder.path()).len(), 3);
}

#[test]
fn the_folder_of_sources_that_was_found_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let found = root().join("drivers");
    let list = |arguments: &[&str]| {
        let mut command = wiretax(folder.path());
        command.args(["drivers", "list"]).args(arguments).env("XDG_CACHE_HOME", folder.path());
        command.output().unwrap()
    };
    let output = list(&[]);
    assert!(output.status.success(), "{}", talk(&output));
    assert_eq!(talk(&output), format!("drivers of {}\n", found.display()));
    // Whoever names it knows.
    let output = list(&["--drivers", found.to_str().unwrap()]);
    assert!(output.status.success() && talk(&output).is_empty(), "{}", talk(&output));
}

#[test]
fn drivers_of_the_current_folder_are_not_taken_unasked() {
    let folder = tempfile::tempdir().unwrap();
    sources(folder.path(), &[("planted", "1", GOOD)]);
    fs::rename(folder.path().join("sources"), folder.path().join("drivers")).unwrap();
    let mut command = wiretax(folder.path());
    command.env("XDG_CACHE_HOME", folder.path().join("cache"));
    let output = command.args(["drivers", "list"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", talk(&output));
    assert!(
        data(&output).contains("openssl-") && !data(&output).contains("planted"),
        "{}",
        data(&output)
    );
}
