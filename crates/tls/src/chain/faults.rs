//! The faults for which a client refuses a chain, each with its own advice.

use core::fmt;

use openssl::asn1::Asn1Time;
use openssl::nid::Nid;
use openssl::x509::{X509, X509VerifyResult};
use rustls::client::verify_server_name;
use rustls::server::ParsedCertificate;
use rustls_pki_types::{CertificateDer, ServerName};

use super::{Chain, kind_of};
use crate::config::system_roots;
use crate::openssl_engine::key_name;
use crate::{CertificateFault, Error, SignatureKind, Trust};

/// Names of a certificate that a text shows.
const SHOWN_NAMES: usize = 3;
/// The fewest bits of a key that clients take.
const LEAST_RSA: u32 = 2048;

/// A fault for which a client refuses a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChainFault {
    /// A certificate is past its end.
    Expired {
        /// The certificate, as `None` the server's own.
        issuer: Option<String>,
        /// The end, as OpenSSL writes it.
        until: String,
    },
    /// A certificate is before its beginning.
    NotYetValid {
        /// The certificate, as `None` the server's own.
        issuer: Option<String>,
        /// The beginning, as OpenSSL writes it.
        from: String,
    },
    /// The server's certificate carries other names.
    WrongName {
        /// The name asked for.
        wanted: String,
        /// The DNS names carried.
        names: Vec<String>,
    },
    /// A key is too short.
    WeakKey {
        /// The certificate, as `None` the server's own.
        issuer: Option<String>,
        /// The key: `RSA-1024`.
        key: String,
    },
    /// No browser takes keys of this kind.
    UnusualKey {
        /// The key: `ED448`.
        key: String,
    },
    /// A certificate is signed with SHA-1 or MD5.
    WeakSignature {
        /// The algorithm, as OpenSSL names it.
        signed_by: String,
    },
    /// The server shows the certificate of a CA as its own (RFC 5280 §4.2.1.9).
    CaAsServer,
    /// The server's certificate is its own issuer.
    SelfSigned,
    /// The chain ends in a root that is not trusted.
    PrivateRoot {
        /// The root.
        root: String,
    },
    /// The issuer is neither sent nor trusted; the certificate names no place to find it.
    UnknownIssuer {
        /// The issuer.
        issuer: String,
    },
    /// The issuer is not sent; the certificate names a place to find it, as those of public CAs do.
    Incomplete {
        /// The issuer.
        issuer: String,
    },
    /// Another fault.
    Other {
        /// The verifier's words.
        detail: String,
    },
}

impl fmt::Display for ChainFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whose = |issuer: &Option<String>| match issuer {
            None => "it".to_owned(),
            Some(issuer) => format!("its issuer `{issuer}`"),
        };
        match self {
            Self::Expired { issuer, until } => {
                write!(f, "{} has expired (valid until {until})", whose(issuer))
            }
            Self::NotYetValid { issuer, from } => {
                write!(f, "{} is not valid yet (valid from {from})", whose(issuer))
            }
            Self::WrongName { names, .. } if names.is_empty() => {
                f.write_str("it is for another name: it carries no DNS name (subjectAltName)")
            }
            Self::WrongName { names, .. } => {
                write!(f, "it is for another name: {}", some_of(names))
            }
            Self::WeakKey { issuer: None, key } => write!(f, "its key is too weak ({key})"),
            Self::WeakKey { issuer: Some(issuer), key } => {
                write!(f, "the key of its issuer `{issuer}` is too weak ({key})")
            }
            Self::UnusualKey { key } => write!(f, "no browser takes its kind of key ({key})"),
            Self::WeakSignature { signed_by } => {
                write!(f, "it is signed with a weak hash ({signed_by})")
            }
            Self::CaAsServer => {
                f.write_str("it is the certificate of a CA, and not a server's own")
            }
            Self::SelfSigned => f.write_str("it is self-signed"),
            Self::PrivateRoot { root } => write!(f, "its root `{root}` is not trusted"),
            Self::UnknownIssuer { issuer } => {
                write!(f, "its issuer `{issuer}` is neither sent nor trusted")
            }
            Self::Incomplete { issuer } => {
                write!(f, "the server does not send the intermediate `{issuer}`")
            }
            Self::Other { detail } => write!(f, "it is refused ({detail})"),
        }
    }
}

fn some_of(names: &[String]) -> String {
    let mut shown = names.iter().take(SHOWN_NAMES).cloned().collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN_NAMES {
        shown += ", …";
    }
    shown
}

impl ChainFault {
    /// Returns the advice, as an imperative without a full stop.
    #[must_use]
    pub fn remedy(&self) -> String {
        match self {
            Self::Expired { issuer: None, .. } => "renew the server's certificate".to_owned(),
            Self::Expired { issuer: Some(issuer), .. } => {
                format!("let the server send the current certificate of `{issuer}`")
            }
            Self::NotYetValid { .. } => {
                "check this machine's date, then the server's certificate".to_owned()
            }
            Self::WrongName { names, .. } => match names.first() {
                Some(name) => format!("ask for a name that it carries: --name {}", filled(name)),
                None => "issue it with the server's name as subjectAltName".to_owned(),
            },
            Self::WeakKey { .. } | Self::UnusualKey { .. } => {
                "issue it for a key of ECDSA P-256 or RSA-2048".to_owned()
            }
            Self::WeakSignature { .. } => "issue it anew, signed with SHA-256".to_owned(),
            Self::CaAsServer => "make it without the rights of a CA (`openssl req -x509 … -addext \
                basicConstraints=critical,CA:FALSE`)"
                .to_owned(),
            Self::SelfSigned => {
                "trust this certificate itself: save it by `wiretax chain --server HOST --save \
                 FILE`, then give --ca FILE"
                    .to_owned()
            }
            Self::PrivateRoot { root } => format!("if you trust `{root}`, give it with --ca FILE"),
            Self::UnknownIssuer { issuer } => format!(
                "if `{issuer}` is your own root, give it with --ca FILE; if it is an intermediate, \
                 let the server send it"
            ),
            Self::Incomplete { .. } => {
                "let the server send its whole chain (nginx: fullchain.pem as ssl_certificate)"
                    .to_owned()
            }
            Self::Other { .. } => {
                "look at the certificates with `wiretax chain --server HOST`".to_owned()
            }
        }
    }
}

/// A name to ask for: a wildcard filled in.
fn filled(name: &str) -> String {
    name.strip_prefix("*.").map_or_else(|| name.to_owned(), |domain| format!("www.{domain}"))
}

impl Chain {
    /// The faults for which rustls refuses the chain, for a server of this name at a time in seconds since
    /// 1970; none if it accepts the chain or `trust` accepts any.
    ///
    /// # Errors
    /// As [`Chain::verify`].
    pub fn faults(&self, trust: &Trust, name: &str, now: i64) -> Result<Vec<ChainFault>, Error> {
        let roots = match trust {
            Trust::Roots(roots) => roots.clone(),
            Trust::System => system_roots()?.iter().map(|root| root.to_vec()).collect(),
            Trust::Insecure | Trust::Unchecked => return Ok(Vec::new()),
        };
        let Some(refused) = self.refused_by_rustls(&roots, name, now)? else {
            return Ok(Vec::new());
        };
        let path = self.path();
        let mut faults = self.out_of_time(&path, now);
        faults.extend(self.wrong_name(name));
        faults.extend(self.weak(&path));
        if matches!(refused.0, CertificateFault::CaAsServer) {
            faults.push(ChainFault::CaAsServer);
        }
        faults.extend(self.unknown(&path, &roots));
        if faults.is_empty() {
            faults.push(ChainFault::Other { detail: refused.1 });
        }
        Ok(faults)
    }

    /// The certificates from the leaf up, each signed by the next, by their places in what was sent.
    fn path(&self) -> Vec<usize> {
        let mut path = vec![0];
        while let Some(last) = path.last().and_then(|at| self.certificates.get(*at)) {
            let issuer =
                self.certificates.iter().enumerate().find(|(at, one)| {
                    !path.contains(at) && one.issued(last) == X509VerifyResult::OK
                });
            match issuer {
                Some((at, _)) => path.push(at),
                None => break,
            }
        }
        path
    }

    /// The certificate's own name, unless it is the server's.
    fn issuer_at(&self, at: usize) -> Option<String> {
        (at > 0).then(|| self.described.get(at).map(|one| one.subject.clone())).flatten()
    }

    fn out_of_time(&self, path: &[usize], now: i64) -> Vec<ChainFault> {
        let Ok(now) = Asn1Time::from_unix(now) else { return Vec::new() };
        let mut faults = Vec::new();
        for at in path {
            let Some(one) = self.certificates.get(*at) else { continue };
            let issuer = self.issuer_at(*at);
            if one.not_after() < now {
                faults.push(ChainFault::Expired { issuer, until: one.not_after().to_string() });
            } else if one.not_before() > now {
                faults.push(ChainFault::NotYetValid { issuer, from: one.not_before().to_string() });
            }
        }
        faults
    }

    fn wrong_name(&self, name: &str) -> Option<ChainFault> {
        let leaf = self.certificates.first()?;
        let der = CertificateDer::from(leaf.to_der().ok()?);
        let wanted = ServerName::try_from(name.to_owned()).ok()?;
        let parsed = ParsedCertificate::try_from(&der).ok()?;
        verify_server_name(&parsed, &wanted).err()?;
        let names = leaf.subject_alt_names();
        let names = names.iter().flatten().filter_map(|one| one.dnsname());
        let names = names.map(|name| fault::excerpt(name, 80)).collect();
        Some(ChainFault::WrongName { wanted: name.to_owned(), names })
    }

    fn weak(&self, path: &[usize]) -> Vec<ChainFault> {
        let mut faults = Vec::new();
        for at in path {
            let Some(one) = self.certificates.get(*at) else { continue };
            let Some(described) = self.described.get(*at) else { continue };
            let key = described.key.clone();
            match strength(one) {
                Strength::Usual => {}
                Strength::Weak => {
                    faults.push(ChainFault::WeakKey { issuer: self.issuer_at(*at), key });
                }
                Strength::Unusual => faults.push(ChainFault::UnusualKey { key }),
            }
            let signed_by = described.signed_by.to_ascii_lowercase();
            let weak = ["sha1", "md5", "md2", "md4"].iter().any(|hash| signed_by.contains(hash));
            if weak && !described.self_signed {
                faults.push(ChainFault::WeakSignature { signed_by: described.signed_by.clone() });
            }
        }
        faults
    }

    /// The fault of a chain that leads to none of the roots.
    fn unknown(&self, path: &[usize], roots: &[Vec<u8>]) -> Option<ChainFault> {
        let top = *path.last()?;
        let roots: Vec<X509> = roots.iter().filter_map(|root| X509::from_der(root).ok()).collect();
        let is_trusted = |at: &usize| {
            let one = self.certificates.get(*at);
            one.is_some_and(|one| {
                let own = one.to_der().ok();
                let is_same = |root: &X509| own.is_some() && root.to_der().ok() == own;
                let signed = |root: &X509| {
                    root.issued(one) == X509VerifyResult::OK
                        && root.public_key().is_ok_and(|key| one.verify(&key).unwrap_or(false))
                };
                roots.iter().any(|root| is_same(root) || signed(root))
            })
        };
        if path.iter().any(is_trusted) {
            return None;
        }
        let (last, described) = (self.certificates.get(top)?, self.described.get(top)?);
        let subject = described.subject.clone();
        let issuer = described.issuer.clone();
        Some(match (described.self_signed, top) {
            (true, 0) => ChainFault::SelfSigned,
            (true, _) => ChainFault::PrivateRoot { root: subject },
            (false, _) if names_issuer(last) => ChainFault::Incomplete { issuer },
            (false, _) => ChainFault::UnknownIssuer { issuer },
        })
    }
}

enum Strength {
    Usual,
    Weak,
    Unusual,
}

/// Whether clients take the key of a certificate.
fn strength(certificate: &X509) -> Strength {
    let Ok(key) = certificate.public_key() else { return Strength::Unusual };
    let name = key_name(&key).unwrap_or_default();
    match (name.as_str(), kind_of(&name)) {
        (_, SignatureKind::Rsa) if key.bits() < LEAST_RSA => Strength::Weak,
        (_, SignatureKind::Rsa) | ("ED25519", _) => Strength::Usual,
        (_, SignatureKind::Ecdsa) => {
            let curve = key.ec_key().ok().and_then(|key| key.group().curve_name());
            match curve {
                Some(Nid::X9_62_PRIME256V1 | Nid::SECP384R1 | Nid::SECP521R1) => Strength::Usual,
                _ if key.bits() < 256 => Strength::Weak,
                _ => Strength::Unusual,
            }
        }
        _ => Strength::Unusual,
    }
}

/// Whether it says where its issuer's certificate is (RFC 5280 §4.2.2.1).
fn names_issuer(certificate: &X509) -> bool {
    certificate
        .authority_info()
        .is_some_and(|places| places.iter().any(|place| place.method().nid() == Nid::AD_CA_ISSUERS))
}
