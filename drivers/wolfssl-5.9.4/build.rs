//! WolfSSL 5.9.4: the source that wolfssl-sys 5.3.0 carries, without that crate's patches.

use driver_build::{Hybrid, vendored_source, wolfssl};

fn main() {
    wolfssl(&vendored_source("wolfssl-sys", "wolfssl-src"), Hybrid::MlKem);
}
