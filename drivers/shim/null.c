/* A driver without cryptography: what it costs is the harness's own cost. It frames bytes as TLS does, so
 * that the harness does all that it does for a library: hellos that can be read, records, alerts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wiretax_driver.h"

enum { CHANGE_CIPHER_SPEC = 20, ALERT = 21, HANDSHAKE = 22, DATA = 23 };
enum { ROOM = 16384 + 5 };

struct wt_context {
    uint32_t server, version, cipher, group, tickets, sessions;
};

struct wt_session {
    char nothing;
};

struct wt_conn {
    const struct wt_context *context;
    struct wt_transport transport;
    uint32_t resumes, said_hello, done, ticket, closed;
    size_t out_at, out_len, in_len;
    unsigned char out[ROOM], in[ROOM];
};

static __thread const char *why = "";

static const char *version(void) { return "null 1"; }
static const char *nothing(void) { return ""; }
static uint64_t functions(void) {
    return WT_TLS_1_2 | WT_TLS_1_3 | WT_SESSION_CACHE | WT_SESSION_STORE;
}
static int init(void) { return WT_OK; }

static void error(char *text, size_t len) {
    if (len > 0) {
        snprintf(text, len, "%s", why);
    }
}

static int fail(const char *reason) {
    why = reason;
    return WT_ERROR;
}

static int context_new(const struct wt_config *config, wt_context **made) {
    wt_context *context = calloc(1, sizeof *context);
    if (context == NULL) {
        return fail("no memory");
    }
    context->server = config->server;
    context->version = config->version;
    context->cipher = config->cipher;
    context->group = config->group;
    context->tickets = config->tickets;
    context->sessions = config->sessions;
    *made = context;
    return WT_OK;
}

static void context_free(wt_context *context) { free(context); }

static int conn_new(wt_context *context, const struct wt_transport *transport,
                    const wt_session *session, wt_conn **made) {
    wt_conn *conn = malloc(sizeof *conn);
    if (conn == NULL) {
        return fail("no memory");
    }
    memset(conn, 0, offsetof(struct wt_conn, out));
    conn->context = context;
    conn->transport = *transport;
    conn->resumes = session != NULL;
    *made = conn;
    return WT_OK;
}

static void conn_free(wt_conn *conn) { free(conn); }

/* Puts a record after what waits to be sent. */
static int put(wt_conn *conn, unsigned char type, const void *bytes, size_t len) {
    unsigned char *at = conn->out + conn->out_len;
    if (conn->out_len + len + 5 > ROOM) {
        return 0;
    }
    at[0] = type;
    at[1] = 3;
    at[2] = 3;
    at[3] = (unsigned char)(len >> 8);
    at[4] = (unsigned char)len;
    memcpy(at + 5, bytes, len);
    conn->out_len += len + 5;
    return 1;
}

static int flush(wt_conn *conn) {
    while (conn->out_at < conn->out_len) {
        ptrdiff_t sent = conn->transport.send(conn->transport.user, conn->out + conn->out_at,
                                              conn->out_len - conn->out_at);
        if (sent == WT_IO_AGAIN) {
            return WT_AGAIN;
        }
        if (sent <= 0) {
            return fail("the connection broke off");
        }
        conn->out_at += (size_t)sent;
    }
    conn->out_at = conn->out_len = 0;
    return WT_OK;
}

/* Has a whole record at the beginning of `in`. */
static int pull(wt_conn *conn) {
    for (;;) {
        size_t wanted = 5;
        if (conn->in_len >= 5) {
            wanted += (size_t)conn->in[3] << 8 | conn->in[4];
            if (wanted > ROOM) {
                return fail("a record is too long");
            }
            if (conn->in_len >= wanted) {
                return WT_OK;
            }
        }
        ptrdiff_t got = conn->transport.recv(conn->transport.user, conn->in + conn->in_len,
                                             wanted - conn->in_len);
        if (got == WT_IO_AGAIN) {
            return WT_AGAIN;
        }
        if (got <= 0) {
            return fail("the connection ended without close_notify");
        }
        conn->in_len += (size_t)got;
    }
}

/* A ServerHello as the configuration has it, and what shows whether it resumes. */
static int put_server_hello(wt_conn *conn) {
    static const unsigned char certificate[] = {11, 0, 0, 3, 0, 0, 0};
    unsigned char hello[160] = {2, 0, 0, 0, 3, 3};
    size_t at = 6 + 32; /* the random */
    size_t extensions;
    if (conn->context->sessions == WT_SESSIONS_TICKETS) {
        hello[at++] = 0;
    } else {
        hello[at++] = 32; /* the session's ID, all zeros */
        at += 32;
    }
    hello[at++] = (unsigned char)(conn->context->cipher >> 8);
    hello[at++] = (unsigned char)conn->context->cipher;
    hello[at++] = 0;
    extensions = at;
    at += 2;
    if (conn->context->version == 0x0304) {
        const unsigned char versions[] = {0, 43, 0, 2, 3, 4};
        const unsigned char share[] = {0, 51, 0, 8, (unsigned char)(conn->context->group >> 8),
                                       (unsigned char)conn->context->group, 0, 4, 0, 0, 0, 0};
        const unsigned char psk[] = {0, 41, 0, 2, 0, 0};
        memcpy(hello + at, versions, sizeof versions);
        at += sizeof versions;
        memcpy(hello + at, share, sizeof share);
        at += sizeof share;
        if (conn->resumes) {
            memcpy(hello + at, psk, sizeof psk);
            at += sizeof psk;
        }
    }
    hello[extensions + 1] = (unsigned char)(at - extensions - 2);
    hello[3] = (unsigned char)(at - 4);
    if (!put(conn, HANDSHAKE, hello, at)) {
        return 0;
    }
    return conn->resumes && conn->context->version == 0x0303
               ? put(conn, CHANGE_CIPHER_SPEC, "\1", 1)
               : put(conn, HANDSHAKE, certificate, sizeof certificate);
}

static int handshake(wt_conn *conn) {
    int status;
    if (conn->done) {
        return WT_OK;
    }
    if (!conn->context->server && !conn->said_hello) {
        const unsigned char hello[] = {1, 0, 0, 1, (unsigned char)conn->resumes};
        conn->said_hello = 1;
        put(conn, HANDSHAKE, hello, sizeof hello);
    }
    if ((status = flush(conn)) != WT_OK || (status = pull(conn)) != WT_OK) {
        return status;
    }
    if (conn->in[0] != HANDSHAKE) {
        return fail("that is no handshake");
    }
    if (conn->context->server) {
        conn->resumes = conn->in_len > 9 && conn->in[9] == 1;
        put_server_hello(conn);
    } else {
        conn->ticket = conn->context->tickets;
    }
    conn->in_len = 0;
    conn->done = 1;
    if (!conn->context->server) {
        /* The second record of the server's flight. */
        if ((status = pull(conn)) != WT_OK) {
            return status;
        }
        conn->in_len = 0;
    }
    return flush(conn);
}

static int conn_read(wt_conn *conn, void *bytes, size_t len, size_t *done) {
    int status = conn->closed ? WT_CLOSED : pull(conn);
    if (status != WT_OK) {
        return status;
    }
    if (conn->in[0] == ALERT) {
        conn->closed = 1;
        conn->in_len = 0;
        return WT_CLOSED;
    }
    size_t holds = conn->in_len - 5;
    size_t taken = holds < len ? holds : len;
    memcpy(bytes, conn->in + 5, taken);
    if (taken < holds) {
        memmove(conn->in + 5, conn->in + 5 + taken, holds - taken);
        conn->in_len -= taken;
        conn->in[3] = (unsigned char)((holds - taken) >> 8);
        conn->in[4] = (unsigned char)(holds - taken);
    } else {
        conn->in_len = 0;
    }
    *done = taken;
    return WT_OK;
}

static int conn_write(wt_conn *conn, const void *bytes, size_t len, size_t *done) {
    int status = flush(conn);
    size_t taken = len < 16384 ? len : 16384;
    if (status != WT_OK) {
        return status;
    }
    put(conn, DATA, bytes, taken);
    *done = taken;
    status = flush(conn);
    return status == WT_ERROR ? status : WT_OK;
}

static int conn_shutdown(wt_conn *conn) {
    put(conn, ALERT, "\1\0", 2);
    return flush(conn);
}

static int facts(wt_conn *conn, struct wt_facts *told) {
    told->version = conn->context->version;
    told->cipher = conn->context->cipher;
    told->group = conn->context->group;
    told->resumed = conn->resumes;
    return WT_OK;
}

static wt_session *take_session(wt_conn *conn) {
    if (!conn->ticket) {
        return NULL;
    }
    conn->ticket = 0;
    return calloc(1, sizeof(struct wt_session));
}

static void session_free(wt_session *session) { free(session); }

static const struct wt_driver driver = {
    .abi = WT_ABI,
    .size = sizeof driver,
    .library = "null",
    .version = version,
    .build_flags = nothing,
    .cpu_features = nothing,
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
};

#ifdef WT_STANDALONE
__attribute__((visibility("default"))) const struct wt_driver *wiretax_driver(void) { return &driver; }
#else
const struct wt_driver *shim_driver(void);
const struct wt_driver *shim_driver(void) { return &driver; }
#endif
