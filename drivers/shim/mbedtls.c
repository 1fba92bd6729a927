/* Mbed TLS 2.28 as a driver: TLS 1.2 only. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mbedtls/aesni.h>
#include <mbedtls/ctr_drbg.h>
#include <mbedtls/entropy.h>
#include <mbedtls/error.h>
#include <mbedtls/pk.h>
#include <mbedtls/platform_util.h>
#include <mbedtls/ssl.h>
#include <mbedtls/ssl_cache.h>
#include <mbedtls/ssl_ticket.h>
#include <mbedtls/version.h>
#include <mbedtls/x509_crt.h>

#include "wiretax_driver.h"
#include "wiretax_errors.h"

#define TICKET_SECONDS 86400

struct wt_context {
    mbedtls_ssl_config tls;
    mbedtls_entropy_context entropy;
    mbedtls_ctr_drbg_context random; /* under a mutex of the library's */
    mbedtls_x509_crt certificates;   /* a server's chain, or a client's roots */
    mbedtls_pk_context key;
    mbedtls_ssl_ticket_context tickets;
    mbedtls_ssl_cache_context cache; /* a server's, that resumes by session IDs */
    int server;
    int keeps; /* a client takes sessions */
    int by_id; /* sessions are resumed by their IDs */
    int suites[2];
    mbedtls_ecp_group_id curves[3];
    int hashes[2];
    char name[256];
};

struct wt_conn {
    mbedtls_ssl_context tls;
    struct wt_transport transport;
    int full;  /* a certificate was part of the handshake */
    int taken; /* the session was taken */
    int keeps; /* a client's sessions are taken */
    int by_id; /* they have IDs and no tickets */
};

struct wt_session {
    mbedtls_ssl_session tls;
};

static WT_CHECKED int failed(const char *what, int code) {
    char text[160] = "";
    mbedtls_strerror(code, text, sizeof text);
    return wt_fail(WT_ERROR, "%s: %s (-0x%04x)", what, text, (unsigned)-code);
}

static WT_CHECKED int unsupported(const char *what) {
    return wt_fail(WT_UNSUPPORTED, "Mbed TLS has no %s", what);
}

/* ---- the transport ---- */

static int io_recv(void *user, unsigned char *bytes, size_t len) {
    wt_conn *conn = user;
    ptrdiff_t got = conn->transport.recv(conn->transport.user, bytes, len);
    if (got >= 0) {
        return (int)got; /* none is the end (WT_IO_END) */
    }
    return got == WT_IO_AGAIN ? MBEDTLS_ERR_SSL_WANT_READ : MBEDTLS_ERR_SSL_CONN_EOF;
}

static int io_send(void *user, const unsigned char *bytes, size_t len) {
    wt_conn *conn = user;
    ptrdiff_t sent = conn->transport.send(conn->transport.user, bytes, len);
    if (sent > 0) {
        return (int)sent;
    }
    return sent == WT_IO_AGAIN ? MBEDTLS_ERR_SSL_WANT_WRITE : MBEDTLS_ERR_SSL_CONN_EOF;
}

/* ---- what the library says of itself ---- */

static const char *version(void) {
    static char text[18];
    mbedtls_version_get_string_full(text);
    return text;
}

static const char *build_flags(void) {
    static char text[512];
    static const char *const asked[] = {
        "MBEDTLS_HAVE_ASM",          "MBEDTLS_AESNI_C",  "MBEDTLS_THREADING_C",
        "MBEDTLS_THREADING_PTHREAD", "MBEDTLS_HAVEGE_C", "MBEDTLS_USE_PSA_CRYPTO",
        "MBEDTLS_ECP_RESTARTABLE",   "MBEDTLS_ECP_NIST_OPTIM",
    };
    int at = snprintf(text, sizeof text, "%s; as it tells:", WT_BUILD_FLAGS);
    for (size_t each = 0; each < sizeof asked / sizeof asked[0]; each++) {
        if (at > 0 && (size_t)at < sizeof text && mbedtls_version_check_feature(asked[each]) == 0) {
            int len = snprintf(text + at, sizeof text - (size_t)at, " %s", asked[each]);
            if (len < 0) {
                break;
            }
            at += len;
        }
    }
    return text;
}

static const char *cpu_features(void) {
#if defined(MBEDTLS_AESNI_C) && defined(__x86_64__)
    int aes = mbedtls_aesni_has_support(MBEDTLS_AESNI_AES);
    int clmul = mbedtls_aesni_has_support(MBEDTLS_AESNI_CLMUL);
    return aes && clmul ? "AES-NI PCLMUL" : aes ? "AES-NI" : clmul ? "PCLMUL" : "";
#else
    return "";
#endif
}

static uint64_t functions(void) {
    uint64_t has = WT_SESSION_CACHE;
    has |= mbedtls_version_check_feature("MBEDTLS_SSL_PROTO_TLS1") == 0 ? WT_TLS_1_0 : 0;
    has |= mbedtls_version_check_feature("MBEDTLS_SSL_PROTO_TLS1_1") == 0 ? WT_TLS_1_1 : 0;
    has |= mbedtls_version_check_feature("MBEDTLS_SSL_PROTO_TLS1_2") == 0 ? WT_TLS_1_2 : 0;
    return has;
}

static int init(void) {
    return WT_OK;
}

/* ---- contexts ---- */

/* A copy of a PEM text that ends with a zero byte, as the parsers want it. */
static unsigned char *ended(const struct wt_pem *pem) {
    unsigned char *copy = malloc(pem->len + 1);
    if (copy != NULL) {
        memcpy(copy, pem->text, pem->len);
        copy[pem->len] = 0;
    }
    return copy;
}

static int read_certificates(wt_context *context, const struct wt_pem *pem) {
    unsigned char *text = ended(pem);
    int done = text == NULL ? MBEDTLS_ERR_X509_ALLOC_FAILED
                            : mbedtls_x509_crt_parse(&context->certificates, text, pem->len + 1);
    free(text);
    return done == 0 ? WT_OK : failed("certificates", done);
}

static int read_key(wt_context *context, const struct wt_pem *pem) {
    unsigned char *text = ended(pem);
    int done = text == NULL ? MBEDTLS_ERR_PK_ALLOC_FAILED
                            : mbedtls_pk_parse_key(&context->key, text, pem->len + 1, NULL, 0);
    if (text != NULL) {
        mbedtls_platform_zeroize(text, pem->len);
    }
    free(text);
    return done == 0 ? WT_OK : failed("private key", done);
}

static mbedtls_ecp_group_id curve(uint32_t group) {
    switch (group) {
    case 23: return MBEDTLS_ECP_DP_SECP256R1;
    case 29: return MBEDTLS_ECP_DP_CURVE25519;
    default: return MBEDTLS_ECP_DP_NONE;
    }
}

/* Lists of one: they are the context's, as the library keeps their addresses. */
static int pin(wt_context *context, const struct wt_config *config) {
    mbedtls_ssl_config *tls = &context->tls;
    if (config->version != 0x0303) {
        return unsupported("such version");
    }
    context->curves[0] = curve(config->group);
    if (context->curves[0] == MBEDTLS_ECP_DP_NONE) {
        return unsupported("such group");
    }
    /* The list also says which curve a certificate may have (RFC 8422 §5.1). */
    if (config->certificate_group != 0 && config->certificate_group != config->group) {
        context->curves[1] = curve(config->certificate_group);
    }
    if (config->signature != 0x0804 && config->signature != 0x0403) {
        return unsupported("such signature scheme");
    }
    context->suites[0] = (int)config->cipher;
    if (mbedtls_ssl_get_ciphersuite_name(context->suites[0]) == NULL ||
        strcmp(mbedtls_ssl_get_ciphersuite_name(context->suites[0]), "unknown") == 0) {
        return unsupported("such cipher suite");
    }
    /* RSA signs by PKCS #1 here: the library has no PSS in TLS 1.2. */
    context->hashes[0] = MBEDTLS_MD_SHA256;
    mbedtls_ssl_conf_min_version(tls, MBEDTLS_SSL_MAJOR_VERSION_3, MBEDTLS_SSL_MINOR_VERSION_3);
    mbedtls_ssl_conf_max_version(tls, MBEDTLS_SSL_MAJOR_VERSION_3, MBEDTLS_SSL_MINOR_VERSION_3);
    mbedtls_ssl_conf_ciphersuites(tls, context->suites);
    mbedtls_ssl_conf_curves(tls, context->curves);
    mbedtls_ssl_conf_sig_hashes(tls, context->hashes);
    return WT_OK;
}

static int configure_server(wt_context *context, const struct wt_config *config) {
    int done;
    if ((done = read_certificates(context, &config->chain)) != WT_OK ||
        (done = read_key(context, &config->key)) != WT_OK) {
        return done;
    }
    done = mbedtls_pk_check_pair(&context->certificates.pk, &context->key);
    if (done != 0) {
        return failed("private key of this certificate", done);
    }
    done = mbedtls_ssl_conf_own_cert(&context->tls, &context->certificates, &context->key);
    if (done == 0 && context->by_id) {
        /* By default it has 50, in a list that is searched from its beginning. */
        mbedtls_ssl_cache_set_max_entries(&context->cache, WT_SESSIONS_HELD);
        mbedtls_ssl_conf_session_cache(&context->tls, &context->cache, mbedtls_ssl_cache_get,
                                       mbedtls_ssl_cache_set);
    } else if (done == 0 && config->tickets) {
        done = mbedtls_ssl_ticket_setup(&context->tickets, mbedtls_ctr_drbg_random,
                                        &context->random, MBEDTLS_CIPHER_AES_256_GCM,
                                        TICKET_SECONDS);
        mbedtls_ssl_conf_session_tickets_cb(&context->tls, mbedtls_ssl_ticket_write,
                                            mbedtls_ssl_ticket_parse, &context->tickets);
    }
    return done == 0 ? WT_OK : failed("server", done);
}

static int configure_client(wt_context *context, const struct wt_config *config) {
    int done = read_certificates(context, &config->roots);
    if (done != WT_OK) {
        return done;
    }
    if (wt_copy(context->name, sizeof context->name, config->server_name) != 0) {
        return unsupported("name of this length");
    }
    mbedtls_ssl_conf_authmode(&context->tls, MBEDTLS_SSL_VERIFY_REQUIRED);
    mbedtls_ssl_conf_ca_chain(&context->tls, &context->certificates, NULL);
    mbedtls_ssl_conf_session_tickets(&context->tls, config->tickets && !context->by_id
                                                        ? MBEDTLS_SSL_SESSION_TICKETS_ENABLED
                                                        : MBEDTLS_SSL_SESSION_TICKETS_DISABLED);
    return WT_OK;
}

static int configure(wt_context *context, const struct wt_config *config) {
    int done = mbedtls_ctr_drbg_seed(&context->random, mbedtls_entropy_func, &context->entropy,
                                     (const unsigned char *)"wiretax", 7);
    if (done == 0) {
        done = mbedtls_ssl_config_defaults(
            &context->tls, config->server ? MBEDTLS_SSL_IS_SERVER : MBEDTLS_SSL_IS_CLIENT,
            MBEDTLS_SSL_TRANSPORT_STREAM, MBEDTLS_SSL_PRESET_DEFAULT);
    }
    if (done != 0) {
        return failed("context", done);
    }
    mbedtls_ssl_conf_rng(&context->tls, mbedtls_ctr_drbg_random, &context->random);
    done = pin(context, config);
    if (done != WT_OK) {
        return done;
    }
    return config->server ? configure_server(context, config) : configure_client(context, config);
}

static void context_free(wt_context *context) {
    if (context != NULL) {
        mbedtls_ssl_config_free(&context->tls);
        mbedtls_ssl_ticket_free(&context->tickets);
        mbedtls_ssl_cache_free(&context->cache);
        mbedtls_pk_free(&context->key);
        mbedtls_x509_crt_free(&context->certificates);
        mbedtls_ctr_drbg_free(&context->random);
        mbedtls_entropy_free(&context->entropy);
        free(context);
    }
}

static int context_new(const struct wt_config *config, wt_context **made) {
    wt_context *context;
    int done;
    wt_forget();
    if (config->size < sizeof *config ||
        (!config->server && strlen(config->server_name) >= sizeof context->name)) {
        return unsupported("such configuration");
    }
    /* A client offers a session's ID, whatever the server looks it up in. */
    if (config->sessions > WT_SESSIONS_EXTERNAL || (config->server && config->sessions == WT_SESSIONS_EXTERNAL)) {
        return unsupported("such way to resume sessions");
    }
    context = calloc(1, sizeof *context);
    if (context == NULL) {
        return failed("context", MBEDTLS_ERR_SSL_ALLOC_FAILED);
    }
    context->server = config->server != 0;
    context->keeps = config->tickets != 0;
    context->by_id = config->sessions != WT_SESSIONS_TICKETS;
    mbedtls_ssl_config_init(&context->tls);
    mbedtls_entropy_init(&context->entropy);
    mbedtls_ctr_drbg_init(&context->random);
    mbedtls_x509_crt_init(&context->certificates);
    mbedtls_pk_init(&context->key);
    mbedtls_ssl_ticket_init(&context->tickets);
    mbedtls_ssl_cache_init(&context->cache);
    done = configure(context, config);
    if (done != WT_OK) {
        context_free(context);
        return done;
    }
    *made = context;
    return WT_OK;
}

/* ---- connections ---- */

static void conn_free(wt_conn *conn) {
    if (conn != NULL) {
        mbedtls_ssl_free(&conn->tls);
        free(conn);
    }
}

static int conn_new(wt_context *context, const struct wt_transport *transport,
                    const wt_session *session, wt_conn **made) {
    int done;
    wt_conn *conn = calloc(1, sizeof *conn);
    wt_forget();
    if (conn == NULL) {
        return failed("connection", MBEDTLS_ERR_SSL_ALLOC_FAILED);
    }
    conn->transport = *transport;
    conn->keeps = !context->server && context->keeps;
    conn->by_id = context->by_id;
    mbedtls_ssl_init(&conn->tls);
    done = mbedtls_ssl_setup(&conn->tls, &context->tls);
    mbedtls_ssl_set_bio(&conn->tls, conn, io_send, io_recv, NULL);
    if (done == 0 && !context->server) {
        done = mbedtls_ssl_set_hostname(&conn->tls, context->name);
        if (done == 0 && session != NULL) {
            done = mbedtls_ssl_set_session(&conn->tls, &session->tls);
        }
    }
    if (done != 0) {
        conn_free(conn);
        return failed("connection", done);
    }
    *made = conn;
    return WT_OK;
}

/* What a call's result means. */
static int outcome(wt_conn *conn, const char *what, int code) {
    switch (code) {
    case MBEDTLS_ERR_SSL_WANT_READ:
    case MBEDTLS_ERR_SSL_WANT_WRITE: return WT_AGAIN;
    case MBEDTLS_ERR_SSL_PEER_CLOSE_NOTIFY: return WT_CLOSED;
    case MBEDTLS_ERR_X509_CERT_VERIFY_FAILED: {
        char text[160] = "";
        uint32_t flags = mbedtls_ssl_get_verify_result(&conn->tls);
        if (mbedtls_x509_crt_verify_info(text, sizeof text, "", flags) < 0) {
            return failed(what, code);
        }
        return wt_fail(WT_ERROR, "%s: %s", what, text);
    }
    default: return failed(what, code);
    }
}

static int handshake(wt_conn *conn) {
    int done = 0;
    wt_forget();
    /* As mbedtls_ssl_handshake does; but the library does not tell afterwards whether it resumed. */
    while (done == 0 && conn->tls.state != MBEDTLS_SSL_HANDSHAKE_OVER) {
        done = mbedtls_ssl_handshake_step(&conn->tls);
        conn->full |= conn->tls.state == MBEDTLS_SSL_SERVER_CERTIFICATE;
    }
    return done == 0 ? WT_OK : outcome(conn, "handshake", done);
}

static int conn_read(wt_conn *conn, void *bytes, size_t len, size_t *done) {
    int got;
    wt_forget();
    got = mbedtls_ssl_read(&conn->tls, bytes, len);
    *done = got > 0 ? (size_t)got : 0;
    if (got > 0) {
        return WT_OK;
    }
    return outcome(conn, "read", got == 0 ? MBEDTLS_ERR_SSL_CONN_EOF : got);
}

static int conn_write(wt_conn *conn, const void *bytes, size_t len, size_t *done) {
    int sent;
    wt_forget();
    sent = mbedtls_ssl_write(&conn->tls, bytes, len);
    *done = sent > 0 ? (size_t)sent : 0;
    return sent >= 0 ? WT_OK : outcome(conn, "write", sent);
}

static int conn_shutdown(wt_conn *conn) {
    int done;
    wt_forget();
    done = mbedtls_ssl_close_notify(&conn->tls);
    return done == 0 ? WT_OK : outcome(conn, "shutdown", done);
}

static int facts(wt_conn *conn, struct wt_facts *told) {
    if (told->size < sizeof *told) {
        return unsupported("such facts");
    }
    told->version = (uint32_t)conn->tls.major_ver << 8 | (uint32_t)conn->tls.minor_ver;
    told->cipher = (uint32_t)mbedtls_ssl_get_ciphersuite_id(mbedtls_ssl_get_ciphersuite(&conn->tls));
    told->group = 0; /* it does not tell */
    told->resumed = !conn->full;
    return WT_OK;
}

static void session_free(wt_session *session) {
    if (session != NULL) {
        mbedtls_ssl_session_free(&session->tls);
        free(session);
    }
}

static wt_session *take_session(wt_conn *conn) {
    wt_session *session;
    /* A session that was resumed by its ID is the caller's still. */
    if (!conn->keeps || conn->taken || (conn->by_id && !conn->full)) {
        return NULL;
    }
    session = calloc(1, sizeof *session);
    if (session == NULL) {
        return NULL;
    }
    mbedtls_ssl_session_init(&session->tls);
    if (mbedtls_ssl_get_session(&conn->tls, &session->tls) != 0 ||
        (conn->by_id ? session->tls.id_len : session->tls.ticket_len) == 0) {
        session_free(session);
        return NULL;
    }
    conn->taken = 1;
    return session;
}

static const struct wt_driver driver = {
    .abi = WT_ABI,
    .size = sizeof driver,
    .library = "Mbed TLS",
    .version = version,
    .build_flags = build_flags,
    .cpu_features = cpu_features,
    .functions = functions,
    .init = init,
    .error = wt_error,
    .context_new = context_new,
    .context_free = context_free,
    .conn_new = conn_new,
    .handshake = handshake,
    .read = conn_read,
    .write = conn_write,
    .shutdown = conn_shutdown,
    .facts = facts,
    .take_session = take_session,
    .session_free = session_free,
    .conn_free = conn_free,
};

const struct wt_driver *shim_driver(void);

const struct wt_driver *shim_driver(void) {
    return &driver;
}
