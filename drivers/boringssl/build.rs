//! BoringSSL, which has no versions of its own: the source that boring-sys 5.4.0 carries, without that crate's patches.

use driver_build::vendored_source;

fn main() {
    let source = vendored_source("boring-sys", "deps/boringssl");
    driver_build::boringssl(&source);
}
