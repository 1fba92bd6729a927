/* Encrypted Client Hello (RFC 9849) of OpenSSL, from 4.0 on, BoringSSL and AWS-LC; the others refuse it. */
#ifndef WIRETAX_OPENSSL_ECH_H
#define WIRETAX_OPENSSL_ECH_H

#include <string.h>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include "openssl.h"
#include "wiretax_driver.h"

#if defined(HAS_ECH)
#if defined(OF_BORINGSSL)
#include <openssl/hpke.h>
#else
#include <openssl/ech.h>
#endif
#endif

/* What a context was told of it. */
struct ech_offer {
    int asked; /* anything at all: connections of other contexts do not ask the library about it */
    /* What a client's connections send. */
    unsigned char *configs; /* an ECHConfigList of the context's own, or NULL */
    size_t len;
    int placeholder;
};

static void free_ech(struct ech_offer *offer) {
    OPENSSL_free(offer->configs);
    offer->configs = NULL;
}

#if defined(HAS_ECH)

#if defined(OF_BORINGSSL)

/* The reason for which a client ends a handshake that is well but for ECH. */
#define REASON_ECH_REJECTED SSL_R_ECH_REJECTED

static int set_ech_key(SSL_CTX *tls, const struct wt_ech *ech) {
    SSL_ECH_KEYS *keys = SSL_ECH_KEYS_new();
    EVP_HPKE_KEY *key = EVP_HPKE_KEY_new();
    /* What is added is the one configuration, without the length of the list before it. */
    int done = keys != NULL && key != NULL && ech->configs.len > 2 &&
               EVP_HPKE_KEY_init(key, EVP_hpke_x25519_hkdf_sha256(), ech->key.bytes,
                                 ech->key.len) == 1 &&
               SSL_ECH_KEYS_add(keys, 1, ech->configs.bytes + 2, ech->configs.len - 2, key) == 1 &&
               SSL_CTX_set1_ech_keys(tls, keys) == 1;
    EVP_HPKE_KEY_free(key);
    SSL_ECH_KEYS_free(keys);
    return done;
}

static void set_ech_placeholder(SSL *tls) {
    SSL_set_enable_ech_grease(tls, 1);
}

static int ech_was_accepted(SSL *tls) {
    return SSL_ech_accepted(tls);
}

static int copy_ech_retry(SSL *tls, void *bytes, size_t len, size_t *done) {
    const uint8_t *list = NULL;
    size_t list_len = 0;
    SSL_get0_ech_retry_configs(tls, &list, &list_len);
    if (list_len > len) {
        return 0;
    }
    if (list_len > 0) {
        memcpy(bytes, list, list_len);
    }
    *done = list_len;
    return 1;
}

#else

#define REASON_ECH_REJECTED SSL_R_ECH_REQUIRED

static int set_ech_key(SSL_CTX *tls, const struct wt_ech *ech) {
    OSSL_ECHSTORE *store = OSSL_ECHSTORE_new(NULL, NULL);
    EVP_PKEY *key = EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, NULL, ech->key.bytes, ech->key.len);
    /* A store takes a key and its configuration together as PEM alone. */
    BIO *pem = BIO_new(BIO_s_mem());
    int done = store != NULL && key != NULL && pem != NULL && ech->configs.len < 1 << 16 &&
               PEM_write_bio(pem, PEM_STRING_ECHCONFIG, "", ech->configs.bytes,
                             (long)ech->configs.len) > 0 &&
               OSSL_ECHSTORE_set1_key_and_read_pem(store, key, pem, OSSL_ECH_FOR_RETRY) == 1 &&
               SSL_CTX_set1_echstore(tls, store) == 1;
    BIO_free(pem);
    EVP_PKEY_free(key);
    OSSL_ECHSTORE_free(store);
    return done;
}

static void set_ech_placeholder(SSL *tls) {
    SSL_set_options(tls, SSL_OP_ECH_GREASE);
}

static int ech_was_accepted(SSL *tls) {
    char *inner = NULL, *outer = NULL;
    int status = SSL_ech_get1_status(tls, &inner, &outer);
    OPENSSL_free(inner);
    OPENSSL_free(outer);
    ERR_clear_error(); /* a status that is none is one, too */
    return status == SSL_ECH_STATUS_SUCCESS;
}

static int copy_ech_retry(SSL *tls, void *bytes, size_t len, size_t *done) {
    unsigned char *list = NULL;
    size_t list_len = 0;
    int fits = SSL_ech_get1_retry_config(tls, &list, &list_len) == 1 && list_len <= len;
    if (fits && list_len > 0) {
        memcpy(bytes, list, list_len);
    }
    *done = fits ? list_len : 0;
    OPENSSL_free(list);
    return fits;
}

#endif

/* A server's key, or what a client's connections are to send. */
static int set_ech(SSL_CTX *tls, const struct wt_ech *ech, int server, struct ech_offer *offer) {
    if (ech->size < sizeof *ech) {
        return WT_UNSUPPORTED;
    }
    offer->asked = 1;
    if (server) {
        return set_ech_key(tls, ech) ? WT_OK : WT_ERROR;
    }
    offer->placeholder = ech->placeholder != 0;
    if (ech->configs.len > 0) {
        offer->configs = OPENSSL_malloc(ech->configs.len);
        if (offer->configs == NULL) {
            return WT_ERROR;
        }
        memcpy(offer->configs, ech->configs.bytes, ech->configs.len);
        offer->len = ech->configs.len;
    }
    return WT_OK;
}

/* For a new connection of a client. */
static int offer_ech(SSL *tls, const struct ech_offer *offer) {
    if (offer->configs != NULL) {
        return SSL_set1_ech_config_list(tls, offer->configs, offer->len) == 1;
    }
    if (offer->placeholder) {
        set_ech_placeholder(tls);
    }
    return 1;
}

/* Whether a client's handshake has failed for the one reason that ECH was rejected. The reason alone is not
 * enough: OpenSSL has it for wrong hellos too, before there is a certificate that it could have verified. */
static int ech_was_rejected(SSL *tls) {
    uint32_t code = (uint32_t)ERR_peek_last_error();
    return ERR_GET_LIB(code) == ERR_LIB_SSL && ERR_GET_REASON(code) == REASON_ECH_REJECTED &&
           SSL_get_peer_cert_chain(tls) != NULL && SSL_get_verify_result(tls) == X509_V_OK;
}

#else

static int set_ech(SSL_CTX *tls, const struct wt_ech *ech, int server, struct ech_offer *offer) {
    (void)tls;
    (void)ech;
    (void)server;
    (void)offer;
    return WT_UNSUPPORTED;
}

static int offer_ech(SSL *tls, const struct ech_offer *offer) {
    (void)tls;
    (void)offer;
    return 1;
}

static int ech_was_accepted(SSL *tls) {
    (void)tls;
    return 0;
}

static int ech_was_rejected(SSL *tls) {
    (void)tls;
    return 0;
}

static int copy_ech_retry(SSL *tls, void *bytes, size_t len, size_t *done) {
    (void)tls;
    (void)bytes;
    (void)len;
    *done = 0;
    return 0;
}

#endif

#endif
