//! Mode after mode against one address.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tls::{EarlyData, Group, KeyExchange, Ticket, Version};
use tokio::time::Instant;

use super::certificate::key_type;
use super::look::look;
use super::report::{
    CertificateReport, Dns, Mode, ModeReport, OfferReport, PathReport, ProbeSample, REPORT_SCHEMA,
    Report, Summary, Verdict, Versions,
};
use super::{Options, ProbeError, Target};
use crate::opening::Opening;
use crate::{ClientPlan, ClientTransport, Failure, FastOpen, Outcome, SynData, connect};

/// How long to wait for a ticket after the handshake, besides two round trips.
const TICKET_PATIENCE: Duration = Duration::from_millis(500);
/// How long to wait for the server's FIN.
const LINGER: Duration = Duration::from_millis(200);

/// What has been found so far.
pub(super) struct Prober<'a> {
    target: &'a Target,
    options: &'a Options,
    address: SocketAddr,
    opening: Option<Arc<Opening>>,
    server_name: String,
    at_unix_ms: u64,
    deadline: Instant,
    connections: u32,
    results: BTreeMap<usize, ModeResult>,
    path: PathReport,
    min_rtt: Option<Duration>,
    trusted: Option<Result<(), String>>,
}

/// One mode's verdict and the outcomes that count.
struct ModeResult {
    verdict: Verdict,
    outcomes: Vec<ProbeSample>,
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
        for (tried, address) in addresses.iter().enumerate() {
            let plan = ClientPlan {
                request: Vec::new(),
                timeout: options.timeout,
                linger: Duration::ZERO,
                opening: target.opening(),
                ..ClientPlan::plain(*address)
            };
            match connect(plan).await {
                Ok(_) => {
                    return Ok(Prober {
                        target,
                        options,
                        address: *address,
                        opening: target.opening(),
                        server_name: target.name().to_owned(),
                        at_unix_ms: u64::try_from(since_1970.as_millis()).unwrap_or(u64::MAX),
                        deadline: Instant::now() + options.deadline,
                        connections: u32::try_from(tried).unwrap_or(u32::MAX).saturating_add(1),
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
        let outcomes = outcomes.iter().map(sample).collect();
        self.results.insert(mode as usize, ModeResult { verdict, outcomes });
    }

    async fn tcp(&mut self, outcomes: &mut Vec<Outcome>) -> Result<(), Verdict> {
        for _ in 0..self.options.repeats {
            let plan = self.plan(FastOpen::Off, None)?;
            outcomes.push(self.attempt(plan).await?);
        }
        Ok(())
    }

    async fn full(&mut self, version: Version, outcomes: &mut Vec<Outcome>) -> Result<(), Verdict> {
        let client = self.client(version, false)?;
        for _ in 0..self.options.repeats {
            let plan = self.plan(FastOpen::Off, Some(&client))?;
            outcomes.push(self.attempt(plan).await?);
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
            let ticket = self.prime(&client).await?;
            let plan =
                ClientPlan { ticket: Some(ticket), ..self.plan(FastOpen::Off, Some(&client))? };
            let outcome = self.attempt(plan).await?;
            if !outcome.resumed() {
                return refused("the server gave a ticket and did not resume by it");
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
            let ticket = self.prime(&client).await?;
            if !ticket.allows_early_data() {
                return refused("the server's tickets do not allow early data");
            }
            let plan = ClientPlan {
                ticket: Some(ticket),
                early_data: true,
                request: request.clone(),
                ..self.plan(FastOpen::Off, Some(&client))?
            };
            let outcome = self.attempt(plan).await?;
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
            let outcome = self.attempt(plan).await?;
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

    /// A full handshake that ends with a ticket.
    async fn prime(&mut self, client: &tls::Client) -> Result<Ticket, Verdict> {
        let await_ticket = Some(self.ticket_patience());
        let plan = ClientPlan { await_ticket, ..self.plan(FastOpen::Off, Some(client))? };
        let mut outcome = self.attempt(plan).await?;
        outcome.tickets.pop().map_or_else(|| refused("the server gave no ticket"), Ok)
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

    async fn attempt(&mut self, plan: ClientPlan) -> Result<Outcome, Verdict> {
        self.pause().await;
        let is_tls = !matches!(plan.transport, ClientTransport::Tcp { tls: None, .. });
        let result = connect(plan).await;
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
        self.attempt(plan).await
    }

    async fn pause(&mut self) {
        self.connections = self.connections.saturating_add(1);
        tokio::time::sleep(self.options.pause).await;
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
            _ => Err(Verdict::NotTested { reason: format!("{} does not work", mode.title()) }),
        }
    }

    fn ticket_patience(&self) -> Duration {
        TICKET_PATIENCE + 2 * self.min_rtt.unwrap_or_default()
    }

    fn client(&self, version: Version, early_data: bool) -> Result<tls::Client, Verdict> {
        let config = tls::ClientConfig {
            versions: vec![version],
            key_exchange: KeyExchange::Ecdhe,
            groups: vec![Group::X25519, Group::Secp256r1],
            alpn: self.target.alpn(&[b"http/1.1"]),
            early_data,
            ..self.config(self.options.library)
        };
        tls::Client::new(&config).map_err(|error| not_tested(&error))
    }

    fn quic_client(&self) -> Result<tls::quic::Client, Verdict> {
        let config = tls::ClientConfig {
            groups: vec![Group::X25519, Group::Secp256r1],
            alpn: vec![b"h3".to_vec()],
            ..self.config(tls::Library::Rustls)
        };
        tls::quic::client_config(&config).map_err(|error| not_tested(&error))
    }

    fn config(&self, library: tls::Library) -> tls::ClientConfig {
        let trust = self.target.trust.clone();
        let config = tls::ClientConfig::new(library, &self.server_name, trust);
        tls::ClientConfig { identity: self.target.identity.clone(), ..config }
    }

    /// Idempotent, without a body either way (RFC 9110 §9.3.2); safe to be replayed.
    fn head_request(&self) -> Vec<u8> {
        let name = &self.server_name;
        let host = if name.contains(':') { format!("[{name}]") } else { name.clone() };
        format!("HEAD / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").into_bytes()
    }

    /// Looks at the certificates, and puts everything together.
    pub async fn report(mut self, dns: Option<Dns>) -> Report {
        self.pause().await;
        let looked = look(self.address, self.target, self.options.timeout).await;
        let (offer, chain) = match looked {
            Ok((offer, chain)) => (Some(offer), chain),
            Err(_) => (None, Vec::new()),
        };
        let certificates = offer.as_ref().map(|_| self.certificates(&chain));
        let modes = self.mode_reports();
        let verdict = |mode: Mode| self.results.get(&(mode as usize)).map(|it| it.verdict.clone());
        let unknown = || Verdict::NotTested { reason: "not tried".to_owned() };
        let versions = Versions {
            tls12: verdict(Mode::Tls12).unwrap_or_else(unknown),
            tls13: verdict(Mode::Tls13).unwrap_or_else(unknown),
            quic: verdict(Mode::Quic).unwrap_or_else(unknown),
        };
        self.path.min_rtt_ms = self.min_rtt.map(millis);
        self.path.connect_ms = connect_ms(&modes);
        let hints = self.hints(offer.as_ref());
        let before_tls = self.target.before_tls();
        Report {
            schema: REPORT_SCHEMA,
            host: self.target.host.clone(),
            address: self.address,
            before_tls,
            server_name: self.server_name,
            at_unix_ms: self.at_unix_ms,
            dns,
            path: self.path,
            versions,
            modes,
            offer,
            certificates,
            connections: self.connections,
            hints,
        }
    }

    fn mode_reports(&mut self) -> Vec<ModeReport> {
        let mut reports = Vec::new();
        let mut round_trip = None;
        for mode in Mode::ALL {
            let Some(result) = self.results.get_mut(&(mode as usize)) else { continue };
            let samples = std::mem::take(&mut result.outcomes);
            let ready = Summary::of(samples.iter().filter_map(|it| it.ready_ms).collect());
            let first_byte =
                Summary::of(samples.iter().filter_map(|it| it.first_byte_ms).collect());
            if mode == Mode::Tcp {
                round_trip = ready.map(|summary| summary.median_ms).filter(|time| *time > 0.0);
                // A proxy's round trip says nothing of the server's.
                round_trip = round_trip.filter(|_| self.target.proxy.is_none());
            }
            let trips = |of: fn(&ProbeSample) -> Option<f64>| {
                let times = samples.iter().filter_map(|it| it.without_opening(of(it)));
                Some(Summary::of(times.collect())?.median_ms / round_trip?)
            };
            reports.push(ModeReport {
                mode,
                verdict: result.verdict.clone(),
                ready,
                first_byte,
                before_tls: Summary::of(samples.iter().filter_map(|it| it.before_tls_ms).collect()),
                ready_round_trips: trips(|it| it.ready_ms),
                first_byte_round_trips: trips(|it| it.first_byte_ms),
                samples,
            });
        }
        reports
    }

    fn certificates(&self, chain: &[Vec<u8>]) -> CertificateReport {
        let bytes: Vec<usize> = chain.iter().map(Vec::len).collect();
        CertificateReport {
            count: chain.len(),
            total_bytes: bytes.iter().sum(),
            bytes,
            key_type: chain.first().and_then(|leaf| key_type(leaf)),
            trusted: self.trusted.as_ref().map(Result::is_ok),
            problem: self.trusted.clone().and_then(Result::err),
        }
    }

    fn hints(&self, offer: Option<&OfferReport>) -> Vec<String> {
        let mut hints = Vec::new();
        if matches!(self.trusted, Some(Err(_))) {
            hints.push(
                "the certificate is not trusted, so TLS was not measured: give its root with --ca \
                 FILE, or measure it nevertheless with --insecure"
                    .to_owned(),
            );
        }
        if offer.is_none() {
            hints.push(format!(
                "port {} does not speak TLS, or none that a client of today offers",
                self.target.port
            ));
        }
        if offer.is_some_and(|offer| offer.hello_retry_request) {
            hints.push(
                "the server asks for another key share than clients of today send: that costs a \
                 round trip on every full handshake; enable X25519 there"
                    .to_owned(),
            );
        }
        hints
    }
}

fn sample(outcome: &Outcome) -> ProbeSample {
    let timeline = &outcome.timeline;
    let since_start = |step| timeline.since_start(step).map(millis);
    let (rtt, retransmits) = match (&outcome.tcp, &outcome.quic) {
        (Some(tcp), _) => (Some(tcp.rtt), tcp.retransmits.into()),
        (None, Some(quic)) => (Some(quic.rtt), quic.packets_lost),
        (None, None) => (None, 0),
    };
    ProbeSample {
        connect_ms: since_start(timeline.connected),
        before_tls_ms: timeline.before_tls().map(millis),
        ready_ms: since_start(timeline.ready),
        // A server that speaks first has not answered anything.
        first_byte_ms: timeline
            .request_sent
            .and_then(|_| since_start(timeline.first_response_byte)),
        rtt_ms: rtt.map(millis),
        retransmits,
        cpu_ms: millis(outcome.cpu),
        client_hello_len: outcome.facts.as_ref().map(|facts| facts.client_hello_len),
    }
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn connect_ms(modes: &[ModeReport]) -> Option<f64> {
    let tcp = modes.iter().find(|report| report.mode == Mode::Tcp)?;
    tcp.ready.map(|summary| summary.median_ms)
}

fn verdict(failure: &Failure) -> Verdict {
    match failure {
        Failure::TimedOut { after, .. } => {
            Verdict::TimedOut { after_ms: u64::try_from(after.as_millis()).unwrap_or(u64::MAX) }
        }
        // It came, so the server does speak this version; what comes after it was not measured.
        Failure::Tls(tls::Error::Certificate(error)) => Verdict::NotTested {
            reason: format!("it answers, but its certificate is refused: {error}"),
        },
        other => Verdict::Refused { reason: other.to_string() },
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
