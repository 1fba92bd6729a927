//! LibreSSL 3.1.0: the release that libtls-sys 1.2.0 carries. It has no TLS 1.3 server.

use driver_build::vendored_source;

fn main() {
    let folder = vendored_source("libtls-sys", "");
    driver_build::libressl(&folder, "libressl-3.1.0.tar.gz");
}
