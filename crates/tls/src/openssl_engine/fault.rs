//! Whose fault an OpenSSL error is.

use openssl::error::ErrorStack;
use openssl::ssl::SslRef;

use crate::error::alert_name;
use crate::{CertificateError, CertificateFault, Error, Library, PeerError};

/// `ERR_LIB_SSL` of openssl/err.h.
const LIBRARY_SSL: i32 = 20;
/// `SSL_AD_REASON_OFFSET` of openssl/ssl.h: the reason of a received alert is this plus its code.
const ALERT_OFFSET: i32 = 1000;
/// Reasons of openssl/sslerr.h.
const CERTIFICATE_VERIFY_FAILED: i32 = 134;
const NO_APPLICATION_PROTOCOL: i32 = 235;
/// Nothing in common: key share, signature algorithm, protocols, cipher, protocol, wrong version, groups,
/// signature algorithms, version too low.
const INCOMPATIBLE: &[i32] = &[101, 118, 191, 193, 258, 266, 295, 376, 396, 410];

pub(crate) fn library(cause: impl core::fmt::Display) -> Error {
    Error::Library { library: Library::OpenSsl, detail: cause.to_string() }
}

/// The error of a handshake, read or write.
pub(super) fn of_session(cause: &openssl::ssl::Error, ssl: &SslRef) -> Error {
    let Some(stack) = cause.ssl_error() else {
        // Our pipe fails only when a peer makes us answer without end.
        return match cause.io_error() {
            Some(io) => PeerError::Misbehaved(io.to_string()).into(),
            None => library(cause),
        };
    };
    of_stack(stack, ssl)
}

fn of_stack(stack: &ErrorStack, ssl: &SslRef) -> Error {
    let reasons = || {
        let errors = stack.errors().iter();
        errors.filter(|error| error.library_code() == LIBRARY_SSL).map(|error| error.reason_code())
    };
    let detail = stack
        .errors()
        .iter()
        .find_map(openssl::error::Error::reason)
        .map_or_else(|| stack.to_string(), str::to_owned);
    for reason in reasons() {
        if let Ok(code @ 0..=254) = u8::try_from(reason - ALERT_OFFSET) {
            return PeerError::Alert { code, name: alert_name(code) }.into();
        }
        match reason {
            CERTIFICATE_VERIFY_FAILED => return certificate(ssl),
            NO_APPLICATION_PROTOCOL => return PeerError::NoApplicationProtocol.into(),
            _ if INCOMPATIBLE.contains(&reason) => return PeerError::Incompatible(detail).into(),
            _ => {}
        }
    }
    match reasons().next() {
        Some(_) => PeerError::Misbehaved(detail).into(),
        None => library(stack),
    }
}

fn certificate(ssl: &SslRef) -> Error {
    let result = ssl.verify_result();
    // The codes of openssl/x509_vfy.h.
    let reason = match result.as_raw() {
        2 | 18 | 19 | 20 | 21 => CertificateFault::UnknownIssuer,
        62 | 64 => CertificateFault::WrongName,
        10 => CertificateFault::Expired,
        9 => CertificateFault::NotYetValid,
        _ => CertificateFault::Other,
    };
    CertificateError { reason, detail: result.error_string().to_owned() }.into()
}
