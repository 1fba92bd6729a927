//! `wiretax stacks` as a user runs it, with drivers that need no library.

use std::fs;
use std::path::Path;
use std::process::Output;

use crate::support::{data, talk, wiretax};
use serde_json::Value;

/// Runs the program with a cache of its own, in which nothing is built, and out of reach of the
/// machine's Go and Java, which need no build.
fn stacks(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = wiretax(folder);
    command.env("XDG_CACHE_HOME", folder.join("cache")).env("PATH", folder);
    command.arg("stacks").args(arguments);
    command.output().expect("the program starts")
}

/// A driver of the user's own: the one without cryptography.
fn own_driver(folder: &Path, name: &str) -> String {
    let path = folder.join(format!("{name}.so"));
    fs::write(&path, tls_drivers::NULL).unwrap();
    format!("./{name}.so")
}

/// Sources with one driver that nobody has built.
fn sources(folder: &Path) -> String {
    let (header, driver) = (folder.join("drivers/include"), folder.join("drivers/openssl-9.9"));
    for needed in [&header, &driver, &folder.join("drivers/shim"), &folder.join("drivers/build")] {
        fs::create_dir_all(needed).unwrap();
    }
    fs::write(header.join("wiretax_driver.h"), "").unwrap();
    let text = "name = 'openssl-9.9'\nlibrary = 'OpenSSL'\nversion = '9.9'\ndefault = true\nkind = \
                'openssl'\nabout = 'a'\nlicence = 'Apache-2.0'\n";
    fs::write(driver.join("driver.toml"), text).unwrap();
    "drivers".to_owned()
}

#[test]
fn what_there_is_not_is_answered_by_a_list() {
    let folder = tempfile::tempdir().unwrap();
    let drivers = sources(folder.path());
    for (arguments, words) in [
        (&["--libraries", "schannel"][..], &["`schannel`", "openssl-9.9, ", ", null"][..]),
        (&["--libraries", "./none.so"], &["./none.so", "openssl-9.9"]),
        (&["--version", "ssl3"], &["ssl3", "tls1.2, tls1.3"]),
        (&["--group", "x448"], &["x448", "x25519, secp256r1, x25519mlkem768"]),
        (&["--key", "dsa"], &["dsa", "rsa-2048, rsa-4096, ecdsa-p256"]),
        (&["--workload", "half"], &["half", "full, resume"]),
        (&["--threads", "many"], &["many", "powers"]),
        (&["--tool", "perf"], &["perf", "host, callgrind"]),
        (&["--scale", "huge"], &["huge", "default, full, "]),
        (&["--client", "schannel"], &["schannel", "same, reference"]),
        (&["--load", "none"], &["none", "per second"]),
        (&["--ms", "1", "--workload", "full"], &["'1' for '--ms <N>'", "10..="]),
        (&["--tool", "callgrind", "--ms", "100"], &["hint: use --connections"]),
    ] {
        let output = stacks(folder.path(), &[&["--drivers", &drivers], arguments].concat());
        let said = talk(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(words.iter().all(|word| said.contains(word)), "{arguments:?}: {said}");
        assert!(data(&output).is_empty() && !folder.path().join("results").exists());
    }
}

#[test]
fn without_a_built_library_it_says_how_to_build_one() {
    let folder = tempfile::tempdir().unwrap();
    let drivers = sources(folder.path());
    let output = stacks(folder.path(), &["--drivers", &drivers, "--libraries", "openssl-9.9"]);
    assert_eq!(output.status.code(), Some(3), "{}", talk(&output));
    assert!(talk(&output).contains("openssl-9.9: it is not built"), "{}", talk(&output));
    assert!(talk(&output).contains("`make drivers`"), "{}", talk(&output));
    assert!(!folder.path().join("results").exists(), "nothing is left behind");
}

#[test]
fn on_a_fresh_machine_the_libraries_of_the_program_are_measured() {
    let folder = tempfile::tempdir().unwrap();
    let drivers = sources(folder.path());
    let axes = ["--libraries", "default", "--workload", "full", "--ms", "20", "--repeat", "3"];
    let rest = ["--drivers", &drivers, "--json", "--out", "r"];
    let output = stacks(folder.path(), &[&axes[..], &rest].concat());
    assert!(output.status.success(), "{}", talk(&output));
    assert!(talk(&output).contains("not built: openssl-9.9"), "{}", talk(&output));
    let value: Value = serde_json::from_str(&data(&output)).unwrap();
    let cells = value["stacks"]["cells"].as_array().unwrap();
    for library in ["openssl-built-in", "rustls-built-in"] {
        let cell = cells.iter().find(|cell| cell["point"]["library"] == library);
        let cell = cell.unwrap_or_else(|| panic!("{library}: {value:#}"));
        assert!(cell["medians"]["server_cpu_us"]["value"].as_f64().unwrap() > 0.0, "{cell:#}");
    }
    let output = wiretax(folder.path()).args(["report", "r"]).output().unwrap();
    let text = data(&output);
    assert!(text.contains("too few rounds to rank them (3, and 6 are needed)"), "{text}");
    assert!(text.contains("(built in)"), "told apart from drivers: {text}");
}

#[test]
fn the_help_has_examples_and_fits_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let output = stacks(folder.path(), &["--help"]);
    let text = data(&output);
    assert!(output.status.success() && text.contains("Examples:\n  wiretax stacks"), "{text}");
    let long = text.lines().find(|line| line.chars().count() > 100);
    assert_eq!(long, None);
}

#[test]
fn a_driver_of_ones_own_is_measured_reported_and_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let own = own_driver(folder.path(), "mine");
    let axes = ["--libraries", &own, "--workload", "full", "--ms", "20", "--repeat", "3", "--json"];
    let output = stacks(folder.path(), &[&axes[..], &["--out", "r"]].concat());
    assert!(output.status.success(), "{}", talk(&output));
    let value: Value = serde_json::from_str(&data(&output)).unwrap();
    let cell = &value["stacks"]["cells"][0];
    assert_eq!(cell["point"]["library"], "mine", "{value:#}");
    assert!(cell["medians"]["server_cpu_us"]["value"].as_f64().unwrap() > 0.0, "{cell:#}");
    let command = cell["command"].as_str().unwrap();
    assert!(command.contains("--workload full") && command.contains("--ms 20"), "{command}");
    assert!(value["handshake"].is_null());
    let html = fs::read(folder.path().join("r/report.html")).unwrap();

    let again = stacks(folder.path(), &["--libraries", &own, "--resume", "r", "--json"]);
    assert_eq!(again.status.code(), Some(4), "another plan is refused: {}", talk(&again));
    let axes = &axes[..axes.len() - 1];
    let output = stacks(folder.path(), &[axes, &["--resume", "r"]].concat());
    assert!(output.status.success(), "{}", talk(&output));
    assert!(talk(&output).contains("5 samples there already"), "{}", talk(&output));
    assert!(data(&output).contains("mine"), "{}", data(&output));

    let output = wiretax(folder.path()).args(["report", "r", "--json"]).output().unwrap();
    assert!(output.status.success(), "{}", talk(&output));
    let rebuilt: Value = serde_json::from_str(&data(&output)).unwrap();
    assert_eq!(rebuilt["stacks"], value["stacks"], "the same numbers");
    assert!(!html.is_empty());
}

#[test]
fn a_driver_that_is_none_is_named_and_the_others_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let own = own_driver(folder.path(), "mine");
    fs::write(folder.path().join("broken.so"), "no driver").unwrap();
    let both = format!("{own},./broken.so");
    let axes = ["--workload", "full", "--ms", "20", "--repeat", "3", "--out", "r"];
    let output = stacks(folder.path(), &[&["--libraries", &both], &axes[..]].concat());
    assert!(output.status.success(), "{}", talk(&output));
    assert!(talk(&output).contains("warning: broken"), "{}", talk(&output));
    assert!(data(&output).contains("mine"), "{}", data(&output));

    let axes = ["--workload", "full", "--ms", "20", "--repeat", "3", "--out", "s"];
    let output = stacks(folder.path(), &[&["--libraries", "./broken.so"], &axes[..]].concat());
    assert_eq!(output.status.code(), Some(5), "{}", talk(&output));
    assert!(talk(&output).contains("nothing could be measured"), "{}", talk(&output));
}
