//! AWS-LC's libssl, which `aws-lc-sys` carries the source of and builds by its feature `ssl` only, with bindings
//! made by libclang. Here it is compiled as it is, without bindings: `ech.c` is what the crate `tls` calls. It stands on the
//! libcrypto of `aws-lc-sys`, the one that rustls uses.
//!
//! Its names are those of OpenSSL's libssl, which this program has too: the build script puts a prefix before each, as
//! `aws-lc-sys` does with those of libcrypto.
#![forbid(unsafe_code)]

// So that its libcrypto is linked behind this.
use aws_lc_sys as _;
