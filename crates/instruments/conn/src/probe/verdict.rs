//! The verdict on a server: one sentence and one advice, made of all that was tried. Pure.

use serde::{Deserialize, Serialize};
use tls::{CipherSuite, NamedGroup, Version, WireVersion};
use units::named;

use super::speaker::Speaker;
use super::tried::{Answer, End, Hello, Negotiated, Tried, alert_name, group_name};

/// `unrecognized_name` (RFC 6066 §3).
const UNRECOGNIZED_NAME: u8 = 112;
/// `certificate_required` (RFC 8446 §6.2).
const CERTIFICATE_REQUIRED: u8 = 116;

/// The suites that clients of today offer.
const USUAL_SUITES: [u16; 9] =
    [0x1301, 0x1302, 0x1303, 0xc02b, 0xc02c, 0xc02f, 0xc030, 0xcca8, 0xcca9];
/// The groups that clients of today offer.
const USUAL_GROUPS: [u16; 4] = [0x11ec, 0x001d, 0x0017, 0x0018];
/// The keys that clients of today take.
const USUAL_KEYS: [&str; 4] = ["EC P-256", "EC P-384", "EC P-521", "ED25519"];

named! {
    /// The kind of a verdict.
    pub enum Kind: "verdict" {
        /// It answers in plain HTTP.
        PlainHttp = "plain-http",
        /// It speaks another protocol, which can or cannot change to TLS.
        SpeaksFirst = "speaks-first",
        /// Its bytes are of no protocol that is known.
        NotTls = "not-tls",
        /// Not a byte came.
        Silent = "silent",
        /// It demands a client certificate.
        CertificateRequired = "certificate-required",
        /// It has no certificate for the name.
        UnknownName = "unknown-name",
        /// Only hellos without post-quantum groups get through.
        LongHello = "long-hello",
        /// Only hellos that do not offer TLS 1.3 get through.
        Tls13Hello = "tls13-hello",
        /// Only a browser's hello is accepted.
        BrowserOnly = "browser-only",
        /// Only older suites are accepted, which browsers still offer.
        OldSuites = "old-suites",
        /// Only what clients of today no longer offer is accepted.
        Unusual = "unusual",
        /// The certificates are longer than clients take.
        LongCertificates = "long-certificates",
        /// It worked, and then no longer.
        Limited = "limited",
        /// It refuses every hello by an alert.
        Refuses = "refuses",
        /// Its TLS is not accepted here.
        Broken = "broken",
        /// It begins a handshake and does not end it.
        Unfinished = "unfinished",
        /// This side could not try.
        Untried = "untried",
    }
}

/// A verdict: what is wrong, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The kind.
    pub kind: Kind,
    /// The observation, as a sentence without a full stop.
    pub text: String,
    /// The advice, as an imperative without a full stop.
    pub remedy: String,
}

/// Facts that the verdict needs beside the tries.
#[derive(Debug, Clone)]
pub struct About {
    /// The TCP port.
    pub port: u16,
    /// The name asked for.
    pub server_name: String,
    /// The names of the certificate that the server shows without a name, if it was seen.
    pub names: Vec<String>,
}

/// The verdict on all that was tried, in the order of the connections; `None` if a browser's hello was
/// accepted and nothing failed later.
#[must_use]
pub fn verdict(tried: &[Tried], about: &About) -> Option<Finding> {
    let seen = Seen { tried, about };
    let handshakes = || tried.iter().filter(|one| one.hello != Hello::Tcp);
    if handshakes().next().is_none() {
        return seen.limited();
    }
    if let Some(limited) = seen.limited() {
        return Some(limited);
    }
    if seen.completed(Hello::Browser).is_some() {
        return seen.browser_only();
    }
    if seen.answers(Hello::Browser).next().is_none() && seen.any_completed() {
        return None;
    }
    if !handshakes().any(|one| one.answer.is_tls()) {
        return Some(seen.no_tls());
    }
    let found = seen.certificate_required();
    let found = found.or_else(|| seen.long_certificates());
    let found = found.or_else(|| seen.unknown_name());
    let found = found.or_else(|| seen.long_hello());
    let found = found.or_else(|| seen.tls13_hello());
    let found = found.or_else(|| seen.other_name());
    let found = found.or_else(|| seen.old_suites());
    let found = found.or_else(|| seen.unusual());
    Some(found.unwrap_or_else(|| seen.refused()))
}

struct Seen<'a> {
    tried: &'a [Tried],
    about: &'a About,
}

impl Seen<'_> {
    fn answers(&self, hello: Hello) -> impl Iterator<Item = &Answer> {
        self.tried.iter().filter(move |one| one.hello == hello).map(|one| &one.answer)
    }

    /// Returns the negotiation of the first completed handshake of such a hello.
    fn completed(&self, hello: Hello) -> Option<&Negotiated> {
        self.answers(hello).filter(|answer| answer.is_completed()).find_map(Answer::negotiated)
    }

    fn any_completed(&self) -> bool {
        self.tried.iter().any(|one| one.hello != Hello::Tcp && one.answer.is_completed())
    }

    /// Whether a hello with a name led to a handshake.
    fn named_completed(&self) -> bool {
        self.tried.iter().any(|one| {
            !matches!(one.hello, Hello::Tcp | Hello::Nameless) && one.answer.is_completed()
        })
    }

    fn has_alert(&self, wanted: u8) -> bool {
        self.tried
            .iter()
            .any(|one| matches!(one.answer, Answer::Alert { code, .. } if code == wanted))
    }

    /// How the server treats a browser's hello, as a verb.
    fn treatment(&self, hello: Hello) -> String {
        let last = self.answers(hello).last();
        match last {
            Some(Answer::Ended { how, .. }) => how.verb().to_owned(),
            Some(Answer::Alert { code, .. }) => {
                format!("refuses it with alert {}", alert_name(*code))
            }
            _ => "does not accept it".to_owned(),
        }
    }

    /// The same hello worked, and later did not.
    fn limited(&self) -> Option<Finding> {
        let failed = self.tried.iter().find_map(|late| {
            let how = late.answer.end()?;
            let worked = |one: &Tried| {
                one.hello == late.hello && one.number < late.number && one.answer.is_completed()
            };
            self.tried.iter().any(worked).then_some((late, how))
        });
        let (late, how) = failed?;
        let before = late.number.saturating_sub(1);
        let noun = if before == 1 { "connection" } else { "connections" };
        let works_again = self.tried.iter().any(|one| {
            let counts = one.hello != Hello::Tcp || late.hello == Hello::Tcp;
            counts && one.number > late.number && one.answer.is_completed()
        });
        let (text, remedy) = if works_again {
            (
                format!("one connection failed: the server {}; later ones worked", how.verb()),
                "probe again: the network or a limit per client loses connections",
            )
        } else {
            (
                format!("the server answered {before} {noun}; now it {}", how.verb()),
                "wait a minute and use --repeat 1: the server or a firewall may limit connections \
                 per client",
            )
        };
        let remedy = remedy.to_owned();
        Some(Finding { kind: Kind::Limited, text, remedy })
    }

    /// The browser's hello works, and the smaller ones of the same version do not.
    fn browser_only(&self) -> Option<Finding> {
        let negotiated = self.completed(Hello::Browser)?;
        let version = match negotiated.version {
            WireVersion::TLS13 => Version::Tls13,
            WireVersion::TLS12 => Version::Tls12,
            _ => return None,
        };
        let hello = Hello::Measured(version);
        let mut measured = self.answers(hello).filter(|it| !matches!(it, Answer::Untried(_)));
        let is_refused = |answer: &Answer| {
            matches!(answer, Answer::Alert { asked: false, .. } | Answer::Ended { .. })
        };
        let last = measured.next()?;
        if !is_refused(last) || !measured.all(is_refused) {
            return None;
        }
        let group =
            negotiated.group.map_or_else(String::new, |group| format!(" ({})", group_name(group)));
        Some(Finding {
            kind: Kind::BrowserOnly,
            text: format!(
                "the server accepts a browser's hello{group}; a smaller one: it {}",
                self.treatment(hello)
            ),
            remedy: "measure it with --client browser".to_owned(),
        })
    }

    /// No byte of TLS came.
    fn no_tls(&self) -> Finding {
        let spoken = self.tried.iter().filter_map(|one| match &one.answer {
            Answer::Spoke(speaker) => Some(*speaker),
            _ => None,
        });
        let known = spoken.clone().find(|speaker| *speaker != Speaker::Unknown);
        match known.or_else(|| spoken.clone().next()) {
            Some(Speaker::Http) => Finding {
                kind: Kind::PlainHttp,
                text: "not a TLS server: it answered in plain HTTP".to_owned(),
                remedy: "choose the port of HTTPS, or enable TLS at this one".to_owned(),
            },
            Some(Speaker::Unknown) => Finding {
                kind: Kind::NotTls,
                text: "not a TLS server: its answer is in an unknown protocol".to_owned(),
                remedy: "check the port".to_owned(),
            },
            Some(speaker) => speaks(speaker),
            None => self.silent(),
        }
    }

    fn silent(&self) -> Finding {
        let hellos = self.tried.iter().filter(|one| one.hello != Hello::Tcp);
        let ours = hellos.clone().find_map(|one| match &one.answer {
            Answer::Untried(detail) => Some(detail.clone()),
            _ => None,
        });
        let Some(how) = hellos.clone().filter_map(|one| one.answer.end()).next() else {
            return Finding {
                kind: Kind::Untried,
                text: format!("no hello could be sent: {}", ours.unwrap_or_default()),
                remedy: "correct this machine or the options".to_owned(),
            };
        };
        let port = self.about.port;
        let remedy = match Speaker::at_port(port).map(|speaker| (speaker, speaker.starttls())) {
            Some((speaker, Some(option))) => {
                format!("port {port} is that of {}: use --starttls {option}", speaker.title())
            }
            Some((speaker, None)) => {
                format!("choose the port of TLS: {port} is that of {}", speaker.title())
            }
            None if how == End::TimedOut => {
                "check the port, and for a firewall on the way that drops TLS".to_owned()
            }
            None => "check the port and the server's log".to_owned(),
        };
        let text = match how {
            End::TimedOut => "no answer to any hello, though TCP connects".to_owned(),
            how => format!("no answer in TLS: the server {} after each hello", how.verb()),
        };
        Finding { kind: Kind::Silent, text, remedy }
    }

    fn certificate_required(&self) -> Option<Finding> {
        let demanded = self.tried.iter().any(|one| match &one.answer {
            Answer::Alert { code, asked } => *asked || *code == CERTIFICATE_REQUIRED,
            Answer::Ended { asked, .. } => *asked,
            _ => false,
        });
        (demanded && !self.any_completed()).then(|| Finding {
            kind: Kind::CertificateRequired,
            text: "the server requires a client certificate".to_owned(),
            remedy: "give one that it trusts: --cert FILE --key FILE".to_owned(),
        })
    }

    fn long_certificates(&self) -> Option<Finding> {
        self.tried.iter().find(|one| one.answer == Answer::LongMessage)?;
        if [Hello::Small, Hello::Tls12].into_iter().any(|hello| self.completed(hello).is_some()) {
            return None;
        }
        let known = self.tried.iter().filter_map(|one| one.answer.negotiated());
        let bytes = known.map(|it| it.chain_bytes).max().filter(|bytes| *bytes > 0);
        let size = bytes.map_or_else(String::new, |bytes| format!(" ({bytes} bytes)"));
        Some(Finding {
            kind: Kind::LongCertificates,
            text: format!("the server's certificates{size} are longer than clients take (64 KiB)"),
            remedy: "send the leaf and its intermediates only".to_owned(),
        })
    }

    fn unknown_name(&self) -> Option<Finding> {
        let refused = self.has_alert(UNRECOGNIZED_NAME) && !self.named_completed();
        refused.then(|| self.name_finding())
    }

    /// Only a hello without a name works.
    fn other_name(&self) -> Option<Finding> {
        let works = self.completed(Hello::Nameless).is_some() && !self.named_completed();
        works.then(|| self.name_finding())
    }

    fn name_finding(&self) -> Finding {
        let name = &self.about.server_name;
        let remedy = match self.about.names.first() {
            Some(known) => format!("ask for a name that it knows: --name {known}"),
            None => "ask for a name that it knows: --name NAME".to_owned(),
        };
        let text = format!("the server does not know the name `{name}`");
        Finding { kind: Kind::UnknownName, text, remedy }
    }

    fn long_hello(&self) -> Option<Finding> {
        let small = self.completed(Hello::Small);
        small.or_else(|| self.completed(Hello::Measured(Version::Tls13)))?;
        let lost = self.answers(Hello::Browser).last().and_then(Answer::end);
        Some(Finding {
            kind: Kind::LongHello,
            text: format!(
                "to a browser's hello (two segments, X25519MLKEM768) the server: {}; a smaller one \
                 works",
                self.treatment(Hello::Browser)
            ),
            remedy: match lost {
                Some(_) => "update the server, or the box before it, that expects a hello in one \
                            segment"
                    .to_owned(),
                None => {
                    "update the server's TLS library: it should ignore groups that it does not \
                         know"
                        .to_owned()
                }
            },
        })
    }

    fn tls13_hello(&self) -> Option<Finding> {
        let tls12 = self.completed(Hello::Tls12);
        tls12.or_else(|| self.completed(Hello::Measured(Version::Tls12)))?;
        Some(Finding {
            kind: Kind::Tls13Hello,
            text: format!(
                "to a hello that offers TLS 1.3 the server: {}; one of TLS 1.2 works",
                self.treatment(Hello::Browser)
            ),
            remedy: "update the server, or the box before it, that rejects TLS 1.3".to_owned(),
        })
    }

    fn old_suites(&self) -> Option<Finding> {
        let found = self.completed(Hello::Compatible)?;
        if found.key.as_deref().is_some_and(is_unusual_key) {
            return None;
        }
        Some(Finding {
            kind: Kind::OldSuites,
            text: format!(
                "the server speaks TLS with older suites only ({}): browsers take them, newer \
                 clients do not",
                found.cipher_suite
            ),
            remedy:
                "let the server offer suites with ECDHE and AES-GCM, or measure it as it is with \
                     --client browser"
                    .to_owned(),
        })
    }

    fn unusual(&self) -> Option<Finding> {
        let everything = self.completed(Hello::Everything);
        let chosen = |hello| self.answers(hello).find_map(Answer::negotiated);
        let found = everything
            .or_else(|| chosen(Hello::Everything))
            .or_else(|| chosen(Hello::Old))
            .or_else(|| self.tried.iter().find_map(|one| one.answer.negotiated()))?;
        let parts = unusual_parts(found);
        let what: Vec<&str> = parts.iter().map(|(what, _)| what.as_str()).collect();
        let advice: Vec<&str> = parts.iter().map(|(_, advice)| *advice).collect();
        let (text, remedy) = if what.is_empty() {
            (
                format!(
                    "the server refuses a browser's hello, and takes one that offers everything ({}, \
                     {})",
                    found.version, found.cipher_suite
                ),
                "look in the server's log for the cause".to_owned(),
            )
        } else {
            let text = format!("the server speaks TLS, and only with {}", what.join(", "));
            let text = format!("{text}, which clients of today do not take");
            (text, format!("let the server offer {}", advice.join(", ")))
        };
        Some(Finding { kind: Kind::Unusual, text, remedy })
    }

    /// Nothing worked, and TLS came.
    fn refused(&self) -> Finding {
        let hellos = || self.tried.iter().filter(|one| one.hello != Hello::Tcp);
        let alert = hellos().find_map(|one| match &one.answer {
            Answer::Alert { code, .. } => Some(alert_name(*code)),
            _ => None,
        });
        let broken = hellos().find_map(|one| match &one.answer {
            Answer::Broken(detail) => Some(detail.clone()),
            _ => None,
        });
        let log = "look in the server's log for the cause".to_owned();
        match (alert, broken) {
            (Some(alert), _) => Finding {
                kind: Kind::Refuses,
                text: format!("the server accepts no hello: alert {alert}"),
                remedy: log,
            },
            (None, Some(detail)) => Finding {
                kind: Kind::Broken,
                text: format!("the server's TLS is not accepted: {detail}"),
                remedy: "update the server's TLS library".to_owned(),
            },
            (None, None) => {
                let how = hellos().filter_map(|one| one.answer.end()).next();
                let verb = how.map_or("stops", End::verb);
                Finding {
                    kind: Kind::Unfinished,
                    text: format!("the server begins the handshake, then {verb}"),
                    remedy: log,
                }
            }
        }
    }
}

/// The verdict on a protocol in the clear.
fn speaks(speaker: Speaker) -> Finding {
    let title = speaker.title();
    Finding {
        kind: Kind::SpeaksFirst,
        text: format!("not TLS from the first byte: the server speaks {title}"),
        remedy: match speaker.starttls() {
            Some(option) => format!("use --starttls {option}"),
            None => format!("choose the port of a TLS server: {title} has no TLS of its own here"),
        },
    }
}

/// The parts of a handshake that clients of today do not take, each with what to offer in its place.
pub(super) fn unusual_parts(found: &Negotiated) -> Vec<(String, &'static str)> {
    let mut parts = Vec::new();
    if found.version < WireVersion::TLS12 {
        parts.push((found.version.to_string(), "TLS 1.2 and 1.3"));
    }
    if is_unusual_suite(found.cipher_suite) {
        parts.push((found.cipher_suite.to_string(), "suites with ECDHE and AES-GCM"));
    }
    if let Some(group) = found.group.filter(|group| is_unusual_group(*group)) {
        parts.push((format!("group {}", group_name(group)), "the groups X25519 and P-256"));
    }
    let key = unusual_key(found);
    parts.extend(key.map(|key| (key, "a certificate for ECDSA P-256 or RSA-2048")));
    parts
}

/// The server's key, if clients of today do not take it.
pub(super) fn unusual_key(found: &Negotiated) -> Option<String> {
    let key = found.key.as_deref().filter(|key| is_unusual_key(key));
    key.map(|key| format!("a key of {key}"))
}

fn is_unusual_suite(suite: CipherSuite) -> bool {
    !USUAL_SUITES.contains(&suite.0)
}

fn is_unusual_group(group: NamedGroup) -> bool {
    !USUAL_GROUPS.contains(&group.0)
}

fn is_unusual_key(key: &str) -> bool {
    let rsa = key.strip_prefix("RSA-").and_then(|bits| bits.parse::<u32>().ok());
    match rsa {
        Some(bits) => bits < 2048,
        None => !USUAL_KEYS.contains(&key),
    }
}

#[cfg(test)]
mod tests;
