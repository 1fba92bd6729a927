//! The report made of all that was measured and tried.

use std::time::{SystemTime, UNIX_EPOCH};

use tls::WireVersion;
use tls::chain::{Chain, ChainFault};

use super::certificate::key_type;
use super::outcomes::millis;
use super::prober::Prober;
use super::report::{
    CertificateReport, Dns, Mode, ModeReport, ProbeSample, REPORT_SCHEMA, Report, Summary,
    TryReport, Verdict, Versions,
};
use super::tried::Hello;
use super::verdict::{Finding, Kind, unusual_key, unusual_parts};

/// The least time of a TCP connect that is a path's round trip, and not this machine's own work,
/// milliseconds.
const LEAST_ROUND_TRIP_MS: f64 = 1.0;

impl Prober<'_> {
    /// Puts everything together.
    pub fn report(mut self, dns: Option<Dns>) -> Report {
        let faults = self.chain_faults();
        let certificates = self.certificates(faults.as_deref());
        let finding = self.seen.verdict();
        let versions = self.versions();
        for (mode, version) in [(Mode::Tls12, &versions.tls12), (Mode::Tls13, &versions.tls13)] {
            if let (Some(result), false) =
                (self.results.get_mut(&(mode as usize)), version.is_supported())
            {
                result.verdict = version.clone();
            }
        }
        let modes = self.mode_reports();
        self.path.min_rtt_ms = self.min_rtt.map(millis);
        self.path.connect_ms = connect_ms(&modes);
        let hints = self.hints(&faults.unwrap_or_default(), finding.as_ref());
        let tried = self.seen.tried().iter().filter(|one| one.hello != Hello::Tcp);
        let tried = tried.map(|one| TryReport {
            connection: one.number,
            hello: one.hello.to_string(),
            answer: one.answer.to_string(),
        });
        Report {
            schema: REPORT_SCHEMA,
            host: self.target.host.clone(),
            address: self.address,
            before_tls: self.target.before_tls(),
            server_name: self.server_name.clone(),
            at_unix_ms: self.at_unix_ms,
            dns,
            path: self.path.clone(),
            versions,
            modes,
            offer: self.seen.offer.clone(),
            certificates,
            connections: self.seen.connections(),
            finding,
            tried: tried.collect(),
            hints,
        }
    }

    fn versions(&self) -> Versions {
        let verdict = |mode: Mode| self.results.get(&(mode as usize)).map(|it| it.verdict.clone());
        let unknown = || Verdict::NotTested { reason: "not tried".to_owned() };
        let of = |mode: Mode, version: WireVersion| {
            self.as_tried(verdict(mode).unwrap_or_else(unknown), version)
        };
        Versions {
            tls12: of(Mode::Tls12, WireVersion::TLS12),
            tls13: of(Mode::Tls13, WireVersion::TLS13),
            quic: verdict(Mode::Quic).unwrap_or_else(unknown),
        }
    }

    /// A refusal of the measured hello, where another hello of the version was accepted.
    fn as_tried(&self, measured: Verdict, version: WireVersion) -> Verdict {
        let is_about_trust = matches!(self.trusted, Some(Err(_))) && self.seen.has_usual();
        if matches!(measured, Verdict::Supported) || is_about_trust {
            return measured;
        }
        let accepted = |wanted: &[Hello]| {
            let tried = self.seen.tried().iter().filter(|one| wanted.contains(&one.hello));
            tried.filter_map(|one| one.answer.negotiated()).find(|it| it.version == version)
        };
        let refused = matches!(measured, Verdict::Refused { .. } | Verdict::TimedOut { .. });
        let usual = [Hello::Browser, Hello::Small, Hello::Tls12];
        if refused && accepted(&usual).is_some() && self.seen.has_usual() {
            return Verdict::Supported;
        }
        if let Some(found) = accepted(&[Hello::Compatible]).filter(|_| refused) {
            let reason = format!("only with older suites, as {}", found.cipher_suite);
            return Verdict::Refused { reason };
        }
        let mut parts = Vec::new();
        if let Some(found) = accepted(&[Hello::Everything, Hello::Old]) {
            parts.extend(unusual_parts(found).into_iter().map(|(part, _)| part));
        } else if !refused {
            // The other version has the same certificate.
            let tried = self.seen.tried().iter().filter_map(|one| one.answer.negotiated());
            parts.extend(tried.filter_map(unusual_key).next());
        }
        match parts.as_slice() {
            [] => measured,
            parts => Verdict::Refused { reason: format!("only with {}", parts.join(", ")) },
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
                round_trip = ready.map(|summary| summary.median_ms);
                round_trip = round_trip.filter(|time| *time >= LEAST_ROUND_TRIP_MS);
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
                hello_retry_request: result.hello_retry_request,
                samples,
            });
        }
        reports
    }

    /// The faults of the chain that was seen, by this probe's trust; `None` if the chain cannot be read.
    fn chain_faults(&self) -> Option<Vec<ChainFault>> {
        let chain = Chain::from_der(&self.seen.chain).ok()?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let now = i64::try_from(now).unwrap_or(i64::MAX);
        chain.faults(&self.target.trust, &self.server_name, now).ok()
    }

    fn certificates(&self, faults: Option<&[ChainFault]>) -> Option<CertificateReport> {
        let chain = &self.seen.chain;
        if chain.is_empty() {
            return None;
        }
        let checked = !matches!(self.target.trust, tls::Trust::Insecure | tls::Trust::Unchecked);
        let named = faults
            .filter(|faults| !faults.is_empty())
            .map(|faults| faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "));
        let (trusted, problem) = match (&self.trusted, faults, named) {
            _ if !checked => (None, None),
            (Some(Ok(())), ..) => (Some(true), None),
            (_, _, Some(named)) => (Some(false), Some(named)),
            (Some(Err(detail)), _, None) => (Some(false), Some(detail.clone())),
            (None, Some(_), None) => (Some(true), None),
            (None, None, None) => (None, None),
        };
        let bytes: Vec<usize> = chain.iter().map(Vec::len).collect();
        Some(CertificateReport {
            count: chain.len(),
            total_bytes: bytes.iter().sum(),
            bytes,
            key_type: chain.first().and_then(|leaf| key_of(leaf)),
            trusted,
            problem,
        })
    }

    fn hints(&self, faults: &[ChainFault], finding: Option<&Finding>) -> Vec<String> {
        let mut hints: Vec<String> =
            finding.iter().map(|finding| format!("{}: {}", finding.text, finding.remedy)).collect();
        hints.extend(
            faults.iter().map(|fault| {
                format!("the certificate is not trusted: {fault}: {}", fault.remedy())
            }),
        );
        let unmeasured = matches!(self.trusted, Some(Err(_)));
        if unmeasured || (!faults.is_empty() && self.trusted.is_none()) {
            hints.push("to measure TLS nevertheless, use --insecure".to_owned());
        }
        let required = finding.is_some_and(|it| it.kind == Kind::CertificateRequired);
        if self.seen.asked && !required {
            hints.push(
                "the server asks for a client certificate, and completes the handshake without one: \
                 if it then refuses requests, give --cert FILE --key FILE"
                    .to_owned(),
            );
        }
        let retried = self.seen.offer.as_ref().is_some_and(|offer| offer.hello_retry_request);
        if retried && self.seen.has_usual() {
            hints.push(
                "the server asks for another key share than clients of today send: that costs a \
                 round trip on every full handshake; enable X25519 there"
                    .to_owned(),
            );
        }
        hints
    }
}

/// The leaf's key for people: by the probe's own names, or else by OpenSSL's.
fn key_of(leaf: &[u8]) -> Option<String> {
    key_type(leaf).or_else(|| {
        let chain = Chain::from_der(std::slice::from_ref(&leaf.to_vec())).ok()?;
        chain.certificates().first().map(|leaf| leaf.key.clone())
    })
}

fn connect_ms(modes: &[ModeReport]) -> Option<f64> {
    let tcp = modes.iter().find(|report| report.mode == Mode::Tcp)?;
    tcp.ready.map(|summary| summary.median_ms)
}
