//! Mode after mode against one address.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tls::{EarlyData, NamedGroup, Offer, Ticket, Version};
use tokio::time::Instant;

use super::investigation::{BROWSER_GROUPS, Investigation, SMALL_GROUPS, all_groups};
use super::outcomes::{answer, sample, verdict};
use super::refused::udp_refused;
use super::report::{Mode, PathReport, ProbeSample, Verdict};
use super::tried::{Answer, Hello};
use super::verdict::Kind;
use super::{Client, Options, ProbeError, Target};
use crate::opening::Opening;
use crate::{ClientPlan, ClientTransport, Failure, FastOpen, Outcome, SynData, connect};

/// How long to wait for a ticket after the handshake, besides two round trips.
const TICKET_PATIENCE: Duration = Duration::from_millis(500);
/// How long to wait for the server's FIN.
const LINGER: Duration = Duration::from_millis(200);

/// The groups that rustls has.
const RUSTLS_GROUPS: [u16; 7] = [0x001d, 0x0017, 0x0018, 0x11ec, 0x11eb, 0x0201, 0x0202];

/// What has been found so far.
pub(super) struct Prober<'a> {
    pub(super) target: &'a Target,
    options: &'a Options,
    pub(super) address: SocketAddr,
    opening: Option<Arc<Opening>>,
    pub(super) server_name: String,
    pub(super) at_unix_ms: u64,
    deadline: Instant,
    /// The hellos tried, the measured ones too.
    pub(super) seen: Investigation,
    pub(super) results: BTreeMap<usize, ModeResult>,
    pub(super) path: PathReport,
    pub(super) min_rtt: Option<Duration>,
    /// The first measured handshake's verdict on the certificate.
    pub(super) trusted: Option<Result<(), String>>,
}

/// One mode's verdict and the outcomes that count.
pub(super) struct ModeResult {
    pub(super) verdict: Verdict,
    pub(super) outcomes: Vec<ProbeSample>,
    pub(super) hello_retry_request: bool,
}

impl<'a> Prober<'a> {
    /// Finds the first address that takes a TCP connection.
    pub async fn connect(
        target: &'a Target,
        options: &'a Options,
        addresses: &[SocketAddr],
    ) -> Result<Self, ProbeError> {
        let mut first_failure = None;
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        for (failed, address) in addresses.iter().enumerate() {
            let plan = ClientPlan {
                request: Vec::new(),
                timeout: options.timeout,
                linger: Duration::ZERO,
                opening: target.opening(),
                ..ClientPlan::plain(*address)
            };
            match connect(plan).await {
                Ok(outcome) => {
                    let deadline = Instant::now() + options.deadline;
                    let mut seen = Investigation::new(target, *address, options.timeout, deadline);
                    (0..failed).for_each(|_| seen.count());
                    seen.note(Hello::Tcp, Answer::Completed(None));
                    let connected = outcome.timeline.connected;
                    if let Some(time) = outcome.timeline.since_start(connected) {
                        seen.note_round_trip(time);
                    }
                    return Ok(Prober {
                        target,
                        options,
                        address: *address,
                        opening: target.opening(),
                        server_name: target.name().to_owned(),
                        at_unix_ms: u64::try_from(since_1970.as_millis()).unwrap_or(u64::MAX),
                        deadline,
                        seen,
                        results: BTreeMap::new(),
                        path: PathReport::default(),
                        min_rtt: None,
                        trusted: None,
                    });
                }
                Err(failure) => {
                    first_failure.get_or_insert(failure);
                }
            }
        }
        Err(target.unreached(first_failure))
    }

    /// Tries a browser's hello, and others where it fails.
    pub async fn look(&mut self) {
        tokio::time::sleep(self.options.pause).await;
        // That there is no connection is an answer that was noted.
        let _ = self.seen.look().await;
    }

    /// Looks once more where a browser's hello worked and the measured ones did not.
    pub async fn look_again(&mut self) {
        let completed = |wanted: fn(&Hello) -> bool| {
            self.seen.tried().iter().any(|one| wanted(&one.hello) && one.answer.is_completed())
        };
        let measured = |hello: &Hello| matches!(hello, Hello::Measured(_));
        let failed = self.seen.tried().iter().any(|one| {
            measured(&one.hello)
                && matches!(one.answer, Answer::Ended { .. } | Answer::Alert { .. })
        });
        if failed && completed(|hello| *hello == Hello::Browser) && !completed(measured) {
            self.seen.look_again().await;
        }
    }

    /// Measures one mode.
    pub async fn measure(&mut self, mode: Mode) {
        let mut outcomes = Vec::new();
        let verdict = match mode {
            Mode::Tcp => self.tcp(&mut outcomes).await,
            Mode::Tls12 => self.full(Version::Tls12, &mut outcomes).await,
            Mode::Tls13 => self.full(Version::Tls13, &mut outcomes).await,
            Mode::Tls12Resumed => self.resumed(Version::Tls12, &mut outcomes).await,
            Mode::Tls13Resumed => self.resumed(Version::Tls13, &mut outcomes).await,
            Mode::Tls13EarlyData => self.early_data(&mut outcomes).await,
            Mode::FastOpen => self.fast_open(&mut outcomes).await,
            Mode::Quic => self.quic(&mut outcomes).await,
            Mode::QuicZeroRtt => self.quic_zero_rtt(&mut outcomes).await,
        };
        let verdict = verdict.map_or_else(|verdict| verdict, |()| Verdict::Supported);
        let retried = |outcome: &Outcome| {
            outcome.facts.as_ref().is_some_and(|facts| facts.hello_retry_request)
        };
        let hello_retry_request = outcomes.iter().any(retried);
        let outcomes = outcomes.iter().map(sample).collect();
        self.results.insert(mode as usize, ModeResult { verdict, outcomes, hello_retry_request });
    }

    async fn tcp(&mut self, outcomes: &mut Vec<Outcome>) -> Result<(), Verdict> {
        for _ in 0..self.options.repeats {
            let plan = self.plan(FastOpen::Off, None)?;
            outcomes.push(self.attempt(plan, Some(Hello::Tcp)).await?);
        }
        Ok(())
    }

    async fn full(&mut self, version: Version, outcomes: &mut Vec<Outcome>) -> Result<(), Verdict> {
        self.needs_tls()?;
        let client = self.client(version, false)?;
        for _ in 0..self.options.repeats {
            let plan = self.plan(FastOpen::Off, Some(&client))?;
            outcomes.push(self.attempt(plan, Some(Hello::Measured(version))).await?);
        }
        Ok(())
    }

    /// A full handshake for a ticket, then one resumed by it; as often as asked.
    async fn resumed(
        &mut self,
        version: Version,
        outcomes: &mut Vec<Outcome>,
    ) -> Result<(), Verdict> {
        self.needs(if version == Version::Tls12 { Mode::Tls12 } else { Mode::Tls13 })?;
        let client = self.client(version, false)?;
        for _ in 0..self.options.repeats {
            let (ticket, promised) = self.prime(&client).await?;
            let plan =
                ClientPlan { ticket: Some(ticket), ..self.plan(FastOpen::Off, Some(&client))? };
            let outcome = self.attempt(plan, None).await?;
            if !outcome.resumed() {
                return refused(match (version, promised) {
                    (Version::Tls12, false) => {
                        "the server gave no ticket, and did not resume by session ID"
                    }
                    _ => "the server gave a ticket and did not resume by it",
                });
            }
            outcomes.push(outcome);
        }
        Ok(())
    }

    async fn early_data(&mut self, outcomes: &mut Vec<Outcome>) -> Result<(), Verdict> {
        self.needs(Mode::Tls13Resumed)?;
        self.target.speaks_http()?;
        let client = self.client(Version::Tls13, true)?;
        let request = self.head_request();
        for _ in 0..self.options.repeats {
            let (ticket, _) = self.prime(&client).await?;
            if !ticket.allows_early_data() {
                return refused("the server's tickets do not allow early data");
            }
            let plan = ClientPlan {
                ticket: Some(ticket),
                early_data: true,
                request: request.clone(),
                ..self.plan(FastOpen::Off, Some(&client))?
            };
            let outcome = self.attempt(plan, None).await?;
            if !outcome.early_data_accepted() {
                return refused("the server's ticket allows early data and it did not accept it");
            }
            outcomes.push(outcome);
        }
        Ok(())
    }

    /// One connection for the cookie, then as many as asked with data in the SYN.
    async fn fast_open(&mut self, outcomes: &mut Vec<Outcome>) -> Result<(), Verdict> {
        self.target.begins_with_tls("the SYN carries no ClientHello with")?;
        self.needs(Mode::Tls13)?;
        if !fast_open_is_on() {
            let reason = "this machine's sysctl net.ipv4.tcp_fastopen lacks bit 0x1".to_owned();
            return Err(Verdict::NotTested { reason });
        }
        let client = self.client(Version::Tls13, false)?;
        for repeat in 0..=self.options.repeats {
            let plan = self.plan(FastOpen::Cookie, Some(&client))?;
            let outcome = self.attempt(plan, None).await?;
            match outcome.syn_data {
                SynData::Acknowledged => outcomes.push(outcome),
                SynData::NotSent if repeat == 0 => {}
                SynData::NotSent => return refused("the server gave no Fast Open cookie"),
                SynData::NotAcknowledged => {
                    return refused("the server did not take the data in the SYN");
                }
            }
        }
        Ok(())
    }

    async fn quic(&mut self, outcomes: &mut Vec<Outcome>) -> Result<(), Verdict> {
        self.target.begins_with_tls("QUIC knows no")?;
        for _ in 0..self.options.repeats {
            let client = self.quic_client()?;
            outcomes.push(self.quic_attempt(&client, None, None).await?);
        }
        Ok(())
    }

    async fn quic_zero_rtt(&mut self, outcomes: &mut Vec<Outcome>) -> Result<(), Verdict> {
        self.needs(Mode::Quic)?;
        for _ in 0..self.options.repeats {
            let client = self.quic_client()?;
            let patience = Some(self.ticket_patience());
            let mut primed = self.quic_attempt(&client, None, patience).await?;
            let Some(ticket) = primed.tickets.pop() else {
                return refused("the server gave no ticket");
            };
            if !ticket.allows_early_data() {
                return refused("the server's tickets do not allow 0-RTT");
            }
            let outcome = self.quic_attempt(&client, Some(ticket), None).await?;
            if outcome.facts.as_ref().map(|facts| facts.early_data) != Some(EarlyData::Accepted) {
                return refused("the server's ticket allows 0-RTT and it did not accept it");
            }
            outcomes.push(outcome);
        }
        Ok(())
    }

    /// A full handshake that ends with a session to resume, and whether TLS 1.2 promised a ticket for it.
    async fn prime(&mut self, client: &tls::Client) -> Result<(Ticket, bool), Verdict> {
        let await_ticket = Some(self.ticket_patience());
        let plan = ClientPlan { await_ticket, ..self.plan(FastOpen::Off, Some(client))? };
        let mut outcome = self.attempt(plan, None).await?;
        let promised = outcome.facts.as_ref().is_some_and(|facts| facts.ticket_promised);
        let ticket = outcome.tickets.pop();
        ticket.map_or_else(|| refused("the server gave no ticket"), |ticket| Ok((ticket, promised)))
    }

    /// How long an attempt may take, if there is time for one.
    fn timeout(&self) -> Result<Duration, Verdict> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            let reason = "the probe's time was over".to_owned();
            return Err(Verdict::NotTested { reason });
        }
        Ok(self.options.timeout.min(left))
    }

    /// A connection over TCP without a request, if there is time.
    fn plan(&self, fast_open: FastOpen, tls: Option<&tls::Client>) -> Result<ClientPlan, Verdict> {
        let timeout = self.timeout()?;
        let transport = ClientTransport::Tcp { fast_open, tls: tls.cloned() };
        let plan = ClientPlan::new(self.address, transport);
        // TCP alone measures the path, to the proxy if there is one.
        let opening = tls.and(self.opening.clone());
        Ok(ClientPlan { opening, request: Vec::new(), timeout, linger: LINGER, ..plan })
    }

    /// Makes one connection. The hello is noted for the verdict if it is one of the full handshakes.
    async fn attempt(
        &mut self,
        plan: ClientPlan,
        hello: Option<Hello>,
    ) -> Result<Outcome, Verdict> {
        tokio::time::sleep(self.options.pause).await;
        let is_tls = !matches!(plan.transport, ClientTransport::Tcp { tls: None, .. });
        let result = connect(plan).await;
        match hello {
            Some(hello) => self.seen.note(hello, answer(&result)),
            None => self.seen.count(),
        }
        self.note_trust(is_tls, &result);
        let outcome = result.map_err(|failure| verdict(&failure))?;
        if let Some(tcp) = &outcome.tcp {
            self.path.retransmits = self.path.retransmits.saturating_add(tcp.retransmits);
            self.path.send_mss = Some(tcp.send_mss);
            self.min_rtt = match (self.min_rtt, tcp.min_rtt) {
                (Some(known), Some(new)) => Some(known.min(new)),
                (known, new) => known.or(new),
            };
        }
        Ok(outcome)
    }

    async fn quic_attempt(
        &mut self,
        client: &tls::quic::Client,
        ticket: Option<Ticket>,
        await_ticket: Option<Duration>,
    ) -> Result<Outcome, Verdict> {
        let transport = ClientTransport::Quic { tls: client.clone() };
        let plan = ClientPlan {
            early_data: ticket.is_some(),
            ticket,
            request: Vec::new(),
            timeout: self.timeout()?,
            await_ticket,
            ..ClientPlan::new(self.address, transport)
        };
        let address = self.address;
        tokio::select! {
            outcome = self.attempt(plan, None) => outcome,
            () = udp_refused(address) => {
                let reason = format!("nothing listens at UDP port {}", address.port());
                Err(Verdict::Refused { reason })
            }
        }
    }

    /// What the first connection with TLS says of the certificate.
    fn note_trust(&mut self, is_tls: bool, result: &Result<Outcome, Failure>) {
        if !is_tls || matches!(self.target.trust, tls::Trust::Insecure) {
            return;
        }
        match result {
            Ok(_) => {
                self.trusted.get_or_insert(Ok(()));
            }
            Err(Failure::Tls(tls::Error::Certificate(error))) => {
                self.trusted.get_or_insert(Err(error.to_string()));
            }
            Err(_) => {}
        }
    }

    /// A mode that builds on another is not tried without it.
    fn needs(&self, mode: Mode) -> Result<(), Verdict> {
        match self.results.get(&(mode as usize)) {
            Some(result) if result.verdict.is_supported() => Ok(()),
            Some(ModeResult { verdict: Verdict::NotTested { .. }, .. }) => {
                Err(Verdict::NotTested { reason: format!("{} was not measured", mode.title()) })
            }
            _ => Err(Verdict::NotTested { reason: format!("{} does not work", mode.title()) }),
        }
    }

    /// TLS is not measured where no hello was answered in TLS, or a client certificate lacks.
    fn needs_tls(&self) -> Result<(), Verdict> {
        let finding = self.seen.verdict();
        let reason = match finding {
            Some(finding) if !self.seen.may_speak_tls() => finding.text,
            Some(finding) if finding.kind == Kind::CertificateRequired => {
                "it answers, and requires a client certificate".to_owned()
            }
            _ => return Ok(()),
        };
        Err(Verdict::NotTested { reason })
    }

    fn ticket_patience(&self) -> Duration {
        TICKET_PATIENCE + 2 * self.min_rtt.unwrap_or_default()
    }

    fn client(&self, version: Version, early_data: bool) -> Result<tls::Client, Verdict> {
        let (library, offer) = self.offer();
        let config = tls::ClientConfig {
            versions: vec![version],
            alpn: self.target.alpn(&[b"http/1.1"]),
            early_data,
            offer,
            ..self.target.client(library)
        };
        tls::Client::new(&config).map_err(|error| not_tested(&error))
    }

    /// The library and the offer of the measured connections.
    fn offer(&self) -> (tls::Library, Offer) {
        let groups = |usual: &[NamedGroup]| match self.options.groups.as_slice() {
            [] => usual.to_vec(),
            groups => groups.to_vec(),
        };
        let groups = match self.options.client {
            Client::Small => groups(&SMALL_GROUPS),
            Client::Browser => {
                let groups = groups(&BROWSER_GROUPS);
                return (tls::Library::OpenSsl, Offer::Browser(groups));
            }
            Client::Everything => {
                let groups = groups(&all_groups());
                return (tls::Library::OpenSsl, Offer::Everything { groups, old_versions: false });
            }
        };
        let all_known = groups.iter().all(|group| RUSTLS_GROUPS.contains(&group.0));
        let library = if all_known { self.options.library } else { tls::Library::OpenSsl };
        (library, Offer::Usual(groups))
    }

    fn quic_client(&self) -> Result<tls::quic::Client, Verdict> {
        let offer = match self.offer() {
            (_, Offer::Usual(groups) | Offer::Browser(groups)) => Offer::Usual(groups),
            _ => Offer::Usual(SMALL_GROUPS.to_vec()),
        };
        let config = tls::ClientConfig {
            alpn: vec![b"h3".to_vec()],
            offer,
            ..self.target.client(tls::Library::Rustls)
        };
        tls::quic::client_config(&config).map_err(|error| not_tested(&error))
    }

    /// Idempotent, without a body either way (RFC 9110 §9.3.2); safe to be replayed.
    fn head_request(&self) -> Vec<u8> {
        let name = &self.server_name;
        let host = if name.contains(':') { format!("[{name}]") } else { name.clone() };
        format!("HEAD / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").into_bytes()
    }
}

fn refused<T>(reason: &str) -> Result<T, Verdict> {
    Err(Verdict::Refused { reason: reason.to_owned() })
}

fn not_tested(error: &tls::Error) -> Verdict {
    Verdict::NotTested { reason: error.to_string() }
}

/// Whether this machine's clients may use Fast Open (bit 0x1, the kernel's default).
fn fast_open_is_on() -> bool {
    std::fs::read_to_string("/proc/sys/net/ipv4/tcp_fastopen")
        .ok()
        .and_then(|text| text.trim().parse::<u32>().ok())
        .is_some_and(|bits| bits & 1 != 0)
}
