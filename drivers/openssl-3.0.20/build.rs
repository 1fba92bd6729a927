//! OpenSSL 3.0.20 out of Debian's copy of its release.

fn main() {
    driver_build::openssl(&driver_build::tarball(
        "http://deb.debian.org/debian/pool/main/o/openssl/openssl_3.0.20.orig.tar.gz",
        "c80a01dfc70ece4dc21168932c37739042d404d46ccc81a5986dd75314ecda6f",
    ));
}
