/* s2n-tls as a driver. Its interface only names policies of its own, none with one suite and one group:
 * the shim is compiled inside the library's source and makes such policies itself, as the library's
 * own tests do. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "utils/s2n_prelude.h"

#include "api/s2n.h"
#include "crypto/s2n_ecc_evp.h"
#include "tls/s2n_cipher_preferences.h"
#include "tls/s2n_cipher_suites.h"
#include "tls/s2n_config.h"
#include "tls/s2n_ecc_preferences.h"
#include "tls/s2n_kem.h"
#include "tls/s2n_kem_preferences.h"
#include "tls/s2n_security_policies.h"
#include "tls/s2n_signature_scheme.h"

#include <openssl/crypto.h>
#include <openssl/rand.h>

#include "wiretax_driver.h"
#include "wiretax_errors.h"

struct wt_context {
    struct s2n_config *config;
    struct s2n_cert_chain_and_key *identity;
    /* The policy and the lists that it points to. */
    struct s2n_security_policy policy;
    struct s2n_cipher_preferences ciphers;
    struct s2n_cipher_suite *suite[1];
    struct s2n_signature_preferences signatures;
    const struct s2n_signature_scheme *schemes[2];
    struct s2n_ecc_preferences curves;
    const struct s2n_ecc_named_curve *curve[2];
    struct s2n_kem_preferences *kems;
    const struct s2n_kem_group *kem[1];
    int server;
    uint8_t tickets; /* a handshake in TLS 1.3 */
    char name[256];
};

struct wt_conn {
    struct s2n_connection *tls;
    struct wt_transport transport;
    int shut; /* close_notify was sent in TLS 1.2 */
    wt_session *newest;
};

struct wt_session {
    size_t len;
    uint8_t bytes[];
};

static WT_CHECKED int failed(const char *what) {
    return wt_fail(WT_ERROR, "%s: %s (%s)", what, s2n_strerror(s2n_errno, "EN"),
                   s2n_strerror_name(s2n_errno));
}

static WT_CHECKED int unsupported(const char *what) {
    return wt_fail(WT_UNSUPPORTED, "s2n-tls has no %s", what);
}

/* ---- the transport ---- */

static int io_recv(void *user, uint8_t *bytes, uint32_t len) {
    wt_conn *conn = user;
    ptrdiff_t got = conn->transport.recv(conn->transport.user, bytes, len);
    if (got >= 0) {
        return (int)got; /* none is the end (WT_IO_END) */
    }
    errno = got == WT_IO_AGAIN ? EAGAIN : ECONNRESET;
    return -1;
}

static int io_send(void *user, const uint8_t *bytes, uint32_t len) {
    wt_conn *conn = user;
    ptrdiff_t sent = conn->transport.send(conn->transport.user, bytes, len);
    if (sent > 0) {
        return (int)sent;
    }
    errno = sent == WT_IO_AGAIN ? EAGAIN : ECONNRESET;
    return -1;
}

/* ---- what the library says of itself ---- */

/* The library has no string of its own: its crate's version, and its cryptography's. */
static const char *version(void) {
    static char text[160];
    int len = snprintf(text, sizeof text, "%s with %s", WT_S2N_VERSION,
                       OpenSSL_version(OPENSSL_VERSION));
    /* One that is too long is cut; without it the version alone is known. */
    return len < 0 ? WT_S2N_VERSION : text;
}

static const char *build_flags(void) {
    return WT_BUILD_FLAGS;
}

static const char *cpu_features(void) {
    return "";
}

static uint64_t functions(void) {
    uint64_t has = WT_TLS_1_0 | WT_TLS_1_1 | WT_TLS_1_2 | WT_TLS_1_3 | WT_EARLY_DATA | WT_QUIC_TLS;
    s2n_fips_mode fips = S2N_FIPS_MODE_DISABLED;
    if (s2n_kem_group_is_available(&s2n_x25519_mlkem_768)) {
        has |= WT_POST_QUANTUM;
    }
    if (s2n_get_fips_mode(&fips) == S2N_SUCCESS && fips == S2N_FIPS_MODE_ENABLED) {
        has |= WT_FIPS;
    }
#if defined(S2N_KTLS_SUPPORTED)
    has |= WT_KTLS;
#endif
    return has;
}

/* Ordinary memory in place of locked pages, as the library's binding for Rust has it. */
static int memory_start(void) {
    return S2N_SUCCESS;
}

static int memory_new(void **memory, uint32_t wanted, uint32_t *given) {
    *memory = malloc(wanted);
    *given = wanted;
    return *memory == NULL ? S2N_FAILURE : S2N_SUCCESS;
}

static int memory_free(void *memory, uint32_t size) {
    (void)size;
    free(memory);
    return S2N_SUCCESS;
}

static int init(void) {
    if (s2n_mem_set_callbacks(memory_start, memory_start, memory_new, memory_free) != S2N_SUCCESS ||
        s2n_init() != S2N_SUCCESS) {
        return failed("s2n_init");
    }
    return WT_OK;
}

/* ---- contexts ---- */

static struct s2n_cipher_suite *suite(uint32_t number) {
    switch (number) {
    case 0x1301: return &s2n_tls13_aes_128_gcm_sha256;
    case 0x1302: return &s2n_tls13_aes_256_gcm_sha384;
    case 0x1303: return &s2n_tls13_chacha20_poly1305_sha256;
    case 0xc02b: return &s2n_ecdhe_ecdsa_with_aes_128_gcm_sha256;
    case 0xc02c: return &s2n_ecdhe_ecdsa_with_aes_256_gcm_sha384;
    case 0xcca9: return &s2n_ecdhe_ecdsa_with_chacha20_poly1305_sha256;
    case 0xc02f: return &s2n_ecdhe_rsa_with_aes_128_gcm_sha256;
    case 0xc030: return &s2n_ecdhe_rsa_with_aes_256_gcm_sha384;
    case 0xcca8: return &s2n_ecdhe_rsa_with_chacha20_poly1305_sha256;
    default: return NULL;
    }
}

static const struct s2n_ecc_named_curve *curve(uint32_t group) {
    switch (group) {
    case 23: return &s2n_ecc_curve_secp256r1;
    case 29: return &s2n_ecc_curve_x25519;
    default: return NULL;
    }
}

static int set_groups(wt_context *context, const struct wt_config *config) {
    context->policy.kem_preferences = &kem_preferences_null;
    context->policy.ecc_preferences = &context->curves;
    if (config->group == 0x11ec && config->version == 0x0304) {
        const struct s2n_kem_preferences kems = {
            .tls13_kem_group_count = 1,
            .tls13_kem_groups = context->kem,
        };
        if (!s2n_kem_group_is_available(&s2n_x25519_mlkem_768)) {
            return unsupported("such group");
        }
        context->kem[0] = &s2n_x25519_mlkem_768;
        context->kems = malloc(sizeof kems);
        if (context->kems == NULL) {
            return failed("context");
        }
        memcpy(context->kems, &kems, sizeof kems); /* a member is constant */
        context->policy.kem_preferences = context->kems;
        return WT_OK;
    }
    context->curve[0] = curve(config->group);
    if (context->curve[0] == NULL) {
        return unsupported("such group");
    }
    context->curves.count = 1;
    /* In TLS 1.2 the list also says which curve a certificate may have (RFC 8422 §5.1). */
    if (config->version == 0x0303 && config->certificate_group != 0 &&
        config->certificate_group != config->group) {
        context->curve[1] = curve(config->certificate_group);
        context->curves.count = context->curve[1] == NULL ? 1 : 2;
    }
    context->curves.ecc_curves = context->curve;
    return WT_OK;
}

static int set_policy(wt_context *context, const struct wt_config *config) {
    int done;
    if (config->version != 0x0303 && config->version != 0x0304) {
        return unsupported("such version");
    }
    context->policy.minimum_protocol_version = config->version == 0x0304 ? S2N_TLS13 : S2N_TLS12;
    context->suite[0] = suite(config->cipher);
    if (context->suite[0] == NULL || !context->suite[0]->available) {
        return unsupported("such cipher suite");
    }
    context->ciphers.count = 1;
    context->ciphers.suites = context->suite;
    context->policy.cipher_preferences = &context->ciphers;
    switch (config->signature) {
    case 0x0804:
        /* PKCS #1 is for peers without PSS in TLS 1.2. */
        context->schemes[0] = &s2n_rsa_pss_rsae_sha256;
        context->schemes[1] = &s2n_rsa_pkcs1_sha256;
        context->signatures.count = 2;
        break;
    case 0x0403:
        context->schemes[0] = &s2n_ecdsa_sha256;
        context->signatures.count = 1;
        break;
    default: return unsupported("such signature scheme");
    }
    context->signatures.signature_schemes = context->schemes;
    context->policy.signature_preferences = &context->signatures;
    done = set_groups(context, config);
    context->config->security_policy = &context->policy;
    return done;
}

static int set_identity(wt_context *context, const struct wt_config *config) {
    context->identity = s2n_cert_chain_and_key_new();
    if (context->identity == NULL ||
        s2n_cert_chain_and_key_load_pem_bytes(
            context->identity, (uint8_t *)config->chain.text, (uint32_t)config->chain.len,
            (uint8_t *)config->key.text, (uint32_t)config->key.len) != S2N_SUCCESS ||
        s2n_config_add_cert_chain_and_key_to_store(context->config, context->identity) !=
            S2N_SUCCESS) {
        return failed("certificate chain and key");
    }
    return WT_OK;
}

static int set_trust(wt_context *context, const struct wt_config *config) {
    char *roots = malloc(config->roots.len + 1);
    int done;
    if (roots == NULL) {
        return failed("roots");
    }
    memcpy(roots, config->roots.text, config->roots.len);
    roots[config->roots.len] = 0;
    done = s2n_config_add_pem_to_trust_store(context->config, roots);
    free(roots);
    if (wt_copy(context->name, sizeof context->name, config->server_name) != 0) {
        return unsupported("name of this length");
    }
    return done == S2N_SUCCESS ? WT_OK : failed("roots");
}

/* The newest session; called when a ticket has come. */
static int keep_session(struct s2n_connection *tls, void *user, struct s2n_session_ticket *ticket) {
    wt_conn *conn = s2n_connection_get_ctx(tls);
    wt_session *session;
    size_t len = 0;
    (void)user;
    if (conn == NULL || s2n_session_ticket_get_data_len(ticket, &len) != S2N_SUCCESS ||
        (session = malloc(sizeof *session + len)) == NULL) {
        return S2N_FAILURE;
    }
    session->len = len;
    if (s2n_session_ticket_get_data(ticket, len, session->bytes) != S2N_SUCCESS) {
        free(session);
        return S2N_FAILURE;
    }
    free(conn->newest);
    conn->newest = session;
    return S2N_SUCCESS;
}

static int set_tickets(wt_context *context) {
    static const uint8_t name[] = "wiretax";
    uint8_t key[32];
    int done;
    if (s2n_config_set_session_tickets_onoff(context->config, context->tickets != 0) != S2N_SUCCESS ||
        s2n_config_set_initial_ticket_count(context->config, context->tickets) != S2N_SUCCESS ||
        s2n_config_set_session_cache_onoff(context->config, 0) != S2N_SUCCESS) {
        return failed("tickets");
    }
    if (!context->tickets) {
        return WT_OK;
    }
    if (!context->server) {
        return s2n_config_set_session_ticket_cb(context->config, keep_session, NULL) == S2N_SUCCESS
                   ? WT_OK
                   : failed("tickets");
    }
    /* The library wants the key from its caller. */
    if (RAND_bytes(key, sizeof key) != 1) {
        return failed("ticket key");
    }
    done = s2n_config_add_ticket_crypto_key(context->config, name, sizeof name - 1, key, sizeof key, 0);
    if (done == S2N_SUCCESS) {
        done = s2n_config_set_initial_ticket_count(context->config, 1);
    }
    OPENSSL_cleanse(key, sizeof key);
    return done == S2N_SUCCESS ? WT_OK : failed("ticket key");
}

static void context_free(wt_context *context) {
    if (context != NULL) {
        if (context->config != NULL) {
            s2n_config_free(context->config);
        }
        if (context->identity != NULL) {
            s2n_cert_chain_and_key_free(context->identity);
        }
        free(context->kems);
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
    if (config->tickets > UINT8_MAX) {
        return unsupported("so many tickets");
    }
    context = calloc(1, sizeof *context);
    if (context == NULL) {
        return failed("context");
    }
    context->server = config->server != 0;
    context->tickets = (uint8_t)config->tickets;
    /* Without the machine's roots. */
    context->config = s2n_config_new_minimal();
    done = context->config == NULL ? failed("context") : set_policy(context, config);
    if (done == WT_OK) {
        done = set_tickets(context);
    }
    if (done == WT_OK) {
        done = context->server ? set_identity(context, config) : set_trust(context, config);
    }
    if (done != WT_OK) {
        context_free(context);
        return done;
    }
    *made = context;
    return WT_OK;
}

/* ---- connections ---- */

static void session_free(wt_session *session) {
    if (session != NULL) {
        OPENSSL_cleanse(session->bytes, session->len);
        free(session);
    }
}

static void conn_free(wt_conn *conn) {
    if (conn != NULL) {
        if (conn->tls != NULL) {
            s2n_connection_free(conn->tls);
        }
        session_free(conn->newest);
        free(conn);
    }
}

static int conn_new(wt_context *context, const struct wt_transport *transport,
                    const wt_session *session, wt_conn **made) {
    wt_conn *conn = calloc(1, sizeof *conn);
    wt_forget();
    if (conn == NULL) {
        return failed("connection");
    }
    conn->transport = *transport;
    conn->tls = s2n_connection_new(context->server ? S2N_SERVER : S2N_CLIENT);
    if (conn->tls == NULL || s2n_connection_set_config(conn->tls, context->config) != S2N_SUCCESS ||
        s2n_connection_set_ctx(conn->tls, conn) != S2N_SUCCESS ||
        /* After an error it is the caller who waits, or not. */
        s2n_connection_set_blinding(conn->tls, S2N_SELF_SERVICE_BLINDING) != S2N_SUCCESS ||
        s2n_connection_set_recv_cb(conn->tls, io_recv) != S2N_SUCCESS ||
        s2n_connection_set_send_cb(conn->tls, io_send) != S2N_SUCCESS ||
        s2n_connection_set_recv_ctx(conn->tls, conn) != S2N_SUCCESS ||
        s2n_connection_set_send_ctx(conn->tls, conn) != S2N_SUCCESS ||
        (!context->server && s2n_set_server_name(conn->tls, context->name) != S2N_SUCCESS) ||
        (session != NULL &&
         s2n_connection_set_session(conn->tls, session->bytes, session->len) != S2N_SUCCESS)) {
        failed("connection");
        conn_free(conn);
        return WT_ERROR;
    }
    *made = conn;
    return WT_OK;
}

/* What a call that did not succeed means. */
static int outcome(const char *what) {
    if (s2n_error_get_type(s2n_errno) == S2N_ERR_T_BLOCKED) {
        return WT_AGAIN;
    }
    return failed(what);
}

static int handshake(wt_conn *conn) {
    s2n_blocked_status blocked = S2N_NOT_BLOCKED;
    wt_forget();
    errno = 0;
    return s2n_negotiate(conn->tls, &blocked) == S2N_SUCCESS ? WT_OK : outcome("handshake");
}

static ssize_t clamp(size_t len) {
    return len > 1 << 20 ? 1 << 20 : (ssize_t)len;
}

static int conn_read(wt_conn *conn, void *bytes, size_t len, size_t *done) {
    s2n_blocked_status blocked = S2N_NOT_BLOCKED;
    ssize_t got;
    wt_forget();
    *done = 0;
    if (conn->shut) {
        /* In TLS 1.2 the library reads no more after its own close_notify, but for the peer's. */
        return s2n_shutdown(conn->tls, &blocked) == S2N_SUCCESS ? WT_CLOSED : outcome("read");
    }
    got = s2n_recv(conn->tls, bytes, clamp(len), &blocked);
    *done = got > 0 ? (size_t)got : 0;
    if (got > 0) {
        return WT_OK;
    }
    return got == 0 ? WT_CLOSED : outcome("read");
}

static int conn_write(wt_conn *conn, const void *bytes, size_t len, size_t *done) {
    s2n_blocked_status blocked = S2N_NOT_BLOCKED;
    ssize_t sent;
    wt_forget();
    sent = s2n_send(conn->tls, bytes, clamp(len), &blocked);
    *done = sent > 0 ? (size_t)sent : 0;
    return sent > 0 ? WT_OK : outcome("write");
}

static int conn_shutdown(wt_conn *conn) {
    s2n_blocked_status blocked = S2N_NOT_BLOCKED;
    wt_forget();
    conn->shut = s2n_connection_get_actual_protocol_version(conn->tls) < S2N_TLS13;
    return s2n_shutdown_send(conn->tls, &blocked) == S2N_SUCCESS ? WT_OK : outcome("shutdown");
}

static int facts(wt_conn *conn, struct wt_facts *told) {
    uint8_t first = 0, second = 0;
    const char *group = NULL;
    if (told->size < sizeof *told ||
        s2n_connection_get_cipher_iana_value(conn->tls, &first, &second) != S2N_SUCCESS) {
        return failed("facts");
    }
    switch (s2n_connection_get_actual_protocol_version(conn->tls)) {
    case S2N_TLS12: told->version = 0x0303; break;
    case S2N_TLS13: told->version = 0x0304; break;
    default: told->version = 0;
    }
    told->cipher = (uint32_t)first << 8 | second;
    told->group = 0;
    if (s2n_connection_get_key_exchange_group(conn->tls, &group) == S2N_SUCCESS && group != NULL) {
        told->group = strcmp(group, "x25519") == 0           ? 29
                      : strcmp(group, "secp256r1") == 0      ? 23
                      : strcmp(group, "X25519MLKEM768") == 0 ? 0x11ec
                                                             : 0;
    }
    told->resumed = s2n_connection_is_session_resumed(conn->tls) == 1;
    return WT_OK;
}

static wt_session *take_session(wt_conn *conn) {
    wt_session *session = conn->newest;
    conn->newest = NULL;
    return session;
}

static const struct wt_driver driver = {
    .abi = WT_ABI,
    .size = sizeof driver,
    .library = "s2n-tls",
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
