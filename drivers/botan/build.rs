//! Botan 2 as the distribution has it.

use driver_build::{Linking, SystemLibrary, system_library};

fn main() {
    system_library(&SystemLibrary {
        shim: "botan.cpp",
        development: "libbotan-2-dev",
        package: "libbotan-2-19",
        headers: &[("/usr/include/botan-2", "")],
        libraries: &["botan-2"],
        // Its archive wants those of SQLite, TrouSerS and three compressors.
        linking: Linking::Shared,
    });
}
