//! AWS-LC 1.29.0 as C11: the source that aws-lc-sys 0.18.0 carries.

use driver_build::{Standard, vendored_source};

fn main() {
    let source = vendored_source("aws-lc-sys", "aws-lc");
    driver_build::awslc(&source, Standard::C11);
}
