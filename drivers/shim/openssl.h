/* OpenSSL's relatives: which one this is, its names of things, and what it tells of itself. */
#ifndef WIRETAX_OPENSSL_H
#define WIRETAX_OPENSSL_H

#include <stdint.h>
#include <stdio.h>

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "wiretax_driver.h"

#if defined(OPENSSL_IS_AWSLC)
#define FAMILY "AWS-LC"
#define OF_BORINGSSL 1
#elif defined(OPENSSL_IS_BORINGSSL)
#define FAMILY "BoringSSL"
#define OF_BORINGSSL 1
#elif defined(LIBRESSL_VERSION_NUMBER)
#define FAMILY "LibreSSL"
#define OF_LIBRESSL 1
#elif defined(WT_QUICTLS)
#define FAMILY "QuicTLS"
#else
#define FAMILY "OpenSSL"
#endif

#if !defined(OF_BORINGSSL) && !defined(OF_LIBRESSL)
#define OF_OPENSSL 1
#if OPENSSL_VERSION_NUMBER >= 0x30000000L
#define OF_OPENSSL_3 1
#endif
#endif

/* Encrypted Client Hello, as a client and as a server. */
#if defined(OF_BORINGSSL) || \
    (defined(OF_OPENSSL) && OPENSSL_VERSION_NUMBER >= 0x40000000L && !defined(OPENSSL_NO_ECH))
#define HAS_ECH 1
#endif

/* ---- names ---- */

/* Names of cipher suites as OpenSSL has them, for TLS 1.2 and 1.3. */
static const char *suite_name(uint32_t suite) {
    switch (suite) {
    case 0x1301: return "TLS_AES_128_GCM_SHA256";
    case 0x1302: return "TLS_AES_256_GCM_SHA384";
    case 0x1303: return "TLS_CHACHA20_POLY1305_SHA256";
    case 0xc02b: return "ECDHE-ECDSA-AES128-GCM-SHA256";
    case 0xc02c: return "ECDHE-ECDSA-AES256-GCM-SHA384";
    case 0xcca9: return "ECDHE-ECDSA-CHACHA20-POLY1305";
    case 0xc02f: return "ECDHE-RSA-AES128-GCM-SHA256";
    case 0xc030: return "ECDHE-RSA-AES256-GCM-SHA384";
    case 0xcca8: return "ECDHE-RSA-CHACHA20-POLY1305";
    default: return NULL;
    }
}

/* Names of groups as lists of them have them. */
static const char *group_name(uint32_t group) {
    switch (group) {
    case 23: return "P-256";
    case 29: return "X25519";
    case 0x11ec: return "X25519MLKEM768";
    default: return NULL;
    }
}

/* ---- what the library says of itself ---- */

static const char *version(void) {
#if defined(OPENSSL_IS_BORINGSSL) && !defined(OPENSSL_IS_AWSLC)
    return "BoringSSL (" WT_PACKAGE ")";
#else
    return OpenSSL_version(OPENSSL_VERSION);
#endif
}

static const char *build_flags(void) {
#if defined(OF_OPENSSL) || defined(OF_LIBRESSL)
    static char text[4096];
    if (text[0] == 0) {
        snprintf(text, sizeof text, "%s; %s", WT_BUILD_FLAGS, OpenSSL_version(OPENSSL_CFLAGS));
    }
    return text;
#else
    return WT_BUILD_FLAGS;
#endif
}

#if !defined(OF_OPENSSL_3) && !defined(OF_LIBRESSL) && defined(__x86_64__) && \
    (!defined(OF_BORINGSSL) || defined(OPENSSL_IS_AWSLC))
#define HAS_CAPABILITY_WORDS 1
extern uint32_t OPENSSL_ia32cap_P[4] __attribute__((visibility("hidden")));
#define capability_word(at) OPENSSL_ia32cap_P[at]
#elif defined(OF_BORINGSSL) && defined(__x86_64__)
#define HAS_CAPABILITY_WORDS 1
/* BoringSSL has them in a namespace of C++: bssl::OPENSSL_get_ia32cap(int). */
extern uint32_t capability_word(int at) __asm__("_ZN4bssl19OPENSSL_get_ia32capEi");
#endif

static const char *cpu_features(void) {
#if defined(OF_OPENSSL_3)
    const char *told = OPENSSL_info(OPENSSL_INFO_CPU_SETTINGS);
    return told == NULL ? "" : told;
#elif defined(OF_LIBRESSL)
    static char text[40];
    snprintf(text, sizeof text, "OPENSSL_cpu_caps=%016llx", (unsigned long long)OPENSSL_cpu_caps());
    return text;
#elif defined(HAS_CAPABILITY_WORDS)
    static char text[80];
    snprintf(text, sizeof text, "OPENSSL_ia32cap=%08x:%08x:%08x:%08x", capability_word(0),
             capability_word(1), capability_word(2), capability_word(3));
    return text;
#else
    return "";
#endif
}

static int set_groups(SSL_CTX *tls, const char *names) {
#if defined(OF_BORINGSSL)
    return SSL_CTX_set1_curves_list(tls, names);
#else
    return (int)SSL_CTX_set1_groups_list(tls, names);
#endif
}

/* Whether a group can be had is asked of the library itself. */
static int has_group(uint32_t group) {
    SSL_CTX *tls = SSL_CTX_new(TLS_method());
    int has = tls != NULL && set_groups(tls, group_name(group)) == 1;
    SSL_CTX_free(tls);
    ERR_clear_error();
    return has;
}

/* As a server: LibreSSL 3.1 has TLS 1.3 in its client only. */
static int has_version(int number) {
    SSL_CTX *tls = SSL_CTX_new(TLS_server_method());
    int has = tls != NULL && SSL_CTX_set_min_proto_version(tls, number) == 1 &&
              SSL_CTX_set_max_proto_version(tls, number) == 1;
    SSL_CTX_free(tls);
    ERR_clear_error();
    return has;
}

static uint64_t functions(void) {
    uint64_t has = WT_SESSION_CACHE | WT_SESSION_STORE;
    static const struct {
        int number;
        uint64_t bit;
    } versions[] = {{0x0301, WT_TLS_1_0}, {0x0302, WT_TLS_1_1}, {0x0303, WT_TLS_1_2}, {0x0304, WT_TLS_1_3}};
    for (size_t at = 0; at < sizeof versions / sizeof versions[0]; at++) {
        has |= has_version(versions[at].number) ? versions[at].bit : 0;
    }
    has |= has_group(0x11ec) ? (uint64_t)WT_POST_QUANTUM : 0;
#if defined(OF_BORINGSSL)
    has |= WT_EARLY_DATA | WT_QUIC_TLS;
    has |= FIPS_mode() ? (uint64_t)WT_FIPS : 0;
#elif defined(OF_OPENSSL)
    has |= WT_EARLY_DATA;
#endif
#if defined(WT_QUICTLS)
    has |= WT_QUIC_TLS;
#endif
#if defined(OF_OPENSSL) && OPENSSL_VERSION_NUMBER >= 0x30200000L && !defined(OPENSSL_NO_QUIC)
    has |= WT_QUIC_TRANSPORT;
#endif
#if defined(OF_OPENSSL) && OPENSSL_VERSION_NUMBER >= 0x30500000L && !defined(OPENSSL_NO_QUIC)
    has |= WT_QUIC_TLS;
#endif
#if defined(SSL_OP_ENABLE_KTLS) && !defined(OPENSSL_NO_KTLS)
    has |= WT_KTLS;
#endif
#if defined(HAS_ECH)
    has |= WT_ECH | WT_ECH_CLIENT | WT_ECH_SERVER;
#endif
    return has;
}

#endif
