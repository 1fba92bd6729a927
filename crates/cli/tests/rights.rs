//! Rights: what root begins and gives up, and what is missing where something cannot be done.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::{data, has, talk, wait_until, wiretax};

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

/// Whether this machine has what these tests need.
fn may_have_networks() -> bool {
    if !is_root() {
        lab_test::skipped(lab_test::Need::Root, "interfaces of the machine are root's");
        return false;
    }
    ["unshare", "ip"].iter().all(|program| has(program))
}

/// `wiretax LINE` as root, with a veth pair in a network namespace of its own.
fn as_root(folder: &Path, sudo: Option<(u32, u32)>, line: &str) -> Command {
    let script = "mount -t sysfs sysfs /sys && ip link add here type veth peer name there && ip link set here up && ip link set there up &&
        ip link set lo up && exec \"$0\" \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--net", "--mount", "sh", "-c", script]).arg(wiretax(folder).get_program());
    command.args(line.split(' ')).current_dir(folder);
    command.env_remove("SUDO_UID").env_remove("SUDO_GID");
    if let Some((user, group)) = sudo {
        command.env("SUDO_UID", user.to_string()).env("SUDO_GID", group.to_string());
    }
    command
}

const BETWEEN: &str =
    "link --between here there --frame 512 --load 1000pps --trial 100ms --repeat 1";
/// Asks a host that answers nothing.
const SURVEY: &str =
    "gateway survey 10.9.8.3 --tun w0 --address 10.9.8.2/30 --port 443 --size 20 --repeat 1";
/// A user who calls root.
const CALLER: (u32, u32) = (1234, 4321);

/// A folder that this user may write to, root without one.
fn folder_of(user: Option<(u32, u32)>) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    if let Some((user, group)) = user {
        chown(folder.path(), Some(user), Some(group)).unwrap();
    }
    folder
}

/// Paths below a folder, with their owners.
fn owners(folder: &Path) -> Vec<(PathBuf, (u32, u32))> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| {
            let own = fs::symlink_metadata(&path).unwrap();
            let below = if own.is_dir() { owners(&path) } else { Vec::new() };
            [vec![(path, (own.uid(), own.gid()))], below].concat()
        })
        .collect()
}

/// Whatever a path leads to, by a link that is there or one that is put there meanwhile.
#[test]
fn root_writes_nothing_that_its_caller_may_not_write() {
    if !may_have_networks() {
        return;
    }
    let folder = folder_of(None);
    let at = |name: &str| folder.path().join(name);
    for name in ["roots", "own"] {
        fs::create_dir(at(name)).unwrap();
    }
    fs::write(at("roots/old"), "old").unwrap();
    chown(at("own"), Some(CALLER.0), Some(CALLER.1)).unwrap();
    symlink("../roots", at("own/link")).unwrap();
    for line in [
        "observe -i lo --duration 10ms --html own/link/old".to_owned(),
        "observe -i lo --duration 10ms --html roots/old".to_owned(),
        "observe -i lo --duration 10ms --rtt-out own/link/new".to_owned(),
        "observe -i lo --duration 10ms --parquet own/link/rows".to_owned(),
        "observe -i lo --duration 10ms --parquet own/link".to_owned(),
        format!("{BETWEEN} --out own/link/results"),
        format!("{BETWEEN} --out roots/results"),
        format!("{SURVEY} --timeout 100ms --out own/link/old"),
        format!("{SURVEY} --timeout 100ms --out own/link/new"),
    ] {
        let output = as_root(folder.path(), Some(CALLER), &line).output().unwrap();
        assert_eq!(output.status.code(), Some(4), "{line}: {}", talk(&output));
        assert_eq!(owners(&at("roots")), [(at("roots/old"), (0, 0))], "{line}");
        assert_eq!(fs::read_to_string(at("roots/old")).unwrap(), "old", "{line}");
    }
}

#[test]
fn a_caller_of_root_owns_all_that_it_leaves() {
    if !may_have_networks() {
        return;
    }
    let folder = folder_of(Some(CALLER));
    let lines = [
        "observe -i lo --duration 10ms --parquet a/rows --html h.html --rtt-out r.json".to_owned(),
        format!("{BETWEEN} --out b/c/results"),
        format!("{SURVEY} --timeout 100ms --out s.jsonl"),
    ];
    for line in lines.iter().chain(&lines[..1]) {
        let output = as_root(folder.path(), Some(CALLER), line).output().unwrap();
        // An idle interface and a silent host are no faults of the outputs.
        assert!(output.status.code().is_some_and(|code| code != 4), "{line}: {}", talk(&output));
    }
    let owners = owners(folder.path());
    for name in ["a/rows/.lock", "h.html", "r.json", "b/c/results", "s.jsonl"] {
        assert!(owners.iter().any(|(path, _)| path.ends_with(name)), "{name}: {owners:?}");
    }
    assert!(owners.iter().all(|(_, owner)| *owner == CALLER), "{owners:?}");
}

#[test]
fn what_cannot_be_resumed_leaves_no_folder() {
    if !may_have_networks() {
        return;
    }
    for sudo in [None, Some(CALLER)] {
        let folder = folder_of(sudo);
        let line = format!("{BETWEEN} --resume nosuch/a/b");
        let output = as_root(folder.path(), sudo, &line).output().unwrap();
        assert!(!output.status.success(), "{}", talk(&output));
        assert_eq!(owners(folder.path()), [], "{}", talk(&output));
    }
}

#[test]
fn a_survey_reads_packets_without_root() {
    if !may_have_networks() {
        return;
    }
    for sudo in [None, Some(CALLER)] {
        let folder = folder_of(sudo);
        let line = format!("{SURVEY} --timeout 600s --out s.jsonl");
        let mut child = as_root(folder.path(), sudo, &line).stderr(Stdio::null()).spawn().unwrap();
        let status = || fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let all = |name: &str, wanted: &str| {
            let status = status();
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.is_some_and(|line| line.split_whitespace().all(|word| word == wanted))
        };
        let out = folder.path().join("s.jsonl");
        wait_until("rights given up, output there", || {
            out.exists() && all("CapPrm:", "0000000000000000")
        });
        let own = fs::metadata(&out).unwrap();
        assert_eq!((all("Uid:", "0"), all("Groups:", "")), (false, true), "{}", status());
        assert!(all("Uid:", &own.uid().to_string()), "{}", status());
        assert!(sudo.is_none_or(|sudo| sudo == (own.uid(), own.gid())), "{}", status());
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

#[test]
fn what_root_measures_between_interfaces_is_written_by_an_ordinary_user() {
    if !may_have_networks() {
        return;
    }
    for sudo in [None, Some(CALLER)] {
        let folder = folder_of(sudo);
        let line = format!("{BETWEEN} --out results");
        let output = as_root(folder.path(), sudo, &line).output().unwrap();
        let said = talk(&output);
        assert!(output.status.success(), "{said}");
        assert!(said.contains("continues as user"), "{said}");
        let results = folder.path().join("results");
        let mut owners = vec![fs::metadata(&results).unwrap()];
        owners
            .extend(fs::read_dir(&results).unwrap().map(|file| file.unwrap().metadata().unwrap()));
        assert!(owners.len() > 3, "{said}");
        for owner in owners {
            assert_ne!(owner.uid(), 0, "{said}");
            assert!(sudo.is_none_or(|sudo| sudo == (owner.uid(), owner.gid())), "{said}");
        }
    }
    // A folder of root's that was there before is not given away.
    let folder = folder_of(None);
    fs::create_dir(folder.path().join("results")).unwrap();
    for how in ["--out", "--resume"] {
        let line = format!("{BETWEEN} {how} results");
        let output = as_root(folder.path(), None, &line).output().unwrap();
        assert_eq!(output.status.code(), Some(4), "{}", talk(&output));
        assert!(talk(&output).contains("belongs to root"), "{}", talk(&output));
    }
    assert_eq!(fs::metadata(folder.path().join("results")).unwrap().uid(), 0);
}

#[test]
fn without_a_home_only_what_is_built_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let run = |line: &[&str]| {
        let mut command = wiretax(folder.path());
        command.args(line).env_remove("HOME").env_remove("XDG_CACHE_HOME").output().unwrap()
    };
    let drivers = concat!(env!("CARGO_MANIFEST_DIR"), "/../../drivers");
    let listed = run(&["drivers", "--drivers", drivers, "list"]);
    assert!(listed.status.success() && data(&listed).contains("not built"), "{}", talk(&listed));
    for refused in [&["drivers", "--drivers", drivers, "build"][..], &["stacks", "haproxy"]] {
        let output = run(refused);
        assert_eq!(output.status.code(), Some(2), "{}", talk(&output));
        assert!(talk(&output).contains("HOME"), "{}", talk(&output));
    }
}

#[test]
fn a_temporary_folder_that_cannot_be_used_is_said_with_the_variable() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = wiretax(folder.path());
    let said = command.arg("doctor").env("TMPDIR", folder.path().join("none")).output().unwrap();
    assert!(
        data(&said).contains("temporary folder") && data(&said).contains("set TMPDIR"),
        "{}",
        data(&said)
    );
}
