//! What the build scripts of the drivers share: a library's source from a registry or by its sum, the
//! library built as static archives, a shim on it, and all of it linked into one shared object.
//!
//! A build script has one way to fail, and a reader of its log: it panics with a sentence.

mod awslc;
mod boringssl;
mod debian;
mod libressl;
mod once;
mod openssl;
mod quictls;
mod run;
mod s2n;
mod source;
mod wolfssl;

use std::fs;
use std::path::{Path, PathBuf};

pub use awslc::{Standard, awslc};
pub use boringssl::boringssl;
pub use debian::{Linking, SystemLibrary, system_library};
pub use libressl::libressl;
pub use openssl::{openssl, openssl_with};
pub use quictls::quictls;
pub use run::{jobs, run, tool};
pub use s2n::s2n;
pub use source::{tarball, vendored_source};
pub use wolfssl::{Hybrid, wolfssl};

/// A library as it was built: what programs need that are linked with it.
#[derive(Debug, Clone)]
pub struct Sdk {
    /// The folder in which `#include` finds its headers.
    pub include: PathBuf,
    /// Its static archives, users before what they use.
    pub archives: Vec<PathBuf>,
    /// The flags that it was built with, for the report.
    pub flags: String,
}

/// Where this build's files go.
#[must_use]
pub fn out_dir() -> PathBuf {
    PathBuf::from(variable("OUT_DIR"))
}

/// The folder of the driver that is built.
#[must_use]
pub fn package_dir() -> PathBuf {
    PathBuf::from(variable("CARGO_MANIFEST_DIR"))
}

/// The folder of all drivers.
#[must_use]
pub fn drivers_dir() -> PathBuf {
    package_dir().parent().map(Path::to_path_buf).unwrap_or_default()
}

/// A variable that cargo sets.
fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set: run this by cargo"))
}

impl Sdk {
    /// Copies headers and archives to where the one who ordered this build wants them
    /// (`WIRETAX_SDK`), for other programs to be linked with: `include/` and `lib/`.
    ///
    /// # Panics
    /// If they cannot be copied.
    pub fn publish(&self) {
        println!("cargo:rerun-if-env-changed=WIRETAX_SDK");
        let Some(to) = std::env::var_os("WIRETAX_SDK").map(PathBuf::from) else { return };
        copy_tree(&self.include, &to.join("include"));
        let lib = to.join("lib");
        make_dir(&lib);
        for archive in &self.archives {
            let name = archive.file_name().expect("an archive has a name");
            fs::copy(archive, lib.join(name))
                .unwrap_or_else(|error| panic!("copying {}: {error}", archive.display()));
        }
    }
}

/// Compiles the shim `drivers/shim/NAME` on a library and has everything linked into the driver. Each
/// definition is a macro's name and its text.
///
/// # Panics
/// If the compiler fails.
pub fn shim(name: &str, sdk: &Sdk, definitions: &[(&str, &str)]) {
    let file = drivers_dir().join("shim").join(name);
    let include = drivers_dir().join("include");
    println!("cargo:rerun-if-changed={}", include.display());
    // The family's headers lie beside it.
    let family = Path::new(name).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let files = fs::read_dir(drivers_dir().join("shim"))
        .unwrap_or_else(|error| panic!("reading {}: {error}", file.display()));
    for path in files.flatten().map(|entry| entry.path()) {
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&family)) {
            println!("cargo:rerun-if-changed={}", path.display());
        }
    }
    let mut build = cc::Build::new();
    build.file(&file).include(include).opt_level(2).pic(true).warnings(true).extra_warnings(true);
    build.cpp(name.ends_with(".cpp"));
    if name.ends_with(".cpp") {
        build.std("c++20");
    }
    // The headers of others are not ours to warn about.
    build.flag(format!("-isystem{}", sdk.include.display()));
    build.define("WT_BUILD_FLAGS", quoted(&sdk.flags).as_str());
    build.define("WT_PACKAGE", quoted(&package_dir().file_name().unwrap_or_default().to_string_lossy()).as_str());
    for (name, text) in definitions {
        build.define(name, *text);
    }
    build.compile("shim");
    link(sdk);
}

/// Has the archives of a library linked into the driver, and nothing of them seen outside.
pub fn link(sdk: &Sdk) {
    for archive in &sdk.archives {
        let (folder, name) = (archive.parent(), archive.file_stem());
        let (Some(folder), Some(name)) = (folder, name.and_then(|name| name.to_str())) else {
            panic!("{} is no archive", archive.display());
        };
        println!("cargo:rustc-link-search=native={}", folder.display());
        println!("cargo:rustc-link-lib=static={}", name.strip_prefix("lib").unwrap_or(name));
    }
    // Calls inside the driver stay inside, whatever else the process has loaded.
    for flag in ["-Wl,-Bsymbolic", "-Wl,--exclude-libs,ALL"] {
        println!("cargo:rustc-cdylib-link-arg={flag}");
    }
}

/// A text as a string literal of C.
#[must_use]
pub fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Makes a folder and those above it.
///
/// # Panics
/// If it cannot.
pub fn make_dir(path: &Path) {
    fs::create_dir_all(path).unwrap_or_else(|error| panic!("making {}: {error}", path.display()));
}

/// Copies a folder with what is in it; links are followed.
///
/// # Panics
/// If it cannot.
pub fn copy_tree(from: &Path, to: &Path) {
    make_dir(to);
    let entries =
        fs::read_dir(from).unwrap_or_else(|error| panic!("reading {}: {error}", from.display()));
    for entry in entries.flatten() {
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy_tree(&path, &target);
        } else if path.exists() {
            fs::copy(&path, &target)
                .unwrap_or_else(|error| panic!("copying {}: {error}", path.display()));
        }
    }
}
