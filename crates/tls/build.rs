//! Takes the exact versions of the TLS crates from the lock file that builds them.

use std::path::Path;
use std::{env, fs};

/// The crates whose versions a result must name.
const CRATES: &[&str] = &[
    "aws-lc-rs",
    "aws-lc-sys",
    "openssl",
    "openssl-src",
    "quinn",
    "quinn-proto",
    "rcgen",
    "rustls",
    "rustls-webpki",
];

fn main() {
    let manifest = env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let lock = Path::new(&manifest).join("../../Cargo.lock");
    println!("cargo::rerun-if-changed={}", lock.display());
    println!("cargo::rerun-if-changed=build.rs");
    let text = fs::read_to_string(&lock).expect("the workspace's Cargo.lock");
    let pairs: Vec<String> = CRATES
        .iter()
        .map(|name| (name, versions(&text, name)))
        .filter(|(_, found)| !found.is_empty())
        .map(|(name, found)| format!("{name}={}", found.join("+")))
        .collect();
    println!("cargo::rustc-env=TLS_CRATE_VERSIONS={}", pairs.join(";"));
}

/// The versions of a package in the lock file: a line `name = "x"`, then `version = "y"`.
fn versions(lock: &str, name: &str) -> Vec<String> {
    let wanted = format!("name = \"{name}\"");
    let mut lines = lock.lines();
    let mut found = Vec::new();
    while lines.by_ref().any(|line| line == wanted) {
        let version = lines.next().and_then(|line| line.strip_prefix("version = \""));
        found.extend(version.and_then(|rest| rest.strip_suffix('"')).map(str::to_owned));
    }
    found
}
