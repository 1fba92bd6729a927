//! OpenSSL by its own Configure and make, static, as its makers have it otherwise.

use std::path::Path;

use crate::once::once;
use crate::{Sdk, jobs, out_dir, run, shim, tool};

/// Builds OpenSSL out of a source folder, and the shim on it.
pub fn openssl(source: &Path) {
    openssl_with(source, &[]);
}

/// The same with more options for Configure.
///
/// # Panics
/// If the build fails.
pub fn openssl_with(source: &Path, more: &[&str]) {
    build(source, more, &[]);
}

/// The same with definitions for the shim.
pub(crate) fn build(source: &Path, more: &[&str], definitions: &[(&str, &str)]) {
    let prefix = out_dir().join("prefix");
    let mut options = vec!["no-shared", "no-tests"];
    if source.join("VERSION.dat").exists() {
        // From 3.0 on; the crates do not carry the legacy provider whole, and nothing here needs it.
        options.extend(["no-module", "no-legacy"]);
    } else {
        // Before 3.0 its Configure does not look for itself where it runs.
        options.insert(0, target());
    }
    options.extend(more);
    let archives = vec![source.join("libssl.a"), source.join("libcrypto.a")];
    once(&options, &archives, || {
        let mut configure = tool("perl", source);
        configure.arg("Configure").args(&options);
        configure.arg(format!("--prefix={}", prefix.display())).arg("--openssldir=/nonexistent");
        run(&mut configure);
        run(tool("make", source).arg(format!("-j{}", jobs())).arg("build_libs"));
    });
    let sdk = Sdk {
        include: source.join("include"),
        archives,
        flags: format!("Configure {}", options.join(" ")),
    };
    shim("openssl.c", &sdk, definitions);
    sdk.publish();
}

/// OpenSSL's name for this machine.
fn target() -> &'static str {
    match std::env::var("CARGO_CFG_TARGET_ARCH").as_deref() {
        Ok("x86_64") => "linux-x86_64",
        Ok("aarch64") => "linux-aarch64",
        other => panic!("OpenSSL's name for {other:?} is not known here"),
    }
}
