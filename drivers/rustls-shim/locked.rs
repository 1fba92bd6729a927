// For the drivers' build scripts, which include this file: what the lock file pins, and how this build
// is made. Sets DRIVER_VERSION and DRIVER_FLAGS for the driver's code.

use std::env;
use std::fs;

/// The version of a package in this driver's lock file.
fn locked(lock: &str, package: &str) -> String {
    let mut lines = lock.lines().skip_while(|line| *line != format!("name = \"{package}\""));
    let version =
        lines.nth(1).and_then(|line| line.strip_prefix("version = \"")?.strip_suffix('"'));
    version.unwrap_or_else(|| panic!("Cargo.lock pins no {package}")).to_owned()
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"))
}

/// Tells the driver of these packages, in this order.
fn tell(packages: &[&str]) {
    println!("cargo::rerun-if-changed=Cargo.lock");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=../rustls-shim/locked.rs");
    println!("cargo::rerun-if-env-changed=RUSTC");
    let lock = fs::read_to_string("Cargo.lock").expect("the driver has a lock file");
    let versions: Vec<_> =
        packages.iter().map(|name| format!("{name} {}", locked(&lock, name))).collect();
    println!("cargo::rustc-env=DRIVER_VERSION={}", versions.join(", "));

    let rustc = std::process::Command::new(variable("RUSTC"))
        .arg("--version")
        .output()
        .expect("rustc runs");
    let rustc = String::from_utf8_lossy(&rustc.stdout).trim().to_owned();
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default().replace('\u{1f}', " ");
    let level = variable("OPT_LEVEL");
    println!(
        "cargo::rustc-env=DRIVER_FLAGS={}",
        format!("{rustc}; {}; opt-level={level} {flags}", variable("TARGET")).trim_end()
    );
}
