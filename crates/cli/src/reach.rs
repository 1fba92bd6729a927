//! How a live server is reached: a client's certificate, STARTTLS and a proxy.

use std::convert::Infallible;
use std::fmt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::{Args, ValueHint};
use conn::probe::Target;
use fault::{Fault, Problem};
use starttls::{Protocol, proxy};
use tls::ClientIdentity;

use crate::diagnostics::Diagnostics;
use crate::probe::parse_target;
use crate::value::value;

/// Port of a server without STARTTLS.
const HTTPS: u16 = 443;
/// Read permission of users who are neither the owner nor in the group.
const OTHERS_READ: u32 = 0o004;

/// Options that `probe` and `chain --server` share.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Connection")]
pub struct ReachArgs {
    /// The client's certificate and chain (PEM), for a server that asks for one
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub cert: Option<PathBuf>,
    /// The private key of --cert (PEM, without a passphrase) [default: in the file of --cert]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "cert")]
    pub key: Option<PathBuf>,
    /// Change to TLS on a connection in plaintext: smtp, imap, pop3, ftp, ldap, xmpp, xmpp-server,
    /// postgres, mysql, sieve or nntp; the port is then that of the protocol if none is given
    #[arg(long, value_name = "PROTOCOL", value_parser = value::<Protocol>)]
    pub starttls: Option<Protocol>,
    /// Connect through a proxy, which resolves the name: `http://[USER:PASSWORD@]HOST:PORT` (CONNECT) or
    /// `socks5://[USER:PASSWORD@]HOST:PORT`
    #[arg(long, value_name = "URL", value_parser = value::<Hidden>, value_hint = ValueHint::Url)]
    pub proxy: Option<Hidden>,
}

/// A text that may hold a password: nothing shows it.
#[derive(Clone)]
pub struct Hidden(String);

impl FromStr for Hidden {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Hidden(text.to_owned()))
    }
}

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hidden")
    }
}

impl ReachArgs {
    /// The first option that is given, as it is written.
    pub fn given(&self) -> Option<&'static str> {
        let ReachArgs { cert, key, starttls, proxy } = self;
        [
            ("--cert", cert.is_some()),
            ("--key", key.is_some()),
            ("--starttls", starttls.is_some()),
            ("--proxy", proxy.is_some()),
        ]
        .into_iter()
        .find_map(|(name, is_given)| is_given.then_some(name))
    }

    /// The server that `text` names, reached as these options say.
    pub fn target(&self, text: &str, diagnostics: &Diagnostics) -> Result<Target, Problem> {
        let port = self.starttls.map_or(HTTPS, Protocol::port);
        let identity = self
            .cert
            .as_deref()
            .map(|cert| client_identity(cert, self.key.as_deref().unwrap_or(cert), diagnostics));
        Ok(Target {
            identity: identity.transpose()?,
            starttls: self.starttls,
            proxy: self.proxy()?,
            ..parse_target(text, port)?
        })
    }

    /// The proxy. Its errors do not quote it: it may hold a password.
    fn proxy(&self) -> Result<Option<proxy::Address>, Problem> {
        let proxy = self.proxy.as_ref().map(|Hidden(text)| text.parse::<proxy::Address>());
        let wrong = |error: proxy::AddressError| Problem::from(error).while_doing("--proxy");
        proxy.transpose().map_err(wrong)
    }
}

/// Reads a client's certificate and key, and cautions about a key that others can read.
pub fn client_identity(
    cert: &Path,
    key: &Path,
    diagnostics: &Diagnostics,
) -> Result<ClientIdentity, Problem> {
    let identity = ClientIdentity::from_pem_files(cert, key)?;
    let mode = std::fs::metadata(key).map(|about| about.permissions().mode());
    if mode.is_ok_and(|mode| mode & OTHERS_READ != 0) {
        let what =
            format!("{}: every user of this machine can read this private key", key.display());
        diagnostics.warning_with_remedy(what, Some("take their right away: `chmod o= FILE`"));
    }
    Ok(identity)
}

/// The problem of options that need a server to be given.
pub fn without_server(option: &str) -> Problem {
    Problem::new(Fault::Caller, format!("{option} is about a connection, and there is no --server"))
        .with_remedy("add --server HOST")
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::diagnostics::Diagnostics;
    use crate::options::Colour;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        reach: ReachArgs,
    }

    fn target(arguments: &[&str], text: &str) -> Result<Target, Problem> {
        let line = Line::try_parse_from([&["x"], arguments].concat()).unwrap();
        line.reach.target(text, &Diagnostics::new(true, Colour::Never))
    }

    #[test]
    fn the_port_is_that_of_the_protocol() {
        for (protocol, port) in [
            ("smtp", 25),
            ("imap", 143),
            ("pop3", 110),
            ("ftp", 21),
            ("ldap", 389),
            ("xmpp", 5222),
            ("xmpp-server", 5269),
            ("postgres", 5432),
            ("mysql", 3306),
            ("sieve", 4190),
            ("nntp", 119),
        ] {
            assert_eq!(target(&["--starttls", protocol], "mail.test").unwrap().port, port);
            assert_eq!(target(&["--starttls", protocol], "[::1]:587").unwrap().port, 587);
        }
        assert_eq!(target(&[], "web.test").unwrap().port, 443);
        assert!(Line::try_parse_from(["x", "--starttls", "http"]).is_err());
        assert!(Line::try_parse_from(["x", "--key", "key.pem"]).is_err());
    }

    #[test]
    fn a_proxys_password_is_in_no_text() {
        for proxy in
            ["http://user:secret@proxy.test:x", "user:secret@proxy.test", "ftp://a:secret@b"]
        {
            let line = Line::try_parse_from(["x", "--proxy", proxy]).unwrap();
            assert!(!format!("{line:?}").contains("secret"), "{line:?}");
            let problem = target(&["--proxy", proxy], "web.test").unwrap_err();
            let text = format!("{problem} {:?}", problem.remedy());
            assert!(text.contains("--proxy") && !text.contains("secret"), "{text}");
        }
        let target = target(&["--proxy", "socks5://user:secret@[::1]:9050"], "web.test").unwrap();
        assert_eq!(target.proxy.as_ref().unwrap().to_string(), "socks5://[::1]:9050");
        assert!(!format!("{target:?}").contains("secret"));
    }
}
