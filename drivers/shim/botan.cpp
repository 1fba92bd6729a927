// Botan 2 as a driver: TLS 1.2 only.
#include <cstdio>
#include <cstring>
#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <botan/auto_rng.h>
#include <botan/build.h>
#include <botan/certstor.h>
#include <botan/cpuid.h>
#include <botan/credentials_manager.h>
#include <botan/data_src.h>
#include <botan/pkcs8.h>
#include <botan/tls_callbacks.h>
#include <botan/tls_client.h>
#include <botan/tls_messages.h>
#include <botan/tls_policy.h>
#include <botan/tls_server.h>
#include <botan/tls_session_manager.h>
#include <botan/version.h>
#include <botan/x509cert.h>

#include "wiretax_driver.h"
#include "wiretax_errors.h"

namespace tls = Botan::TLS;

namespace {

constexpr size_t record_bytes = 16384;

WT_CHECKED int failed(const std::string &what) {
    return wt_fail(WT_ERROR, "%s", what.c_str());
}

WT_CHECKED int unsupported(const char *what) {
    return wt_fail(WT_UNSUPPORTED, "Botan has no %s", what);
}

// What a configuration pins, and nothing beside it.
class Pinned final : public tls::Policy {
public:
    explicit Pinned(const wt_config &config)
        : cipher(static_cast<uint16_t>(config.cipher)), rsa(config.signature == 0x0804) {
        groups.push_back(static_cast<tls::Group_Params>(config.group));
        // The list also says which curve a certificate may have (RFC 8422 §5.1).
        if (config.certificate_group != 0 && config.certificate_group != config.group) {
            groups.push_back(static_cast<tls::Group_Params>(config.certificate_group));
        }
    }

    std::vector<uint16_t> ciphersuite_list(tls::Protocol_Version, bool) const override {
        return {cipher};
    }
    std::vector<tls::Group_Params> key_exchange_groups() const override { return groups; }
    tls::Group_Params
    choose_key_exchange_group(const std::vector<tls::Group_Params> &offered) const override {
        for (auto own : groups) {
            for (auto theirs : offered) {
                if (own == theirs) {
                    return own;
                }
            }
        }
        return tls::Group_Params::NONE;
    }
    std::vector<tls::Signature_Scheme> allowed_signature_schemes() const override {
        // PKCS #1 is for peers without PSS in TLS 1.2.
        if (rsa) {
            return {tls::Signature_Scheme::RSA_PSS_SHA256, tls::Signature_Scheme::RSA_PKCS1_SHA256};
        }
        return {tls::Signature_Scheme::ECDSA_SHA256};
    }
    bool allow_tls10() const override { return false; }
    bool allow_tls11() const override { return false; }
    bool allow_tls12() const override { return true; }
    bool allow_dtls10() const override { return false; }
    bool allow_dtls12() const override { return false; }
    // The roots are ours alone: nobody revokes anything.
    bool require_cert_revocation_info() const override { return false; }
    bool support_cert_status_message() const override { return false; }

private:
    uint16_t cipher;
    bool rsa;
    std::vector<tls::Group_Params> groups;
};

// A context's chain, key, roots and ticket key.
class Credentials final : public Botan::Credentials_Manager {
public:
    std::vector<Botan::Certificate_Store *>
    trusted_certificate_authorities(const std::string &type, const std::string &) override {
        if (type == "tls-client") {
            return {&roots};
        }
        return {};
    }
    std::vector<Botan::X509_Certificate> cert_chain(const std::vector<std::string> &types,
                                                    const std::string &type,
                                                    const std::string &) override {
        if (type == "tls-server" && key != nullptr) {
            for (const auto &wanted : types) {
                if (wanted == key->algo_name()) {
                    return chain;
                }
            }
        }
        return {};
    }
    Botan::Private_Key *private_key_for(const Botan::X509_Certificate &, const std::string &,
                                        const std::string &) override {
        return key.get();
    }
    Botan::SymmetricKey psk(const std::string &type, const std::string &context,
                            const std::string &identity) override {
        if (type == "tls-server" && context == "session-ticket" && ticket_key) {
            return *ticket_key;
        }
        return Botan::Credentials_Manager::psk(type, context, identity);
    }

    Botan::Certificate_Store_In_Memory roots;
    std::vector<Botan::X509_Certificate> chain;
    std::unique_ptr<Botan::Private_Key> key;
    std::optional<Botan::SymmetricKey> ticket_key;
};

std::vector<Botan::X509_Certificate> certificates(const wt_pem &pem) {
    std::vector<Botan::X509_Certificate> all;
    Botan::DataSource_Memory source(reinterpret_cast<const uint8_t *>(pem.text), pem.len);
    while (!source.end_of_data()) {
        // What is left may be white space only.
        try {
            all.emplace_back(source);
        } catch (const Botan::Exception &) {
            if (all.empty()) {
                throw;
            }
            break;
        }
    }
    return all;
}

} // namespace

struct wt_session {
    tls::Session session;
};

struct wt_context {
    explicit wt_context(const wt_config &config)
        : policy(config), server(config.server != 0), tickets(config.tickets != 0) {}

    Botan::AutoSeeded_RNG random; // under a mutex of the library's
    Pinned policy;
    Credentials credentials;
    std::string name;
    bool server;
    bool tickets;
};

// A connection: what the library calls back, and the sessions of a client.
struct wt_conn final : tls::Callbacks, tls::Session_Manager {
    wt_conn(wt_context &of, const wt_transport &by, const wt_session *resume)
        : context(of), transport(by) {
        if (resume != nullptr) {
            given = resume->session;
        }
        if (of.server) {
            channel = std::make_unique<tls::Server>(*this, *this, of.credentials, of.policy,
                                                    of.random);
        } else {
            channel = std::make_unique<tls::Client>(*this, *this, of.credentials, of.policy,
                                                    of.random, tls::Server_Information(of.name),
                                                    tls::Protocol_Version::TLS_V12);
        }
    }

    // Callbacks.
    void tls_emit_data(const uint8_t bytes[], size_t len) override {
        out.insert(out.end(), bytes, bytes + len);
    }
    void tls_record_received(uint64_t, const uint8_t bytes[], size_t len) override {
        in.insert(in.end(), bytes, bytes + len);
    }
    void tls_alert(tls::Alert alert) override {
        if (alert.type() == tls::Alert::CLOSE_NOTIFY) {
            closed = true;
        } else {
            told = alert.type_string();
        }
    }
    bool tls_session_established(const tls::Session &session) override {
        version = static_cast<uint32_t>(session.version().major_version()) << 8 |
                  session.version().minor_version();
        cipher = session.ciphersuite_code();
        return context.tickets;
    }
    void tls_inspect_handshake_msg(const tls::Handshake_Message &message) override {
        full = full || message.type() == tls::CERTIFICATE;
    }
    std::pair<Botan::secure_vector<uint8_t>, std::vector<uint8_t>>
    tls_ecdh_agree(const std::string &curve, const std::vector<uint8_t> &peer,
                   const tls::Policy &policy, Botan::RandomNumberGenerator &random,
                   bool compressed) override {
        group = curve == "x25519" ? 29 : curve == "secp256r1" ? 23 : 0;
        return tls::Callbacks::tls_ecdh_agree(curve, peer, policy, random, compressed);
    }

    // Sessions: a client has the one that it was given; a server keeps none.
    bool load_from_session_id(const std::vector<uint8_t> &, tls::Session &) override {
        return false;
    }
    bool load_from_server_info(const tls::Server_Information &, tls::Session &session) override {
        if (given) {
            session = *given;
        }
        return given.has_value();
    }
    void remove_entry(const std::vector<uint8_t> &) override {}
    size_t remove_all() override { return 0; }
    void save(const tls::Session &session) override {
        if (!context.server && !session.session_ticket().empty()) {
            newest = session;
        }
    }
    std::chrono::seconds session_lifetime() const override { return std::chrono::hours(24); }

    // Gives the transport what is to be sent.
    int flush() {
        while (sent < out.size()) {
            ptrdiff_t taken = transport.send(transport.user, out.data() + sent, out.size() - sent);
            if (taken == WT_IO_AGAIN) {
                return WT_AGAIN;
            }
            if (taken <= 0) {
                return failed("the transport broke off");
            }
            sent += static_cast<size_t>(taken);
        }
        out.clear();
        sent = 0;
        return WT_OK;
    }

    // Takes what the transport has, once.
    int fill() {
        uint8_t bytes[record_bytes + 512];
        ptrdiff_t got = transport.recv(transport.user, bytes, sizeof bytes);
        if (got == WT_IO_AGAIN) {
            return WT_AGAIN;
        }
        if (got <= 0) {
            return failed("the transport ended without close_notify");
        }
        channel->received_data(bytes, static_cast<size_t>(got));
        return WT_OK;
    }

    wt_context &context;
    wt_transport transport;
    std::optional<tls::Session> given, newest;
    std::vector<uint8_t> out; // to be sent, from `sent` on
    size_t sent = 0;
    std::vector<uint8_t> in; // to be read, from `read` on
    size_t read = 0;
    size_t pending = 0; // bytes of the record that is being written
    std::string told;   // the peer's last alert
    uint32_t version = 0, cipher = 0, group = 0;
    bool full = false, closed = false, shut = false;
    std::unique_ptr<tls::Channel> channel; // goes first: it calls back
};

namespace {

// Runs what may throw; an exception is an error.
template <typename Body> int guarded(const char *what, Body body) {
    wt_forget();
    try {
        return body();
    } catch (const std::exception &error) {
        return failed(std::string(what) + ": " + error.what());
    } catch (...) {
        return failed(std::string(what) + ": unknown");
    }
}

// ---- what the library says of itself ----

const char *version() {
    static const std::string text = Botan::short_version_string();
    return text.c_str();
}

const char *build_flags() {
    static const std::string text = std::string(WT_BUILD_FLAGS) +
                                    "; as it tells: " + Botan::version_string();
    return text.c_str();
}

const char *cpu_features() {
    static const std::string text = Botan::CPUID::to_string();
    return text.c_str();
}

uint64_t functions() {
    uint64_t has = WT_TLS_1_2;
#if defined(BOTAN_HAS_TLS_V10)
    has |= WT_TLS_1_0 | WT_TLS_1_1;
#endif
    return has;
}

int init() {
    Botan::CPUID::initialize();
    return WT_OK;
}

// ---- contexts ----

int set_identity(wt_context &context, const wt_config &config) {
    auto &own = context.credentials;
    own.chain = certificates(config.chain);
    Botan::DataSource_Memory pem(reinterpret_cast<const uint8_t *>(config.key.text),
                                 config.key.len);
    own.key = Botan::PKCS8::load_key(pem);
    if (own.chain.front().load_subject_public_key()->public_key_bits() !=
        own.key->public_key_bits()) {
        return failed("the key is not this certificate's");
    }
    if (config.tickets) {
        own.ticket_key = Botan::SymmetricKey(context.random, 32);
    }
    return WT_OK;
}

int set_trust(wt_context &context, const wt_config &config) {
    for (const auto &root : certificates(config.roots)) {
        context.credentials.roots.add_certificate(root);
    }
    context.name = config.server_name;
    return WT_OK;
}

int context_new(const wt_config *config, wt_context **made) {
    return guarded("context", [&] {
        if (config->size < sizeof *config) {
            return unsupported("such configuration");
        }
        if (config->version != 0x0303) {
            return unsupported("such version");
        }
        if (config->group != 23 && config->group != 29) {
            return unsupported("such group");
        }
        auto suite = tls::Ciphersuite::by_id(static_cast<uint16_t>(config->cipher));
        if (!suite.valid()) {
            return unsupported("such cipher suite");
        }
        if (config->signature != 0x0804 && config->signature != 0x0403) {
            return unsupported("such signature scheme");
        }
        auto context = std::make_unique<wt_context>(*config);
        int done = config->server ? set_identity(*context, *config) : set_trust(*context, *config);
        if (done == WT_OK) {
            *made = context.release();
        }
        return done;
    });
}

void context_free(wt_context *context) {
    delete context;
}

// ---- connections ----

int conn_new(wt_context *context, const wt_transport *transport, const wt_session *session,
             wt_conn **made) {
    return guarded("connection", [&] {
        *made = new wt_conn(*context, *transport, session);
        return static_cast<int>(WT_OK);
    });
}

void conn_free(wt_conn *conn) {
    delete conn;
}

int handshake(wt_conn *conn) {
    int done = guarded("handshake", [&] {
        while (true) {
            int done = conn->flush();
            if (done != WT_OK) {
                return done;
            }
            if (conn->channel->is_active()) {
                return static_cast<int>(WT_OK);
            }
            if (conn->closed || conn->channel->is_closed()) {
                return failed("handshake: ended by the peer: " + conn->told);
            }
            done = conn->fill();
            if (done != WT_OK) {
                return done;
            }
        }
    });
    if (done == WT_ERROR) {
        const std::string why = wt_reason;
        // The alert is sent if it can be: why the handshake failed is what counts.
        (void)guarded("alert", [&] { return conn->flush(); });
        return failed(why);
    }
    return done;
}

int conn_read(wt_conn *conn, void *bytes, size_t len, size_t *done) {
    *done = 0;
    return guarded("read", [&] {
        while (conn->read == conn->in.size()) {
            conn->in.clear();
            conn->read = 0;
            if (conn->closed) {
                return static_cast<int>(WT_CLOSED);
            }
            if (conn->channel->is_closed() && !conn->shut) {
                return failed("read: ended by the peer: " + conn->told);
            }
            int filled = conn->fill();
            if (filled != WT_OK) {
                return filled;
            }
        }
        size_t there = conn->in.size() - conn->read;
        *done = there < len ? there : len;
        memcpy(bytes, conn->in.data() + conn->read, *done);
        conn->read += *done;
        return static_cast<int>(WT_OK);
    });
}

int conn_write(wt_conn *conn, const void *bytes, size_t len, size_t *done) {
    *done = 0;
    return guarded("write", [&] {
        // A record counts as taken when the transport has all of it; until then the caller comes back
        // with the same bytes.
        if (conn->pending == 0) {
            conn->pending = len < record_bytes ? len : record_bytes;
            conn->channel->send(static_cast<const uint8_t *>(bytes), conn->pending);
        }
        int flushed = conn->flush();
        if (flushed == WT_OK) {
            *done = conn->pending;
            conn->pending = 0;
        }
        return flushed;
    });
}

int conn_shutdown(wt_conn *conn) {
    return guarded("shutdown", [&] {
        if (!conn->shut) {
            conn->shut = true;
            conn->channel->close();
        }
        return conn->flush();
    });
}

int facts(wt_conn *conn, wt_facts *told) {
    if (told->size < sizeof *told) {
        return unsupported("such facts");
    }
    told->version = conn->version;
    told->cipher = conn->cipher;
    told->group = conn->group;
    told->resumed = !conn->full;
    return WT_OK;
}

wt_session *take_session(wt_conn *conn) {
    if (!conn->newest || !conn->context.tickets) {
        return nullptr;
    }
    auto *session = new (std::nothrow) wt_session{*conn->newest};
    conn->newest.reset();
    return session;
}

void session_free(wt_session *session) {
    delete session;
}

wt_driver make_driver() {
    wt_driver made{};
    made.abi = WT_ABI;
    made.size = sizeof made;
    made.library = "Botan";
    made.version = version;
    made.build_flags = build_flags;
    made.cpu_features = cpu_features;
    made.functions = functions;
    made.init = init;
    made.error = wt_error;
    made.context_new = context_new;
    made.context_free = context_free;
    made.conn_new = conn_new;
    made.handshake = handshake;
    made.read = conn_read;
    made.write = conn_write;
    made.shutdown = conn_shutdown;
    made.facts = facts;
    made.take_session = take_session;
    made.session_free = session_free;
    made.conn_free = conn_free;
    return made;
}

} // namespace

extern "C" const wt_driver *shim_driver(void) {
    static const wt_driver driver = make_driver();
    return &driver;
}
