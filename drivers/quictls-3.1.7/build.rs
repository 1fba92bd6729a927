//! QuicTLS 3.1.7+quic: the source that msquic 2.5.1-beta carries.

use driver_build::vendored_source;

fn main() {
    let source = vendored_source("msquic", "submodules/quictls");
    driver_build::quictls(&source);
}
