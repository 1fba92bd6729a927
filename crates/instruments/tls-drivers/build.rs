//! Compiles the drivers that the program carries: the one without cryptography, and one on the OpenSSL
//! that the workspace has anyway.

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let drivers = Path::new(&variable("CARGO_MANIFEST_DIR")).join("../../../drivers");
    let out = PathBuf::from(variable("OUT_DIR"));
    let shim = drivers.join("shim");
    let sources = [
        "shim/null.c",
        "shim/openssl.c",
        "shim/openssl.h",
        "shim/openssl_ech.h",
        "shim/openssl_sessions.h",
        "shim/openssl_transport.h",
        "include/wiretax_driver.h",
        "include/wiretax_store.h",
    ];
    for file in sources.map(|source| drivers.join(source)) {
        println!("cargo:rerun-if-changed={}", file.display());
    }
    let mut null = compiler(&drivers);
    null.args(["-DWT_STANDALONE", "-o"]).arg(out.join("null.so")).arg(shim.join("null.c"));
    run(&mut null);

    // openssl-sys, on which this crate depends, says where it has put the library.
    let (include, root) = (variable("DEP_OPENSSL_INCLUDE"), variable("DEP_OPENSSL_ROOT"));
    let library = Path::new(&root).join("lib");
    let object = out.join("openssl.so");
    let mut openssl = compiler(&drivers);
    openssl.args(["-DWT_STANDALONE", "-DWT_BUILD_FLAGS=\"vendored\"", "-DWT_PACKAGE=\"vendored\""]);
    openssl.arg(format!("-isystem{include}")).arg("-o").arg(&object).arg(shim.join("openssl.c"));
    openssl.arg(library.join("libssl.a")).arg(library.join("libcrypto.a"));
    // Names of functions stay, for where locks are taken; lines of sources would be 20 MB.
    openssl.args(["-Wl,--exclude-libs,ALL", "-Wl,-Bsymbolic", "-Wl,-S", "-lpthread", "-ldl"]);
    run(&mut openssl);
    println!("cargo:rustc-env=WIRETAX_TEST_OPENSSL={}", object.display());

    let rustc = Command::new(variable("RUSTC")).arg("--version").output().expect("rustc runs");
    let rustc = String::from_utf8_lossy(&rustc.stdout).trim().to_owned();
    let (target, level) = (variable("TARGET"), variable("OPT_LEVEL"));
    println!("cargo:rustc-env=WIRETAX_BUILD_FLAGS={rustc}; {target}; opt-level={level}");
}

// `static_flag(false)` still keeps `-static` from the compiler, whatever its note says.
#[allow(deprecated)]
fn compiler(drivers: &Path) -> Command {
    // Drivers are shared objects, beside a static program, too.
    let compiler = cc::Build::new().static_flag(false).get_compiler();
    let mut command = compiler.to_command();
    command.args(["-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-Wall", "-Wextra"]);
    command.arg("-I").arg(drivers.join("include"));
    command
}

fn run(command: &mut Command) {
    let status = command.status();
    let done = status.as_ref().is_ok_and(std::process::ExitStatus::success);
    assert!(done, "{command:?}: {status:?}");
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set: run this by cargo"))
}
