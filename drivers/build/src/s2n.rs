//! s2n-tls as its crate for Rust builds it, on AWS-LC's libcrypto.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::awslc::cmake;
use crate::{Sdk, copy_tree, out_dir, package_dir, quoted, shim, vendored_source};

/// Options of AWS-LC's CMake files, as its own driver has them.
const CRYPTO_OPTIONS: &[&str] = &[
    "CMAKE_BUILD_TYPE=Release",
    "BUILD_SHARED_LIBS=OFF",
    "BUILD_TESTING=OFF",
    "BUILD_TOOL=OFF",
    "DISABLE_GO=ON",
    "DISABLE_PERL=ON",
    "CMAKE_POSITION_INDEPENDENT_CODE=ON",
];

/// Folders of the library's own files.
const PARTS: &[&str] = &["crypto", "error", "stuffer", "tls", "utils"];

/// Builds AWS-LC's libcrypto out of the source that aws-lc-sys carries, s2n-tls out of that which
/// s2n-tls-sys carries, and the shim. `version` is the crate's: the library has no other.
///
/// # Panics
/// If the build fails.
pub fn s2n(version: &str) {
    let crypto = out_dir().join("crypto-source");
    if crypto.exists() {
        fs::remove_dir_all(&crypto).unwrap_or_else(|error| panic!("{}: {error}", crypto.display()));
    }
    // The next source takes this one's place.
    fs::rename(vendored_source("aws-lc-sys", "aws-lc"), &crypto)
        .unwrap_or_else(|error| panic!("{}: {error}", crypto.display()));
    let build = out_dir().join("build");
    let libcrypto = build.join("crypto/libcrypto.a");
    cmake(&crypto, &build, CRYPTO_OPTIONS, &[libcrypto.clone()]);

    let source = vendored_source("s2n-tls-sys", "lib");
    let headers = crypto.join("include");
    let features = features(&source, &headers);
    let mut library = compiler(&source, &headers);
    library.define("S2N_BUILD_RELEASE", "1").define("NDEBUG", "1");
    for feature in &features {
        library.define(feature, "1");
    }
    for part in PARTS {
        library.files(c_files(&source.join(part)));
    }
    library.compile("s2n");

    let sdk = Sdk {
        include: shim_headers(&source, &headers),
        archives: vec![out_dir().join("libs2n.a"), libcrypto],
        flags: format!("-O3 -std=c11 -DNDEBUG; {}", features.join(" ")),
    };
    let version = quoted(version);
    let mut definitions = vec![("WT_S2N_VERSION", version.as_str())];
    definitions.extend(features.iter().map(|feature| (feature.as_str(), "1")));
    shim("s2n.c", &sdk, &definitions);
}

/// The compiler as the crate's build script sets it, less link-time optimisation, which it has only
/// with some linkers.
fn compiler(source: &Path, headers: &Path) -> cc::Build {
    let mut build = cc::Build::new();
    build.includes([headers, source, &source.join("api")]);
    build.flag("-include").flag(source.join("utils/s2n_prelude.h"));
    build.flag("-std=c11").flag("-fgnu89-inline").opt_level(3).pic(true);
    build.flag_if_supported("-Wno-deprecated-declarations");
    build.flag_if_supported("-Wa,-mbranches-within-32B-boundaries");
    build.warnings(false).cargo_metadata(false);
    build
}

/// What the compiler and libcrypto can do, by the library's own probes: each is a file that compiles
/// or does not.
fn features(source: &Path, headers: &Path) -> Vec<String> {
    let folder = source.join("tests/features");
    let global = flags(&folder.join("GLOBAL.flags"));
    let mut found = Vec::new();
    for probe in c_files(&folder) {
        let name = probe.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let compiler = compiler(source, headers).get_compiler();
        let mut command = Command::new(compiler.path());
        // Where warnings are off, a function that is not there is no error, and every probe passes.
        command.args(compiler.args().iter().filter(|flag| *flag != "-w"));
        command.args(&global).args(flags(&probe.with_extension("flags")));
        command.arg("-c").arg("-o").arg(out_dir().join("probe.o")).arg(&probe);
        let output = command.output().unwrap_or_else(|error| panic!("the compiler: {error}"));
        println!("{name}: {}", output.status);
        if output.status.success() {
            found.push(name);
        }
    }
    assert!(
        found.iter().any(|name| name == "S2N_LIBCRYPTO_SANITY_PROBE"),
        "the headers of AWS-LC cannot be used"
    );
    found
}

/// The flags in a file.
fn flags(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace().map(str::to_owned).collect()
}

/// The files of C in a folder and below it, in order.
fn c_files(folder: &Path) -> Vec<PathBuf> {
    let entries =
        fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut found = Vec::new();
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            found.extend(c_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "c") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// One folder with all headers that the shim asks for: it looks into the library.
fn shim_headers(source: &Path, crypto: &Path) -> PathBuf {
    let include = out_dir().join("include");
    copy_tree(crypto, &include);
    for part in PARTS.iter().chain(&["api"]) {
        copy_tree(&source.join(part), &include.join(part));
    }
    // Some of its headers ask for public ones as its users do. They are the same files, and not
    // copies, for what they define is to be defined once.
    for name in ["s2n.h", "unstable"] {
        let link = include.join(name);
        let _ = fs::remove_file(&link);
        symlink(Path::new("api").join(name), &link)
            .unwrap_or_else(|error| panic!("{}: {error}", link.display()));
    }
    println!("cargo:rerun-if-changed={}", package_dir().join("source/Cargo.lock").display());
    include
}
