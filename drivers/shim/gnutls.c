/* GnuTLS as a driver. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

#include "wiretax_driver.h"
#include "wiretax_errors.h"
#include "wiretax_store.h"

struct wt_context {
    gnutls_certificate_credentials_t identity; /* and trust */
    gnutls_priority_t priority;
    gnutls_datum_t ticket_key; /* a server's, that issues tickets */
    struct wt_store *store;    /* a server's, that resumes by session IDs */
    int server;
    int keeps;   /* a client takes sessions */
    int tickets; /* a handshake in TLS 1.3; 0 where there are none */
    int by_id;   /* sessions are resumed by their IDs */
    char name[256];
};

struct wt_conn {
    gnutls_session_t tls;
    struct wt_transport transport;
    int shaken;  /* the handshake is over */
    int tickets; /* a server's that are to be sent */
    int taken;   /* the session was taken */
    int by_id;   /* a client's session has an ID and no ticket */
    int pulled;  /* bytes came during this call */
};

struct wt_session {
    gnutls_datum_t data;
};

static WT_CHECKED int failed(const char *what, int code) {
    return wt_fail(WT_ERROR, "%s: %s (%d)", what, gnutls_strerror(code), code);
}

static WT_CHECKED int unsupported(const char *what) {
    return wt_fail(WT_UNSUPPORTED, "GnuTLS has no %s", what);
}

/* ---- the transport ---- */

static ssize_t pull(gnutls_transport_ptr_t user, void *bytes, size_t len) {
    wt_conn *conn = user;
    ptrdiff_t got = conn->transport.recv(conn->transport.user, bytes, len);
    if (got >= 0) {
        conn->pulled = 1;
        return got; /* none is the end (WT_IO_END) */
    }
    gnutls_transport_set_errno(conn->tls, got == WT_IO_AGAIN ? EAGAIN : ECONNRESET);
    return -1;
}

static ssize_t push(gnutls_transport_ptr_t user, const void *bytes, size_t len) {
    wt_conn *conn = user;
    ptrdiff_t sent = conn->transport.send(conn->transport.user, bytes, len);
    if (sent > 0) {
        return sent;
    }
    gnutls_transport_set_errno(conn->tls, sent == WT_IO_AGAIN ? EAGAIN : ECONNRESET);
    return -1;
}

/* ---- what the library says of itself ---- */

static const char *version(void) {
    return gnutls_check_version(NULL);
}

static const char *build_flags(void) {
    static char text[1024];
    const gnutls_library_config_st *told = gnutls_get_library_config();
    int at = snprintf(text, sizeof text, "%s; as it tells:", WT_BUILD_FLAGS);
    for (; told != NULL && told->name != NULL && at > 0 && (size_t)at < sizeof text; told++) {
        int len = snprintf(text + at, sizeof text - (size_t)at, " %s=%s", told->name,
                           told->value == NULL ? "" : told->value);
        if (len < 0) {
            break;
        }
        at += len;
    }
    return text;
}

/* The library does not tell what it found. */
static const char *cpu_features(void) {
    return "";
}

/* The library's name of a group as a priority string has it. */
static const char *group_priority(uint32_t group) {
    switch (group) {
    case 23: return "+GROUP-SECP256R1";
    case 29: return "+GROUP-X25519";
    case 0x11ec: return "+GROUP-X25519-MLKEM768";
    default: return NULL;
    }
}

/* Whether the library knows all that a priority string names. */
static int knows(const char *names) {
    gnutls_priority_t priority = NULL;
    int known = gnutls_priority_init(&priority, names, NULL) == 0;
    if (known) {
        gnutls_priority_deinit(priority);
    }
    return known;
}

#define PLAIN ":+AES-128-GCM:+AES-128-CBC:+AEAD:+SHA1:+ECDHE-RSA:+COMP-NULL:+CTYPE-X509:+SIGN-ALL"

static uint64_t functions(void) {
    uint64_t has = WT_EARLY_DATA | WT_SESSION_STORE; /* a cache of its own it has none */
    has |= knows("NONE:+VERS-TLS1.0:+GROUP-X25519" PLAIN) ? (uint64_t)WT_TLS_1_0 : 0;
    has |= knows("NONE:+VERS-TLS1.1:+GROUP-X25519" PLAIN) ? (uint64_t)WT_TLS_1_1 : 0;
    has |= knows("NONE:+VERS-TLS1.2:+GROUP-X25519" PLAIN) ? (uint64_t)WT_TLS_1_2 : 0;
    has |= knows("NONE:+VERS-TLS1.3:+GROUP-X25519" PLAIN) ? (uint64_t)WT_TLS_1_3 : 0;
    has |= knows("NONE:+VERS-TLS1.3:+GROUP-X25519-MLKEM768" PLAIN) ? (uint64_t)WT_POST_QUANTUM : 0;
    has |= gnutls_fips140_mode_enabled() ? (uint64_t)WT_FIPS : 0;
#if GNUTLS_VERSION_NUMBER >= 0x030700
    has |= WT_QUIC_TLS; /* gnutls_handshake_set_secret_function */
#endif
#if GNUTLS_VERSION_NUMBER >= 0x030703
    has |= WT_KTLS; /* gnutls_transport_is_ktls_enabled; asked for by the machine's configuration */
#endif
    return has;
}

static int init(void) {
    int done = gnutls_global_init();
    return done == 0 ? WT_OK : failed("gnutls_global_init", done);
}

/* ---- the store of a server that resumes by session IDs ---- */

static int store_session(void *user, gnutls_datum_t id, gnutls_datum_t session) {
    return wt_store_put(user, id.data, id.size, session.data, session.size) ? 0 : -1;
}

/* The library frees what it is given. */
static gnutls_datum_t stored_session(void *user, gnutls_datum_t id) {
    unsigned char bytes[WT_STORE_BYTES];
    gnutls_datum_t found = {NULL, 0};
    size_t len = wt_store_get(user, id.data, id.size, bytes);
    if (len > 0 && (found.data = gnutls_malloc(len)) != NULL) {
        memcpy(found.data, bytes, len);
        found.size = (unsigned)len;
    }
    return found;
}

static int forget_session(void *user, gnutls_datum_t id) {
    wt_store_remove(user, id.data, id.size);
    return 0;
}

/* ---- contexts ---- */

static const char *suite_priority(uint32_t suite) {
    switch (suite) {
    case 0x1301: return "+AES-128-GCM";
    case 0x1302: return "+AES-256-GCM";
    case 0x1303: return "+CHACHA20-POLY1305";
    case 0xc02b: return "+AES-128-GCM:+ECDHE-ECDSA";
    case 0xc02c: return "+AES-256-GCM:+ECDHE-ECDSA";
    case 0xcca9: return "+CHACHA20-POLY1305:+ECDHE-ECDSA";
    case 0xc02f: return "+AES-128-GCM:+ECDHE-RSA";
    case 0xc030: return "+AES-256-GCM:+ECDHE-RSA";
    case 0xcca8: return "+CHACHA20-POLY1305:+ECDHE-RSA";
    default: return NULL;
    }
}

static const char *signature_priority(uint32_t signature) {
    switch (signature) {
    /* PKCS #1 is for peers without PSS in TLS 1.2. */
    case 0x0804: return "+SIGN-RSA-PSS-RSAE-SHA256:+SIGN-RSA-SHA256";
    case 0x0403: return "+SIGN-ECDSA-SHA256:+SIGN-ECDSA-SECP256R1-SHA256";
    default: return NULL;
    }
}

static int set_priority(wt_context *context, const struct wt_config *config) {
    char names[512];
    int len;
    const char *suite = suite_priority(config->cipher);
    const char *group = group_priority(config->group);
    const char *signature = signature_priority(config->signature);
    const char *of_certificate = "";
    if (config->version != 0x0303 && config->version != 0x0304) {
        return unsupported("such version");
    }
    if (suite == NULL || group == NULL || signature == NULL) {
        return unsupported("such suite, group or signature");
    }
    /* In TLS 1.2 the list also says which curve a certificate may have (RFC 8422 §5.1). */
    if (config->version == 0x0303 && config->certificate_group == 23 && config->group != 23) {
        of_certificate = ":+GROUP-SECP256R1";
    }
    if (config->version == 0x0303 && config->group > 0xff) {
        return unsupported("such group in TLS 1.2");
    }
    len = snprintf(names, sizeof names,
                   "NONE:%s:%s:+AEAD:%s%s:%s:+COMP-NULL:+CTYPE-X509:%%SERVER_PRECEDENCE",
                   config->version == 0x0303 ? "+VERS-TLS1.2" : "+VERS-TLS1.3", suite, group,
                   of_certificate, signature);
    if (len < 0 || (size_t)len >= sizeof names) {
        return unsupported("priority string of this length");
    }
    return gnutls_priority_init(&context->priority, names, NULL) == 0 ? WT_OK
                                                                      : unsupported("such suite or group");
}

static int set_identity(wt_context *context, const struct wt_config *config) {
    gnutls_datum_t chain = {(unsigned char *)config->chain.text, (unsigned)config->chain.len};
    gnutls_datum_t key = {(unsigned char *)config->key.text, (unsigned)config->key.len};
    int done = gnutls_certificate_set_x509_key_mem(context->identity, &chain, &key,
                                                   GNUTLS_X509_FMT_PEM);
    if (done < 0) {
        return failed("certificate chain and key", done);
    }
    if (context->tickets) {
        done = gnutls_session_ticket_key_generate(&context->ticket_key);
        if (done < 0) {
            return failed("ticket key", done);
        }
    }
    return WT_OK;
}

static int set_trust(wt_context *context, const struct wt_config *config) {
    gnutls_datum_t roots = {(unsigned char *)config->roots.text, (unsigned)config->roots.len};
    int taken =
        gnutls_certificate_set_x509_trust_mem(context->identity, &roots, GNUTLS_X509_FMT_PEM);
    if (taken < 0) {
        return failed("roots", taken);
    }
    return taken > 0 ? WT_OK : failed("roots", GNUTLS_E_NO_CERTIFICATE_FOUND);
}

static void context_free(wt_context *context) {
    if (context == NULL) {
        return;
    }
    if (context->identity != NULL) {
        gnutls_certificate_free_credentials(context->identity);
    }
    if (context->priority != NULL) {
        gnutls_priority_deinit(context->priority);
    }
    if (context->ticket_key.data != NULL) {
        gnutls_memset(context->ticket_key.data, 0, context->ticket_key.size);
        gnutls_free(context->ticket_key.data);
    }
    wt_store_free(context->store);
    free(context);
}

static int context_new(const struct wt_config *config, wt_context **made) {
    wt_context *context;
    int done;
    wt_forget();
    if (config->size < sizeof *config ||
        config->tickets > 255 ||
        (!config->server && strlen(config->server_name) >= sizeof context->name)) {
        return unsupported("such configuration");
    }
    /* It has no cache of its own. A client offers a session's ID, whatever the server looks it up in. */
    if (config->sessions != WT_SESSIONS_TICKETS &&
        (config->version != 0x0303 || config->sessions > WT_SESSIONS_EXTERNAL ||
         (config->server && config->sessions == WT_SESSIONS_CACHE))) {
        return unsupported("such way to resume sessions");
    }
    context = calloc(1, sizeof *context);
    if (context == NULL) {
        return failed("context", GNUTLS_E_MEMORY_ERROR);
    }
    context->server = config->server != 0;
    context->by_id = config->sessions != WT_SESSIONS_TICKETS;
    context->tickets = context->by_id ? 0 : (int)config->tickets;
    context->keeps = config->tickets > 0;
    if (context->server && context->by_id && (context->store = wt_store_new()) == NULL) {
        context_free(context);
        return failed("store", GNUTLS_E_MEMORY_ERROR);
    }
    done = gnutls_certificate_allocate_credentials(&context->identity);
    done = done < 0 ? failed("context", done) : set_priority(context, config);
    if (done == WT_OK && !context->server &&
        wt_copy(context->name, sizeof context->name, config->server_name) != 0) {
        done = unsupported("name of this length");
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

static void conn_free(wt_conn *conn) {
    if (conn != NULL) {
        if (conn->tls != NULL) {
            gnutls_deinit(conn->tls);
        }
        free(conn);
    }
}

static int prepare(wt_context *context, wt_conn *conn, const wt_session *session) {
    unsigned flags = GNUTLS_NONBLOCK | (context->server ? GNUTLS_SERVER : GNUTLS_CLIENT);
    int done;
    if (!context->tickets) {
        flags |= GNUTLS_NO_TICKETS;
    }
#if GNUTLS_VERSION_NUMBER >= 0x03060d
    /* It would send two. */
    flags |= context->server ? GNUTLS_NO_AUTO_SEND_TICKET : 0;
#endif
    conn->tickets = context->server ? context->tickets : 0;
    conn->by_id = !context->server && context->by_id && context->keeps;
    if ((done = gnutls_init(&conn->tls, flags)) < 0 ||
        (done = gnutls_priority_set(conn->tls, context->priority)) < 0 ||
        (done = gnutls_credentials_set(conn->tls, GNUTLS_CRD_CERTIFICATE, context->identity)) < 0) {
        return done;
    }
    gnutls_transport_set_ptr(conn->tls, conn);
    gnutls_transport_set_pull_function(conn->tls, pull);
    gnutls_transport_set_push_function(conn->tls, push);
    gnutls_handshake_set_timeout(conn->tls, GNUTLS_INDEFINITE_TIMEOUT);
    if (context->server) {
        gnutls_certificate_server_set_request(conn->tls, GNUTLS_CERT_IGNORE);
        if (context->store != NULL) {
            gnutls_db_set_ptr(conn->tls, context->store);
            gnutls_db_set_store_function(conn->tls, store_session);
            gnutls_db_set_retrieve_function(conn->tls, stored_session);
            gnutls_db_set_remove_function(conn->tls, forget_session);
        }
        return context->tickets
                   ? gnutls_session_ticket_enable_server(conn->tls, &context->ticket_key)
                   : 0;
    }
    gnutls_session_set_verify_cert(conn->tls, context->name, 0);
    done = gnutls_server_name_set(conn->tls, GNUTLS_NAME_DNS, context->name, strlen(context->name));
    if (done >= 0 && session != NULL) {
        done = gnutls_session_set_data(conn->tls, session->data.data, session->data.size);
    }
    return done;
}

static int conn_new(wt_context *context, const struct wt_transport *transport,
                    const wt_session *session, wt_conn **made) {
    int done;
    wt_conn *conn = calloc(1, sizeof *conn);
    wt_forget();
    if (conn == NULL) {
        return failed("connection", GNUTLS_E_MEMORY_ERROR);
    }
    conn->transport = *transport;
    done = prepare(context, conn, session);
    if (done < 0) {
        conn_free(conn);
        return failed("connection", done);
    }
    *made = conn;
    return WT_OK;
}

/* Says why in more words where the library has them. */
static int explain(wt_conn *conn, const char *what, int code) {
    int done = failed(what, code);
    if (code == GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR) {
        gnutls_datum_t text = {NULL, 0};
        unsigned status = gnutls_session_get_verify_cert_status(conn->tls);
        if (gnutls_certificate_verification_status_print(status, GNUTLS_CRT_X509, &text, 0) == 0) {
            done = wt_fail(WT_ERROR, "%s: %s", what, (const char *)text.data);
            gnutls_free(text.data);
        }
    } else if (code == GNUTLS_E_FATAL_ALERT_RECEIVED) {
        const char *alert = gnutls_alert_get_name(gnutls_alert_get(conn->tls));
        done = wt_fail(WT_ERROR, "%s: alert: %s", what, alert == NULL ? "?" : alert);
    }
    return done;
}

/* What a call's result below zero means. */
static int outcome(wt_conn *conn, const char *what, int code) {
    if (code == GNUTLS_E_AGAIN || code == GNUTLS_E_INTERRUPTED) {
        return WT_AGAIN;
    }
    return explain(conn, what, code);
}

/* In TLS 1.3 a server's ticket follows its handshake. */
static int send_ticket(wt_conn *conn) {
    int done = 0;
    if (conn->tickets > 0 && gnutls_protocol_get_version(conn->tls) == GNUTLS_TLS1_3) {
        done = gnutls_session_ticket_send(conn->tls, (unsigned)conn->tickets, 0);
        conn->tickets = done == 0 ? 0 : conn->tickets;
    }
    return done == 0 ? WT_OK : outcome(conn, "ticket", done);
}

static int handshake(wt_conn *conn) {
    int done;
    wt_forget();
    if (conn->shaken) {
        return send_ticket(conn);
    }
    do {
        done = gnutls_handshake(conn->tls);
        /* A warning alert ends nothing. */
    } while (done < 0 && done != GNUTLS_E_AGAIN && done != GNUTLS_E_INTERRUPTED &&
             gnutls_error_is_fatal(done) == 0);
    if (done != 0) {
        return outcome(conn, "handshake", done);
    }
    conn->shaken = 1;
    return send_ticket(conn);
}

static int conn_read(wt_conn *conn, void *bytes, size_t len, size_t *done) {
    ssize_t got;
    wt_forget();
    /* Behind a ticket the library stops, as if nothing more were there. */
    do {
        conn->pulled = 0;
        got = gnutls_record_recv(conn->tls, bytes, len);
    } while (got == GNUTLS_E_AGAIN && conn->pulled);
    *done = got > 0 ? (size_t)got : 0;
    if (got > 0) {
        return WT_OK;
    }
    return got == 0 ? WT_CLOSED : outcome(conn, "read", (int)got);
}

static int conn_write(wt_conn *conn, const void *bytes, size_t len, size_t *done) {
    ssize_t sent;
    wt_forget();
    sent = gnutls_record_send(conn->tls, bytes, len);
    *done = sent > 0 ? (size_t)sent : 0;
    return sent >= 0 ? WT_OK : outcome(conn, "write", (int)sent);
}

static int conn_shutdown(wt_conn *conn) {
    int done;
    wt_forget();
    done = gnutls_bye(conn->tls, GNUTLS_SHUT_WR);
    return done == 0 ? WT_OK : outcome(conn, "shutdown", done);
}

/* A suite's IANA number by its name, which one call has with WITH and another without. */
static uint32_t suite_number(const char *name) {
    char plain[80] = "";
    unsigned char number[2];
    const char *with = name == NULL ? NULL : strstr(name, "_WITH");
    int len;
    if (name == NULL) {
        return 0;
    }
    len = snprintf(plain, sizeof plain, "%.*s%s", with == NULL ? 60 : (int)(with - name), name,
                   with == NULL ? "" : with + 5);
    if (len < 0 || (size_t)len >= sizeof plain) {
        return 0;
    }
    for (size_t at = 0;; at++) {
        const char *known = gnutls_cipher_suite_info(at, number, NULL, NULL, NULL, NULL);
        if (known == NULL) {
            return 0;
        }
        if (strcmp(known, plain) == 0 || strcmp(known, name) == 0) {
            return (uint32_t)number[0] << 8 | number[1];
        }
    }
}

static int facts(wt_conn *conn, struct wt_facts *told) {
    if (told->size < sizeof *told) {
        return unsupported("such facts");
    }
    switch (gnutls_protocol_get_version(conn->tls)) {
    case GNUTLS_TLS1_2: told->version = 0x0303; break;
    case GNUTLS_TLS1_3: told->version = 0x0304; break;
    default: told->version = 0;
    }
    told->cipher = suite_number(gnutls_ciphersuite_get(conn->tls));
    switch (gnutls_group_get(conn->tls)) {
    case GNUTLS_GROUP_SECP256R1: told->group = 23; break;
    case GNUTLS_GROUP_X25519: told->group = 29; break;
    default: told->group = 0;
    }
    if (told->group == 0) {
        const char *name = gnutls_group_get_name(gnutls_group_get(conn->tls));
        told->group = name != NULL && strcmp(name, "X25519-MLKEM768") == 0 ? 0x11ec : 0;
    }
    told->resumed = gnutls_session_is_resumed(conn->tls) != 0;
    return WT_OK;
}

static wt_session *take_session(wt_conn *conn) {
    wt_session *session;
    int has;
    if (conn->by_id) {
        /* What was resumed is the caller's still. */
        has = conn->shaken && gnutls_session_is_resumed(conn->tls) == 0;
    } else {
        /* Asked without a ticket in TLS 1.3, the library would wait for one. */
        has = (gnutls_session_get_flags(conn->tls) & GNUTLS_SFLAGS_SESSION_TICKET) != 0;
    }
    if (conn->taken || !has) {
        return NULL;
    }
    session = calloc(1, sizeof *session);
    if (session == NULL || gnutls_session_get_data2(conn->tls, &session->data) < 0) {
        free(session);
        return NULL;
    }
    conn->taken = 1;
    return session;
}

static void session_free(wt_session *session) {
    if (session != NULL) {
        gnutls_memset(session->data.data, 0, session->data.size);
        gnutls_free(session->data.data);
        free(session);
    }
}

static const struct wt_driver driver = {
    .abi = WT_ABI,
    .size = sizeof driver,
    .library = "GnuTLS",
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
