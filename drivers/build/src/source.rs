//! Sources of libraries: out of a crate that carries one, or a file by its address and SHA-256.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};

use crate::{copy_tree, make_dir, out_dir, package_dir, run, tool};

/// The source that a crate carries, copied to where it can be built. The crate is a dependency of
/// `source/Cargo.toml` beside the driver's own manifest, fetched by its lock file and never built: its
/// own build script has other aims.
///
/// # Panics
/// If it cannot be fetched.
#[must_use]
pub fn vendored_source(name: &str, folder: &str) -> PathBuf {
    let manifest = package_dir().join("source/Cargo.toml");
    println!("cargo:rerun-if-changed={}", manifest.display());
    println!("cargo:rerun-if-changed={}", manifest.with_extension("lock").display());
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let mut fetch = Command::new(&cargo);
    run(fetch.args(["fetch", "--locked", "--manifest-path"]).arg(&manifest));
    let mut metadata = Command::new(&cargo);
    metadata.args(["metadata", "--format-version=1", "--locked", "--offline", "--manifest-path"]);
    let output = metadata.arg(&manifest).output().expect("cargo runs");
    let metadata: serde_json::Value =
        serde_json::from_slice(&output.stdout).expect("cargo metadata is JSON");
    let packages = metadata["packages"].as_array().expect("there are packages");
    let package = packages.iter().find(|package| package["name"] == name);
    let package = package.unwrap_or_else(|| panic!("{} lacks {name}", manifest.display()));
    let found = Path::new(package["manifest_path"].as_str().expect("a package has a manifest"));
    let from = found.parent().expect("a manifest is in a folder").join(folder);
    unpacked(&from.to_string_lossy(), |to| copy_tree(&from, to))
}

/// The folder that a source is put into, unless the same source is there already: what was built in it
/// is good then.
fn unpacked(identity: &str, put: impl FnOnce(&Path)) -> PathBuf {
    let (to, stamp) = (out_dir().join("source"), out_dir().join("source.txt"));
    if to.exists() && fs::read_to_string(&stamp).is_ok_and(|before| before == identity) {
        return to;
    }
    // What breaks off leaves no stamp.
    let _ = fs::remove_file(&stamp);
    if to.exists() {
        fs::remove_dir_all(&to).unwrap_or_else(|error| panic!("{}: {error}", to.display()));
    }
    make_dir(&to);
    put(&to);
    fs::write(&stamp, identity).unwrap_or_else(|error| panic!("{}: {error}", stamp.display()));
    to
}

/// The files of a tarball whose SHA-256 is known, without its first folder.
///
/// # Panics
/// If it cannot be fetched, or is another file.
#[must_use]
pub fn tarball(url: &str, sha256: &str) -> PathBuf {
    println!("cargo:rerun-if-env-changed=WIRETAX_DOWNLOADS");
    let folder = std::env::var_os("WIRETAX_DOWNLOADS").map_or_else(out_dir, PathBuf::from);
    make_dir(&folder);
    let file = folder.join(url.rsplit('/').next().unwrap_or(url));
    if !file.exists() {
        let partial = folder.join(format!("{sha256}.{}", std::process::id()));
        let mut curl = tool("curl", &folder);
        curl.args(["--fail", "--silent", "--show-error", "--location", "--retry", "3", "--output"]);
        run(curl.arg(&partial).arg(url));
        fs::rename(&partial, &file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    }
    let found = sum(&file);
    if found != sha256 {
        // Not to be taken for the file the next time.
        let _ = fs::remove_file(&file);
        panic!("{url} has SHA-256 {found}, not {sha256}");
    }
    unpacked(sha256, |to| {
        run(tool("tar", to).args(["--extract", "--strip-components=1", "--file"]).arg(&file));
    })
}

fn sum(path: &Path) -> String {
    let mut file = File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let (mut hash, mut buffer) = (Sha256::new(), vec![0; 1 << 16]);
    loop {
        let read = file.read(&mut buffer).unwrap_or_else(|error| panic!("reading: {error}"));
        if read == 0 {
            break;
        }
        hash.update(&buffer[..read]);
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
