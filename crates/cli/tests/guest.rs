//! `wiretax guest` as a user runs it. The packages and who fetches them are the tests' own.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::support::{data, files_below, processes_of, talk, wait_until, wiretax};

/// Stands in for apt-get: every package has five bytes.
const APT_GET: &str = r#"#!/bin/sh
case $1 in
install)
    for word; do case $word in
        -*|install) ;;
        *) echo "'http://x/$word.deb' ${word}_1%3a2_amd64.deb 5 MD5Sum:0" ;;
    esac; done ;;
download)
    name=${3%%=*}
    echo "$name" >>"$WIRETAX_TEST_FOLDER/downloaded"
    [ ! -e "$WIRETAX_TEST_FOLDER/offline" ] || { echo 'E: no network' >&2; exit 100; }
    [ ! -e "$WIRETAX_TEST_FOLDER/slow" ] || sleep 1000
    version=$(echo "${3#*=}" | sed s/:/%3a/)
    printf 12345 >"${name}_${version}_amd64.deb" ;;
esac
"#;
const APT_CACHE: &str = r#"#!/bin/sh
case $3 in
linux-image-cloud-amd64) echo 'Depends: linux-image-6.9-cloud (= 1)' ;;
linux-image-amd64) echo 'Depends: linux-image-6.9-full (= 1)' ;;
*) printf 'Package: %s\nVersion: 1\nArchitecture: amd64\nSize: 5\n' "$3" ;;
esac
"#;
const DPKG_DEB: &str = r#"#!/bin/sh
mkdir -p "$3/boot" "$3/lib/modules/6.9/kernel"
case $2 in *linux-image*) : >"$3/boot/vmlinuz-6.9"; : >"$3/lib/modules/6.9/kernel/a.ko" ;; esac
"#;

fn prepared(mut command: Command, folder: &Path, arguments: &[&str]) -> Command {
    let bin = folder.join("bin");
    if !bin.exists() {
        fs::create_dir(&bin).unwrap();
        for (name, text) in [("apt-get", APT_GET), ("apt-cache", APT_CACHE), ("dpkg-deb", DPKG_DEB)]
        {
            lab_test::executable(&bin.join(name), text);
        }
    }
    let path = format!("{}:/usr/bin:/bin", bin.display());
    command.env("XDG_CACHE_HOME", folder.join("cache")).env("PATH", path).args(arguments);
    command
}

fn ran(folder: &Path, arguments: &[&str]) -> Output {
    prepared(wiretax(folder), folder, arguments).output().expect("the program starts")
}

/// Packages that were downloaded so far.
fn downloaded(folder: &Path) -> Vec<String> {
    let text = fs::read_to_string(folder.join("downloaded")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn a_guest_is_fetched_once_and_anew_when_asked() {
    let folder = tempfile::tempdir().unwrap();
    let output = ran(folder.path(), &["guest", "fetch"]);
    assert_eq!(output.status.code(), Some(0), "{}", talk(&output));
    let said = talk(&output);
    assert!(said.contains("cloud-kernel: fetched: linux-image-6.9-cloud 1\n"), "{said}");
    let cache = folder.path().join("cache/wiretax/guest");
    let list = fs::read_to_string(cache.join("cloud-kernel/packages.json")).unwrap();
    let list: Value = serde_json::from_str(&list).unwrap();
    assert_eq!(list["packages"][0]["name"], "linux-image-6.9-cloud");
    // Neither packages nor folders on the way are left.
    let files = files_below(&cache);
    let expected =
        |name: &String| name.starts_with("cloud-kernel/") || name.starts_with("programs/");
    assert!(files.iter().all(expected), "{files:?}");
    let count = downloaded(folder.path()).len();

    let output = ran(folder.path(), &["guest", "fetch"]);
    assert!(talk(&output).contains("cloud-kernel: was there"), "{}", talk(&output));
    assert_eq!(downloaded(folder.path()).len(), count);
    let output = ran(folder.path(), &["guest", "fetch", "--again", "--with", "full-kernel"]);
    assert_eq!(output.status.code(), Some(0), "{}", talk(&output));
    assert_eq!(downloaded(folder.path()).len(), 2 * count + 1);
    assert!(cache.join("full-kernel/boot/vmlinuz-6.9").is_file());
    // Radios are in no other kernel, so that it comes along.
    let output = ran(folder.path(), &["guest", "fetch", "--with", "daemons"]);
    assert_eq!(output.status.code(), Some(0), "{}", talk(&output));
    let said = talk(&output);
    assert!(said.contains("full-kernel: was there") && said.contains("daemons: "), "{said}");
    assert!(cache.join("daemons/packages.json").is_file());
}

#[test]
fn what_cannot_be_fetched_is_said_with_what_helps() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("offline"), "").unwrap();
    let output = ran(folder.path(), &["guest", "fetch"]);
    assert_eq!(output.status.code(), Some(3), "{}", talk(&output));
    let said = talk(&output);
    assert!(said.contains("`apt-get` failed; it last said: E: no network"), "{said}");
    assert!(said.contains("hint: update the package lists"), "{said}");
    assert!(!folder.path().join("cache/wiretax/guest/cloud-kernel").exists());
    let output = ran(folder.path(), &["guest", "fetch", "--with", "wifi"]);
    assert_eq!(output.status.code(), Some(2), "{}", talk(&output));
    assert!(talk(&output).contains("full-kernel"), "{}", talk(&output));

    fs::remove_file(folder.path().join("bin/apt-cache")).unwrap();
    let mut command = prepared(wiretax(folder.path()), folder.path(), &["guest", "fetch"]);
    let output = command.env("PATH", folder.path().join("bin")).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", talk(&output));
    assert!(talk(&output).contains("hint: fetch on Debian 12 or later"), "{}", talk(&output));
}

#[test]
fn an_interrupt_keeps_what_came_and_leaves_no_half() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("slow"), "").unwrap();
    let mut command = prepared(wiretax(folder.path()), folder.path(), &["guest", "fetch"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("a download is under way", || !downloaded(folder.path()).is_empty());
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(sent.unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", talk(&output));
    assert!(talk(&output).contains("run the same command to resume"), "{}", talk(&output));
    wait_until("no process left", || processes_of(folder.path()).is_empty());
    let files = files_below(&folder.path().join("cache/wiretax/guest"));
    assert!(files.iter().all(|file| file.starts_with("programs/")), "{files:?}");

    fs::remove_file(folder.path().join("slow")).unwrap();
    let output = ran(folder.path(), &["guest", "fetch"]);
    assert_eq!(output.status.code(), Some(0), "{}", talk(&output));
}

#[test]
fn a_kill_ends_what_fetches_and_the_next_fetch_removes_the_half() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("slow"), "").unwrap();
    let mut command = prepared(wiretax(folder.path()), folder.path(), &["guest", "fetch"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_until("a download is under way", || !downloaded(folder.path()).is_empty());
    child.kill().unwrap();
    child.wait().unwrap();
    // apt-get, and what it has started.
    wait_until("no process left", || processes_of(folder.path()).is_empty());
    let cache = folder.path().join("cache/wiretax/guest");
    // As if it had been killed while it unpacked, too.
    fs::create_dir(cache.join("new-killed")).unwrap();
    fs::write(cache.join("new-killed/half"), "").unwrap();

    fs::remove_file(folder.path().join("slow")).unwrap();
    let output = ran(folder.path(), &["guest", "fetch"]);
    assert_eq!(output.status.code(), Some(0), "{}", talk(&output));
    let folders = [cache.clone(), cache.join("downloads")];
    let names = folders.iter().flat_map(|folder| fs::read_dir(folder).unwrap().flatten());
    let half = |name: &String| name.starts_with("new-") || name.ends_with(".deb");
    let left = names.map(|entry| entry.file_name().into_string().unwrap()).filter(half);
    assert_eq!(left.collect::<Vec<_>>(), Vec::<String>::new());
}

#[test]
fn without_a_guest_virtual_time_says_how_to_get_one() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [
        &["guest", "check"][..],
        &["handshake", "--clock", "virtual", "--out", "h"],
        &["page", "--clock", "virtual", "--out", "p"],
    ] {
        let output = ran(folder.path(), arguments);
        assert_eq!(output.status.code(), Some(3), "{arguments:?}: {}", talk(&output));
        let said = talk(&output);
        assert!(said.contains("hint: fetch it once with `make guest`"), "{arguments:?}: {said}");
        assert!(data(&output).is_empty(), "{}", data(&output));
    }
}

#[test]
fn times_by_two_clocks_are_not_measured_together() {
    let folder = tempfile::tempdir().unwrap();
    for study in ["handshake", "page"] {
        let output = ran(folder.path(), &[study, "--clock", "wall,virtual"]);
        assert_eq!(output.status.code(), Some(2), "{}", talk(&output));
        assert!(
            talk(&output).contains("hint: measure with one after the other"),
            "{}",
            talk(&output)
        );
        let output = ran(folder.path(), &[study, "--clock", "virtul"]);
        assert_eq!(output.status.code(), Some(2), "{}", talk(&output));
        assert!(talk(&output).contains("choose from wall, virtual"), "{}", talk(&output));
    }
}
