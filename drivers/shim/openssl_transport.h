/* The interface's transport as a BIO of OpenSSL and its relatives. */
#ifndef WIRETAX_OPENSSL_TRANSPORT_H
#define WIRETAX_OPENSSL_TRANSPORT_H

#include <openssl/bio.h>

#include "wiretax_driver.h"

/* Its data is a `struct wt_transport`. */
static BIO_METHOD *bio_method;

static int bio_write(BIO *bio, const char *bytes, int len) {
    const struct wt_transport *transport = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    if (len <= 0) {
        return 0;
    }
    ptrdiff_t sent = transport->send(transport->user, bytes, (size_t)len);
    if (sent > 0) {
        return (int)sent;
    }
    if (sent == WT_IO_AGAIN) {
        BIO_set_retry_write(bio);
    }
    return -1;
}

static int bio_read(BIO *bio, char *bytes, int len) {
    const struct wt_transport *transport = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    if (len <= 0) {
        return 0;
    }
    ptrdiff_t got = transport->recv(transport->user, bytes, (size_t)len);
    if (got > 0) {
        return (int)got;
    }
    if (got == WT_IO_AGAIN) {
        BIO_set_retry_read(bio);
        return -1;
    }
    return got == WT_IO_END ? 0 : -1;
}

static long bio_ctrl(BIO *bio, int command, long number, void *pointer) {
    (void)bio;
    (void)number;
    (void)pointer;
    return command == BIO_CTRL_FLUSH;
}

static int bio_create(BIO *bio) {
    BIO_set_init(bio, 1);
    return 1;
}

static int bio_destroy(BIO *bio) {
    return bio != NULL;
}

/* Once, before the first BIO. */
static int make_bio_method(void) {
    bio_method = BIO_meth_new(BIO_TYPE_SOURCE_SINK | 100, "wiretax");
    return bio_method != NULL && BIO_meth_set_write(bio_method, bio_write) == 1 &&
           BIO_meth_set_read(bio_method, bio_read) == 1 &&
           BIO_meth_set_ctrl(bio_method, bio_ctrl) == 1 &&
           BIO_meth_set_create(bio_method, bio_create) == 1 &&
           BIO_meth_set_destroy(bio_method, bio_destroy) == 1;
}

#endif
