//! Mbed TLS 2.28 as the distribution has it.

use driver_build::{Linking, SystemLibrary, system_library};

fn main() {
    system_library(&SystemLibrary {
        shim: "mbedtls.c",
        development: "libmbedtls-dev",
        package: "libmbedtls-dev",
        headers: &[("/usr/include/mbedtls", "mbedtls"), ("/usr/include/psa", "psa")],
        libraries: &["mbedtls", "mbedx509", "mbedcrypto"],
        linking: Linking::Archives,
    });
}
