//! What the gateway counts, and its page for Prometheus.

use std::sync::atomic::{AtomicU64, Ordering};

use metrics::{Exposition, Histogram};
use sslmtcp::{Carried, ListenerCounters};

/// A number that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `amount`, from any thread.
    pub fn add(&self, amount: u64) {
        self.0.fetch_add(amount, Ordering::Relaxed);
    }

    /// Adds one, from any thread.
    pub fn increment(&self) {
        self.add(1);
    }

    /// Takes over the count of somebody else, who counts from zero too.
    pub fn raise_to(&self, count: u64) {
        self.0.fetch_max(count, Ordering::Relaxed);
    }

    /// The sum so far.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A number of things that are there now; each is counted while its [`Held`] lives.
#[derive(Debug, Default)]
pub struct Gauge(AtomicU64);

impl Gauge {
    /// Counts one more until the answer is dropped.
    pub fn hold(&self) -> Held<'_> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Held(self)
    }

    /// Says how many there are.
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// How many there are.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// One of the things that a [`Gauge`] counts.
#[derive(Debug)]
pub struct Held<'a>(&'a Gauge);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Why a connection came to nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// The handshake failed, or timed out.
    Handshake,
    /// The server's certificate does not verify.
    Certificate,
    /// The program behind the gateway (serve), or the gateway's peer (connect), cannot be reached.
    Unreachable,
    /// It broke off after it was established.
    Broken,
    /// The peer ended it without close_notify, as some servers do when the client has ended it.
    Truncated,
    /// It was still open when the gateway ended.
    CutOff,
}

const FAILURES: [(Failure, &str); 6] = [
    (Failure::Handshake, "handshake"),
    (Failure::Certificate, "certificate"),
    (Failure::Unreachable, "unreachable"),
    (Failure::Broken, "broken"),
    (Failure::Truncated, "truncated"),
    (Failure::CutOff, "cut_off"),
];

/// What our TCP counts, read when the page is asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TcpFigures {
    /// Segments sent again.
    pub retransmissions: u64,
    /// Connections that await the last segment of TCP's handshake now, with data in the SYN.
    pub half_open_with_data: u64,
    /// The same without.
    pub half_open_plain: u64,
    /// SYN cookies sent (RFC 4987 §3.6).
    pub syn_cookies: u64,
    /// Data in our SYN that the peer did not take.
    pub syn_data_refused: u64,
    /// Destinations found to drop SYNs with data.
    pub black_holes: u64,
    /// SYNs with data that were answered as ordinary ones, for lack of room.
    pub opened_without_data: u64,
    /// The same, since too many came in a second.
    pub syn_data_over_rate: u64,
    /// Half-open connections with data that a RST ended and that keep their place (RFC 7413 §5.1).
    pub half_open_reset: u64,
    /// Connections now whose relay has ended and that have data to send.
    pub orphans: u64,
    /// Of such, those that were reset: their peer took too little, or there were too many.
    pub orphans_ended: u64,
    /// Bytes held now of what was received and not read yet.
    pub receive_held: u64,
    /// Bytes held now of what is to be sent and not acknowledged yet.
    pub send_held: u64,
    /// Connections that TCP holds now, in any state but TIME-WAIT.
    pub connections: u64,
}

/// What one gateway counts. All of it can be read while it runs.
#[derive(Debug, Default)]
pub struct Metrics {
    /// Connections from the first byte to the last.
    pub open: Gauge,
    /// Connections whose handshake is under way.
    pub handshaking: Gauge,
    carried: [Counter; CARRIED.len()],
    failed: [Counter; FAILURES.len()],
    /// Connections that were turned away since there were as many as may be.
    pub refused_limit: Counter,
    /// The same, as there were as many of their source as may be.
    pub refused_source: Counter,
    displaced: Counter,
    displaced_by_source: Counter,
    deferred: Counter,
    /// From the first segment until application data could be sent.
    pub handshake: Histogram,
    /// Application bytes from the local program (connect) or server (serve) to the other gateway.
    pub bytes_to_peer: Counter,
    /// Application bytes the other way.
    pub bytes_from_peer: Counter,
    /// Connections whose first bytes went as early data.
    pub early_sent: Counter,
    /// Those that the peer took.
    pub early_accepted: Counter,
    /// Tickets in store.
    pub tickets: Gauge,
}

/// How connections were carried, and the label of each.
const CARRIED: [(Carried, &str); 6] = [
    (Carried::Sequential, "sequential"),
    (Carried::Embedded, "embedded"),
    (Carried::Refused, "refused"),
    (Carried::BlackHole, "black_hole"),
    (Carried::Reconnected, "reconnected"),
    (Carried::Remembered, "remembered"),
];

impl Metrics {
    /// Counts a connection that was set up; [`Carried::Pending`] is not counted yet.
    pub fn carried(&self, carried: Carried) {
        let of = |kind: &Counter| kind.increment();
        if let Some(at) = CARRIED.iter().position(|(kind, _)| *kind == carried) {
            self.carried.get(at).map(of);
        }
    }

    /// Counts a connection that failed.
    pub fn failed(&self, failure: Failure) {
        let of = |kind: &Counter| kind.increment();
        if let Some(at) = FAILURES.iter().position(|(kind, _)| *kind == failure) {
            self.failed.get(at).map(of);
        }
    }

    /// Takes over what the listener counts.
    pub fn take_over(&self, listener: &ListenerCounters) {
        let at = FAILURES.iter().position(|(kind, _)| *kind == Failure::Handshake);
        if let Some(counter) = at.and_then(|at| self.failed.get(at)) {
            counter.raise_to(listener.failed + listener.timed_out);
        }
        self.handshaking.set(listener.handshaking as u64);
        self.displaced.raise_to(listener.displaced);
        self.displaced_by_source.raise_to(listener.displaced_by_source);
        self.deferred.raise_to(listener.deferred);
    }

    /// The page for Prometheus.
    pub fn page(&self, role: &str, tcp: &TcpFigures) -> String {
        let mut page = Exposition::new("wiretax_gateway_", &[("role", role)]);
        page.gauge("connections_open", "Connections now open.", self.open.get());
        page.gauge("handshakes_open", "Handshakes now under way.", self.handshaking.get());
        let help = "Connections set up, by how the TLS handshake was carried: inside TCP's \
                    (embedded), after it (sequential), after it since the peer refused data in the \
                    SYN (refused), since the path drops such SYNs (black_hole), since the peer took \
                    an envelope for data (reconnected) or is remembered to (remembered).";
        let mut family = page.counters("connections_total", help);
        for ((_, name), count) in CARRIED.iter().zip(&self.carried) {
            family.line(&[("carried", name)], count.get());
        }
        let mut family = page.counters("failures_total", "Connections that failed, by reason.");
        for ((_, name), count) in FAILURES.iter().zip(&self.failed) {
            family.line(&[("reason", name)], count.get());
        }
        let limit = self.refused_limit.get();
        page.counter("refused_limit_total", "Connections turned away at the limit.", limit);
        let help = "Connections turned away at the limit of one source.";
        page.counter("refused_source_limit_total", help, self.refused_source.get());
        let help = "Silent handshakes reset for a newcomer, by the limit that was met.";
        let mut family = page.counters("handshakes_displaced_total", help);
        family.line(&[("limit", "all")], self.displaced.get());
        family.line(&[("limit", "source")], self.displaced_by_source.get());
        let help = "Handshakes put off until the client's address was validated, for lack of room.";
        page.counter("handshakes_deferred_total", help, self.deferred.get());
        let help = "Time until application data could be sent.";
        page.histograms("handshake_seconds", help).histogram(&[], &self.handshake);
        let help = "Application bytes, by direction as seen from the unmodified program.";
        let mut family = page.counters("bytes_total", help);
        family.line(&[("direction", "to_peer")], self.bytes_to_peer.get());
        family.line(&[("direction", "from_peer")], self.bytes_from_peer.get());
        page.counter("early_data_total", "Requests sent as early data.", self.early_sent.get());
        let help = "Requests that were taken as early data.";
        page.counter("early_data_accepted_total", help, self.early_accepted.get());
        page.gauge("tickets", "Session tickets in store.", self.tickets.get());
        tcp.expose(&mut page);
        page.into_text()
    }
}

impl TcpFigures {
    fn expose(&self, page: &mut Exposition) {
        let help = "TCP segments sent again.";
        page.counter("tcp_retransmissions_total", help, self.retransmissions);
        page.gauge("tcp_connections", "Connections that TCP holds.", self.connections);
        let help = "Connections that await the end of TCP's handshake.";
        let mut family = page.gauges("tcp_half_open", help);
        family.line(&[("syn", "with_data")], self.half_open_with_data);
        family.line(&[("syn", "plain")], self.half_open_plain);
        family.line(&[("syn", "reset")], self.half_open_reset);
        let help = "Connections whose relay has ended and that have data to send.";
        page.gauge("tcp_orphans", help, self.orphans);
        let help = "Such connections that were reset before all was sent.";
        page.counter("tcp_orphans_ended_total", help, self.orphans_ended);
        let help = "Bytes received and not read yet.";
        page.gauge("tcp_receive_held_bytes", help, self.receive_held);
        let help = "Bytes to be sent and not acknowledged yet.";
        page.gauge("tcp_send_held_bytes", help, self.send_held);
        page.counter("tcp_syn_cookies_total", "SYN cookies sent.", self.syn_cookies);
        let help = "Data in our SYN that the peer did not take.";
        page.counter("tcp_syn_data_refused_total", help, self.syn_data_refused);
        let help = "Destinations found to drop SYNs with data.";
        page.counter("tcp_black_holes_total", help, self.black_holes);
        let help = "SYNs with data answered as ordinary ones, for lack of room.";
        page.counter("tcp_opened_without_data_total", help, self.opened_without_data);
        let help = "SYNs with data answered as ordinary ones, since too many came in a second.";
        page.counter("tcp_syn_data_over_rate_total", help, self.syn_data_over_rate);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_histogram_is_cumulative_and_sums_up() {
        let metrics = Metrics::default();
        for ms in [1, 3, 60, 9000] {
            metrics.handshake.observe(Duration::from_millis(ms));
        }
        let page = metrics.page("serve", &TcpFigures::default());
        for line in [
            "wiretax_gateway_handshake_seconds_bucket{role=\"serve\",le=\"0.001\"} 1",
            "wiretax_gateway_handshake_seconds_bucket{role=\"serve\",le=\"0.002\"} 1",
            "wiretax_gateway_handshake_seconds_bucket{role=\"serve\",le=\"0.005\"} 2",
            "wiretax_gateway_handshake_seconds_bucket{role=\"serve\",le=\"0.1\"} 3",
            "wiretax_gateway_handshake_seconds_bucket{role=\"serve\",le=\"5\"} 3",
            "wiretax_gateway_handshake_seconds_bucket{role=\"serve\",le=\"+Inf\"} 4",
            "wiretax_gateway_handshake_seconds_sum{role=\"serve\"} 9.064",
            "wiretax_gateway_handshake_seconds_count{role=\"serve\"} 4",
        ] {
            assert!(page.lines().any(|found| found == line), "{line}\n{page}");
        }
    }

    #[test]
    fn what_is_held_is_counted_until_it_is_let_go() {
        let metrics = Metrics::default();
        let (one, two) = (metrics.open.hold(), metrics.open.hold());
        assert_eq!(metrics.open.get(), 2);
        drop((one, two));
        assert_eq!(metrics.open.get(), 0);
    }

    #[test]
    fn every_metric_has_its_help_its_type_and_a_value() {
        let metrics = Metrics::default();
        metrics.carried(Carried::Embedded);
        metrics.failed(Failure::CutOff);
        let tcp = TcpFigures { half_open_with_data: 3, ..TcpFigures::default() };
        let page = metrics.page("connect", &tcp);
        let names = |kind: &str| -> Vec<String> {
            let of = |line: &str| {
                let rest = line.strip_prefix(kind)?;
                rest.split_whitespace().next().map(str::to_owned)
            };
            page.lines().filter_map(of).collect()
        };
        let (helps, types) = (names("# HELP "), names("# TYPE "));
        assert_eq!(helps, types);
        for line in page.lines().filter(|line| !line.starts_with('#')) {
            let (name, rest) = line.split_once('{').unwrap();
            let known = |of: &&String| name.strip_prefix(of.as_str()).is_some();
            assert!(helps.iter().find(known).is_some(), "{line}");
            assert!(rest.starts_with("role=\"connect\""), "{line}");
            let value = rest.rsplit_once(' ').unwrap().1;
            assert!(value.parse::<f64>().is_ok(), "{line}");
        }
        for (line, value) in [("carried=\"embedded\"", 1), ("reason=\"cut_off\"", 1)] {
            assert!(page.contains(&format!("{line}}} {value}\n")), "{page}");
        }
        assert!(page.contains("syn=\"with_data\"} 3\n"));
    }
}
