/* By what OpenSSL and its relatives resume a session: tickets, their own cache, or a store outside. */
#ifndef WIRETAX_OPENSSL_SESSIONS_H
#define WIRETAX_OPENSSL_SESSIONS_H

#include <openssl/ssl.h>

#include "openssl.h"
#include "wiretax_driver.h"
#include "wiretax_store.h"

static struct wt_store *store_of(SSL_CTX *tls) {
    return SSL_CTX_get_app_data(tls);
}

/* A session that the server has made: 0, for the store keeps its bytes and no reference. */
static int store_session(SSL *tls, SSL_SESSION *session) {
    unsigned char bytes[WT_STORE_BYTES], *end = bytes;
    unsigned id_len = 0;
    const unsigned char *id = SSL_SESSION_get_id(session, &id_len);
    int len = i2d_SSL_SESSION(session, NULL);
    if (len > 0 && (size_t)len <= sizeof bytes && i2d_SSL_SESSION(session, &end) == len) {
        wt_store_put(store_of(SSL_get_SSL_CTX(tls)), id, id_len, bytes, (size_t)len);
    }
    return 0;
}

/* The session that a client names, or NULL; the reference is the library's. */
static SSL_SESSION *stored_session(SSL *tls, const unsigned char *id, int id_len, int *copy) {
    unsigned char bytes[WT_STORE_BYTES];
    const unsigned char *at = bytes;
    size_t len = 0;
    *copy = 0;
    if (id_len > 0) {
        len = wt_store_get(store_of(SSL_get_SSL_CTX(tls)), id, (size_t)id_len, bytes);
    }
    return len == 0 ? NULL : d2i_SSL_SESSION(NULL, &at, (long)len);
}

/* A session that is over, or was cut off. */
static void forget_session(SSL_CTX *tls, SSL_SESSION *session) {
    unsigned id_len = 0;
    const unsigned char *id = SSL_SESSION_get_id(session, &id_len);
    wt_store_remove(store_of(tls), id, id_len);
}

static int set_server_sessions(SSL_CTX *tls, const struct wt_config *config) {
    SSL_CTX_set_session_id_context(tls, (const unsigned char *)"wiretax", 7);
    switch (config->sessions) {
    case WT_SESSIONS_TICKETS:
        /* Tickets hold the session: the server remembers nothing. */
        SSL_CTX_set_session_cache_mode(tls, SSL_SESS_CACHE_OFF);
#if !defined(OF_LIBRESSL)
        SSL_CTX_set_num_tickets(tls, config->tickets);
#endif
        return WT_OK;
    case WT_SESSIONS_CACHE:
        SSL_CTX_set_session_cache_mode(tls, SSL_SESS_CACHE_SERVER);
        SSL_CTX_sess_set_cache_size(tls, WT_SESSIONS_HELD);
        return WT_OK;
    case WT_SESSIONS_EXTERNAL: {
        struct wt_store *store = wt_store_new();
        if (store == NULL || SSL_CTX_set_app_data(tls, store) != 1) {
            wt_store_free(store);
            return WT_ERROR;
        }
        SSL_CTX_set_session_cache_mode(tls, SSL_SESS_CACHE_SERVER | SSL_SESS_CACHE_NO_INTERNAL);
        SSL_CTX_sess_set_new_cb(tls, store_session);
        SSL_CTX_sess_set_get_cb(tls, stored_session);
        SSL_CTX_sess_set_remove_cb(tls, forget_session);
        return WT_OK;
    }
    default: return WT_UNSUPPORTED;
    }
}

/* What a client keeps goes to `keep`, which takes the reference. */
static void set_client_sessions(SSL_CTX *tls, const struct wt_config *config,
                                int (*keep)(SSL *, SSL_SESSION *)) {
    if (config->tickets) {
        SSL_CTX_set_session_cache_mode(tls, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
        SSL_CTX_sess_set_new_cb(tls, keep);
    } else {
        SSL_CTX_set_session_cache_mode(tls, SSL_SESS_CACHE_OFF);
    }
}

/* Frees a context and the store that it may have; in this order, for the library calls back. */
static void free_with_store(SSL_CTX *tls) {
    struct wt_store *store = tls == NULL ? NULL : store_of(tls);
    SSL_CTX_free(tls);
    wt_store_free(store);
}

#endif
