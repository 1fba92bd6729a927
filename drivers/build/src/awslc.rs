//! AWS-LC by its own CMake files, with its `ssl/`, from the assembly that its source carries: neither
//! Go nor Perl is run.

use std::fs;
use std::path::{Path, PathBuf};

use crate::once::once;
use crate::{Sdk, jobs, out_dir, run, shim, tool};

/// The edition of C that AWS-LC is built as. It decides how references are counted in 1.29.0 and
/// 1.32.0: by C11's atomics, or, where `__STDC_VERSION__` is below 201112, under one reader-writer
/// lock of the process (their `crypto/internal.h`, `OPENSSL_C11_ATOMIC`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standard {
    /// What its CMake files choose by themselves.
    Default,
    /// C99, which is what the CMake files of 1.29.0 and 1.32.0 choose.
    C99,
    /// C11, asked of CMake: references are then counted by its atomics.
    C11,
}

/// Builds AWS-LC out of a source folder, and the shim on it.
///
/// # Panics
/// If the build fails, or if references are not counted as the edition of C asks.
pub fn awslc(source: &Path, standard: Standard) {
    let build = out_dir().join("build");
    let mut options = vec![
        "CMAKE_BUILD_TYPE=Release",
        "BUILD_SHARED_LIBS=OFF",
        "BUILD_TESTING=OFF",
        "BUILD_TOOL=OFF",
        "DISABLE_GO=ON",
        "DISABLE_PERL=ON",
        "CMAKE_POSITION_INDEPENDENT_CODE=ON",
    ];
    match standard {
        Standard::Default => {}
        Standard::C99 => options.push("CMAKE_C_STANDARD=99"),
        Standard::C11 => options.push("CMAKE_C_STANDARD=11"),
    }
    let archives = vec![build.join("ssl/libssl.a"), build.join("crypto/libcrypto.a")];
    cmake(source, &build, &options, &archives);
    let sdk = Sdk {
        include: source.join("include"),
        archives,
        flags: format!("cmake -D{}", options.join(" -D")),
    };
    let locked = counts_under_a_lock(&build.join("crypto/libcrypto.a"));
    match standard {
        Standard::C99 => assert!(locked, "as C99, references were to be counted under a lock"),
        Standard::Default | Standard::C11 => {
            assert!(!locked, "as C11, references were to be counted by atomics");
        }
    }
    shim("openssl.c", &sdk, &[]);
    // Its libssl is C++.
    println!("cargo:rustc-link-lib=dylib=stdc++");
    sdk.publish();
}

/// Configures by CMake and builds the targets `crypto` and `ssl`, which make the archives. Each option
/// is `NAME=VALUE`.
///
/// # Panics
/// If either fails.
pub(crate) fn cmake(source: &Path, build: &Path, options: &[&str], archives: &[PathBuf]) {
    once(options, archives, || {
        // CMake refuses a cache that was made in another folder.
        let cache = fs::read_to_string(build.join("CMakeCache.txt")).unwrap_or_default();
        if !cache.is_empty() && !cache.contains(&format!("={}\n", build.display())) {
            fs::remove_dir_all(build)
                .unwrap_or_else(|error| panic!("{}: {error}", build.display()));
        }
        let mut configure = tool("cmake", source);
        configure.arg("-S").arg(source).arg("-B").arg(build);
        configure.args(options.iter().map(|option| format!("-D{option}")));
        run(&mut configure);
        let mut make = tool("cmake", source);
        make.arg("--build").arg(build).args(["--target", "crypto", "ssl", "--parallel"]);
        run(make.arg(jobs()));
    });
}

/// Whether the archive has the lock that AWS-LC's `crypto/refcount_lock.c` counts references under:
/// that file is empty where atomics are used.
fn counts_under_a_lock(archive: &Path) -> bool {
    let output = tool("nm", &out_dir()).arg(archive).output();
    let output = output.unwrap_or_else(|error| panic!("nm could not be started: {error}"));
    assert!(output.status.success(), "nm failed on {}", archive.display());
    let symbols = String::from_utf8_lossy(&output.stdout);
    let has = |name: &str| symbols.lines().any(|line| line.ends_with(name));
    assert!(has(" T CRYPTO_refcount_inc"), "{} counts no references", archive.display());
    has(" g_refcount_lock")
}
