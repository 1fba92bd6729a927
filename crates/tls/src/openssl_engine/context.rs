//! What the contexts of client and server share.

use openssl::ssl::{SslContextBuilder, SslMethod, SslOptions, SslVersion};

use super::fault::library;
use super::ffi;
use crate::config::KeyLog;
use crate::error::config;
use crate::offer::NamedGroup;
use crate::{Error, Group, KeyExchange, Version};

/// `SSL_OP_LEGACY_SERVER_CONNECT` of openssl/ssl.h.
const LEGACY_SERVER_CONNECT: u64 = 0x4;
/// TLS 1.3's suites that every library has.
const TLS13_SUITES: &str =
    "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256";
/// The suites of TLS 1.2 that Chrome, Edge, Firefox and Safari offer, in Chrome's order.
const BROWSER_SUITES: &str = "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:\
    ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:ECDHE-ECDSA-CHACHA20-POLY1305:\
    ECDHE-RSA-CHACHA20-POLY1305:ECDHE-RSA-AES128-SHA:ECDHE-RSA-AES256-SHA:AES128-GCM-SHA256:\
    AES256-GCM-SHA384:AES128-SHA:AES256-SHA";
/// Chrome's signature schemes.
const BROWSER_SIGNATURES: &str = "ECDSA+SHA256:RSA-PSS+SHA256:RSA+SHA256:ECDSA+SHA384:\
    RSA-PSS+SHA384:RSA+SHA384:RSA-PSS+SHA512:RSA+SHA512";
/// X25519 and its hybrid (IANA TLS Supported Groups): who offers a share for one offers both.
const X25519: NamedGroup = NamedGroup(0x001d);
const X25519MLKEM768: NamedGroup = NamedGroup(0x11ec);
/// Bytes of the longest chain that a client takes that looks for everything.
const LARGEST_CHAIN: i64 = 1 << 20;

/// A context with the pinned versions and cipher suites. `groups` is in OpenSSL's syntax.
pub(super) fn builder(
    method: SslMethod,
    versions: &[Version],
    key_exchange: KeyExchange,
    groups: &str,
    key_log: Option<&KeyLog>,
) -> Result<SslContextBuilder, Error> {
    let mut context = SslContextBuilder::new(method).map_err(library)?;
    context.set_min_proto_version(versions.iter().min().map(proto)).map_err(library)?;
    context.set_max_proto_version(versions.iter().max().map(proto)).map_err(library)?;
    context.set_options(SslOptions::NO_RENEGOTIATION | SslOptions::NO_COMPRESSION);
    context.set_ciphersuites("TLS_AES_128_GCM_SHA256").map_err(library)?;
    context
        .set_cipher_list(match key_exchange {
            KeyExchange::Rsa => "AES128-GCM-SHA256",
            KeyExchange::Ecdhe => "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256",
        })
        .map_err(library)?;
    context.set_groups_list(groups).map_err(library)?;
    if let Some(key_log) = key_log.cloned() {
        context.set_keylog_callback(move |_, line| key_log.line(line));
    }
    Ok(context)
}

/// Offers OpenSSL's usual suites with forward secrecy, and these groups.
pub(super) fn usual(context: &mut SslContextBuilder, groups: &[NamedGroup]) -> Result<(), Error> {
    context.set_ciphersuites(TLS13_SUITES).map_err(library)?;
    context.set_cipher_list("ECDHE+AESGCM:ECDHE+CHACHA20").map_err(library)?;
    context.set_groups_list(&named_group_list(groups)?).map_err(library)
}

/// Offers what browsers offer, and these groups.
pub(super) fn browser(context: &mut SslContextBuilder, groups: &[NamedGroup]) -> Result<(), Error> {
    context.set_ciphersuites(TLS13_SUITES).map_err(library)?;
    context.set_cipher_list(BROWSER_SUITES).map_err(library)?;
    context.set_sigalgs_list(BROWSER_SIGNATURES).map_err(library)?;
    context.set_groups_list(&named_group_list(groups)?).map_err(library)
}

/// Offers all that this OpenSSL has: suites without encryption, RSA key exchange, CBC; TLS 1.0 too if wanted.
pub(super) fn everything(
    context: &mut SslContextBuilder,
    groups: &[NamedGroup],
    old_versions: bool,
) -> Result<(), Error> {
    context.set_security_level(0);
    if old_versions {
        context.set_min_proto_version(Some(SslVersion::TLS1)).map_err(library)?;
    }
    // Old servers do not know RFC 5746.
    context.set_options(SslOptions::from_bits_retain(LEGACY_SERVER_CONNECT));
    let suites = format!("{TLS13_SUITES}:TLS_AES_128_CCM_SHA256:TLS_AES_128_CCM_8_SHA256");
    context.set_ciphersuites(&suites).map_err(library)?;
    context.set_cipher_list("ALL:eNULL:@SECLEVEL=0").map_err(library)?;
    context.set_groups_list(&named_group_list(groups)?).map_err(library)?;
    ffi::set_max_cert_list(context, LARGEST_CHAIN);
    Ok(())
}

/// Named groups in OpenSSL's syntax, a key share for the first; OpenSSL ignores a group that it lacks (`?`).
fn named_group_list(groups: &[NamedGroup]) -> Result<String, Error> {
    let mut names = Vec::new();
    for group in groups {
        let name =
            group.name().ok_or_else(|| config("a group without a name cannot be offered"))?;
        let beside = groups.first() == Some(&X25519MLKEM768) && *group == X25519;
        let shared = names.is_empty() || beside;
        names.push(if shared { format!("?*{name}") } else { format!("?{name}") });
    }
    Ok(names.join(":"))
}

/// The groups in the syntax of `SSL_CTX_set1_groups_list`: `*` asks for a key share.
pub(super) fn group_list(groups: &[Group], key_shares: usize) -> String {
    let names: Vec<_> = groups
        .iter()
        .enumerate()
        .map(|(index, group)| {
            let mark = if index < key_shares { "*" } else { "" };
            let name = match group {
                Group::X25519 => "X25519",
                Group::Secp256r1 => "P-256",
                Group::X25519MlKem768 => "X25519MLKEM768",
            };
            format!("{mark}{name}")
        })
        .collect();
    names.join(":")
}

/// The wire form of ALPN (RFC 7301 §3.1): every name after its length.
pub(super) fn alpn_list(names: &[Vec<u8>]) -> Vec<u8> {
    let mut list = Vec::new();
    for name in names {
        list.push(u8::try_from(name.len()).unwrap_or(u8::MAX)); // checked with the configuration
        list.extend_from_slice(name);
    }
    list
}

fn proto(version: &Version) -> SslVersion {
    match version {
        Version::Tls12 => SslVersion::TLS1_2,
        Version::Tls13 => SslVersion::TLS1_3,
    }
}
