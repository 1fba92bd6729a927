/*
 * GnuTLS's handshakes by GnuTLS alone, client and server in one thread over memory: what `gnutls-cli
 * --benchmark-tls-kx` does, and the same with what `wiretax stacks` has beside it, a certificate that is
 * verified and a ticket that is issued and kept. For scripts/compare-speed.sh.
 *
 *   compare-speed-gnutls plain|same COUNT
 *
 * Prints the CPU time of one handshake in microseconds, both sides together: TLS 1.3, ECDSA P-256, X25519,
 * AES-128-GCM.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

#define NAME "server.example"
#define PRIORITY                                                                                           \
    "NONE:+VERS-TLS1.3:+AES-128-GCM:+GROUP-X25519:+AEAD:+SIGN-ECDSA-SHA256:+SIGN-ECDSA-SECP256R1-SHA256:"  \
    "+COMP-NULL:+CTYPE-X509:%SERVER_PRECEDENCE"

/* Bytes under way in one direction. */
struct way {
    unsigned char bytes[1 << 14];
    size_t read, written;
};

struct end {
    gnutls_session_t tls;
    struct way *in, *out;
};

struct setup {
    gnutls_certificate_credentials_t server, client;
    gnutls_priority_t priority;
    gnutls_datum_t ticket_key;
};

/* Ends the program where a call of the library failed. */
static void must(const char *what, int code) {
    if (code < 0) {
        fprintf(stderr, "error: %s: %s\n", what, gnutls_strerror(code));
        exit(1);
    }
}

static ssize_t pull(gnutls_transport_ptr_t user, void *bytes, size_t len) {
    struct end *end = user;
    struct way *in = end->in;
    size_t there = in->written - in->read;
    if (there == 0) {
        gnutls_transport_set_errno(end->tls, EAGAIN);
        return -1;
    }
    len = len < there ? len : there;
    memcpy(bytes, in->bytes + in->read, len);
    in->read += len;
    if (in->read == in->written) {
        in->read = in->written = 0;
    }
    return (ssize_t)len;
}

static ssize_t push(gnutls_transport_ptr_t user, const void *bytes, size_t len) {
    struct end *end = user;
    struct way *out = end->out;
    size_t room = sizeof out->bytes - out->written;
    if (room == 0) {
        gnutls_transport_set_errno(end->tls, EAGAIN);
        return -1;
    }
    len = len < room ? len : room;
    memcpy(out->bytes + out->written, bytes, len);
    out->written += len;
    return (ssize_t)len;
}

static gnutls_x509_privkey_t new_key(void) {
    gnutls_x509_privkey_t key;
    must("key", gnutls_x509_privkey_init(&key));
    must("key", gnutls_x509_privkey_generate(key, GNUTLS_PK_ECDSA,
                                             GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0));
    return key;
}

/* A certificate for a key: a root's own, or one that `issuer` signs. */
static gnutls_x509_crt_t certificate(gnutls_x509_privkey_t key, gnutls_x509_crt_t issuer,
                                     gnutls_x509_privkey_t issuer_key) {
    gnutls_x509_crt_t made;
    unsigned char serial = issuer == NULL ? 1 : 2;
    time_t now = time(NULL);
    must("certificate", gnutls_x509_crt_init(&made));
    must("version", gnutls_x509_crt_set_version(made, 3));
    must("serial", gnutls_x509_crt_set_serial(made, &serial, 1));
    must("time", gnutls_x509_crt_set_activation_time(made, now - 3600));
    must("time", gnutls_x509_crt_set_expiration_time(made, now + 86400));
    must("subject", gnutls_x509_crt_set_dn(made, issuer == NULL ? "CN=root" : "CN=server", NULL));
    must("key", gnutls_x509_crt_set_key(made, key));
    must("constraints", gnutls_x509_crt_set_basic_constraints(made, issuer == NULL, -1));
    if (issuer != NULL) {
        must("name", gnutls_x509_crt_set_subject_alt_name(made, GNUTLS_SAN_DNSNAME, NAME, strlen(NAME),
                                                          GNUTLS_FSAN_SET));
    }
    must("signature", gnutls_x509_crt_sign2(made, issuer == NULL ? made : issuer, issuer_key,
                                            GNUTLS_DIG_SHA256, 0));
    return made;
}

static struct setup set_up(void) {
    struct setup setup;
    gnutls_x509_privkey_t root_key = new_key(), key = new_key();
    gnutls_x509_crt_t root = certificate(root_key, NULL, root_key);
    gnutls_x509_crt_t leaf = certificate(key, root, root_key);
    must("credentials", gnutls_certificate_allocate_credentials(&setup.server));
    must("credentials", gnutls_certificate_allocate_credentials(&setup.client));
    must("identity", gnutls_certificate_set_x509_key(setup.server, &leaf, 1, key));
    must("trust", gnutls_certificate_set_x509_trust(setup.client, &root, 1));
    must("priority", gnutls_priority_init(&setup.priority, PRIORITY, NULL));
    must("ticket key", gnutls_session_ticket_key_generate(&setup.ticket_key));
    return setup;
}

/* One end of a connection, with tickets where both have `more`. */
static void open_end(struct end *end, const struct setup *setup, unsigned side, int more) {
    unsigned flags = side | GNUTLS_NONBLOCK | (more ? 0 : GNUTLS_NO_TICKETS);
    int is_server = side == GNUTLS_SERVER;
    flags |= is_server ? GNUTLS_NO_AUTO_SEND_TICKET : 0;
    must("session", gnutls_init(&end->tls, flags));
    must("priority", gnutls_priority_set(end->tls, setup->priority));
    must("credentials", gnutls_credentials_set(end->tls, GNUTLS_CRD_CERTIFICATE,
                                               is_server ? setup->server : setup->client));
    gnutls_transport_set_ptr(end->tls, end);
    gnutls_transport_set_pull_function(end->tls, pull);
    gnutls_transport_set_push_function(end->tls, push);
    gnutls_handshake_set_timeout(end->tls, GNUTLS_INDEFINITE_TIMEOUT);
}

/* Both sides in turn until their handshakes are over. */
static void shake_hands(struct end *client, struct end *server) {
    int of_client = GNUTLS_E_AGAIN, of_server = GNUTLS_E_AGAIN, turn;
    for (turn = 0; turn < 10 && (of_client != 0 || of_server != 0); turn++) {
        of_client = of_client == 0 ? 0 : gnutls_handshake(client->tls);
        of_server = of_server == 0 ? 0 : gnutls_handshake(server->tls);
        must("client", of_client == GNUTLS_E_AGAIN ? 0 : of_client);
        must("server", of_server == GNUTLS_E_AGAIN ? 0 : of_server);
    }
    must("handshake", of_client);
    must("handshake", of_server);
}

/* The server issues a ticket, and the client keeps it. */
static void pass_ticket(struct end *client, struct end *server) {
    gnutls_datum_t kept = {NULL, 0};
    char byte;
    must("ticket", gnutls_session_ticket_send(server->tls, 1, 0));
    if (gnutls_record_recv(client->tls, &byte, 1) != GNUTLS_E_AGAIN ||
        !(gnutls_session_get_flags(client->tls) & GNUTLS_SFLAGS_SESSION_TICKET)) {
        fprintf(stderr, "error: no ticket came\n");
        exit(1);
    }
    must("session", gnutls_session_get_data2(client->tls, &kept));
    gnutls_free(kept.data);
}

static void connect_once(const struct setup *setup, int more) {
    static struct way up, down;
    struct end client = {NULL, &down, &up}, server = {NULL, &up, &down};
    up.read = up.written = down.read = down.written = 0;
    open_end(&server, setup, GNUTLS_SERVER, more);
    open_end(&client, setup, GNUTLS_CLIENT, more);
    must("name", gnutls_server_name_set(client.tls, GNUTLS_NAME_DNS, NAME, strlen(NAME)));
    if (more) {
        must("ticket", gnutls_session_ticket_enable_server(server.tls, &setup->ticket_key));
        gnutls_session_set_verify_cert(client.tls, NAME, 0);
    }
    shake_hands(&client, &server);
    if (more) {
        pass_ticket(&client, &server);
    }
    gnutls_deinit(client.tls);
    gnutls_deinit(server.tls);
}

int main(int count, char **words) {
    int more = count == 3 && strcmp(words[1], "same") == 0;
    long times = count == 3 ? atol(words[2]) : 0;
    struct setup setup;
    clock_t begun;
    long at;
    if (times < 1 || (!more && strcmp(words[1], "plain") != 0)) {
        fprintf(stderr, "usage: compare-speed-gnutls plain|same COUNT\n");
        return 2;
    }
    setup = set_up();
    begun = clock();
    for (at = 0; at < times; at++) {
        connect_once(&setup, more);
    }
    printf("%.1f\n", (double)(clock() - begun) * 1e6 / CLOCKS_PER_SEC / (double)times);
    return 0;
}
