//! HAProxy's configuration for a scenario.

use std::fmt::Write as _;
use std::path::Path;

use packet::privileges::Identity;
use tls::{Group, Version};

use crate::{Error, Kind, Quic, Release};

/// What the lines of a process's log begin with that are about connections that failed.
pub(crate) const FAILED: &str = "failed: ";

/// What a configuration is made of.
#[derive(Debug, Clone)]
pub struct Config<'a> {
    /// The release that reads it.
    pub release: &'a Release,
    /// The folder of `server.pem`, `roots.pem` and the socket `admin.sock`.
    pub folder: &'a Path,
    /// What it does.
    pub role: Role,
    /// How many threads work at once.
    pub threads: usize,
    /// The one TLS version.
    pub version: Version,
    /// The one group.
    pub group: Group,
    /// The name in the certificates.
    pub name: &'a str,
    /// The first port.
    pub port: u16,
    /// Connections of the client at once.
    pub connections: usize,
    /// The library that it runs on.
    pub kind: Kind,
    /// Whether clients resume.
    pub resumed: bool,
    /// Whom it becomes, where root starts it.
    pub becomes: Option<Identity>,
}

/// What a process does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It answers itself.
    Answer,
    /// So many proxies in a row; the last connects to the port behind its own.
    Chain(usize),
    /// It answers itself, over HTTP/3.
    AnswerQuic(Quic),
}

/// The longest path of a UNIX socket (unix(7)), less what HAProxy adds while it makes it.
const SOCKET_PATH: usize = 107 - 16;

impl Config<'_> {
    /// The text.
    ///
    /// # Errors
    /// [`Error::Folder`] for a folder that HAProxy cannot be given.
    pub fn text(&self) -> Result<String, Error> {
        let folder = self.folder.to_str().unwrap_or("\n");
        let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
        if !folder.chars().all(plain) || folder.len() + "/admin.sock".len() > SOCKET_PATH {
            return Err(Error::Folder(self.folder.to_owned()));
        }
        let mut text = String::new();
        self.global(folder, &mut text);
        defaults(&mut text);
        match self.role {
            Role::Answer => self.answer(folder, &mut text),
            Role::Chain(proxies) => self.chain(folder, proxies, &mut text),
            Role::AnswerQuic(_) => self.answer(folder, &mut text),
        }
        Ok(text)
    }

    /// Whether a proxy verifies the next one's certificate. On WolfSSL it cannot: copying the authorities
    /// (`ssl_set_cert_crl_file`) makes WolfSSL ask for a revocation list of each certificate, which HAProxy 3.0
    /// takes back for those of clients, and not for those of servers.
    fn verifies_servers(&self) -> bool {
        self.kind != Kind::WolfSsl
    }

    fn global(&self, folder: &str, text: &mut String) {
        let proxies = match self.role {
            Role::Answer | Role::AnswerQuic(_) => 1,
            Role::Chain(proxies) => proxies,
        };
        // Room for each connection on each proxy, and again for those that are just closing.
        let connections = self.connections * proxies * 2 + 100;
        let (version, curve) = (tls_version(self.version), curve(self.group));
        let _ = write!(
            text,
            "global\n    log stdout format raw local0\n    nbthread {threads}\n    maxconn \
             {connections}\n    stats socket {folder}/admin.sock mode 600 level operator\n",
            threads = self.threads
        );
        // Started by root, it gives up root itself, once it has read its files.
        if let Some(Identity { user, group }) = self.becomes {
            let _ = write!(text, "    uid {user}\n    gid {group}\n");
        }
        if self.role == Role::AnswerQuic(Quic::Compat) {
            text.push_str("    limited-quic\n");
        }
        // In TLS 1.3 WolfSSL looks for a session in HAProxy 3.0's cache (`sh_ssl_sess_get_cb`), where threads wait
        // for good, until HAProxy's watchdog ends the process. Tickets need no cache; in TLS 1.2 proxies resume by it.
        if (self.kind, self.version) == (Kind::WolfSsl, Version::Tls13) && self.resumed {
            text.push_str("    tune.ssl.cachesize 0\n");
        }
        let mut pinned = |side: &str, curves: bool| {
            let _ = write!(
                text,
                "    ssl-default-{side}-options ssl-min-ver {version} ssl-max-ver {version}\n    \
                 ssl-default-{side}-ciphersuites TLS_AES_128_GCM_SHA256\n    \
                 ssl-default-{side}-ciphers ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES128-GCM-SHA256\n"
            );
            if curves {
                let _ = writeln!(text, "    ssl-default-{side}-curves {curve}");
            }
        };
        pinned("bind", true);
        if let Role::Chain(_) = self.role {
            pinned("server", self.release.has_server_curves());
            if self.verifies_servers() {
                text.push_str("    ssl-server-verify required\n");
            }
        }
    }

    fn answer(&self, folder: &str, text: &mut String) {
        let _ = write!(
            text,
            "frontend origin\n{bind}    http-request return status 200 content-type text/plain string \
             ok\n",
            bind = match self.role {
                Role::AnswerQuic(_) => quic_bind(folder, self.port),
                Role::Answer | Role::Chain(_) => bind(folder, self.port),
            }
        );
    }

    fn chain(&self, folder: &str, proxies: usize, text: &mut String) {
        let name = self.name;
        let verify = match self.verifies_servers() {
            true => format!("verify required ca-file {folder}/roots.pem verifyhost {name}"),
            false => "verify none".to_owned(),
        };
        for hop in 0..proxies {
            let port = self.port.saturating_add(u16::try_from(hop).unwrap_or(u16::MAX));
            let _ = write!(
                text,
                "listen hop{number}\n{bind}    server next 127.0.0.1:{next} ssl {verify} sni str({name}) alpn \
                 http/1.1\n",
                number = hop + 1,
                bind = bind(folder, port),
                next = port.saturating_add(1),
            );
        }
    }
}

/// One request a connection, and nothing kept for another. What succeeds is not logged, so that logging costs
/// nothing.
fn defaults(text: &mut String) {
    let _ = write!(
        text,
        "defaults\n    mode http\n    timeout connect 10s\n    timeout client 10s\n    timeout server \
         10s\n    option httpclose\n    http-reuse never\n    log global\n    option dontlog-normal\n    \
         log-format \"{FAILED}%f %ts %ST: %[bc_err_str], %[ssl_bc_err_str]\"\n    \
         error-log-format \"{FAILED}%f: %[fc_err_str], %[ssl_fc_err_str]\"\n"
    );
}

fn bind(folder: &str, port: u16) -> String {
    format!("    bind 127.0.0.1:{port} ssl crt {folder}/server.pem alpn http/1.1\n")
}

fn quic_bind(folder: &str, port: u16) -> String {
    format!("    bind quic4@127.0.0.1:{port} ssl crt {folder}/server.pem alpn h3\n")
}

fn tls_version(version: Version) -> &'static str {
    match version {
        Version::Tls12 => "TLSv1.2",
        Version::Tls13 => "TLSv1.3",
    }
}

/// As OpenSSL and its like name them.
fn curve(group: Group) -> &'static str {
    match group {
        Group::X25519 => "X25519",
        Group::Secp256r1 => "P-256",
        Group::X25519MlKem768 => "X25519MLKEM768",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(role: Role) -> Config<'static> {
        Config {
            release: Release::find("3.0.11").unwrap(),
            folder: Path::new("/run/x"),
            role,
            threads: 4,
            version: Version::Tls13,
            group: Group::X25519,
            name: "proxy.test",
            port: 4430,
            connections: 32,
            kind: Kind::OpenSsl,
            resumed: false,
            becomes: None,
        }
    }

    #[test]
    fn root_becomes_another_user() {
        let becomes = Some(Identity { user: 1000, group: 100 });
        let text = Config { becomes, ..config(Role::Answer) }.text().unwrap();
        assert!(text.contains("\n    uid 1000\n    gid 100\n"), "{text}");
        assert!(!config(Role::Answer).text().unwrap().contains(" uid "));
    }

    #[test]
    fn the_full_scenario_as_text() {
        let wanted = "\
global
    log stdout format raw local0
    nbthread 4
    maxconn 164
    stats socket /run/x/admin.sock mode 600 level operator
    ssl-default-bind-options ssl-min-ver TLSv1.3 ssl-max-ver TLSv1.3
    ssl-default-bind-ciphersuites TLS_AES_128_GCM_SHA256
    ssl-default-bind-ciphers ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES128-GCM-SHA256
    ssl-default-bind-curves X25519
defaults
    mode http
    timeout connect 10s
    timeout client 10s
    timeout server 10s
    option httpclose
    http-reuse never
    log global
    option dontlog-normal
    log-format \"failed: %f %ts %ST: %[bc_err_str], %[ssl_bc_err_str]\"
    error-log-format \"failed: %f: %[fc_err_str], %[ssl_fc_err_str]\"
frontend origin
    bind 127.0.0.1:4430 ssl crt /run/x/server.pem alpn http/1.1
    http-request return status 200 content-type text/plain string ok
";
        assert_eq!(config(Role::Answer).text().unwrap(), wanted);
    }

    #[test]
    fn quic_is_bound_and_limited_where_the_library_has_no_interface_for_it() {
        let text = |quic| config(Role::AnswerQuic(quic)).text().unwrap();
        let bound = "    bind quic4@127.0.0.1:4430 ssl crt /run/x/server.pem alpn h3\n";
        assert!(text(Quic::Interface).contains(bound) && text(Quic::Compat).contains(bound));
        assert!(text(Quic::Compat).contains("\n    limited-quic\n"));
        assert!(!text(Quic::Interface).contains("limited-quic"));
    }

    #[test]
    fn each_proxy_of_a_chain_connects_to_the_next() {
        let text = config(Role::Chain(10)).text().unwrap();
        let ports = |word: &str| -> Vec<u16> {
            let words = text.split_whitespace().collect::<Vec<_>>();
            let after = |pair: &[&str]| {
                let port = pair[1].strip_prefix("127.0.0.1:")?;
                (pair[0] == word).then(|| port.parse().unwrap())
            };
            words.windows(2).filter_map(after).collect()
        };
        let (binds, servers) = (ports("bind"), ports("next"));
        assert_eq!(binds, (4430..4440).collect::<Vec<_>>());
        assert_eq!(servers, (4431..4441).collect::<Vec<_>>());
        // Both sides are pinned alike, and the certificate of each next one is verified.
        for side in ["bind", "server"] {
            assert!(
                text.contains(&format!(
                    "ssl-default-{side}-options ssl-min-ver TLSv1.3 ssl-max-ver"
                ))
            );
            assert!(text.contains(&format!("ssl-default-{side}-curves X25519")));
        }
        assert_eq!(text.matches("verify required ca-file /run/x/roots.pem").count(), 10);
        assert!(text.contains("maxconn 740\n"));
        assert!(!text.contains("no-ssl-reuse") && !text.contains("http-request return"));
        assert!(!text.contains("cachesize"));
    }

    #[test]
    fn wolfssl_is_spared_what_haproxy_cannot_do_with_it() {
        let text =
            |role, resumed| Config { kind: Kind::WolfSsl, resumed, ..config(role) }.text().unwrap();
        let chain = text(Role::Chain(10), true);
        assert_eq!(chain.matches(" ssl verify none sni str(proxy.test) ").count(), 10);
        assert!(!chain.contains("required") && !chain.contains("roots.pem"));
        assert!(chain.contains("\n    tune.ssl.cachesize 0\n"));
        assert!(text(Role::Answer, true).contains("cachesize"), "what stands behind a chain");
        let old = Config {
            version: Version::Tls12,
            kind: Kind::WolfSsl,
            resumed: true,
            ..config(Role::Chain(2))
        };
        assert!(!old.text().unwrap().contains("cachesize"), "proxies resume by the cache");
        assert_eq!(text(Role::Answer, false), config(Role::Answer).text().unwrap());
    }

    #[test]
    fn an_older_release_is_not_given_what_it_does_not_know() {
        let release = Release::find("2.6.12").unwrap();
        let old = Config { release, version: Version::Tls12, ..config(Role::Chain(2)) };
        let text = old.text().unwrap();
        assert!(text.contains("ssl-default-bind-curves X25519"));
        assert!(!text.contains("ssl-default-server-curves"));
        assert!(text.contains("ssl-max-ver TLSv1.2"));
    }

    #[test]
    fn a_folder_that_would_change_the_configuration_is_refused() {
        let long = format!("/{}", "x".repeat(100));
        for folder in ["/a b", "/a\nlisten x", "/a'b", long.as_str()] {
            let config = Config { folder: Path::new(folder), ..config(Role::Answer) };
            assert!(matches!(config.text(), Err(Error::Folder(_))), "{folder:?}");
        }
    }
}
