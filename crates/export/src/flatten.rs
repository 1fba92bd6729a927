//! From a record to a row.

use std::time::Duration;

use tracker::{
    AlertFacts, Connection, EarlyData, End, Ending, Resumption, TcpFacts, TlsFacts, Transport,
};
use units::Time;

use crate::address::Prefixes;
use crate::row::{EndingRow, Row};

/// Makes rows of one run's records.
#[derive(Debug)]
pub struct Flattener {
    run: String,
    networks: Prefixes,
}

impl Flattener {
    /// Rows that say `run`, which no other run that goes to the same data set may have. They hide
    /// nothing: [`crate::Anonymiser::hide`] does, and says what `networks` may then be.
    #[must_use]
    pub fn new(run: impl Into<String>, networks: Prefixes) -> Self {
        Flattener { run: run.into(), networks }
    }

    /// The row of a connection.
    #[must_use]
    pub fn connection(&self, connection: &Connection) -> Row {
        let client = connection.client.ip();
        let mut row = Row {
            run: self.run.clone(),
            number: connection.number,
            client_network: self.networks.of(client).to_string(),
            client: client.to_string(),
            client_port: connection.client.port(),
            server: connection.server.ip().to_string(),
            server_port: connection.server.port(),
            transport: transport(connection.transport).to_owned(),
            roles_known: connection.roles_known,
            class: connection.class().map(|class| class.name().to_owned()),
            first_frame: connection.first_frame.as_nanos(),
            last_frame: connection.last_frame.as_nanos(),
            client_data: time(connection.client_data),
            server_data: time(connection.server_data),
            handshake: nanos(connection.handshake_time()),
            tls_handshake: nanos(connection.tls_handshake_time()),
            think: nanos(connection.think_time()),
            hello_to_data: nanos(connection.hello_to_data()),
            round_trip: nanos(connection.round_trip()),
            tls_round_trips: connection.tls_round_trips(),
            ended: end(connection.end).to_owned(),
            dropped: connection.dropped,
            goes_on: connection.goes_on,
            uncertain: connection.uncertain.iter().map(|reason| reason.name().to_owned()).collect(),
            frames_up: connection.up.frames,
            bytes_up: connection.up.bytes,
            frames_down: connection.down.frames,
            bytes_down: connection.down.bytes,
            ..Row::default()
        };
        if let Some(tcp) = &connection.tcp {
            add_tcp(&mut row, tcp);
        }
        if let Some(tls) = &connection.tls {
            add_offer(&mut row, tls);
            row.sni.clone_from(&tls.server_name);
            add_outcome(&mut row, tls);
        }
        row
    }

    /// The row of an ending.
    #[must_use]
    pub fn ending(&self, ending: &Ending) -> EndingRow {
        EndingRow {
            run: self.run.clone(),
            number: ending.number,
            last_frame: ending.last_frame.as_nanos(),
            frames_up: ending.up.frames,
            bytes_up: ending.up.bytes,
            frames_down: ending.down.frames,
            bytes_down: ending.down.bytes,
            ended: end(ending.end).to_owned(),
            dropped: ending.dropped,
        }
    }
}

fn add_tcp(row: &mut Row, tcp: &TcpFacts) {
    row.syn = time(tcp.syn);
    row.syn_ack = time(tcp.syn_ack);
    row.ack = time(tcp.handshake_ack);
    row.retransmitted_up = Some(tcp.client_retransmitted);
    row.retransmitted_down = Some(tcp.server_retransmitted);
}

/// What the ClientHello says, less its host name.
fn add_offer(row: &mut Row, tls: &TlsFacts) {
    row.alpn_offered.clone_from(&tls.alpn_offered);
    row.versions_offered = texts(&tls.versions_offered);
    row.key_shares = texts(&tls.key_shares);
    row.psk_offered = Some(tls.psk_offered);
    row.ticket_offered = Some(tls.ticket_offered.is_some_and(|bytes| bytes > 0));
    row.ech_offered = Some(tls.ech_offered);
    row.ja3.clone_from(&tls.ja3);
    row.ja4.clone_from(&tls.ja4);
    row.client_hello_bytes = Some(tls.client_hello_len);
    row.client_hello = time(tls.client_hello);
}

/// What the server made of it.
fn add_outcome(row: &mut Row, tls: &TlsFacts) {
    row.alpn.clone_from(&tls.alpn);
    row.version = tls.version.map(|version| version.to_string());
    row.version_number = tls.version.map(|version| version.0);
    row.cipher_suite = tls.cipher_suite.map(|suite| suite.to_string());
    row.group_name = tls.group.map(|group| group.to_string());
    row.resumption = Some(resumption(tls.resumption).to_owned());
    row.psk_accepted = Some(tls.psk_accepted);
    row.ticket_accepted = Some(tls.resumption == Resumption::Ticket);
    row.early_data = Some(early_data(tls.early_data).to_owned());
    row.hello_retry_request = Some(tls.hello_retry_request.is_some());
    row.certificate_requested = tls.certificate_requested;
    row.server_hello = time(tls.server_hello_end);
    row.server_flight_end = time(tls.server_flight_end);
    row.client_finished = time(tls.client_finished);
    if let Some(first) = tls.alerts.first() {
        row.alert = Some(alert(first));
        row.alert_level = first.level;
        row.alert_from = Some(if first.from_client { "client" } else { "server" }.to_owned());
    }
}

fn time(time: Option<Time>) -> Option<u64> {
    time.map(Time::as_nanos)
}

fn nanos(duration: Option<Duration>) -> Option<u64> {
    duration.map(|duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}

fn texts<T: ToString>(list: &[T]) -> Vec<String> {
    list.iter().map(ToString::to_string).collect()
}

fn alert(alert: &AlertFacts) -> String {
    match (alert.name, alert.description) {
        (Some(name), _) => name.to_owned(),
        (None, Some(code)) => code.to_string(),
        (None, None) => "encrypted".to_owned(),
    }
}

fn transport(transport: Transport) -> &'static str {
    match transport {
        Transport::Tcp => "tcp",
        Transport::Quic => "quic",
    }
}

fn end(end: End) -> &'static str {
    match end {
        End::Open => "open",
        End::Fin => "fin",
        End::Reset => "reset",
    }
}

fn resumption(resumption: Resumption) -> &'static str {
    match resumption {
        Resumption::None => "none",
        Resumption::Psk => "psk",
        Resumption::Ticket => "ticket",
        Resumption::SessionId => "session_id",
    }
}

fn early_data(early_data: EarlyData) -> &'static str {
    match early_data {
        EarlyData::NotOffered => "not_offered",
        EarlyData::Offered => "offered",
        EarlyData::Rejected => "rejected",
        EarlyData::Likely => "likely",
        EarlyData::Accepted => "accepted",
    }
}
