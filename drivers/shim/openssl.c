/* OpenSSL and what grew out of it, AWS-LC, BoringSSL, QuicTLS and LibreSSL, as a driver. */
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>

#include "openssl.h"
#include "openssl_ech.h"
#include "openssl_sessions.h"
#include "openssl_transport.h"
#include "wiretax_driver.h"

struct wt_context {
    SSL_CTX *tls;
    int server;
    int tickets;
    struct ech_offer ech;
    char name[256];
};

struct wt_conn {
    SSL *tls;
    struct wt_transport transport;
    SSL_SESSION *newest; /* the client's, until it is taken */
    int has_ech;
    int ech_rejected;
};

/* What was asked for and is not there; told where the library has no error of its own. */
static __thread const char *lacks = "";

static int conn_index;

static void error(char *text, size_t len) {
    unsigned long code = ERR_peek_last_error();
    if (len == 0) {
        return;
    }
    if (lacks[0] != 0) {
        snprintf(text, len, "%s", lacks);
        lacks = "";
        return;
    }
    if (code == 0) {
        snprintf(text, len, "the connection broke off");
        return;
    }
    ERR_error_string_n(code, text, len);
}

/* ---- contexts ---- */

/* The client's newest session; called when a ticket has come, or with a session that has an ID. */
static int keep_session(SSL *tls, SSL_SESSION *session) {
    struct wt_conn *conn = SSL_get_ex_data(tls, conn_index);
    if (conn == NULL) {
        return 0;
    }
    SSL_SESSION_free(conn->newest);
    conn->newest = session;
    return 1;
}

static int initialised = WT_ERROR;

static void initialise(void) {
#if defined(OF_OPENSSL)
    /* The machine's configuration file is not to decide what is measured. */
    if (OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, NULL) != 1) {
        return;
    }
#else
    SSL_library_init();
#endif
    conn_index = SSL_get_ex_new_index(0, NULL, NULL, NULL, NULL);
    if (conn_index >= 0 && make_bio_method()) {
        initialised = WT_OK;
    }
}

/* Once in a process, however often it loads the driver: connections of another thread are found by the index. */
static int init(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, initialise);
    return initialised;
}

static int set_suite(SSL_CTX *tls, const struct wt_config *config) {
    const char *name = suite_name(config->cipher);
    if (name == NULL) {
        return WT_UNSUPPORTED;
    }
    if (config->version == 0x0303) {
        return SSL_CTX_set_cipher_list(tls, name) == 1 ? WT_OK : WT_UNSUPPORTED;
    }
#if defined(OF_OPENSSL) || defined(OPENSSL_IS_AWSLC)
    return SSL_CTX_set_ciphersuites(tls, name) == 1 ? WT_OK : WT_UNSUPPORTED;
#elif defined(OF_BORINGSSL)
    const uint16_t suite = (uint16_t)config->cipher;
    return SSL_CTX_set1_tls13_ciphers(tls, &suite, NULL, 1) == 1 ? WT_OK : WT_UNSUPPORTED;
#else
    return WT_UNSUPPORTED;
#endif
}

static int set_group(SSL_CTX *tls, const struct wt_config *config) {
    char names[64];
    const char *name = group_name(config->group);
    if (name == NULL) {
        return WT_UNSUPPORTED;
    }
    snprintf(names, sizeof names, "%s", name);
    /* In TLS 1.2 the list also says which curve a certificate may have (RFC 8422 §5.1). */
    if (config->version == 0x0303 && config->certificate_group != 0 &&
        config->certificate_group != config->group) {
        const char *of_certificate = group_name(config->certificate_group);
        if (of_certificate == NULL) {
            return WT_UNSUPPORTED;
        }
        snprintf(names, sizeof names, "%s:%s", name, of_certificate);
    }
    if (set_groups(tls, names) == 1) {
        return WT_OK;
    }
    lacks = "the library lacks the group";
    return WT_UNSUPPORTED;
}

static int set_signature(SSL_CTX *tls, const struct wt_config *config) {
    const char *names;
    switch (config->signature) {
    /* PKCS #1 is for the signatures inside the chain; in TLS 1.2 PSS comes first. */
    case 0x0804: names = "rsa_pss_rsae_sha256:rsa_pkcs1_sha256"; break;
    case 0x0403: names = "ecdsa_secp256r1_sha256"; break;
    default: return WT_UNSUPPORTED;
    }
#if defined(OF_LIBRESSL)
    (void)tls;
    (void)names;
    return WT_OK;
#else
    return SSL_CTX_set1_sigalgs_list(tls, names) == 1 ? WT_OK : WT_UNSUPPORTED;
#endif
}

static BIO *pem_bio(const struct wt_pem *pem) {
    return BIO_new_mem_buf(pem->text, (int)pem->len);
}

static int set_identity(SSL_CTX *tls, const struct wt_config *config) {
    BIO *chain = pem_bio(&config->chain);
    BIO *pem_key = pem_bio(&config->key);
    X509 *certificate = NULL;
    EVP_PKEY *key = NULL;
    int done = WT_ERROR;
    if (chain == NULL || pem_key == NULL) {
        goto out;
    }
    certificate = PEM_read_bio_X509(chain, NULL, NULL, NULL);
    key = PEM_read_bio_PrivateKey(pem_key, NULL, NULL, NULL);
    if (certificate == NULL || key == NULL || SSL_CTX_use_certificate(tls, certificate) != 1 ||
        SSL_CTX_use_PrivateKey(tls, key) != 1) {
        goto out;
    }
    for (X509 *next; (next = PEM_read_bio_X509(chain, NULL, NULL, NULL)) != NULL;) {
        if (SSL_CTX_add_extra_chain_cert(tls, next) != 1) {
            X509_free(next);
            goto out;
        }
    }
    ERR_clear_error(); /* the end of the text */
    done = WT_OK;
out:
    X509_free(certificate);
    EVP_PKEY_free(key);
    BIO_free(chain);
    BIO_free(pem_key);
    return done;
}

static int set_trust(SSL_CTX *tls, const struct wt_config *config) {
    BIO *roots = pem_bio(&config->roots);
    X509_STORE *store = SSL_CTX_get_cert_store(tls);
    X509_VERIFY_PARAM *verify = SSL_CTX_get0_param(tls);
    int added = 0;
    if (roots == NULL) {
        return WT_ERROR;
    }
    for (X509 *root; (root = PEM_read_bio_X509(roots, NULL, NULL, NULL)) != NULL;) {
        added += X509_STORE_add_cert(store, root) == 1;
        X509_free(root);
    }
    BIO_free(roots);
    ERR_clear_error();
    SSL_CTX_set_verify(tls, SSL_VERIFY_PEER, NULL);
    return added > 0 && X509_VERIFY_PARAM_set1_host(verify, config->server_name,
                                                    strlen(config->server_name)) == 1
               ? WT_OK
               : WT_ERROR;
}

static int set_sessions(SSL_CTX *tls, const struct wt_config *config) {
    if (config->sessions != WT_SESSIONS_TICKETS && config->version != 0x0303) {
        lacks = "session IDs resume nothing in this version";
        return WT_UNSUPPORTED;
    }
    if (!config->tickets || config->sessions != WT_SESSIONS_TICKETS) {
        SSL_CTX_set_options(tls, SSL_OP_NO_TICKET);
    }
    if (config->server) {
        return set_server_sessions(tls, config);
    }
    set_client_sessions(tls, config, keep_session);
    return WT_OK;
}

static void context_free(wt_context *context) {
    if (context != NULL) {
        free_ech(&context->ech);
        free_with_store(context->tls);
        OPENSSL_free(context);
    }
}

static int configure(SSL_CTX *tls, const struct wt_config *config) {
    int done;
    if (SSL_CTX_set_min_proto_version(tls, (uint16_t)config->version) != 1 ||
        SSL_CTX_set_max_proto_version(tls, (uint16_t)config->version) != 1) {
        lacks = "the library lacks the version";
        return WT_UNSUPPORTED;
    }
    if ((done = set_suite(tls, config)) != WT_OK || (done = set_group(tls, config)) != WT_OK ||
        (done = set_signature(tls, config)) != WT_OK ||
        (done = set_sessions(tls, config)) != WT_OK) {
        return done;
    }
    SSL_CTX_set_mode(tls, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    return config->server ? set_identity(tls, config) : set_trust(tls, config);
}

static int configure_ech(wt_context *context, const struct wt_config *config) {
    int done;
    if (config->size < sizeof *config || config->ech == NULL) {
        return WT_OK;
    }
    if (config->version != 0x0304) {
        lacks = "there is ECH in TLS 1.3 only";
        return WT_UNSUPPORTED;
    }
    done = set_ech(context->tls, config->ech, context->server, &context->ech);
    if (done == WT_UNSUPPORTED) {
        lacks = "the library lacks ECH";
    }
    return done;
}

static const SSL_METHOD *client_method(const struct wt_config *config) {
#if defined(OF_LIBRESSL)
    /* Its client of TLS 1.3 begins every handshake otherwise, and cannot go on with a session of 1.2. */
    if (config->version == 0x0303) {
        return TLSv1_2_client_method();
    }
#endif
    (void)config;
    return TLS_client_method();
}

static int context_new(const struct wt_config *config, wt_context **made) {
    wt_context *context;
    int done;
    ERR_clear_error();
    /* From before ECH, too. */
    if (config->size < offsetof(struct wt_config, ech) ||
        (!config->server && strlen(config->server_name) >= sizeof context->name)) {
        return WT_UNSUPPORTED;
    }
    context = OPENSSL_malloc(sizeof *context);
    if (context == NULL) {
        return WT_ERROR;
    }
    memset(context, 0, sizeof *context);
    context->server = config->server != 0;
    context->tickets = config->tickets != 0;
    if (!context->server) {
        snprintf(context->name, sizeof context->name, "%s", config->server_name);
    }
    context->tls = SSL_CTX_new(context->server ? TLS_server_method() : client_method(config));
    done = context->tls == NULL ? WT_ERROR : configure(context->tls, config);
    if (done != WT_OK || (done = configure_ech(context, config)) != WT_OK) {
        context_free(context);
        return done;
    }
    *made = context;
    return WT_OK;
}

/* ---- connections ---- */

static void conn_free(wt_conn *conn) {
    if (conn != NULL) {
        SSL_free(conn->tls);
        SSL_SESSION_free(conn->newest);
        OPENSSL_free(conn);
    }
}

static int conn_new(wt_context *context, const struct wt_transport *transport,
                    const wt_session *session, wt_conn **made) {
    BIO *bio;
    wt_conn *conn = OPENSSL_malloc(sizeof *conn);
    ERR_clear_error();
    if (conn == NULL) {
        return WT_ERROR;
    }
    memset(conn, 0, sizeof *conn);
    conn->transport = *transport;
    conn->has_ech = context->ech.asked;
    conn->tls = SSL_new(context->tls);
    bio = BIO_new(bio_method);
    if (conn->tls == NULL || bio == NULL || SSL_set_ex_data(conn->tls, conn_index, conn) != 1) {
        BIO_free(bio);
        conn_free(conn);
        return WT_ERROR;
    }
    BIO_set_data(bio, &conn->transport);
    SSL_set_bio(conn->tls, bio, bio);
    if (context->server) {
        SSL_set_accept_state(conn->tls);
    } else {
        SSL_set_connect_state(conn->tls);
        if (SSL_set_tlsext_host_name(conn->tls, context->name) != 1 ||
            !offer_ech(conn->tls, &context->ech) ||
            (session != NULL && SSL_set_session(conn->tls, (SSL_SESSION *)session) != 1)) {
            conn_free(conn);
            return WT_ERROR;
        }
    }
    *made = conn;
    return WT_OK;
}

/* What a call's result means; errors stay in the library's queue for error(). */
static int outcome(wt_conn *conn, int result) {
    switch (SSL_get_error(conn->tls, result)) {
    case SSL_ERROR_NONE: return WT_OK;
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE: return WT_AGAIN;
    case SSL_ERROR_ZERO_RETURN: return WT_CLOSED;
    default: return WT_ERROR;
    }
}

static int handshake(wt_conn *conn) {
    int result;
    ERR_clear_error();
    result = SSL_do_handshake(conn->tls);
    if (result != 1 && conn->has_ech && !SSL_is_server(conn->tls) && ech_was_rejected(conn->tls)) {
        conn->ech_rejected = 1;
    }
    return result == 1 ? WT_OK : outcome(conn, result);
}

static int clamp(size_t len) {
    return len > 1 << 20 ? 1 << 20 : (int)len;
}

static int conn_read(wt_conn *conn, void *bytes, size_t len, size_t *done) {
    int result;
    ERR_clear_error();
    result = SSL_read(conn->tls, bytes, clamp(len));
    *done = result > 0 ? (size_t)result : 0;
    return result > 0 ? WT_OK : outcome(conn, result);
}

static int conn_write(wt_conn *conn, const void *bytes, size_t len, size_t *done) {
    int result;
    ERR_clear_error();
    result = SSL_write(conn->tls, bytes, clamp(len));
    *done = result > 0 ? (size_t)result : 0;
    return result > 0 ? WT_OK : outcome(conn, result);
}

static int conn_shutdown(wt_conn *conn) {
    int result;
    ERR_clear_error();
    result = SSL_shutdown(conn->tls);
    return result >= 0 ? WT_OK : outcome(conn, result);
}

/* The group that was used, by its IANA number, or 0. */
static uint32_t negotiated_group(SSL *tls) {
#if defined(OPENSSL_IS_AWSLC) || defined(OPENSSL_IS_BORINGSSL)
    return SSL_get_curve_id(tls);
#elif defined(OF_OPENSSL_3)
    int group = (int)SSL_get_negotiated_group(tls);
    switch (group) {
    case NID_X25519: return 29;
    case NID_X9_62_prime256v1: return 23;
    default: return (group & TLSEXT_nid_unknown) ? (uint32_t)group & 0xffff : 0;
    }
#elif defined(OF_OPENSSL)
    EVP_PKEY *key = NULL;
    uint32_t group = 0;
    if (SSL_get_peer_tmp_key(tls, &key) == 1 && key != NULL) {
        group = EVP_PKEY_id(key) == EVP_PKEY_X25519 ? 29 : EVP_PKEY_id(key) == EVP_PKEY_EC ? 23 : 0;
        EVP_PKEY_free(key);
    }
    return group;
#else
    /* LibreSSL tells a client only. */
    EVP_PKEY *key = NULL;
    uint32_t group = 0;
    if (!SSL_is_server(tls) && SSL_get_server_tmp_key(tls, &key) == 1 && key != NULL) {
        group = EVP_PKEY_id(key) == NID_X25519 ? 29 : EVP_PKEY_id(key) == EVP_PKEY_EC ? 23 : 0;
        EVP_PKEY_free(key);
    }
    return group;
#endif
}

static int facts(wt_conn *conn, struct wt_facts *told) {
    const SSL_CIPHER *cipher = SSL_get_current_cipher(conn->tls);
    const struct wt_facts none = {.size = told->size, .ech = WT_ECH_REJECTED};
    if (conn->ech_rejected && told->size >= sizeof *told) {
        *told = none;
        return WT_OK;
    }
    if (told->size < offsetof(struct wt_facts, ech) || cipher == NULL) {
        return WT_ERROR;
    }
    told->version = (uint32_t)SSL_version(conn->tls);
    told->cipher = (uint32_t)SSL_CIPHER_get_id(cipher) & 0xffff;
    told->group = negotiated_group(conn->tls);
    told->resumed = SSL_session_reused(conn->tls) == 1;
    if (told->size >= sizeof *told) {
        int accepted = conn->has_ech && ech_was_accepted(conn->tls);
        told->ech = accepted ? WT_ECH_ACCEPTED : WT_ECH_NONE;
    }
    return WT_OK;
}

static int ech_retry(wt_conn *conn, void *bytes, size_t len, size_t *done) {
    ERR_clear_error();
    *done = 0;
    if (!conn->ech_rejected) {
        lacks = "ECH was not rejected";
        return WT_ERROR;
    }
    return copy_ech_retry(conn->tls, bytes, len, done) ? WT_OK : WT_ERROR;
}

static int server_name(wt_conn *conn, char *text, size_t len, size_t *done) {
    const char *name = SSL_get_servername(conn->tls, TLSEXT_NAMETYPE_host_name);
    size_t name_len = name == NULL ? 0 : strlen(name);
    if (name_len > len) {
        return WT_ERROR;
    }
    if (name_len > 0) {
        memcpy(text, name, name_len);
    }
    *done = name_len;
    return WT_OK;
}

/* In TLS 1.2 a server may renew a ticket while it resumes; not every library calls back for it. */
static SSL_SESSION *current_session(SSL *tls) {
    SSL_SESSION *session = SSL_version(tls) == TLS1_2_VERSION ? SSL_get1_session(tls) : NULL;
    if (session != NULL && !SSL_SESSION_has_ticket(session)) {
        SSL_SESSION_free(session);
        session = NULL;
    }
    return session;
}

static wt_session *take_session(wt_conn *conn) {
    SSL_SESSION *session = conn->newest;
    conn->newest = NULL;
    return (wt_session *)(session != NULL ? session : current_session(conn->tls));
}

static void session_free(wt_session *session) {
    SSL_SESSION_free((SSL_SESSION *)session);
}

#if defined(OF_OPENSSL)
static void thread_end(void) {
    OPENSSL_thread_stop();
}
#endif

static const struct wt_driver driver = {
    .abi = WT_ABI,
    .size = sizeof driver,
    .library = FAMILY,
    .version = version,
    .build_flags = build_flags,
    .cpu_features = cpu_features,
    .functions = functions,
    .init = init,
    .error = error,
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
#if defined(OF_OPENSSL)
    .thread_end = thread_end,
#endif
    .ech_retry = ech_retry,
    .server_name = server_name,
};

#ifdef WT_STANDALONE
__attribute__((visibility("default"))) const struct wt_driver *wiretax_driver(void) {
    return &driver;
}
#else
const struct wt_driver *shim_driver(void);

const struct wt_driver *shim_driver(void) {
    return &driver;
}
#endif
