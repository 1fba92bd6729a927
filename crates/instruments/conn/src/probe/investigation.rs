//! All that is tried with hellos at one address: a browser's first, and others where it fails.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tls::{Library, NamedGroup, Offer, Version, named_group};
use tokio::time::Instant;

use super::Target;
use super::old_hello::old_hello;
use super::report::OfferReport;
use super::tried::{Answer, End, Hello, Tried};
use super::verdict::{About, Finding, verdict};
use super::visit::{Visit, Way, listen, visit, visit_old};
use crate::Failure;
use crate::opening::Opening;

/// The least time for a try after the first one.
const LEAST_PATIENCE: Duration = Duration::from_secs(1);
/// Such a try may take so many round trips.
const PATIENT_ROUND_TRIPS: u32 = 20;

/// The groups of a browser's hello: RFC 8446 §4.2.7, draft-ietf-tls-ecdhe-mlkem.
pub(super) const BROWSER_GROUPS: [NamedGroup; 4] =
    [NamedGroup(0x11ec), NamedGroup(0x001d), NamedGroup(0x0017), NamedGroup(0x0018)];
/// The groups of a small hello.
pub(super) const SMALL_GROUPS: [NamedGroup; 3] =
    [NamedGroup(0x001d), NamedGroup(0x0017), NamedGroup(0x0018)];

/// All groups that OpenSSL may know, those that most servers have first.
pub(super) fn all_groups() -> Vec<NamedGroup> {
    let names = "x25519 secp256r1 secp384r1 secp521r1 x448 X25519MLKEM768 SecP256r1MLKEM768 \
                 SecP384r1MLKEM1024 MLKEM512 MLKEM768 MLKEM1024 ffdhe2048 ffdhe3072 ffdhe4096 \
                 ffdhe6144 ffdhe8192 brainpoolP256r1 brainpoolP384r1 brainpoolP512r1 \
                 brainpoolP256r1tls13 brainpoolP384r1tls13 brainpoolP512r1tls13 secp256k1 \
                 secp224r1 secp192r1 sect283r1 sect571r1";
    names.split_whitespace().filter_map(named_group).collect()
}

/// All tries at one address, and their answers.
pub(super) struct Investigation {
    address: SocketAddr,
    opening: Option<Arc<Opening>>,
    server_name: String,
    base: tls::ClientConfig,
    patience: Duration,
    deadline: Instant,
    round_trip: Duration,
    connections: u32,
    tried: Vec<Tried>,
    /// The chain of the server, as a hello with its name got it.
    pub chain: Vec<Vec<u8>>,
    /// The names of the certificate that the server shows without a name.
    names: Vec<String>,
    /// The outcome of a browser's hello, or of the first hello that works.
    pub offer: Option<OfferReport>,
    /// Whether the server asked for a client certificate.
    pub asked: bool,
}

impl Investigation {
    /// Returns the investigation of an address before any try.
    pub fn new(
        target: &Target,
        address: SocketAddr,
        patience: Duration,
        deadline: Instant,
    ) -> Self {
        let alpn = target.alpn(&[b"h2", b"http/1.1"]);
        let base = target.client(Library::Rustls);
        Investigation {
            address,
            opening: target.opening(),
            server_name: target.name().to_owned(),
            base: tls::ClientConfig { trust: tls::Trust::Insecure, alpn, ..base },
            patience,
            deadline,
            round_trip: Duration::ZERO,
            connections: 0,
            tried: Vec::new(),
            chain: Vec::new(),
            names: Vec::new(),
            offer: None,
            asked: false,
        }
    }

    /// Connections made so far.
    pub fn connections(&self) -> u32 {
        self.connections
    }

    /// All tries so far.
    pub fn tried(&self) -> &[Tried] {
        &self.tried
    }

    /// Counts a connection that somebody else makes, and notes its answer.
    pub fn note(&mut self, hello: Hello, answer: Answer) {
        self.connections = self.connections.saturating_add(1);
        self.tried.push(Tried { number: self.connections, hello, answer });
    }

    /// Counts a connection of which nothing is to be noted.
    pub fn count(&mut self) {
        self.connections = self.connections.saturating_add(1);
    }

    /// Notes a round trip, by which later tries are given time.
    pub fn note_round_trip(&mut self, round_trip: Duration) {
        self.round_trip = round_trip;
    }

    /// The verdict on all tries so far.
    pub fn verdict(&self) -> Option<Finding> {
        let about = About {
            port: self.address.port(),
            server_name: self.server_name.clone(),
            names: self.names.clone(),
        };
        verdict(&self.tried, &about)
    }

    /// Whether a hello of what clients of today offer led to a handshake.
    pub fn has_usual(&self) -> bool {
        let usual = [Hello::Browser, Hello::Small, Hello::Tls12];
        self.tried.iter().any(|one| usual.contains(&one.hello) && one.answer.is_completed())
    }

    /// Whether any hello was answered in TLS, or none was tried.
    pub fn may_speak_tls(&self) -> bool {
        let mut hellos = self.tried.iter().filter(|one| one.hello != Hello::Tcp).peekable();
        hellos.peek().is_none() || hellos.any(|one| one.answer.is_tls())
    }

    /// Tries a browser's hello, and others as long as none works.
    ///
    /// # Errors
    /// The [`Failure`] of the first TCP connection.
    pub async fn look(&mut self) -> Result<(), Failure> {
        let first = self.try_hello(Hello::Browser, self.patience).await?;
        if self.is_enough(&first) {
            return Ok(());
        }
        // Later failures to connect are noted as answers.
        let _ = self.look_further(&first).await;
        Ok(())
    }

    /// A browser's hello once more: whether it is the hello that fails, or every connection by now.
    pub async fn look_again(&mut self) {
        let _ = self.try_hello(Hello::Browser, self.later_patience()).await;
    }

    async fn look_further(&mut self, first: &Answer) -> Result<(), Failure> {
        let patience = self.later_patience();
        if *first != Answer::LongMessage {
            for hello in [Hello::Small, Hello::Tls12] {
                let answer = self.try_hello(hello, patience).await?;
                if answer.is_completed() {
                    self.look_again().await;
                    return Ok(());
                }
                if self.is_enough(&answer) {
                    return Ok(());
                }
            }
        }
        if *first != Answer::LongMessage {
            self.try_hello(Hello::Compatible, patience).await?;
        }
        let answer = self.try_hello(Hello::Everything, patience).await?;
        if answer.is_completed() || *first == Answer::LongMessage {
            return Ok(());
        }
        if self.server_name.parse::<std::net::IpAddr>().is_err() {
            let answer = self.try_hello(Hello::Nameless, patience).await?;
            if answer.is_completed() {
                return Ok(());
            }
        }
        self.try_hello(Hello::Old, patience).await?;
        if self.opening.is_none() && !self.may_speak_tls() && self.has_time() {
            self.count();
            if let Some(speaker) = listen(self.address, &self.server_name, patience).await {
                let answer = Answer::Spoke(speaker);
                self.tried.push(Tried { number: self.connections, hello: Hello::Tcp, answer });
            }
        }
        Ok(())
    }

    /// Whether more tries would say nothing new.
    fn is_enough(&self, answer: &Answer) -> bool {
        match answer {
            Answer::Completed(_) | Answer::Untried(_) => true,
            Answer::Spoke(speaker) => *speaker != super::speaker::Speaker::Unknown,
            Answer::Alert { asked, .. } | Answer::Ended { asked, .. } => *asked,
            Answer::Chose(_) | Answer::LongMessage | Answer::Broken(_) => false,
        }
    }

    fn has_time(&self) -> bool {
        Instant::now() < self.deadline
    }

    fn later_patience(&self) -> Duration {
        let trips = self.round_trip.saturating_mul(PATIENT_ROUND_TRIPS);
        self.patience.min(trips.max(LEAST_PATIENCE))
    }

    async fn try_hello(&mut self, hello: Hello, patience: Duration) -> Result<Answer, Failure> {
        if !self.has_time() {
            let reason = "the probe's time was over".to_owned();
            return Ok(Answer::Untried(reason));
        }
        let way = Way { address: self.address, opening: self.opening.as_deref() };
        let visited = match hello {
            Hello::Old => {
                let name = Some(self.server_name.as_str()).filter(|name| is_dns_name(name));
                visit_old(way, &old_hello(name, random()), patience).await
            }
            hello => visit(way, self.config(hello), patience).await,
        };
        let visited = match visited {
            Ok(visited) => visited,
            Err(failure) => {
                let ended = |how| Answer::Ended { how, after_tls: false, asked: false };
                self.note(
                    hello,
                    match &failure {
                        Failure::Refused => ended(End::Refused),
                        Failure::Reset { .. } => ended(End::Reset),
                        Failure::Starttls(_) | Failure::Proxy(_) => {
                            Answer::Broken(failure.to_string())
                        }
                        _ => ended(End::TimedOut),
                    },
                );
                return Err(failure);
            }
        };
        self.keep(hello, &visited);
        self.note(hello, visited.answer.clone());
        Ok(visited.answer)
    }

    fn keep(&mut self, hello: Hello, visited: &Visit) {
        self.asked |= visited.asked;
        if hello == Hello::Nameless {
            self.names = tls::chain::Chain::from_der(&visited.chain)
                .ok()
                .and_then(|chain| chain.name())
                .into_iter()
                .collect();
            return;
        }
        if self.chain.is_empty() {
            self.chain.clone_from(&visited.chain);
        }
        if self.offer.is_none() {
            self.offer.clone_from(&visited.offer);
        }
    }

    fn config(&self, hello: Hello) -> tls::ClientConfig {
        let versions = match hello {
            Hello::Tls12 => vec![Version::Tls12],
            _ => vec![Version::Tls12, Version::Tls13],
        };
        let (library, offer) = match hello {
            Hello::Browser => (Library::Rustls, Offer::Usual(BROWSER_GROUPS.to_vec())),
            Hello::Compatible => (Library::OpenSsl, Offer::Browser(SMALL_GROUPS.to_vec())),
            Hello::Everything => {
                let groups = all_groups();
                (Library::OpenSsl, Offer::Everything { groups, old_versions: true })
            }
            _ => (Library::Rustls, Offer::Usual(SMALL_GROUPS.to_vec())),
        };
        let nameless = hello == Hello::Nameless;
        tls::ClientConfig { library, versions, offer, nameless, ..self.base.clone() }
    }
}

fn is_dns_name(name: &str) -> bool {
    name.parse::<std::net::IpAddr>().is_err()
}

/// The random of a hello that no handshake follows.
fn random() -> [u8; 32] {
    let mut random = [0; 32];
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    // Zeros do as well: nothing secret depends on them.
    let _ = provider.secure_random.fill(&mut random);
    random
}
