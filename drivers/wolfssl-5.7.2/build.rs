//! WolfSSL 5.7.2 out of Debian's copy of its release.

use driver_build::{Hybrid, tarball, wolfssl};

fn main() {
    let source = tarball(
        "http://deb.debian.org/debian/pool/main/w/wolfssl/wolfssl_5.7.2.orig.tar.gz",
        "0f2ed82e345b833242705bbc4b08a2a2037a33f7bf9c610efae6464f6b10e305",
    );
    wolfssl(&source, Hybrid::None);
}
