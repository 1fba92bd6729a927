//! The events of one side of a connection.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quinn_proto::transport_parameters::TransportParameters;
use serde_json::{Map, Value, json};
use units::Time;

use super::file::Records;
use super::parameters::{self, ACK_DELAY_EXPONENT};
use super::{frames, hex, packets};
use crate::now;

/// The side that a file is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::quic) enum Vantage {
    /// The client.
    Client,
    /// The server.
    Server,
}

impl Vantage {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Vantage::Client => "client",
            Vantage::Server => "server",
        }
    }
}

/// What protects a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::quic) enum Level {
    /// Keys that anyone can derive.
    Initial,
    /// Keys of early data.
    ZeroRtt,
    /// Keys of the handshake.
    Handshake,
    /// Keys of the application's data.
    OneRtt,
}

impl Level {
    pub(super) const fn packet_type(self) -> &'static str {
        match self {
            Level::Initial => "initial",
            Level::ZeroRtt => "0RTT",
            Level::Handshake => "handshake",
            Level::OneRtt => "1RTT",
        }
    }

    const fn key_type(self, of: Vantage) -> &'static str {
        match (self, of) {
            (Level::Initial, Vantage::Client) => "client_initial_secret",
            (Level::Initial, Vantage::Server) => "server_initial_secret",
            (Level::ZeroRtt, Vantage::Client) => "client_0rtt_secret",
            (Level::ZeroRtt, Vantage::Server) => "server_0rtt_secret",
            (Level::Handshake, Vantage::Client) => "client_handshake_secret",
            (Level::Handshake, Vantage::Server) => "server_handshake_secret",
            (Level::OneRtt, Vantage::Client) => "client_1rtt_secret",
            (Level::OneRtt, Vantage::Server) => "server_1rtt_secret",
        }
    }
}

/// Who did something, as the file's side sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Initiator {
    Local,
    Remote,
}

impl Initiator {
    const fn name(self) -> &'static str {
        match self {
            Initiator::Local => "local",
            Initiator::Remote => "remote",
        }
    }
}

/// A packet whose protection is off.
#[derive(Debug, Clone, Copy)]
pub(super) struct Packet<'a> {
    pub(super) level: Level,
    pub(super) number: u64,
    pub(super) header: &'a [u8],
    pub(super) payload: &'a [u8],
    /// Its bytes on the wire.
    pub(super) length: usize,
}

/// How far a connection is (BaseConnectionStates and some between).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Attempted,
    Started,
    Complete,
    Confirmed,
    Closed,
}

impl Stage {
    const fn name(self) -> &'static str {
        match self {
            Stage::Attempted => "attempted",
            Stage::Started => "handshake_started",
            Stage::Complete => "handshake_complete",
            Stage::Confirmed => "handshake_confirmed",
            Stage::Closed => "closed",
        }
    }
}

/// Events that are held until the connection's first identifier is known.
const HELD: usize = 16;

/// Writes the events of one side of a connection.
pub(in crate::quic) struct Trace {
    vantage: Vantage,
    state: Mutex<State>,
}

struct State {
    records: Option<Records>,
    /// The client's first Destination Connection ID, where the parameters have it: at a server.
    group: Option<String>,
    held: Vec<Value>,
    stage: Option<Stage>,
    /// This side's and the peer's (RFC 9000 §18.2).
    ack_delay_exponents: [u32; 2],
    has_remote_parameters: bool,
}

impl Trace {
    /// A file's events, if files are wanted.
    pub(in crate::quic) fn begin(vantage: Vantage) -> Option<Arc<Trace>> {
        super::folder().map(|_| Arc::new(Trace::new(vantage)))
    }

    pub(super) fn new(vantage: Vantage) -> Trace {
        let state = State {
            records: None,
            group: None,
            held: Vec::new(),
            stage: None,
            ack_delay_exponents: [ACK_DELAY_EXPONENT; 2],
            has_remote_parameters: false,
        };
        Trace { vantage, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the file, by the Destination Connection ID of the client's Initial packets; once. Behind a Retry
    /// that is not the client's first: a server's parameters have that.
    pub(super) fn name(&self, id: &[u8]) {
        let Some(folder) = super::folder() else { return };
        let group = {
            let state = self.state();
            if state.records.is_some() {
                return;
            }
            state.group.clone().unwrap_or_else(|| hex(id))
        };
        match Records::create(&folder, &group, self.vantage) {
            Ok(records) => self.write_to(records),
            Err(error) => tracing::warn!(%error, "a qlog file cannot be written"),
        }
    }

    pub(super) fn write_to(&self, mut records: Records) {
        let mut state = self.state();
        state.held.drain(..).for_each(|event| records.put(&event));
        state.records = Some(records);
    }

    /// The connection begins, in this version.
    pub(in crate::quic) fn started(&self, version: u32, local: &TransportParameters) {
        let version = hex(&version.to_be_bytes());
        let local = parameters::parameters(local);
        let mut state = self.state();
        let original = local.get("original_destination_connection_id");
        state.group = original.and_then(Value::as_str).map(str::to_owned);
        let source = local.get("initial_source_connection_id").cloned();
        let ids = source.map_or_else(|| json!({}), |id| json!({ "connection_ids": [id] }));
        state.put("connection_started", json!({ "local": ids, "remote": {} }));
        let versions = format!("{}_versions", self.vantage.name());
        state.put("version_information", json!({ versions: [version], "chosen_version": version }));
        state.parameters(Initiator::Local, local);
        state.reach(Stage::Attempted);
    }

    /// The peer's parameters are known; once.
    pub(in crate::quic) fn remote_parameters(&self, remote: &TransportParameters) {
        let mut state = self.state();
        if !std::mem::replace(&mut state.has_remote_parameters, true) {
            state.parameters(Initiator::Remote, parameters::parameters(remote));
        }
    }

    /// Keys of both directions are there; by an update that made the connection's n-th.
    pub(super) fn keys(&self, level: Level, update: Option<u64>) {
        let mut state = self.state();
        for side in [Vantage::Client, Vantage::Server] {
            let mut data = json!({ "key_type": level.key_type(side), "trigger": "tls" });
            if let (Some(phase), Some(data)) = (update, data.as_object_mut()) {
                data.remove("trigger");
                data.insert("key_phase".to_owned(), phase.into());
            }
            state.put("key_updated", data);
        }
    }

    /// Both Finished are done; the application protocol is this.
    pub(in crate::quic) fn complete(&self, alpn: Option<&[u8]>) {
        let mut state = self.state();
        if state.stage >= Some(Stage::Complete) {
            return;
        }
        if let Some(alpn) = alpn {
            let mut chosen = json!({ "byte_value": hex(alpn) });
            if let (Ok(text), Some(chosen)) = (std::str::from_utf8(alpn), chosen.as_object_mut()) {
                chosen.insert("string_value".to_owned(), text.into());
            }
            state.put("alpn_information", json!({ "chosen_alpn": chosen }));
        }
        state.reach(Stage::Complete);
    }

    /// A Retry came: the handshake begins again.
    pub(in crate::quic) fn retry(&self, header: &[u8], length: usize) {
        let mut header = wire::quic::Invariants::new_checked(header).map_or_else(
            |_| json!({}),
            |long| json!({ "dcid": hex(long.destination), "scid": hex(long.source) }),
        );
        if let Some(fields) = header.as_object_mut() {
            fields.insert("packet_type".to_owned(), "retry".into());
        }
        let data = json!({ "header": header, "raw": { "length": length } });
        self.state().put("packet_received", data);
    }

    /// A packet is sealed, or was opened at this time.
    pub(super) fn packet(&self, by: Initiator, at: Time, packet: Packet<'_>) {
        let mut state = self.state();
        let [local, remote] = state.ack_delay_exponents;
        let (name, exponent) = match by {
            Initiator::Local => ("packet_sent", local),
            Initiator::Remote => ("packet_received", remote),
        };
        let exponent = if packet.level == Level::OneRtt { exponent } else { ACK_DELAY_EXPONENT };
        let Packet { level, number, header, payload, length } = packet;
        let data = json!({
            "header": packets::header(header, number, level),
            "frames": frames::frames(payload, exponent),
            "raw": { "length": length, "payload_length": payload.len() },
        });
        state.put_at(at, name, data);
        if level == Level::Handshake {
            state.reach(Stage::Started);
        }
        if level == Level::OneRtt && frames::confirms(payload) {
            state.reach(Stage::Confirmed);
        }
        if let Some((by_application, code, reason)) = frames::close(payload) {
            state.close(by, by_application, code, reason);
        }
    }

    /// A packet could not be opened.
    pub(super) fn dropped(&self, level: Level, length: usize) {
        let data = json!({
            "header": { "packet_type": level.packet_type() },
            "raw": { "length": length },
            "trigger": "decryption_failure",
        });
        self.state().put("packet_dropped", data);
    }

    /// How the path stands: the smoothed round-trip time and the congestion window.
    pub(in crate::quic) fn metrics(&self, path: &quinn::PathStats) {
        let data = json!({
            "smoothed_rtt": path.rtt.as_nanos() as f64 / 1e6,
            "congestion_window": path.cwnd,
        });
        self.state().put("recovery_metrics_updated", data);
    }
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trace").field("vantage", &self.vantage).finish_non_exhaustive()
    }
}

impl State {
    fn put(&mut self, name: &str, data: Value) {
        self.put_at(now(), name, data);
    }

    fn put_at(&mut self, at: Time, name: &str, data: Value) {
        let time = at.as_nanos() as f64 / 1e6;
        let event = json!({ "time": time, "name": format!("quic:{name}"), "data": data });
        match &mut self.records {
            Some(records) => records.put(&event),
            None if self.held.len() < HELD => self.held.push(event),
            None => {}
        }
    }

    fn parameters(&mut self, initiator: Initiator, mut parameters: Map<String, Value>) {
        let exponent = parameters::ack_delay_exponent(&parameters);
        let [local, remote] = &mut self.ack_delay_exponents;
        *(if initiator == Initiator::Local { local } else { remote }) = exponent;
        parameters.insert("initiator".to_owned(), initiator.name().into());
        self.put("parameters_set", parameters.into());
    }

    /// Notes a stage that was not reached before.
    fn reach(&mut self, stage: Stage) {
        if self.stage >= Some(stage) {
            return;
        }
        let mut data = json!({ "new": stage.name() });
        if let (Some(old), Some(data)) = (self.stage, data.as_object_mut()) {
            data.insert("old".to_owned(), old.name().into());
        }
        self.stage = Some(stage);
        self.put("connection_state_updated", data);
    }

    /// Notes the first CONNECTION_CLOSE, and writes the file: the program may end.
    fn close(&mut self, by: Initiator, by_application: bool, code: u64, reason: String) {
        if self.stage < Some(Stage::Closed) {
            let mut data = frames::error(by_application, code);
            let error = data.remove("error").unwrap_or_default();
            let name = if by_application { "application_error" } else { "connection_error" };
            data.insert(name.to_owned(), error);
            data.insert("initiator".to_owned(), by.name().into());
            data.insert("reason".to_owned(), reason.into());
            let trigger = if by_application { "application" } else { "error" };
            data.insert("trigger".to_owned(), trigger.into());
            self.put("connection_closed", data.into());
            self.reach(Stage::Closed);
        }
        if let Some(records) = &mut self.records {
            records.flush();
        }
    }
}
