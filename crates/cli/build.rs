//! Puts the commit that is built into the program, where there is one: a tarball has none.

use std::path::Path;
use std::process::Command;

fn main() {
    let here = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    let Some(root) = Path::new(&here).ancestors().nth(2) else { return };
    println!("cargo:rerun-if-changed=build.rs");
    // What decides the commit and whether the sources differ from it.
    for path in [".git/HEAD", ".git/index", ".git/refs", "crates", "studies", "Cargo.toml"] {
        let path = root.join(path);
        if path.exists() {
            println!("cargo:rerun-if-changed={}", path.display());
        }
    }
    if let Some(commit) = commit(root) {
        println!("cargo:rustc-env=WIRETAX_COMMIT={commit}");
    }
}

fn commit(root: &Path) -> Option<String> {
    // A tarball unpacked inside another repository is not that repository.
    let top = git(root, &["rev-parse", "--show-toplevel"])?;
    if Path::new(&top).canonicalize().ok()? != root.canonicalize().ok()? {
        return None;
    }
    let commit = git(root, &["rev-parse", "--verify", "--quiet", "HEAD"])?;
    // No optional locks: a build must not disturb a `git` that runs at the same time.
    let changed =
        git(root, &["--no-optional-locks", "status", "--porcelain", "--untracked-files=no"])?;
    Some(if changed.is_empty() { commit } else { format!("{commit}-dirty") })
}

fn git(root: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("-C").arg(root).args(arguments).output().ok()?;
    if !output.status.success() {
        return None;
    }
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
