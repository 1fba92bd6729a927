//! s2n-tls: the source that s2n-tls-sys 0.3.47 carries, on AWS-LC 5.12.0's libcrypto.

fn main() {
    driver_build::s2n("s2n-tls-sys 0.3.47");
}
