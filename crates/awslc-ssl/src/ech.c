/* What the crate `tls` calls: handshakes of AWS-LC with Encrypted Client Hello, TLS 1.3 alone, in memory. Every function
 * returns 1 or a pointer when it is done, 0 or NULL when it is not: wiretax_ech_error says why. */
#include <string.h>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/hpke.h>
#include <openssl/mem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#define SUITE "TLS_AES_128_GCM_SHA256"

/* What a step of a handshake came to. */
enum { STEP_FAILED = -1, STEP_MORE = 0, STEP_DONE = 1, STEP_ECH_REJECTED = 2 };

/* Why the last call on this thread failed: at most len bytes, ended by a zero byte. */
void wiretax_ech_error(char *text, size_t len);
void wiretax_ech_error(char *text, size_t len) {
    ERR_error_string_n(ERR_peek_last_error(), text, len);
    ERR_clear_error();
}

void wiretax_ech_free(uint8_t *bytes);
void wiretax_ech_free(uint8_t *bytes) {
    OPENSSL_free(bytes);
}

/* A new key (X25519, HKDF-SHA256) with its ECHConfig, also as the ECHConfigList of this one, to be freed. */
SSL_ECH_KEYS *wiretax_ech_keys_new(uint8_t number, const char *public_name, size_t longest_name,
                                   uint8_t **list, size_t *list_len);
SSL_ECH_KEYS *wiretax_ech_keys_new(uint8_t number, const char *public_name, size_t longest_name,
                                   uint8_t **list, size_t *list_len) {
    SSL_ECH_KEYS *keys = SSL_ECH_KEYS_new();
    EVP_HPKE_KEY *key = EVP_HPKE_KEY_new();
    uint8_t *config = NULL;
    size_t config_len = 0;
    int done = keys != NULL && key != NULL &&
               EVP_HPKE_KEY_generate(key, EVP_hpke_x25519_hkdf_sha256()) == 1 &&
               SSL_marshal_ech_config(&config, &config_len, number, key, public_name,
                                      longest_name) == 1 &&
               SSL_ECH_KEYS_add(keys, 1, config, config_len, key) == 1 &&
               SSL_ECH_KEYS_marshal_retry_configs(keys, list, list_len) == 1;
    OPENSSL_free(config);
    EVP_HPKE_KEY_free(key);
    if (!done) {
        SSL_ECH_KEYS_free(keys);
        return NULL;
    }
    return keys;
}

void wiretax_ech_keys_free(SSL_ECH_KEYS *keys);
void wiretax_ech_keys_free(SSL_ECH_KEYS *keys) {
    SSL_ECH_KEYS_free(keys);
}

static SSL_CTX *context(const char *groups) {
    SSL_CTX *made = SSL_CTX_new(TLS_method());
    if (made == NULL || SSL_CTX_set_min_proto_version(made, TLS1_3_VERSION) != 1 ||
        SSL_CTX_set_max_proto_version(made, TLS1_3_VERSION) != 1 ||
        SSL_CTX_set_ciphersuites(made, SUITE) != 1 ||
        SSL_CTX_set1_groups_list(made, groups) != 1) {
        SSL_CTX_free(made);
        return NULL;
    }
    /* Nothing is resumed, nothing issued. */
    SSL_CTX_set_session_cache_mode(made, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_options(made, SSL_OP_NO_TICKET);
    return made;
}

/* A server: its leaf, whose private key (PKCS #8) may be of any type, and the rest of its chain by wiretax_ech_add. */
SSL_CTX *wiretax_ech_server(const char *groups, const uint8_t *leaf, size_t leaf_len,
                            const uint8_t *key, size_t key_len, SSL_ECH_KEYS *keys);
SSL_CTX *wiretax_ech_server(const char *groups, const uint8_t *leaf, size_t leaf_len,
                            const uint8_t *key, size_t key_len, SSL_ECH_KEYS *keys) {
    SSL_CTX *made = context(groups);
    CBS pkcs8;
    EVP_PKEY *signs;
    CBS_init(&pkcs8, key, key_len);
    signs = EVP_parse_private_key(&pkcs8);
    if (made == NULL || signs == NULL ||
        SSL_CTX_use_certificate_ASN1(made, leaf_len, leaf) != 1 ||
        SSL_CTX_use_PrivateKey(made, signs) != 1 ||
        (keys != NULL && SSL_CTX_set1_ech_keys(made, keys) != 1)) {
        EVP_PKEY_free(signs);
        SSL_CTX_free(made);
        return NULL;
    }
    EVP_PKEY_free(signs);
    return made;
}

/* A client, which trusts what wiretax_ech_add adds. */
SSL_CTX *wiretax_ech_client(const char *groups);
SSL_CTX *wiretax_ech_client(const char *groups) {
    SSL_CTX *made = context(groups);
    if (made != NULL) {
        SSL_CTX_set_verify(made, SSL_VERIFY_PEER, NULL);
    }
    return made;
}

/* A certificate: to a server's chain, or to what a client trusts. */
int wiretax_ech_add(SSL_CTX *to, int is_server, const uint8_t *certificate, size_t len);
int wiretax_ech_add(SSL_CTX *to, int is_server, const uint8_t *certificate, size_t len) {
    const uint8_t *at = certificate;
    X509 *read = d2i_X509(NULL, &at, (long)len);
    int done = read != NULL &&
               (is_server ? SSL_CTX_add1_chain_cert(to, read)
                          : X509_STORE_add_cert(SSL_CTX_get_cert_store(to), read)) == 1;
    X509_free(read);
    return done;
}

void wiretax_ech_context_free(SSL_CTX *context);
void wiretax_ech_context_free(SSL_CTX *context) {
    SSL_CTX_free(context);
}

/* A connection whose bytes come and go by wiretax_ech_feed and _take. */
static SSL *connection(SSL_CTX *of) {
    SSL *made = SSL_new(of);
    BIO *in = BIO_new(BIO_s_mem());
    BIO *out = BIO_new(BIO_s_mem());
    if (made == NULL || in == NULL || out == NULL) {
        BIO_free(in);
        BIO_free(out);
        SSL_free(made);
        return NULL;
    }
    /* What is not there yet is no end. */
    BIO_set_mem_eof_return(in, -1);
    SSL_set_bio(made, in, out);
    return made;
}

SSL *wiretax_ech_accept(SSL_CTX *of);
SSL *wiretax_ech_accept(SSL_CTX *of) {
    SSL *made = connection(of);
    if (made != NULL) {
        SSL_set_accept_state(made);
    }
    return made;
}

/* With this ECHConfigList; without one, with a placeholder or without ECH. */
SSL *wiretax_ech_connect(SSL_CTX *of, const char *name, const uint8_t *list, size_t list_len,
                         int placeholder);
SSL *wiretax_ech_connect(SSL_CTX *of, const char *name, const uint8_t *list, size_t list_len,
                         int placeholder) {
    SSL *made = connection(of);
    if (made == NULL || SSL_set_tlsext_host_name(made, name) != 1 ||
        SSL_set1_host(made, name) != 1 ||
        (list != NULL && SSL_set1_ech_config_list(made, list, list_len) != 1)) {
        SSL_free(made);
        return NULL;
    }
    SSL_set_enable_ech_grease(made, placeholder);
    SSL_set_connect_state(made);
    return made;
}

void wiretax_ech_connection_free(SSL *connection);
void wiretax_ech_connection_free(SSL *connection) {
    SSL_free(connection);
}

/* Bytes from the peer. */
int wiretax_ech_feed(SSL *connection, const uint8_t *bytes, size_t len);
int wiretax_ech_feed(SSL *connection, const uint8_t *bytes, size_t len) {
    return len <= 1 << 20 && BIO_write(SSL_get_rbio(connection), bytes, (int)len) == (int)len;
}

/* Bytes for the peer, at most len; their number. */
size_t wiretax_ech_take(SSL *connection, uint8_t *bytes, size_t len);
size_t wiretax_ech_take(SSL *connection, uint8_t *bytes, size_t len) {
    int taken = BIO_read(SSL_get_wbio(connection), bytes, len > 1 << 20 ? 1 << 20 : (int)len);
    return taken > 0 ? (size_t)taken : 0;
}

/* Goes on with the handshake. */
int wiretax_ech_step(SSL *connection);
int wiretax_ech_step(SSL *connection) {
    int result;
    uint32_t code;
    ERR_clear_error();
    result = SSL_do_handshake(connection);
    if (result == 1) {
        return STEP_DONE;
    }
    if (SSL_get_error(connection, result) == SSL_ERROR_WANT_READ) {
        return STEP_MORE;
    }
    code = ERR_peek_last_error();
    return ERR_GET_LIB(code) == ERR_LIB_SSL && ERR_GET_REASON(code) == SSL_R_ECH_REJECTED
               ? STEP_ECH_REJECTED
               : STEP_FAILED;
}

int wiretax_ech_accepted(const SSL *connection);
int wiretax_ech_accepted(const SSL *connection) {
    return SSL_ech_accepted(connection);
}

/* A server: the name that the client asks for, or NULL. */
const char *wiretax_ech_name(const SSL *connection);
const char *wiretax_ech_name(const SSL *connection) {
    return SSL_get_servername(connection, TLSEXT_NAMETYPE_host_name);
}

/* A client, after STEP_ECH_REJECTED and then alone: the ECHConfigList that the server gave, valid as long as the connection. */
const uint8_t *wiretax_ech_retry(const SSL *connection, size_t *len);
const uint8_t *wiretax_ech_retry(const SSL *connection, size_t *len) {
    const uint8_t *list = NULL;
    SSL_get0_ech_retry_configs(connection, &list, len);
    return list;
}
