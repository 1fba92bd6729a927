/* The parts of NSS's shim below TLS: its types, the transport as a layer of NSPR, and PEM, which NSS
 * does not read itself. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cert.h>
#include <certt.h>
#include <keyhi.h>
#include <nspr.h>
#include <nss.h>
#include <nssb64.h>
#include <pk11pub.h>
#include <secerr.h>
#include <ssl.h>
#include <sslexp.h>
#include <sslproto.h>

#include "wiretax_driver.h"
#include "wiretax_errors.h"

#define MOST_CERTIFICATES 8

struct wt_context {
    PRFileDesc *model; /* what a connection's configuration is copied from */
    CERTCertificate *certificates[MOST_CERTIFICATES]; /* a server's chain, or a client's roots */
    size_t count;
    CERTCertList *anchors; /* a client's roots again, as the library wants them */
    SECKEYPrivateKey *key;
    int server;
    int tickets;
    char name[256];
};

struct wt_conn {
    PRFileDesc *tls;
    wt_context *context;
    struct wt_transport transport;
    int shaken; /* the handshake is over, all but what is to be sent of it */
    int closed; /* close_notify came: the peer ended in order */
    int ended;  /* the transport ended, with close_notify or without */
    wt_session *newest;
};

struct wt_session {
    unsigned len;
    PRUint8 token[];
};

static PRDescIdentity identity;
static PRIOMethods methods;

static WT_CHECKED int failed(const char *what) {
    PRErrorCode code = PR_GetError();
    const char *name = PR_ErrorToName(code);
    return wt_fail(WT_ERROR, "%s: %s (%d)", what, name == NULL ? "?" : name, code);
}

static WT_CHECKED int unsupported(const char *what) {
    return wt_fail(WT_UNSUPPORTED, "NSS has no %s", what);
}

/* ---- the transport as the lowest layer of a PRFileDesc ---- */

static PRInt32 PR_CALLBACK io_recv(PRFileDesc *fd, void *bytes, PRInt32 len, PRIntn flags,
                                   PRIntervalTime timeout) {
    wt_conn *conn = (wt_conn *)fd->secret;
    ptrdiff_t got;
    (void)flags;
    (void)timeout;
    if (len <= 0) {
        return 0;
    }
    got = conn->transport.recv(conn->transport.user, bytes, (size_t)len);
    if (got > 0) {
        return (PRInt32)got;
    }
    if (got == WT_IO_AGAIN) {
        PR_SetError(PR_WOULD_BLOCK_ERROR, 0);
        return -1;
    }
    conn->ended = 1;
    if (got == WT_IO_END) {
        return 0;
    }
    PR_SetError(PR_CONNECT_RESET_ERROR, 0);
    return -1;
}

static PRInt32 PR_CALLBACK io_send(PRFileDesc *fd, const void *bytes, PRInt32 len, PRIntn flags,
                                   PRIntervalTime timeout) {
    wt_conn *conn = (wt_conn *)fd->secret;
    ptrdiff_t sent;
    (void)flags;
    (void)timeout;
    if (len <= 0) {
        return 0;
    }
    sent = conn->transport.send(conn->transport.user, bytes, (size_t)len);
    if (sent > 0) {
        return (PRInt32)sent;
    }
    PR_SetError(sent == WT_IO_AGAIN ? PR_WOULD_BLOCK_ERROR : PR_CONNECT_RESET_ERROR, 0);
    return -1;
}

static PRInt32 PR_CALLBACK io_read(PRFileDesc *fd, void *bytes, PRInt32 len) {
    return io_recv(fd, bytes, len, 0, 0);
}

static PRInt32 PR_CALLBACK io_write(PRFileDesc *fd, const void *bytes, PRInt32 len) {
    return io_send(fd, bytes, len, 0, 0);
}

/* The library asks for an address before it shakes hands: any will do. */
static PRStatus PR_CALLBACK io_name(PRFileDesc *fd, PRNetAddr *address) {
    (void)fd;
    return PR_InitializeNetAddr(PR_IpAddrLoopback, 443, address);
}

static PRStatus PR_CALLBACK io_get_option(PRFileDesc *fd, PRSocketOptionData *data) {
    (void)fd;
    if (data->option == PR_SockOpt_Nonblocking) {
        data->value.non_blocking = PR_TRUE;
        return PR_SUCCESS;
    }
    PR_SetError(PR_INVALID_METHOD_ERROR, 0);
    return PR_FAILURE;
}

static PRStatus PR_CALLBACK io_set_option(PRFileDesc *fd, const PRSocketOptionData *data) {
    (void)fd;
    (void)data;
    return PR_SUCCESS;
}

static PRStatus PR_CALLBACK io_shutdown(PRFileDesc *fd, PRIntn how) {
    (void)fd;
    (void)how;
    return PR_SUCCESS;
}

static PRStatus PR_CALLBACK io_close(PRFileDesc *fd) {
    fd->secret = NULL;
    fd->dtor(fd);
    return PR_SUCCESS;
}

static PRFileDesc *bottom(wt_conn *conn) {
    PRFileDesc *fd = PR_CreateIOLayerStub(identity, &methods);
    if (fd != NULL) {
        fd->secret = (PRFilePrivate *)conn;
    }
    return fd;
}

/* What the transport can do; the rest stays as NSPR has it. */
static int make_layer(void) {
    identity = PR_GetUniqueIdentity("wiretax");
    methods = *PR_GetDefaultIOMethods();
    methods.recv = io_recv;
    methods.send = io_send;
    methods.read = io_read;
    methods.write = io_write;
    methods.getpeername = io_name;
    methods.getsockname = io_name;
    methods.getsocketoption = io_get_option;
    methods.setsocketoption = io_set_option;
    methods.shutdown = io_shutdown;
    methods.close = io_close;
    return identity == PR_INVALID_IO_LAYER ? failed("layer") : WT_OK;
}

/* ---- PEM ---- */

/* The next block of a PEM text between lines that hold `label`: its DER, to be freed, or 0. */
static int next_block(const struct wt_pem *pem, size_t *at, const char *label, SECItem *der) {
    static const char begin[] = "-----BEGIN ", end[] = "-----END ";
    const char *from = NULL, *to = NULL, *name;
    size_t len = strlen(label);
    for (size_t i = *at; i + sizeof end <= pem->len; i++) {
        const char *here = pem->text + i;
        if (from == NULL && i + sizeof begin - 1 + len + 5 <= pem->len &&
            memcmp(here, begin, sizeof begin - 1) == 0) {
            name = here + sizeof begin - 1;
            if (memcmp(name, label, len) == 0 && memcmp(name + len, "-----", 5) == 0) {
                from = name + len + 5;
                i += sizeof begin - 1 + len + 4;
            }
        } else if (from != NULL && memcmp(here, end, sizeof end - 1) == 0) {
            to = here;
            break;
        }
    }
    if (to == NULL) {
        return 0;
    }
    *at = (size_t)(to - pem->text);
    return NSSBase64_DecodeBuffer(NULL, der, from, (PRUint32)(to - from)) != NULL;
}
