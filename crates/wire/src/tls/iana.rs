//! IANA's registries of TLS parameters: every registered name, but for GREASE's. Cipher suites are in
//! `suites.rs`.

/// A table of code points and their names, in the order of the code points.
macro_rules! registry {
    ($visibility:vis $table:ident: $code:ty; $($point:literal $name:ident,)+) => {
        $visibility const $table: &[($code, &str)] = &[$(($point, stringify!($name))),+];
    };
}
pub(super) use registry;

/// The name of a code point.
pub(super) fn name<T: Copy + Ord>(table: &[(T, &'static str)], code: T) -> Option<&'static str> {
    let at = table.binary_search_by_key(&code, |(point, _)| *point).ok()?;
    table.get(at).map(|(_, name)| *name)
}

registry! { pub(super) GROUPS: u16;
    0x0001 sect163k1,
    0x0002 sect163r1,
    0x0003 sect163r2,
    0x0004 sect193r1,
    0x0005 sect193r2,
    0x0006 sect233k1,
    0x0007 sect233r1,
    0x0008 sect239k1,
    0x0009 sect283k1,
    0x000a sect283r1,
    0x000b sect409k1,
    0x000c sect409r1,
    0x000d sect571k1,
    0x000e sect571r1,
    0x000f secp160k1,
    0x0010 secp160r1,
    0x0011 secp160r2,
    0x0012 secp192k1,
    0x0013 secp192r1,
    0x0014 secp224k1,
    0x0015 secp224r1,
    0x0016 secp256k1,
    0x0017 secp256r1,
    0x0018 secp384r1,
    0x0019 secp521r1,
    0x001a brainpoolP256r1,
    0x001b brainpoolP384r1,
    0x001c brainpoolP512r1,
    0x001d x25519,
    0x001e x448,
    0x001f brainpoolP256r1tls13,
    0x0020 brainpoolP384r1tls13,
    0x0021 brainpoolP512r1tls13,
    0x0022 GC256A,
    0x0023 GC256B,
    0x0024 GC256C,
    0x0025 GC256D,
    0x0026 GC512A,
    0x0027 GC512B,
    0x0028 GC512C,
    0x0029 curveSM2,
    0x0100 ffdhe2048,
    0x0101 ffdhe3072,
    0x0102 ffdhe4096,
    0x0103 ffdhe6144,
    0x0104 ffdhe8192,
    0x0200 MLKEM512,
    0x0201 MLKEM768,
    0x0202 MLKEM1024,
    0x11eb SecP256r1MLKEM768,
    0x11ec X25519MLKEM768,
    0x11ed SecP384r1MLKEM1024,
    0x11ee curveSM2MLKEM768,
    0x6399 X25519Kyber768Draft00,
    0x639a SecP256r1Kyber768Draft00,
    0xff01 arbitrary_explicit_prime_curves,
    0xff02 arbitrary_explicit_char2_curves,
}

registry! { pub(super) SIGNATURE_SCHEMES: u16;
    0x0201 rsa_pkcs1_sha1,
    0x0203 ecdsa_sha1,
    0x0401 rsa_pkcs1_sha256,
    0x0403 ecdsa_secp256r1_sha256,
    0x0420 rsa_pkcs1_sha256_legacy,
    0x0501 rsa_pkcs1_sha384,
    0x0503 ecdsa_secp384r1_sha384,
    0x0520 rsa_pkcs1_sha384_legacy,
    0x0601 rsa_pkcs1_sha512,
    0x0603 ecdsa_secp521r1_sha512,
    0x0620 rsa_pkcs1_sha512_legacy,
    0x0704 eccsi_sha256,
    0x0705 iso_ibs1,
    0x0706 iso_ibs2,
    0x0707 iso_chinese_ibs,
    0x0708 sm2sig_sm3,
    0x0709 gostr34102012_256a,
    0x070a gostr34102012_256b,
    0x070b gostr34102012_256c,
    0x070c gostr34102012_256d,
    0x070d gostr34102012_512a,
    0x070e gostr34102012_512b,
    0x070f gostr34102012_512c,
    0x0804 rsa_pss_rsae_sha256,
    0x0805 rsa_pss_rsae_sha384,
    0x0806 rsa_pss_rsae_sha512,
    0x0807 ed25519,
    0x0808 ed448,
    0x0809 rsa_pss_pss_sha256,
    0x080a rsa_pss_pss_sha384,
    0x080b rsa_pss_pss_sha512,
    0x081a ecdsa_brainpoolP256r1tls13_sha256,
    0x081b ecdsa_brainpoolP384r1tls13_sha384,
    0x081c ecdsa_brainpoolP512r1tls13_sha512,
    0x0904 mldsa44,
    0x0905 mldsa65,
    0x0906 mldsa87,
    0x0911 slhdsa_sha2_128s,
    0x0912 slhdsa_sha2_128f,
    0x0913 slhdsa_sha2_192s,
    0x0914 slhdsa_sha2_192f,
    0x0915 slhdsa_sha2_256s,
    0x0916 slhdsa_sha2_256f,
    0x0917 slhdsa_shake_128s,
    0x0918 slhdsa_shake_128f,
    0x0919 slhdsa_shake_192s,
    0x091a slhdsa_shake_192f,
    0x091b slhdsa_shake_256s,
    0x091c slhdsa_shake_256f,
}

registry! { pub(super) EXTENSIONS: u16;
    0x0000 server_name,
    0x0001 max_fragment_length,
    0x0002 client_certificate_url,
    0x0003 trusted_ca_keys,
    0x0004 truncated_hmac,
    0x0005 status_request,
    0x0006 user_mapping,
    0x0007 client_authz,
    0x0008 server_authz,
    0x0009 cert_type,
    0x000a supported_groups,
    0x000b ec_point_formats,
    0x000c srp,
    0x000d signature_algorithms,
    0x000e use_srtp,
    0x000f heartbeat,
    0x0010 application_layer_protocol_negotiation,
    0x0011 status_request_v2,
    0x0012 signed_certificate_timestamp,
    0x0013 client_certificate_type,
    0x0014 server_certificate_type,
    0x0015 padding,
    0x0016 encrypt_then_mac,
    0x0017 extended_main_secret,
    0x0018 token_binding,
    0x0019 cached_info,
    0x001a tls_lts,
    0x001b compress_certificate,
    0x001c record_size_limit,
    0x001d pwd_protect,
    0x001e pwd_clear,
    0x001f password_salt,
    0x0020 ticket_pinning,
    0x0021 tls_cert_with_extern_psk,
    0x0022 delegated_credential,
    0x0023 session_ticket,
    0x0024 TLMSP,
    0x0025 TLMSP_proxying,
    0x0026 TLMSP_delegate,
    0x0027 supported_ekt_ciphers,
    0x0029 pre_shared_key,
    0x002a early_data,
    0x002b supported_versions,
    0x002c cookie,
    0x002d psk_key_exchange_modes,
    0x002f certificate_authorities,
    0x0030 oid_filters,
    0x0031 post_handshake_auth,
    0x0032 signature_algorithms_cert,
    0x0033 key_share,
    0x0034 transparency_info,
    0x0035 connection_id_deprecated,
    0x0036 connection_id,
    0x0037 external_id_hash,
    0x0038 external_session_id,
    0x0039 quic_transport_parameters,
    0x003a ticket_request,
    0x003b dnssec_chain,
    0x003c sequence_number_encryption_algorithms,
    0x003d rrc,
    0x003e tls_flags,
    0xfd00 ech_outer_extensions,
    0xfe0d encrypted_client_hello,
    0xff01 renegotiation_info,
}

registry! { pub(super) ALERTS: u8;
    0 close_notify,
    10 unexpected_message,
    20 bad_record_mac,
    21 decryption_failed,
    22 record_overflow,
    30 decompression_failure,
    40 handshake_failure,
    41 no_certificate,
    42 bad_certificate,
    43 unsupported_certificate,
    44 certificate_revoked,
    45 certificate_expired,
    46 certificate_unknown,
    47 illegal_parameter,
    48 unknown_ca,
    49 access_denied,
    50 decode_error,
    51 decrypt_error,
    52 too_many_cids_requested,
    60 export_restriction,
    70 protocol_version,
    71 insufficient_security,
    80 internal_error,
    86 inappropriate_fallback,
    90 user_canceled,
    100 no_renegotiation,
    109 missing_extension,
    110 unsupported_extension,
    111 certificate_unobtainable,
    112 unrecognized_name,
    113 bad_certificate_status_response,
    114 bad_certificate_hash_value,
    115 unknown_psk_identity,
    116 certificate_required,
    117 general_error,
    120 no_application_protocol,
    121 ech_required,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::suites::SUITES;

    #[test]
    fn tables_are_in_order_and_no_name_is_twice() {
        for table in [SUITES, GROUPS, SIGNATURE_SCHEMES, EXTENSIONS] {
            assert!(table.is_sorted_by(|(a, _), (b, _)| a < b));
            let mut names: Vec<_> = table.iter().map(|(_, name)| name).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), table.len());
        }
        assert!(ALERTS.is_sorted_by(|(a, _), (b, _)| a < b));
    }

    #[test]
    fn code_points_have_their_registered_names() {
        assert_eq!(name(SUITES, 0x009c), Some("TLS_RSA_WITH_AES_128_GCM_SHA256"));
        assert_eq!(name(SUITES, 0xccae), Some("TLS_RSA_PSK_WITH_CHACHA20_POLY1305_SHA256"));
        assert_eq!(name(GROUPS, 4588), Some("X25519MLKEM768"));
        assert_eq!(name(SIGNATURE_SCHEMES, 0x0804), Some("rsa_pss_rsae_sha256"));
        assert_eq!(name(EXTENSIONS, 57), Some("quic_transport_parameters"));
        assert_eq!(name(ALERTS, 112), Some("unrecognized_name"));
        assert_eq!((name(SUITES, 0x0a0a), name(GROUPS, 0)), (None, None));
    }
}
