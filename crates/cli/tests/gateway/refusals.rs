//! Command lines and files that are wrong: one error, a hint, and the exit status for it.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use tls::{Identity, KeyType};

use super::world::check;
use crate::support::{data, run, talk, wiretax};
use lab_test::{Need, Test, TestResult, skip};

pub fn tests() -> Vec<Test> {
    vec![
        Test::new("help_has_examples_and_exit_codes", help),
        Test::new("wrong_command_lines_are_refused_with_a_hint", command_lines),
        Test::new("wrong_files_are_refused_with_a_hint", files),
        Test::new("a_port_in_use_is_named", port_in_use),
        Test::new("without_rights_the_error_says_which", no_rights),
        Test::new("the_units_are_well_formed", units),
    ]
}

fn help() -> TestResult {
    let folder = tempfile::tempdir()?;
    for arguments in [
        &["gateway", "--help"][..],
        &["gateway", "serve", "--help"],
        &["gateway", "connect", "--help"],
    ] {
        let output = run(folder.path(), arguments);
        let text = data(&output);
        check(output.status.success() && talk(&output).is_empty(), || talk(&output))?;
        for part in ["Examples:\n  wiretax gateway ", "Exit codes:\n  0    ended", "130  ended"] {
            check(text.contains(part), || format!("{part}: {text}"))?;
        }
        let long = text.lines().find(|line| line.chars().count() > 100);
        check(long.is_none(), || format!("{long:?}"))?;
    }
    Ok(())
}

/// Checks that a command line ends with this status, and an error with this in it and a hint.
fn refused(folder: &std::path::Path, line: &str, status: i32, part: &str) -> TestResult {
    let arguments: Vec<&str> = line.split_whitespace().collect();
    let output = run(folder, &arguments);
    let text = talk(&output);
    check(output.status.code() == Some(status), || format!("{line}: {:?} {text}", output.status))?;
    check(text.contains("error: ") && text.contains(part), || format!("{line}: {text}"))?;
    let helps = ["hint: ", "tip: ", "Usage: ", "--help"];
    check(helps.iter().any(|help| text.contains(help)), || format!("{line}: {text}"))?;
    check(text.matches("error: ").count() == 1 && !text.contains("panicked"), || text.clone())?;
    check(data(&output).is_empty(), || data(&output))
}

const SERVE: &str =
    "gateway serve --listen 192.0.2.10:443 --to 127.0.0.1:80 --certificate c --key k";
const CONNECT: &str = "gateway connect --listen 127.0.0.1:0 --to 192.0.2.10:443 --insecure";

fn command_lines() -> TestResult {
    let folder = tempfile::tempdir()?;
    let no = folder.path();
    for (line, part) in [
        ("gateway server", "serve"),
        ("gateway serve --to 127.0.0.1:80", "--listen"),
        (&format!("{SERVE} --certficate x"), "--certificate"),
        (&format!("{CONNECT} --profile tls14"), "tls13"),
        (&format!("{CONNECT} --redirect --tun t0"), "--tun"),
        (&format!("{CONNECT} --redirect --address 192.0.2.77/24"), "--address"),
        (&format!("{CONNECT} --address 192.0.2.77"), "192.0.2.7/24"),
        (&format!("{CONNECT} --drain 30"), "no unit"),
        (&format!("{CONNECT} --max-connections 0"), "1..="),
        (&format!("{CONNECT} --metrics localhost"), "192.0.2.10:443"),
        (&format!("{CONNECT} --metrics 0.0.0.0:9464"), "--allow-remote"),
        (CONNECT, "--address"),
        ("gateway connect --listen 0.0.0.0:8080 --to 192.0.2.10:443", "--allow-remote"),
        ("gateway connect --listen 127.0.0.1:0 --to 192.0.2.10", "no port"),
        ("gateway connect --listen 127.0.0.1:0 --to https://x.test/", "its port is not a number"),
        ("gateway connect --listen 127.0.0.1:0 --to x/y:1", "not a host and port"),
        ("gateway connect --listen 127.0.0.1:0 --to 192.0.2.10:443 --ca x --insecure", "--ca"),
    ] {
        refused(no, line, 2, part)?;
    }
    refused(no, &SERVE.replace("10:443", "10:0"), 2, "port 0")?;
    refused(no, &format!("{SERVE} --early-data --paper"), 2, "--paper")
}

fn files() -> TestResult {
    let folder = tempfile::tempdir()?;
    let place = folder.path();
    refused(place, SERVE, 2, "the certificate c cannot be read")?;
    let made = Identity::generate(KeyType::EcdsaP256, 1, &["server.test"])?;
    let other = Identity::generate(KeyType::EcdsaP256, 1, &["server.test"])?;
    std::fs::write(place.join("c"), made.chain_pem()?)?;
    refused(place, SERVE, 2, "the private key k cannot be read")?;
    let key = |pem: &str, mode| -> std::io::Result<()> {
        std::fs::write(place.join("k"), pem)?;
        std::fs::set_permissions(place.join("k"), PermissionsExt::from_mode(mode))
    };
    key(&made.private_key_pem()?, 0o644)?;
    refused(place, SERVE, 2, "chmod")?;
    key("nonsense", 0o600)?;
    refused(place, SERVE, 2, "no private key")?;
    key(&other.private_key_pem()?, 0o600)?;
    refused(place, SERVE, 2, "not that of the first certificate")?;
    std::fs::write(place.join("roots"), "nonsense")?;
    let line = "gateway connect --listen 127.0.0.1:0 --to 192.0.2.10:443 --ca roots";
    refused(place, line, 2, "no certificate in it")?;
    // All is well but the address, which no interface leads to.
    key(&made.private_key_pem()?, 0o600)?;
    let line = SERVE.replace("192.0.2.10", "127.0.0.1");
    refused(place, &line, 2, "not an address that peers can connect to")
}

fn port_in_use() -> TestResult {
    let folder = tempfile::tempdir()?;
    let taken = TcpListener::bind("127.0.0.1:0")?;
    let line =
        format!("gateway connect --listen {} --to 192.0.2.10:443 --insecure", taken.local_addr()?);
    refused(folder.path(), &line, 3, "stop the program that has this port")?;
    let line = format!("{CONNECT} --metrics {}", taken.local_addr()?);
    refused(folder.path(), &line, 3, "stop the program that has this port")
}

fn no_rights() -> TestResult {
    let folder = tempfile::tempdir()?;
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o777))?;
    let program = folder.path().join("wiretax");
    std::fs::copy(wiretax(folder.path()).get_program(), &program)?;
    let output = Command::new("setpriv")
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
        .arg(&program)
        .args(CONNECT.split_whitespace())
        .args(["--address", "10.9.8.2/30", "--tun", "wiretax-test"])
        .env("NO_COLOR", "1")
        .current_dir(folder.path())
        .output();
    let Ok(output) = output else { return skip(Need::UtilLinux, "setpriv is not on this machine") };
    let text = talk(&output);
    if text.contains("setpriv: ") {
        return skip(Need::Root, format!("this user may not become another: {text}"));
    }
    check(output.status.code() == Some(3), || text.clone())?;
    check(text.contains("error: ") && text.contains("hint: "), || text.clone())
}

fn units() -> TestResult {
    let folder = tempfile::tempdir()?;
    let packaging = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging");
    for side in ["serve", "connect"] {
        let name = format!("wiretax-gateway-{side}.service");
        let text = std::fs::read_to_string(packaging.join(&name))?;
        check(text.contains(&format!("wiretax gateway {side} ")), || text.clone())?;
        // The program is not installed there; what is looked at is the rest.
        let text = text.replace("/usr/local/bin/wiretax", "/bin/true");
        let file = folder.path().join(&name);
        std::fs::write(&file, text)?;
        let looked =
            Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&file).output();
        let Ok(looked) = looked else {
            return skip(Need::Host, "systemd-analyze is not on this machine");
        };
        let said = talk(&looked);
        check(looked.status.success() && !said.contains(&name), || said.clone())?;
    }
    Ok(())
}
