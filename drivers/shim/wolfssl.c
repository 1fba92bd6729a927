/* WolfSSL as a driver, by its own interface (not by its imitation of OpenSSL's). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <wolfssl/options.h>

#include <wolfssl/error-ssl.h>
#include <wolfssl/ssl.h>
#include <wolfssl/version.h>
#include <wolfssl/wolfcrypt/cpuid.h>

#include "wiretax_driver.h"
#include "wiretax_errors.h"

struct wt_context {
    WOLFSSL_CTX *tls;
    int server;
    char name[256];
};

struct wt_conn {
    WOLFSSL *tls;
    struct wt_transport transport;
    int server;
    int ended;    /* the transport ended */
    int ticketed; /* a ticket came that was not taken */
};

static WT_CHECKED int failed(const char *what, int code) {
    char text[WOLFSSL_MAX_ERROR_SZ] = "";
    wolfSSL_ERR_error_string_n((unsigned long)code, text, sizeof text);
    return wt_fail(WT_ERROR, "%s: %s (%d)", what, text, code);
}

static WT_CHECKED int unsupported(const char *what) {
    return wt_fail(WT_UNSUPPORTED, "WolfSSL has no %s", what);
}

/* ---- the transport ---- */

static int io_recv(WOLFSSL *tls, char *bytes, int len, void *user) {
    wt_conn *conn = user;
    ptrdiff_t got;
    (void)tls;
    if (len <= 0) {
        return 0;
    }
    got = conn->transport.recv(conn->transport.user, bytes, (size_t)len);
    if (got > 0) {
        return (int)got;
    }
    if (got == WT_IO_AGAIN) {
        return WOLFSSL_CBIO_ERR_WANT_READ;
    }
    conn->ended = 1;
    return got == WT_IO_END ? WOLFSSL_CBIO_ERR_CONN_CLOSE : WOLFSSL_CBIO_ERR_CONN_RST;
}

static int io_send(WOLFSSL *tls, char *bytes, int len, void *user) {
    wt_conn *conn = user;
    ptrdiff_t sent;
    (void)tls;
    if (len <= 0) {
        return 0;
    }
    sent = conn->transport.send(conn->transport.user, bytes, (size_t)len);
    if (sent > 0) {
        return (int)sent;
    }
    return sent == WT_IO_AGAIN ? WOLFSSL_CBIO_ERR_WANT_WRITE : WOLFSSL_CBIO_ERR_CONN_RST;
}

/* ---- what the library says of itself ---- */

static const char *version(void) {
    return wolfSSL_lib_version();
}

static const char *build_flags(void) {
    return WT_BUILD_FLAGS;
}

#if defined(HAVE_CPUID) && defined(CPUID_AVX1)
static const char *cpu_features(void) {
    static char text[160];
    static const struct {
        uint32_t bit;
        const char *name;
    } known[] = {
        {CPUID_AVX1, "AVX1"},     {CPUID_AVX2, "AVX2"},   {CPUID_AESNI, "AESNI"},
        {CPUID_BMI2, "BMI2"},     {CPUID_ADX, "ADX"},     {CPUID_MOVBE, "MOVBE"},
        {CPUID_RDRAND, "RDRAND"}, {CPUID_RDSEED, "RDSEED"},
#if defined(CPUID_BMI1)
        {CPUID_BMI1, "BMI1"},
#endif
#if defined(CPUID_SHA)
        {CPUID_SHA, "SHA"},
#endif
#if defined(CPUID_VAES)
        {CPUID_VAES, "VAES"},
#endif
#if defined(CPUID_AVX512)
        {CPUID_AVX512, "AVX512"},
#endif
    };
    uint32_t found = (uint32_t)cpuid_get_flags();
    size_t at = 0;
    for (size_t each = 0; each < sizeof known / sizeof known[0]; each++) {
        if (found & known[each].bit) {
            int len = snprintf(text + at, sizeof text - at, "%s%s", at == 0 ? "" : " ",
                               known[each].name);
            if (len < 0 || (size_t)len >= sizeof text - at) {
                break;
            }
            at += (size_t)len;
        }
    }
    return text;
}
#else
static const char *cpu_features(void) {
    return "";
}
#endif

static int group_number(uint32_t group) {
    switch (group) {
    case 23: return WOLFSSL_ECC_SECP256R1;
    case 29: return WOLFSSL_ECC_X25519;
#if defined(WT_WOLFSSL_MLKEM)
    case 0x11ec: return WOLFSSL_X25519MLKEM768;
#endif
    default: return 0;
    }
}

static uint64_t functions(void) {
    uint64_t has = 0;
#if !defined(NO_OLD_TLS) && defined(WOLFSSL_ALLOW_TLSV10)
    has |= WT_TLS_1_0;
#endif
#if !defined(NO_OLD_TLS)
    has |= WT_TLS_1_1;
#endif
#if !defined(WOLFSSL_NO_TLS12)
    has |= WT_TLS_1_2;
#endif
#if defined(WOLFSSL_TLS13)
    has |= WT_TLS_1_3;
#endif
#if defined(WOLFSSL_EARLY_DATA)
    has |= WT_EARLY_DATA;
#endif
#if defined(WOLFSSL_QUIC)
    has |= WT_QUIC_TLS;
#endif
#if defined(HAVE_FIPS)
    has |= WT_FIPS;
#endif
#if defined(HAVE_ECH)
    has |= WT_ECH;
#endif
    if (group_number(0x11ec) != 0) {
        has |= WT_POST_QUANTUM;
    }
    return has;
}

static int init(void) {
    int done = wolfSSL_Init();
    return done == WOLFSSL_SUCCESS ? WT_OK : failed("wolfSSL_Init", done);
}

/* ---- contexts ---- */

static const char *suite_name(uint32_t suite) {
    switch (suite) {
    case 0x1301: return "TLS13-AES128-GCM-SHA256";
    case 0x1302: return "TLS13-AES256-GCM-SHA384";
    case 0x1303: return "TLS13-CHACHA20-POLY1305-SHA256";
    case 0xc02b: return "ECDHE-ECDSA-AES128-GCM-SHA256";
    case 0xc02c: return "ECDHE-ECDSA-AES256-GCM-SHA384";
    case 0xcca9: return "ECDHE-ECDSA-CHACHA20-POLY1305";
    case 0xc02f: return "ECDHE-RSA-AES128-GCM-SHA256";
    case 0xc030: return "ECDHE-RSA-AES256-GCM-SHA384";
    case 0xcca8: return "ECDHE-RSA-CHACHA20-POLY1305";
    default: return NULL;
    }
}

static int set_suite(WOLFSSL_CTX *tls, const struct wt_config *config) {
    const char *name = suite_name(config->cipher);
    if (name == NULL || wolfSSL_CTX_set_cipher_list(tls, name) != WOLFSSL_SUCCESS) {
        return unsupported("such cipher suite");
    }
    return WT_OK;
}

static const char *curve_name(uint32_t group) {
    return group == 23 ? "P-256" : "X25519";
}

static int set_groups(WOLFSSL_CTX *tls, const struct wt_config *config) {
    char names[32];
    int group = group_number(config->group);
    if (group == 0 || (config->version == 0x0303 && config->group > 0xff)) {
        return unsupported("such group");
    }
    if (config->group > 0xff) {
        return wolfSSL_CTX_set_groups(tls, &group, 1) == WOLFSSL_SUCCESS ? WT_OK
                                                                         : unsupported("such group");
    }
    if (wt_copy(names, sizeof names, curve_name(config->group)) != 0) {
        return unsupported("such group");
    }
    /* In TLS 1.2 the list also says which curve a certificate may have (RFC 8422 §5.1). */
    if (config->version == 0x0303 && config->certificate_group != 0 &&
        config->certificate_group != config->group) {
        int len = snprintf(names, sizeof names, "%s:%s", curve_name(config->group),
                           curve_name(config->certificate_group));
        if (len < 0 || (size_t)len >= sizeof names) {
            return unsupported("such groups");
        }
    }
    /* This call, and not that for groups, also forbids a server every other curve. */
    return wolfSSL_CTX_set1_curves_list(tls, names) == WOLFSSL_SUCCESS ? WT_OK
                                                                       : unsupported("such group");
}

static int set_signature(WOLFSSL_CTX *tls, const struct wt_config *config) {
    const char *names;
    switch (config->signature) {
    /* PKCS #1 is for peers without PSS in TLS 1.2. */
    case 0x0804: names = "RSA-PSS+SHA256:RSA+SHA256"; break;
    case 0x0403: names = "ECDSA+SHA256"; break;
    default: return unsupported("such signature scheme");
    }
    if (wolfSSL_CTX_set1_sigalgs_list(tls, names) != WOLFSSL_SUCCESS) {
        return unsupported("such signature scheme");
    }
    return WT_OK;
}

static int set_identity(WOLFSSL_CTX *tls, const struct wt_config *config) {
    int done = wolfSSL_CTX_use_certificate_chain_buffer(
        tls, (const unsigned char *)config->chain.text, (long)config->chain.len);
    if (done != WOLFSSL_SUCCESS) {
        return failed("certificate chain", done);
    }
    done = wolfSSL_CTX_use_PrivateKey_buffer(tls, (const unsigned char *)config->key.text,
                                             (long)config->key.len, WOLFSSL_FILETYPE_PEM);
    if (done != WOLFSSL_SUCCESS) {
        return failed("private key", done);
    }
    done = wolfSSL_CTX_check_private_key(tls);
    return done == WOLFSSL_SUCCESS ? WT_OK : failed("private key of this certificate", done);
}

static int set_trust(WOLFSSL_CTX *tls, const struct wt_config *config) {
    int done = wolfSSL_CTX_load_verify_buffer(tls, (const unsigned char *)config->roots.text,
                                              (long)config->roots.len, WOLFSSL_FILETYPE_PEM);
    if (done != WOLFSSL_SUCCESS) {
        return failed("roots", done);
    }
    wolfSSL_CTX_set_verify(tls, WOLFSSL_VERIFY_PEER, NULL);
    return WT_OK;
}

static int set_tickets(WOLFSSL_CTX *tls, const struct wt_config *config) {
    if (config->server && config->tickets > 1) {
        return unsupported("more than one ticket a handshake");
    }
    /* Tickets hold the session: neither side remembers any. */
    if (wolfSSL_CTX_set_session_cache_mode(tls, WOLFSSL_SESS_CACHE_OFF) != WOLFSSL_SUCCESS) {
        return unsupported("way to keep no sessions");
    }
    if (config->tickets) {
        /* The server's default callback encrypts with keys that the context makes. In TLS 1.3 one
         * ticket is its default; a client offers the extension of TLS 1.2 only if told to. */
        if (!config->server && wolfSSL_CTX_UseSessionTicket(tls) != WOLFSSL_SUCCESS) {
            return unsupported("tickets");
        }
        return WT_OK;
    }
    if (config->server) {
        /* Each refuses a context of the other version. */
        int done = config->version == 0x0304 ? wolfSSL_CTX_no_ticket_TLSv13(tls)
                                             : wolfSSL_CTX_NoTicketTLSv12(tls);
        if (done != 0) {
            return failed("no tickets", done);
        }
    }
    return WT_OK;
}

static int configure(WOLFSSL_CTX *tls, const struct wt_config *config) {
    int done;
    wolfSSL_CTX_SetIORecv(tls, io_recv);
    wolfSSL_CTX_SetIOSend(tls, io_send);
    if ((done = set_suite(tls, config)) != WT_OK || (done = set_groups(tls, config)) != WT_OK ||
        (done = set_signature(tls, config)) != WT_OK || (done = set_tickets(tls, config)) != WT_OK) {
        return done;
    }
    /* It returns the modes that are set, and has no failure. */
    (void)wolfSSL_CTX_set_mode(tls,
                               SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    return config->server ? set_identity(tls, config) : set_trust(tls, config);
}

/* The methods of one version and no other. */
static WOLFSSL_METHOD *method(const struct wt_config *config) {
    switch (config->version) {
    case 0x0303: return config->server ? wolfTLSv1_2_server_method() : wolfTLSv1_2_client_method();
    case 0x0304: return config->server ? wolfTLSv1_3_server_method() : wolfTLSv1_3_client_method();
    default: return NULL;
    }
}

static void context_free(wt_context *context) {
    if (context != NULL) {
        wolfSSL_CTX_free(context->tls);
        free(context);
    }
}

static int context_new(const struct wt_config *config, wt_context **made) {
    wt_context *context;
    WOLFSSL_METHOD *of_version;
    int done;
    wt_forget();
    if (config->size < sizeof *config ||
        (!config->server && strlen(config->server_name) >= sizeof context->name)) {
        return unsupported("such configuration");
    }
    of_version = method(config);
    if (of_version == NULL) {
        return unsupported("such version");
    }
    context = calloc(1, sizeof *context);
    if (context == NULL) {
        return failed("context", MEMORY_E);
    }
    context->server = config->server != 0;
    if (!context->server) {
        if (wt_copy(context->name, sizeof context->name, config->server_name) != 0) {
            context_free(context);
            return unsupported("name of this length");
        }
    }
    context->tls = wolfSSL_CTX_new(of_version); /* takes the method, whatever comes of it */
    done = context->tls == NULL ? failed("context", MEMORY_E) : configure(context->tls, config);
    if (done != WT_OK) {
        context_free(context);
        return done;
    }
    *made = context;
    return WT_OK;
}

/* ---- connections ---- */

static int note_ticket(WOLFSSL *tls, const unsigned char *ticket, int len, void *user) {
    wt_conn *conn = user;
    (void)tls;
    (void)ticket;
    conn->ticketed |= len > 0;
    return 0;
}

static void conn_free(wt_conn *conn) {
    if (conn != NULL) {
        wolfSSL_free(conn->tls);
        free(conn);
    }
}

/* A client's name to send and to verify, and the session to resume. */
static int prepare_client(wt_context *context, wt_conn *conn, const wt_session *session) {
    int done = wolfSSL_UseSNI(conn->tls, WOLFSSL_SNI_HOST_NAME, context->name,
                              (unsigned short)strlen(context->name));
    if (done != WOLFSSL_SUCCESS) {
        return failed("server name", done);
    }
    done = wolfSSL_check_domain_name(conn->tls, context->name);
    if (done != WOLFSSL_SUCCESS) {
        return failed("name to verify", done);
    }
    done = wolfSSL_set_SessionTicket_cb(conn->tls, note_ticket, conn);
    if (done != WOLFSSL_SUCCESS) {
        return failed("ticket callback", done);
    }
    if (session != NULL) {
        /* Copied by the library: the caller's stays as it is. */
        done = wolfSSL_set_session(conn->tls, (WOLFSSL_SESSION *)session);
        if (done != WOLFSSL_SUCCESS) {
            return failed("session", done);
        }
    }
    return WT_OK;
}

static int conn_new(wt_context *context, const struct wt_transport *transport,
                    const wt_session *session, wt_conn **made) {
    int done = WT_OK;
    wt_conn *conn = calloc(1, sizeof *conn);
    wt_forget();
    if (conn == NULL) {
        return failed("connection", MEMORY_E);
    }
    conn->transport = *transport;
    conn->server = context->server;
    conn->tls = wolfSSL_new(context->tls);
    if (conn->tls == NULL) {
        done = failed("connection", MEMORY_E);
    } else {
        wolfSSL_SetIOReadCtx(conn->tls, conn);
        wolfSSL_SetIOWriteCtx(conn->tls, conn);
        if (!context->server) {
            done = prepare_client(context, conn, session);
        }
    }
    if (done != WT_OK) {
        conn_free(conn);
        return done;
    }
    *made = conn;
    return WT_OK;
}

/* What a call's result means. */
static int outcome(wt_conn *conn, const char *what, int result) {
    int code = wolfSSL_get_error(conn->tls, result);
    if (code == WOLFSSL_ERROR_WANT_READ || code == WOLFSSL_ERROR_WANT_WRITE) {
        return WT_AGAIN;
    }
    /* The library says the same of an end with and without close_notify. */
    if (wolfSSL_get_shutdown(conn->tls) & WOLFSSL_RECEIVED_SHUTDOWN) {
        return WT_CLOSED;
    }
    if (conn->ended) {
        return wt_fail(WT_ERROR, "%s: the transport ended without close_notify", what);
    }
    return failed(what, code);
}

static int handshake(wt_conn *conn) {
    int result;
    wt_forget();
    result = conn->server ? wolfSSL_accept(conn->tls) : wolfSSL_connect(conn->tls);
    return result == WOLFSSL_SUCCESS ? WT_OK : outcome(conn, "handshake", result);
}

static int clamp(size_t len) {
    return len > 1 << 20 ? 1 << 20 : (int)len;
}

static int conn_read(wt_conn *conn, void *bytes, size_t len, size_t *done) {
    int result;
    wt_forget();
    result = wolfSSL_read(conn->tls, bytes, clamp(len));
    *done = result > 0 ? (size_t)result : 0;
    return result > 0 ? WT_OK : outcome(conn, "read", result);
}

static int conn_write(wt_conn *conn, const void *bytes, size_t len, size_t *done) {
    int result;
    wt_forget();
    result = wolfSSL_write(conn->tls, bytes, clamp(len));
    *done = result > 0 ? (size_t)result : 0;
    return result > 0 ? WT_OK : outcome(conn, "write", result);
}

static int conn_shutdown(wt_conn *conn) {
    int result;
    wt_forget();
    result = wolfSSL_shutdown(conn->tls);
    if (result == WOLFSSL_SUCCESS || result == WOLFSSL_SHUTDOWN_NOT_DONE) {
        return WT_OK;
    }
    return outcome(conn, "shutdown", result);
}

/* The group that was used, by its IANA number, or 0. */
static uint32_t negotiated_group(WOLFSSL *tls) {
    const char *name = wolfSSL_get_curve_name(tls);
    if (name == NULL) {
        return 0;
    }
    if (strcasecmp(name, "SECP256R1") == 0) {
        return 23;
    }
    if (strcasecmp(name, "X25519") == 0) {
        return 29;
    }
    return strcasecmp(name, "X25519MLKEM768") == 0 ? 0x11ec : 0;
}

static int facts(wt_conn *conn, struct wt_facts *told) {
    if (told->size < sizeof *told) {
        return unsupported("such facts");
    }
    told->version = (uint32_t)wolfSSL_version(conn->tls);
    told->cipher = (uint32_t)wolfSSL_get_current_cipher_suite(conn->tls) & 0xffff;
    told->group = negotiated_group(conn->tls);
    told->resumed = wolfSSL_session_reused(conn->tls) == 1;
    return WT_OK;
}

static wt_session *take_session(wt_conn *conn) {
    WOLFSSL_SESSION *shared, *own;
    if (!conn->ticketed) {
        return NULL;
    }
    /* A copy: the connection goes on to change its own. */
    shared = wolfSSL_get1_session(conn->tls);
    own = shared == NULL ? NULL : wolfSSL_SESSION_dup(shared);
    wolfSSL_SESSION_free(shared);
    conn->ticketed = 0;
    return (wt_session *)own;
}

static void session_free(wt_session *session) {
    wolfSSL_SESSION_free((WOLFSSL_SESSION *)session);
}

static void thread_end(void) {
    wolfSSL_ERR_remove_thread_state(NULL);
}

static const struct wt_driver driver = {
    .abi = WT_ABI,
    .size = sizeof driver,
    .library = "WolfSSL",
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
    .thread_end = thread_end,
};

const struct wt_driver *shim_driver(void);

const struct wt_driver *shim_driver(void) {
    return &driver;
}
