//! What the contexts of client and server share.

use openssl::ssl::{SslContextBuilder, SslMethod, SslOptions, SslVersion};

use super::fault::library;
use crate::config::KeyLog;
use crate::{Error, Group, KeyExchange, Version};

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
