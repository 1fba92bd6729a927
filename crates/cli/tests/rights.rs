//! Rights: what root begins and gives up, and what is missing where something cannot be done.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Command, Output};

use crate::support::{data, has, talk, wiretax};

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

/// Measures a veth pair of a network namespace of its own.
fn between(folder: &Path, sudo: Option<(u32, u32)>) -> Output {
    let script = "mount -t sysfs sysfs /sys && ip link add here type veth peer name there && ip link set here up && ip link set there up &&
        exec \"$0\" link --between here there --frame 512 --load 1000pps --trial 100ms --repeat 1 --out results";
    let mut command = Command::new("unshare");
    command.args(["--net", "--mount", "sh", "-c", script]).arg(wiretax(folder).get_program());
    command.current_dir(folder).env_remove("SUDO_UID").env_remove("SUDO_GID");
    if let Some((user, group)) = sudo {
        command.env("SUDO_UID", user.to_string()).env("SUDO_GID", group.to_string());
    }
    command.output().unwrap()
}

#[test]
fn what_root_measures_between_interfaces_is_written_by_an_ordinary_user() {
    if !is_root() {
        lab_test::skipped(lab_test::Need::Root, "interfaces of the machine are root's");
        return;
    }
    if !["unshare", "ip"].iter().all(|program| has(program)) {
        return;
    }
    for sudo in [None, Some((1234, 4321))] {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        let output = between(folder.path(), sudo);
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
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    fs::create_dir(folder.path().join("results")).unwrap();
    let output = between(folder.path(), None);
    assert_eq!(output.status.code(), Some(4), "{}", talk(&output));
    assert!(talk(&output).contains("belongs to root"), "{}", talk(&output));
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
