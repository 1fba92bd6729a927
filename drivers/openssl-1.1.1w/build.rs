//! OpenSSL 1.1.1w out of the source that the crate openssl-src carries.

fn main() {
    driver_build::openssl(&driver_build::vendored_source("openssl-src", "openssl"));
}
