//! What follows from a record: its class and its durations.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use super::{Connection, EarlyData, End, Resumption, TlsFacts, Uncertain};

/// What kind of handshake it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// A full handshake in as few round trips as its version has.
    Full,
    /// A session was resumed.
    Resumed,
    /// Early data were taken (over QUIC: likely taken).
    ZeroRtt,
    /// The server asked for another ClientHello.
    HelloRetry,
    /// A ClientHello went, but no Finished of the client came; or a fatal alert came before any data
    /// of the server; or below TLS 1.3 the connection ended without the server's Finished.
    Failed,
}

impl Class {
    /// All of them.
    pub const ALL: [Class; 5] =
        [Class::Full, Class::Resumed, Class::ZeroRtt, Class::HelloRetry, Class::Failed];

    /// Its name in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Class::Full => "full",
            Class::Resumed => "resumed",
            Class::ZeroRtt => "zero_rtt",
            Class::HelloRetry => "hello_retry",
            Class::Failed => "failed",
        }
    }
}

/// Shorter than the first timeout of QUIC, after which a packet is sent again: three initial round trips of
/// 333 ms (RFC 9002 §6.2.2).
const QUIC_TIMEOUT: Duration = Duration::from_millis(900);

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Connection {
    /// From the SYN or the first Initial until the client's Finished. Its Finished gone, the client
    /// may send.
    #[must_use]
    pub fn handshake_time(&self) -> Option<Duration> {
        let started = match (&self.tcp, &self.quic) {
            (Some(tcp), _) => tcp.syn?,
            (_, Some(quic)) => quic.client_initial?,
            _ => return None,
        };
        self.tls.as_ref()?.client_finished?.checked_since(started)
    }

    /// From the ClientHello until the client's Finished: the TLS handshake as the capture saw it.
    #[must_use]
    pub fn tls_handshake_time(&self) -> Option<Duration> {
        let tls = self.tls.as_ref()?;
        tls.client_finished?.checked_since(tls.client_hello?)
    }

    /// From the client's Finished until its first application data: zero if these came first, as
    /// early data do. Browsers connect ahead and then wait.
    #[must_use]
    pub fn think_time(&self) -> Option<Duration> {
        let finished = self.tls.as_ref()?.client_finished?;
        Some(self.client_data?.saturating_since(finished))
    }

    /// From the ClientHello until the client's first application data: what GREE 2018 measured
    /// (GREE 2018), handshake and think time together.
    #[must_use]
    pub fn hello_to_data(&self) -> Option<Duration> {
        self.client_data?.checked_since(self.tls.as_ref()?.client_hello?)
    }

    /// The round trip between the two ends, by TCP's handshake: from the SYN until the SYN+ACK's
    /// acknowledgment, wherever the capture was. `None` without all three, or if one of them was
    /// sent again before: then it would be too long. Of QUIC, from the server's first Initial until
    /// the client's first Handshake packet: the part between capture and client.
    #[must_use]
    pub fn round_trip(&self) -> Option<Duration> {
        if let Some(quic) = &self.quic {
            return quic.client_handshake?.checked_since(quic.server_initial?);
        }
        let tcp = self.tcp.as_ref()?;
        if tcp.handshake_retransmitted {
            return None;
        }
        tcp.handshake_ack?.checked_since(tcp.syn?)
    }

    /// The TLS handshake in round trips: [`Connection::tls_handshake_time`] over
    /// [`Connection::round_trip`].
    #[must_use]
    pub fn tls_round_trips(&self) -> Option<f64> {
        let round_trip = self.round_trip().filter(|time| !time.is_zero())?;
        Some(self.tls_handshake_time()?.as_secs_f64() / round_trip.as_secs_f64())
    }

    /// What kind of handshake it was; `None` without TLS, and where too little was captured to tell
    /// whether it went well: one direction, with bytes missing, without the ClientHello or a
    /// ServerHello that can be read, of an unknown suite, or not to its end.
    #[must_use]
    pub fn class(&self) -> Option<Class> {
        let tls = self.tls.as_ref()?;
        Some(if self.has_failed(tls)? {
            Class::Failed
        } else if tls.hello_retry_request.is_some() {
            Class::HelloRetry
        } else if matches!(tls.early_data, EarlyData::Accepted | EarlyData::Likely) {
            Class::ZeroRtt
        } else if tls.resumption != Resumption::None {
            Class::Resumed
        } else {
            Class::Full
        })
    }

    /// Whether the handshake failed, if that can be told.
    fn has_failed(&self, tls: &TlsFacts) -> Option<bool> {
        if self.is_refused(tls) {
            return Some(true);
        }
        let doubt = |wanted: &[Uncertain]| self.uncertain.iter().any(|one| wanted.contains(one));
        let blind = tls.client_hello.is_none()
            || self.dropped
            || doubt(&[
                Uncertain::BytesMissing,
                Uncertain::OneDirection,
                Uncertain::UnknownSuite,
                Uncertain::CaptureEnded,
                Uncertain::FellSilent,
            ]);
        // Without a ServerHello the version is not known, and of QUIC not even who finished.
        if doubt(&[Uncertain::ServerHello]) || (blind && self.is_half(tls)) {
            return None;
        }
        Some(self.is_half(tls) && (tls.client_finished.is_none() || self.end != End::Open))
    }

    /// Whether an end refused the handshake: close_notify (0) ends a connection in order, whatever
    /// level it is sent with; a QUIC connection that is closed by an Initial packet never was one.
    fn is_refused(&self, tls: &TlsFacts) -> bool {
        // RFC 8446 §4.6.1: a server gives tickets once it has the client's Finished.
        let agreed = tls.client_finished.filter(|_| self.is_tls13() && tls.tickets > 0);
        let mut alerts = tls.alerts.iter();
        let fatal = alerts.any(|alert| {
            let ends = alert.level == Some(2) && alert.description != Some(0);
            ends && agreed.is_none_or(|finished| alert.at < finished)
        });
        let closed = self.quic.as_ref().is_some_and(|quic| quic.close.is_some());
        let refused = tls.refused || fatal || (closed && tls.client_finished.is_none());
        self.server_data.is_none() && refused
    }

    fn is_tls13(&self) -> bool {
        self.tls.as_ref().and_then(|tls| tls.version).is_some_and(|version| version.is_tls13())
    }

    /// Whether a Finished that makes the handshake is not there. RFC 5246 §7.3: below TLS 1.3 the
    /// server's comes last in a full one.
    fn is_half(&self, tls: &TlsFacts) -> bool {
        let legacy = tls.version.is_some() && !self.is_tls13();
        let unanswered = tls.server_finished.is_none() && self.server_data.is_none();
        tls.client_finished.is_none() || (legacy && unanswered)
    }

    /// Whether an end tried again and gave up: it sent its last flight again in vain. Of QUIC, whose
    /// acknowledgments are hidden: it went on for longer than its first timeout.
    pub(crate) fn was_given_up(&self) -> bool {
        match &self.tcp {
            Some(tcp) => tcp.unanswered,
            None => self.last_frame.saturating_since(self.first_frame) > QUIC_TIMEOUT,
        }
    }

    /// Whether its handshake began, and neither ended nor was given up.
    pub(crate) fn is_unfinished(&self) -> bool {
        let Some(tls) = &self.tls else { return false };
        // Of an encrypted alert the level is hidden: none but a fatal one comes so early.
        let alerted = tls.client_finished.is_none() && tls.alerts.iter().any(|a| a.level.is_none());
        self.end == End::Open && !self.is_refused(tls) && !alerted && self.is_half(tls)
    }
}
