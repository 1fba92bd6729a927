/* NSS as a driver. Its ticket keys are the process's, not a context's: it offers no other way. */
#include "nss.h"

/* ---- what the library says of itself ---- */

static const char *version(void) {
    return NSS_GetVersion();
}

static const char *build_flags(void) {
    return WT_BUILD_FLAGS;
}

/* The library does not tell what it found. */
static const char *cpu_features(void) {
    return "";
}

/* X25519MLKEM768 came with this version; a group that it does not know the library leaves out. */
static int has_hybrid(void) {
    return NSS_VersionCheck("3.105") == PR_TRUE;
}

static uint64_t functions(void) {
    uint64_t has = WT_EARLY_DATA;
    SSLVersionRange range = {0, 0};
    int known = SSL_VersionRangeGetSupported(ssl_variant_stream, &range) == SECSuccess;
    for (PRUint16 number = 0x0301; number <= 0x0304; number++) {
        if (known && range.min <= number && number <= range.max) {
            has |= (uint64_t)WT_TLS_1_0 << (number - 0x0301);
        }
    }
    has |= has_hybrid() ? (uint64_t)WT_POST_QUANTUM : 0;
    has |= PK11_IsFIPS() ? (uint64_t)WT_FIPS : 0;
    /* SSL_SecretCallback and SSL_RecordLayerWriteCallback; SSL_SetClientEchConfigs. */
    has |= WT_QUIC_TLS | WT_ECH;
    return has;
}

static int init(void) {
    if (NSS_NoDB_Init(NULL) != SECSuccess || NSS_SetDomesticPolicy() != SECSuccess) {
        return failed("NSS_NoDB_Init");
    }
    return make_layer();
}

/* ---- contexts ---- */

static int read_certificates(wt_context *context, const struct wt_pem *pem) {
    SECItem der = {siBuffer, NULL, 0};
    size_t at = 0;
    while (context->count < MOST_CERTIFICATES && next_block(pem, &at, "CERTIFICATE", &der)) {
        CERTCertificate *made =
            CERT_NewTempCertificate(CERT_GetDefaultCertDB(), &der, NULL, PR_FALSE, PR_TRUE);
        SECITEM_FreeItem(&der, PR_FALSE);
        if (made == NULL) {
            return failed("certificate");
        }
        context->certificates[context->count++] = made;
    }
    if (context->count == 0) {
        PR_SetError(SEC_ERROR_BAD_DER, 0);
        return failed("certificates");
    }
    return WT_OK;
}

static int read_key(wt_context *context, const struct wt_pem *pem) {
    SECItem der = {siBuffer, NULL, 0};
    size_t at = 0;
    PK11SlotInfo *slot = PK11_GetInternalKeySlot();
    SECStatus done = SECFailure;
    if (slot != NULL && next_block(pem, &at, "PRIVATE KEY", &der)) {
        done = PK11_ImportDERPrivateKeyInfoAndReturnKey(slot, &der, NULL, NULL, PR_FALSE, PR_FALSE,
                                                        KU_ALL, &context->key, NULL);
        SECITEM_ZfreeItem(&der, PR_FALSE);
    } else {
        PR_SetError(SEC_ERROR_BAD_DER, 0);
    }
    if (slot != NULL) {
        PK11_FreeSlot(slot);
    }
    return done == SECSuccess ? WT_OK : failed("private key");
}

static int set_suite(PRFileDesc *model, uint32_t suite) {
    const PRUint16 *known = SSL_GetImplementedCiphers();
    int found = 0;
    for (PRUint16 at = 0; at < SSL_GetNumImplementedCiphers(); at++) {
        /* One that stayed on would be offered beside what is pinned. */
        if (SSL_CipherPrefSet(model, known[at], known[at] == suite) != SECSuccess) {
            return failed("cipher suites");
        }
        found |= known[at] == suite;
    }
    return found ? WT_OK : unsupported("such cipher suite");
}

static int set_groups(PRFileDesc *model, const struct wt_config *config) {
    SSLNamedGroup groups[2] = {(SSLNamedGroup)config->group,
                               (SSLNamedGroup)config->certificate_group};
    /* In TLS 1.2 the list also says which curve a certificate may have (RFC 8422 §5.1). */
    unsigned count = config->version == 0x0303 && config->certificate_group != 0 &&
                             config->certificate_group != config->group
                         ? 2
                         : 1;
    if (config->group != 23 && config->group != 29 &&
        (config->group != 0x11ec || config->version == 0x0303 || !has_hybrid())) {
        return unsupported("such group");
    }
    return SSL_NamedGroupConfig(model, groups, count) == SECSuccess ? WT_OK
                                                                    : unsupported("such group");
}

static int set_signature(PRFileDesc *model, uint32_t signature) {
    /* PKCS #1 is for peers without PSS in TLS 1.2. */
    static const SSLSignatureScheme rsa[] = {ssl_sig_rsa_pss_rsae_sha256, ssl_sig_rsa_pkcs1_sha256};
    static const SSLSignatureScheme ecdsa[] = {ssl_sig_ecdsa_secp256r1_sha256};
    SECStatus done;
    switch (signature) {
    case 0x0804: done = SSL_SignatureSchemePrefSet(model, rsa, 2); break;
    case 0x0403: done = SSL_SignatureSchemePrefSet(model, ecdsa, 1); break;
    default: return unsupported("such signature scheme");
    }
    return done == SECSuccess ? WT_OK : unsupported("such signature scheme");
}

static int pin(wt_context *context, const struct wt_config *config) {
    SSLVersionRange range = {(PRUint16)config->version, (PRUint16)config->version};
    PRFileDesc *model = context->model;
    int done;
    if ((config->version != 0x0303 && config->version != 0x0304) ||
        SSL_VersionRangeSet(model, &range) != SECSuccess) {
        return unsupported("such version");
    }
    if ((done = set_suite(model, config->cipher)) != WT_OK ||
        (done = set_groups(model, config)) != WT_OK ||
        (done = set_signature(model, config->signature)) != WT_OK) {
        return done;
    }
    if (SSL_OptionSet(model, SSL_SECURITY, PR_TRUE) != SECSuccess ||
        SSL_OptionSet(model, SSL_HANDSHAKE_AS_SERVER, context->server) != SECSuccess ||
        SSL_OptionSet(model, SSL_HANDSHAKE_AS_CLIENT, !context->server) != SECSuccess ||
        SSL_OptionSet(model, SSL_ENABLE_SESSION_TICKETS, context->tickets) != SECSuccess ||
        SSL_OptionSet(model, SSL_NO_CACHE, context->server || !context->tickets) != SECSuccess ||
        SSL_OptionSet(model, SSL_ENABLE_EXTENDED_MASTER_SECRET, PR_TRUE) != SECSuccess ||
        SSL_OptionSet(model, SSL_ENABLE_FALSE_START, PR_FALSE) != SECSuccess ||
        SSL_OptionSet(model, SSL_ENABLE_OCSP_STAPLING, PR_FALSE) != SECSuccess) {
        return failed("options");
    }
    return WT_OK;
}

/* Whether the key is the first certificate's: the library checks no such thing. */
static int key_fits(wt_context *context) {
    SECKEYPublicKey *of_certificate = CERT_ExtractPublicKey(context->certificates[0]);
    SECKEYPublicKey *of_key = SECKEY_ConvertToPublicKey(context->key);
    int fits = 0;
    if (of_certificate != NULL && of_key != NULL && of_certificate->keyType == of_key->keyType) {
        fits = of_key->keyType == rsaKey
                   ? SECITEM_ItemsAreEqual(&of_certificate->u.rsa.modulus, &of_key->u.rsa.modulus)
                   : SECITEM_ItemsAreEqual(&of_certificate->u.ec.publicValue,
                                           &of_key->u.ec.publicValue);
    }
    SECKEY_DestroyPublicKey(of_certificate);
    SECKEY_DestroyPublicKey(of_key);
    return fits;
}

static int set_identity(wt_context *context, const struct wt_config *config) {
    SECItem ders[MOST_CERTIFICATES];
    CERTCertificateList chain = {ders, 0, NULL};
    SSLExtraServerCertData more = {ssl_auth_null, &chain, NULL, NULL, NULL, NULL};
    int done;
    if ((done = read_certificates(context, &config->chain)) != WT_OK ||
        (done = read_key(context, &config->key)) != WT_OK) {
        return done;
    }
    if (!key_fits(context)) {
        PR_SetError(SEC_ERROR_BAD_KEY, 0);
        return failed("private key of this certificate");
    }
    for (size_t at = 0; at < context->count; at++) {
        ders[at] = context->certificates[at]->derCert;
    }
    chain.len = (int)context->count;
    if (SSL_ConfigServerCert(context->model, context->certificates[0], context->key, &more,
                             sizeof more) != SECSuccess) {
        return failed("certificate and key");
    }
    return WT_OK;
}

static int set_trust(wt_context *context, const struct wt_config *config) {
    int done = read_certificates(context, &config->roots);
    if (done != WT_OK) {
        return done;
    }
    if (wt_copy(context->name, sizeof context->name, config->server_name) != 0) {
        return unsupported("name of this length");
    }
    context->anchors = CERT_NewCertList();
    if (context->anchors == NULL) {
        return failed("roots");
    }
    for (size_t at = 0; at < context->count; at++) {
        CERTCertificate *root = CERT_DupCertificate(context->certificates[at]);
        if (CERT_AddCertToListTail(context->anchors, root) != SECSuccess) {
            CERT_DestroyCertificate(root);
            return failed("roots");
        }
    }
    return WT_OK;
}

static void context_free(wt_context *context) {
    if (context == NULL) {
        return;
    }
    if (context->model != NULL) {
        /* Nothing was ever open below it. */
        (void)PR_Close(context->model);
    }
    if (context->anchors != NULL) {
        CERT_DestroyCertList(context->anchors);
    }
    if (context->key != NULL) {
        SECKEY_DestroyPrivateKey(context->key);
    }
    for (size_t at = 0; at < context->count; at++) {
        CERT_DestroyCertificate(context->certificates[at]);
    }
    free(context);
}

static int context_new(const struct wt_config *config, wt_context **made) {
    wt_context *context;
    PRFileDesc *lowest;
    int done;
    wt_forget();
    if (config->size < sizeof *config ||
        (!config->server && strlen(config->server_name) >= sizeof context->name)) {
        return unsupported("such configuration");
    }
    if (config->server && config->tickets > 1) {
        return unsupported("more than one ticket a handshake");
    }
    context = calloc(1, sizeof *context);
    lowest = bottom(NULL);
    if (context == NULL || lowest == NULL) {
        free(context);
        return failed("context");
    }
    context->server = config->server != 0;
    context->tickets = config->tickets != 0;
    context->model = SSL_ImportFD(NULL, lowest);
    if (context->model == NULL) {
        done = failed("context");
        /* Freed; the reason above is the one that counts. */
        (void)PR_Close(lowest);
    } else {
        done = pin(context, config);
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

/* Verifies the server's chain against the context's roots, and its name, by the library's own path
 * validation; revocation is not looked at. */
static SECStatus PR_CALLBACK verify(void *user, PRFileDesc *fd, PRBool check, PRBool is_server) {
    wt_conn *conn = user;
    CERTCertificate *leaf = SSL_PeerCertificate(fd);
    CERTCertList *chain = SSL_PeerCertificateChain(fd);
    /* Path validation wants to be told what not to look at. */
    PRUint64 untested[2] = {CERT_REV_M_DO_NOT_TEST_USING_THIS_METHOD,
                            CERT_REV_M_DO_NOT_TEST_USING_THIS_METHOD};
    const CERTRevocationTests tests = {2, untested, 0, NULL, 0};
    const CERTRevocationFlags revocation = {tests, tests};
    CERTValInParam in[4];
    CERTValOutParam out[1];
    SECStatus done = SECFailure;
    (void)check;
    (void)is_server;
    memset(in, 0, sizeof in);
    in[0].type = cert_pi_trustAnchors;
    in[0].value.pointer.chain = conn->context->anchors;
    in[1].type = cert_pi_useOnlyTrustAnchors;
    in[1].value.scalar.b = PR_TRUE;
    in[2].type = cert_pi_revocationFlags;
    in[2].value.pointer.revocation = &revocation;
    in[3].type = cert_pi_end;
    out[0].type = cert_po_end;
    if (leaf != NULL && chain != NULL) {
        done = CERT_PKIXVerifyCert(leaf, certificateUsageSSLServer, in, out, NULL);
        if (done == SECSuccess) {
            done = CERT_VerifyCertName(leaf, conn->context->name);
        }
    }
    if (chain != NULL) {
        CERT_DestroyCertList(chain);
    }
    if (leaf != NULL) {
        CERT_DestroyCertificate(leaf);
    }
    return done;
}

/* The newest session; called when a ticket has come. */
static SECStatus PR_CALLBACK keep_token(PRFileDesc *fd, const PRUint8 *token, unsigned len,
                                        void *user) {
    wt_conn *conn = user;
    wt_session *session = malloc(sizeof *session + len);
    (void)fd;
    if (session == NULL) {
        return SECFailure;
    }
    session->len = len;
    memcpy(session->token, token, len);
    free(conn->newest);
    conn->newest = session;
    return SECSuccess;
}

static void PR_CALLBACK note_alert(const PRFileDesc *fd, void *user, const SSLAlert *alert) {
    wt_conn *conn = user;
    (void)fd;
    conn->closed |= alert->description == 0; /* close_notify */
}

static void session_free(wt_session *session) {
    if (session != NULL) {
        memset(session->token, 0, session->len);
        free(session);
    }
}

static void conn_free(wt_conn *conn) {
    if (conn != NULL) {
        if (conn->tls != NULL) {
            /* The transport is the caller's: to close says nothing of it. */
            (void)PR_Close(conn->tls);
        }
        session_free(conn->newest);
        free(conn);
    }
}

static int prepare(wt_context *context, wt_conn *conn, const wt_session *session) {
    if (SSL_AlertReceivedCallback(conn->tls, note_alert, conn) != SECSuccess) {
        return failed("connection");
    }
    if (!context->server) {
        if (SSL_AuthCertificateHook(conn->tls, verify, conn) != SECSuccess ||
            SSL_SetURL(conn->tls, context->name) != SECSuccess) {
            return failed("connection");
        }
        /* With it the library keeps no sessions of its own. */
        if (context->tickets &&
            SSL_SetResumptionTokenCallback(conn->tls, keep_token, conn) != SECSuccess) {
            return failed("sessions");
        }
    }
    if (SSL_ResetHandshake(conn->tls, context->server) != SECSuccess) {
        return failed("connection");
    }
    if (session != NULL &&
        SSL_SetResumptionToken(conn->tls, session->token, session->len) != SECSuccess) {
        return failed("session");
    }
    return WT_OK;
}

static int conn_new(wt_context *context, const struct wt_transport *transport,
                    const wt_session *session, wt_conn **made) {
    PRFileDesc *lowest;
    int done;
    wt_conn *conn = calloc(1, sizeof *conn);
    wt_forget();
    if (conn == NULL) {
        return failed("connection");
    }
    conn->transport = *transport;
    conn->context = context;
    lowest = bottom(conn);
    conn->tls = lowest == NULL ? NULL : SSL_ImportFD(context->model, lowest);
    if (conn->tls == NULL) {
        done = failed("connection");
        if (lowest != NULL) {
            /* Freed; the reason above is the one that counts. */
            (void)PR_Close(lowest);
        }
    } else {
        done = prepare(context, conn, session);
    }
    if (done != WT_OK) {
        conn_free(conn);
        return done;
    }
    *made = conn;
    return WT_OK;
}

/* What a call that did not succeed means. */
static int outcome(wt_conn *conn, const char *what) {
    if (PR_GetError() == PR_WOULD_BLOCK_ERROR) {
        return WT_AGAIN;
    }
    if (conn->ended && PR_GetError() == PR_END_OF_FILE_ERROR) {
        return wt_fail(WT_ERROR, "%s: the transport ended without close_notify", what);
    }
    return failed(what);
}

/* The library counts as sent what it has only saved: an empty write sends that. */
static int flush(wt_conn *conn, const char *what) {
    return PR_Send(conn->tls, "", 0, 0, PR_INTERVAL_NO_TIMEOUT) >= 0 ? WT_OK : outcome(conn, what);
}

static int handshake(wt_conn *conn) {
    wt_forget();
    if (!conn->shaken) {
        if (SSL_ForceHandshake(conn->tls) != SECSuccess) {
            return outcome(conn, "handshake");
        }
        conn->shaken = 1;
    }
    return flush(conn, "handshake");
}

static PRInt32 clamp(size_t len) {
    return len > 1 << 20 ? 1 << 20 : (PRInt32)len;
}

static int conn_read(wt_conn *conn, void *bytes, size_t len, size_t *done) {
    PRInt32 got;
    wt_forget();
    got = PR_Recv(conn->tls, bytes, clamp(len), 0, PR_INTERVAL_NO_TIMEOUT);
    *done = got > 0 ? (size_t)got : 0;
    if (got > 0) {
        return WT_OK;
    }
    if (got < 0) {
        return outcome(conn, "read");
    }
    if (conn->closed) {
        return WT_CLOSED;
    }
    return wt_fail(WT_ERROR, "read: the transport ended without close_notify");
}

static int conn_write(wt_conn *conn, const void *bytes, size_t len, size_t *done) {
    PRInt32 sent;
    wt_forget();
    sent = PR_Send(conn->tls, bytes, clamp(len), 0, PR_INTERVAL_NO_TIMEOUT);
    *done = sent > 0 ? (size_t)sent : 0;
    if (sent > 0) {
        return WT_OK;
    }
    return sent == 0 ? WT_AGAIN : outcome(conn, "write");
}

static int conn_shutdown(wt_conn *conn) {
    wt_forget();
    return PR_Shutdown(conn->tls, PR_SHUTDOWN_SEND) == PR_SUCCESS ? WT_OK
                                                                  : outcome(conn, "shutdown");
}

static int facts(wt_conn *conn, struct wt_facts *told) {
    SSLChannelInfo info;
    if (told->size < sizeof *told ||
        SSL_GetChannelInfo(conn->tls, &info, sizeof info) != SECSuccess) {
        return failed("facts");
    }
    told->version = info.protocolVersion;
    told->cipher = info.cipherSuite;
    told->group = info.keaGroup == ssl_grp_none ? 0 : (uint32_t)info.keaGroup & 0xffff;
    told->resumed = info.resumed != PR_FALSE;
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
    .library = "NSS",
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
