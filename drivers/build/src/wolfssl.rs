//! WolfSSL by its own configure and make, static, with the options that HAProxy's documentation asks
//! for, X25519 and the assembly for this processor.

use std::path::Path;

use crate::once::once;
use crate::{Sdk, jobs, out_dir, run, shim, tool};

/// Whether a release of WolfSSL has the hybrid group X25519MLKEM768 as it was standardised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hybrid {
    /// It has, under the number 0x11ec, if it is built with ML-KEM.
    MlKem,
    /// It has none, or only drafts of it under other numbers.
    None,
}

/// What HAProxy's INSTALL asks for (`--enable-haproxy --enable-quic`), and what a server would want
/// beside it.
const OPTIONS: &[&str] = &[
    "--enable-static",
    "--disable-shared",
    "--with-pic",
    "--disable-examples",
    "--disable-crypttests",
    "--disable-benchmark",
    "--disable-dependency-tracking",
    "--enable-haproxy",
    "--enable-quic",
    "--enable-earlydata",
    "--enable-tls13",
    "--enable-session-ticket",
    "--enable-curve25519",
    // Arithmetic of fixed sizes in assembly; 4096 bits for RSA-4096.
    "--enable-sp=yes,4096",
    "--enable-sp-asm",
];

/// Builds WolfSSL out of a source folder, and the shim on it.
///
/// # Panics
/// If the build fails.
pub fn wolfssl(source: &Path, hybrid: Hybrid) {
    let prefix = out_dir().join("prefix");
    let mut options = OPTIONS.to_vec();
    if std::env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|arch| arch == "x86_64") {
        // Chosen as it runs, by what the processor has.
        options.push("--enable-intelasm");
    }
    if hybrid == Hybrid::MlKem {
        options.push("--enable-mlkem");
    }
    let archives = vec![prefix.join("lib/libwolfssl.a")];
    once(&options, &archives, || {
        // Its releases carry no configure script.
        run(tool("autoreconf", source).args(["--install", "--force"]));
        let mut configure = tool("./configure", source);
        run(configure.args(&options).arg(format!("--prefix={}", prefix.display())));
        run(tool("make", source).arg(format!("-j{}", jobs())));
        run(tool("make", source).arg("install"));
    });
    let sdk = Sdk {
        include: prefix.join("include"),
        archives,
        flags: format!("configure {}", options.join(" ")),
    };
    let definitions: &[(&str, &str)] = match hybrid {
        Hybrid::MlKem => &[("WT_WOLFSSL_MLKEM", "1")],
        Hybrid::None => &[],
    };
    shim("wolfssl.c", &sdk, definitions);
    sdk.publish();
}
