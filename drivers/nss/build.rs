//! NSS as the distribution has it.

use driver_build::{Linking, SystemLibrary, system_library};

fn main() {
    println!("cargo:rerun-if-changed=../shim/nss.h");
    system_library(&SystemLibrary {
        shim: "nss.c",
        development: "libnss3-dev",
        package: "libnss3",
        headers: &[("/usr/include/nss", ""), ("/usr/include/nspr", "")],
        libraries: &["ssl3", "smime3", "nss3", "nssutil3", "nspr4"],
        // There are no archives, and its cryptography is a module that it loads itself.
        linking: Linking::Shared,
    });
}
