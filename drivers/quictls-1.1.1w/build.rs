//! QuicTLS 1.1.1w+quic: the source that msquic 2.5.0-beta4 carries.

use driver_build::vendored_source;

fn main() {
    let source = vendored_source("msquic", "submodules/openssl");
    driver_build::quictls(&source);
}
