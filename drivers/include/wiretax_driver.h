/*
 * The driver interface: how Wiretax talks to a TLS library that it measures.
 *
 * A driver is a shared object that exports one symbol, `wiretax_driver`, a function that returns a
 * `struct wt_driver`. It is loaded with RTLD_LOCAL by a process that exists for one measurement.
 * drivers/README.md tells how to build one of your own.
 *
 * Rules for a driver:
 * - No sockets, files, threads, signals or environment: bytes come and go by `struct wt_transport`.
 * - A context may be used by many threads at once, a connection by one thread at a time.
 * - What a configuration names is used, and nothing beside it: never a library's default group,
 *   cipher suite or version.
 * - A client verifies the server's chain against the given roots, and its name.
 * - A server issues as many tickets a handshake as it is told, in TLS 1.2 one at most, stateless,
 *   encrypted with a key that its context made; where a library cannot send so many in TLS 1.3 it is
 *   WT_UNSUPPORTED. Where sessions are resumed by their IDs (wt_config.sessions) neither side offers or
 *   issues a ticket. A client never resumes but what it is given.
 */
#ifndef WIRETAX_DRIVER_H
#define WIRETAX_DRIVER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Raised when anything below changes its meaning or its place. */
#define WT_ABI 1u

/* What a call returns: a name, its number, what it means. The one table of these: names in texts and
 * Wiretax's own list are held against it. */
#define WT_STATUS_TABLE(STATUS)                                                                    \
    STATUS(WT_OK, 0, "it is done")                                                                 \
    STATUS(WT_AGAIN, 1, "the transport had no more bytes, or no more room: call again later")      \
    STATUS(WT_CLOSED, 2, "the peer ended in order (close_notify)")                                 \
    STATUS(WT_ERROR, -1, "it failed: wt_driver.error says why, on the same thread")                \
    STATUS(WT_UNSUPPORTED, -2, "the library cannot do what the configuration asks")

enum wt_status {
#define WT_STATUS_MEMBER(name, number, meaning) name = number,
    WT_STATUS_TABLE(WT_STATUS_MEMBER)
#undef WT_STATUS_MEMBER
};

/* What a transport returns beside a number of bytes. */
#define WT_IO_END 0       /* recv: no more bytes will come */
#define WT_IO_AGAIN (-1)  /* no bytes, or no room, for now: the call is to return WT_AGAIN */
#define WT_IO_BROKEN (-2) /* the connection broke off: the call is to return WT_ERROR */

/* Where a connection's bytes come from and go to. Valid until wt_driver.conn_free. */
struct wt_transport {
    void *user;
    /* Reads up to len bytes: their number (1 or more), or WT_IO_*. */
    ptrdiff_t (*recv)(void *user, void *bytes, size_t len);
    /* Takes up to len bytes: their number (1 or more), or WT_IO_AGAIN or WT_IO_BROKEN. */
    ptrdiff_t (*send)(void *user, const void *bytes, size_t len);
};

/* A PEM text; not ended by a zero byte. */
struct wt_pem {
    const char *text;
    size_t len;
};

/* By what a session is resumed (wt_config.sessions). */
enum wt_sessions {
    /* Tickets: the server keeps nothing (RFC 5077; RFC 8446 §4.6.1). */
    WT_SESSIONS_TICKETS = 0,
    /* Session IDs of TLS 1.2 (RFC 5246 §7.4.1.2), which the library's own cache knows. */
    WT_SESSIONS_CACHE = 1,
    /* The same; the server asks a store outside the library by its callbacks (wiretax_store.h). */
    WT_SESSIONS_EXTERNAL = 2
};

/* Sessions that a server's cache or store has room for: OpenSSL's default, and more than the clients of
 * one measurement keep. */
#define WT_SESSIONS_HELD 20480

/* Bytes; none where len is 0. */
struct wt_bytes {
    const unsigned char *bytes;
    size_t len;
};

/* Encrypted Client Hello (RFC 9849), in TLS 1.3 only. */
struct wt_ech {
    uint32_t size; /* bytes of this structure: new members come at its end */
    /* Client: 1 for a placeholder of no meaning (GREASE, RFC 9849 §6.2), where it has no configs. */
    uint32_t placeholder;
    /* An ECHConfigList. Client: its hello is sealed by one of these. Server: of one configuration, by which
     * it opens hellos, and which it gives to clients whose hellos it cannot open. */
    struct wt_bytes configs;
    struct wt_bytes key; /* server: that configuration's private key, the 32 bytes of X25519 */
};

/* What became of ECH (wt_facts.ech). */
enum wt_ech_answer {
    /* Nothing was sealed. A server: or it was, or looked so, and was not opened. */
    WT_ECH_NONE = 0,
    WT_ECH_ACCEPTED = 1, /* the hello that counts is the one that was sealed */
    /* Client: the server could not open it, and has authenticated as the public name (RFC 9849 §6.1.6). */
    WT_ECH_REJECTED = 2
};

/* What a context is to do. All pointers are valid during context_new only. */
struct wt_config {
    uint32_t size;           /* bytes of this structure: new members come at its end */
    uint32_t server;         /* 1 for a server, 0 for a client */
    uint32_t version;        /* 0x0303 (TLS 1.2) or 0x0304 (TLS 1.3), and no other */
    uint32_t cipher;         /* IANA number of the one cipher suite, such as 0x1301 */
    uint32_t group;          /* IANA number of the one group: 23, 29 or 0x11ec (X25519MLKEM768) */
    uint32_t signature;      /* IANA number of the one signature scheme, such as 0x0403 */
    uint32_t tickets;        /* server: how many to issue; client: whether to keep what comes */
    uint32_t certificate_group; /* the group of an ECDSA certificate's key, or 0 */
    struct wt_pem chain;     /* server: its certificates, leaf first */
    struct wt_pem key;       /* server: the leaf's private key, PKCS #8 */
    struct wt_pem roots;     /* client: the certificates that it trusts */
    const char *server_name; /* client: the name to ask for and to verify, ended by a zero byte */
    /* enum wt_sessions. Other than 0 only in TLS 1.2, and only of a driver that has WT_SESSION_CACHE or
     * WT_SESSION_STORE: one from before this member has neither, and is not asked. */
    uint32_t sessions;
    /* NULL: nothing of ECH. Else only of a driver that has WT_ECH_CLIENT or WT_ECH_SERVER. */
    const struct wt_ech *ech;
};

/* What a finished handshake has agreed on; after WT_ECH_REJECTED all but `ech` is 0. */
struct wt_facts {
    uint32_t size;    /* bytes of this structure, set by the caller */
    uint32_t version; /* 0x0303 (TLS 1.2) or 0x0304 (TLS 1.3) */
    uint32_t cipher;  /* IANA number of the cipher suite */
    uint32_t group;   /* IANA number of the group, or 0 where the library does not tell */
    uint32_t resumed; /* 1 if the library says that a session was resumed */
    uint32_t ech;     /* enum wt_ech_answer; not set by a driver without WT_ECH_CLIENT and WT_ECH_SERVER */
};

/* Functions that differ between libraries, as bits of wt_driver.functions. */
enum wt_function {
    WT_TLS_1_0 = 1 << 0,
    WT_TLS_1_1 = 1 << 1,
    WT_TLS_1_2 = 1 << 2,
    WT_TLS_1_3 = 1 << 3,
    WT_EARLY_DATA = 1 << 4,       /* an interface for 0-RTT data */
    WT_QUIC_TLS = 1 << 5,         /* an interface for QUIC stacks of others */
    WT_QUIC_TRANSPORT = 1 << 6,   /* a QUIC stack of its own (RFC 9000) */
    WT_POST_QUANTUM = 1 << 7,     /* the group X25519MLKEM768 (0x11ec) */
    WT_FIPS = 1 << 8,             /* this build has its FIPS module */
    WT_KTLS = 1 << 9,             /* kernel TLS can be asked for */
    WT_ECH = 1 << 10,             /* Encrypted Client Hello (RFC 9849), as a client at least */
    WT_SESSION_CACHE = 1 << 11,   /* WT_SESSIONS_CACHE, and as a client session IDs */
    WT_SESSION_STORE = 1 << 12,   /* WT_SESSIONS_EXTERNAL, and as a client session IDs */
    WT_ECH_CLIENT = 1 << 13,      /* wt_config.ech as a client, and ech_retry */
    WT_ECH_SERVER = 1 << 14,      /* wt_config.ech as a server, and server_name */
};

typedef struct wt_context wt_context;
typedef struct wt_conn wt_conn;
typedef struct wt_session wt_session;

struct wt_driver {
    uint32_t abi;  /* WT_ABI of the header that it was compiled with */
    uint32_t size; /* bytes of this structure */
    const char *library; /* the family, such as "OpenSSL" */
    /* The library's own version string, from the library as it runs. */
    const char *(*version)(void);
    /* The flags that the library was built with, as it tells or as the build knows them. */
    const char *(*build_flags)(void);
    /* The CPU features that the library uses, as it tells; "" where it does not. */
    const char *(*cpu_features)(void);
    /* What this build has: bits of enum wt_function. */
    uint64_t (*functions)(void);
    /* Called once, before any other function. */
    int (*init)(void);
    /* Why the last call on this thread failed: at most len bytes, ended by a zero byte. */
    void (*error)(char *text, size_t len);

    int (*context_new)(const struct wt_config *config, wt_context **context);
    void (*context_free)(wt_context *context);

    /* `session` (client only, or NULL) was taken from a connection of the same context, or of another
     * context of the same driver and configuration, and stays the caller's. */
    int (*conn_new)(wt_context *context, const struct wt_transport *transport,
                    const wt_session *session, wt_conn **conn);
    /* WT_OK when the handshake is complete on this side. A client whose ECH was rejected returns WT_ERROR,
     * never WT_OK: facts and ech_retry answer all the same. */
    int (*handshake)(wt_conn *conn);
    /* WT_OK with *done >= 1 bytes; WT_AGAIN; WT_CLOSED. */
    int (*read)(wt_conn *conn, void *bytes, size_t len, size_t *done);
    /* WT_OK with *done >= 1 bytes taken; WT_AGAIN: to be called again with the same bytes. */
    int (*write)(wt_conn *conn, const void *bytes, size_t len, size_t *done);
    /* Sends close_notify and does not wait for the peer's. Called before conn_free where a connection
     * ended in order: without it a library may forget the session as one that was cut off. */
    int (*shutdown)(wt_conn *conn);
    int (*facts)(wt_conn *conn, struct wt_facts *facts);
    /* Client: the newest session that may be resumed, once; NULL when there is none (yet). In TLS 1.3
     * it comes after the handshake: read first. */
    wt_session *(*take_session)(wt_conn *conn);
    void (*session_free)(wt_session *session);
    void (*conn_free)(wt_conn *conn);
    /* Before a thread ends that has used the driver; may be NULL. */
    void (*thread_end)(void);

    /* From here on members may be missing: a driver from before them has a smaller `size`, and others
     * may have NULL. */

    /* Client, after WT_ECH_REJECTED: the ECHConfigList that the server gave for the next connection. WT_OK with
     * its bytes in *done, 0 where it gave none; WT_ERROR where there is no room for it. */
    int (*ech_retry)(wt_conn *conn, void *bytes, size_t len, size_t *done);
    /* Server, once it has read a hello: the name that the client asks for, the inner hello's where that was
     * opened. WT_OK with its bytes in *done, 0 where it asks for none. */
    int (*server_name)(wt_conn *conn, char *text, size_t len, size_t *done);
};

/* The one symbol that a driver exports. */
const struct wt_driver *wiretax_driver(void);

#ifdef __cplusplus
}
#endif

#endif
