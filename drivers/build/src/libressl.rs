//! LibreSSL by its own configure and make, out of the portable release that a crate carries.

use std::path::Path;

use crate::once::once;
use crate::{Sdk, jobs, make_dir, out_dir, run, shim, tool};

/// Builds LibreSSL out of a folder that holds its release as a tarball, and the shim on it.
///
/// # Panics
/// If the build fails.
pub fn libressl(folder: &Path, tarball: &str) {
    let source = out_dir().join("libressl");
    let options = ["--disable-shared", "--enable-static", "--with-pic", "--disable-tests"];
    let archives = vec![source.join("ssl/.libs/libssl.a"), source.join("crypto/.libs/libcrypto.a")];
    once(&options, &archives, || {
        make_dir(&source);
        let mut tar = tool("tar", &source);
        run(tar.args(["--extract", "--strip-components=1", "--file"]).arg(folder.join(tarball)));
        let mut configure = tool("./configure", &source);
        configure.args(options).arg("--with-openssldir=/nonexistent");
        run(&mut configure);
        for part in ["crypto", "ssl"] {
            run(tool("make", &source.join(part)).arg(format!("-j{}", jobs())));
        }
    });
    let sdk = Sdk {
        include: source.join("include"),
        archives,
        flags: format!("configure {}", options.join(" ")),
    };
    shim("openssl.c", &sdk, &[]);
    sdk.publish();
}
