//! The few calls of OpenSSL that the `openssl` crate lacks.

use core::ffi::{CStr, c_char, c_int};
use std::ffi::CString;

use foreign_types::{ForeignType, ForeignTypeRef};
use openssl::error::ErrorStack;
use openssl::pkey::{PKey, PKeyRef, Private, Public};
use openssl::ssl::{SslContextBuilder, SslRef, SslSession, SslSessionRef};
use openssl_sys::{EVP_PKEY, EVP_PKEY_Q_keygen, SSL, SSL_CTX, SSL_CTX_ctrl, SSL_SESSION};

unsafe extern "C" {
    fn SSL_get_early_data_status(ssl: *const SSL) -> c_int;
    fn SSL_get0_group_name(ssl: *mut SSL) -> *const c_char;
    fn SSL_SESSION_dup(session: *const SSL_SESSION) -> *mut SSL_SESSION;
    fn SSL_CTX_set_recv_max_early_data(ctx: *mut SSL_CTX, bytes: u32) -> c_int;
    fn EVP_PKEY_get0_type_name(key: *const EVP_PKEY) -> *const c_char;
}

/// `SSL_CTRL_SET_MAX_CERT_LIST` of openssl/ssl.h.
const SET_MAX_CERT_LIST: c_int = 51;
/// `SSL_EARLY_DATA_ACCEPTED` of openssl/ssl.h.
const EARLY_DATA_ACCEPTED: c_int = 2;

/// Whether the server takes, or took, the client's early data.
pub(super) fn early_data_accepted(ssl: &SslRef) -> bool {
    // SAFETY: the pointer is of a live SSL, and the call only reads it.
    unsafe { SSL_get_early_data_status(ssl.as_ptr()) == EARLY_DATA_ACCEPTED }
}

/// The name of the negotiated group in lower case, if a group was negotiated.
pub(super) fn group_name(ssl: &SslRef) -> Option<String> {
    // SAFETY: the pointer is of a live SSL. The name is null or a string with an end that lives as long
    // as the SSL, and it is copied before this borrow ends.
    let name = unsafe {
        let name = SSL_get0_group_name(ssl.as_ptr());
        if name.is_null() {
            return None;
        }
        CStr::from_ptr(name)
    };
    Some(name.to_str().ok()?.to_ascii_lowercase())
}

/// Lets the server read as many bytes of early data as its tickets promise; OpenSSL's default is one
/// record.
pub(super) fn set_recv_max_early_data(context: &mut SslContextBuilder, bytes: u32) -> bool {
    // SAFETY: the pointer is of a live SSL_CTX that nobody else uses yet.
    unsafe { SSL_CTX_set_recv_max_early_data(context.as_ptr(), bytes) == 1 }
}

/// Lets a client take chains of so many bytes; OpenSSL's default is 100 KiB.
pub(super) fn set_max_cert_list(context: &mut SslContextBuilder, bytes: i64) {
    // SAFETY: the pointer is of a live SSL_CTX that nobody else uses yet; this command reads no pointer.
    unsafe {
        SSL_CTX_ctrl(context.as_ptr(), SET_MAX_CERT_LIST, bytes, core::ptr::null_mut());
    }
}

/// A copy of its own of a session; `None` when memory is short.
pub(super) fn duplicate(session: &SslSessionRef) -> Option<SslSession> {
    // SAFETY: the pointer is of a live SSL_SESSION, which the call only reads. What it returns is null or
    // owned by the caller.
    unsafe {
        let copy = SSL_SESSION_dup(session.as_ptr());
        (!copy.is_null()).then(|| SslSession::from_ptr(copy))
    }
}

/// A new private key of the algorithm with this name, which needs no parameters: `ML-DSA-65`.
pub(crate) fn make_key(algorithm: &str) -> Result<PKey<Private>, ErrorStack> {
    let name = CString::new(algorithm).unwrap_or_default();
    // SAFETY: the default library context and no properties; the name is a string with an end, and the call
    // only reads it. Without an algorithm that has parameters no further argument is read. What it returns
    // is null or owned by the caller.
    unsafe {
        let key = EVP_PKEY_Q_keygen(core::ptr::null_mut(), core::ptr::null(), name.as_ptr());
        if key.is_null() { Err(ErrorStack::get()) } else { Ok(PKey::from_ptr(key)) }
    }
}

/// The name of a key's algorithm: `RSA`, `EC`, `ML-DSA-65`.
pub(crate) fn key_name(key: &PKeyRef<Public>) -> Option<String> {
    // SAFETY: the pointer is of a live EVP_PKEY, which the call only reads. The name is null or a string
    // with an end that lives as long as the key, and it is copied before this borrow ends.
    let name = unsafe {
        let name = EVP_PKEY_get0_type_name(key.as_ptr());
        if name.is_null() {
            return None;
        }
        CStr::from_ptr(name)
    };
    Some(name.to_str().ok()?.to_owned())
}
