//! OpenSSL 3.6.3 out of the source that the crate openssl-src carries.

fn main() {
    driver_build::openssl(&driver_build::vendored_source("openssl-src", "openssl"));
}
