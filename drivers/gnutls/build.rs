//! GnuTLS as the distribution has it.

use driver_build::{Linking, SystemLibrary, system_library};

fn main() {
    system_library(&SystemLibrary {
        shim: "gnutls.c",
        development: "libgnutls28-dev",
        package: "libgnutls30",
        headers: &[("/usr/include/gnutls", "gnutls")],
        libraries: &["gnutls"],
        // Its archive lacks that of p11-kit, which there is none of.
        linking: Linking::Shared,
    });
}
