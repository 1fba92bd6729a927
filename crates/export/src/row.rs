//! The rows: one struct each, which is the schema.

use crate::columns::table;

/// Version of the schema of [`Row`] and [`EndingRow`].
pub const SCHEMA: u32 = 1;

table! {
    /// One connection. Times are nanoseconds since the Unix epoch, durations nanoseconds.
    pub struct Row: "connections" of "connection" at first_frame {
        /// Which run of the program saw it. `number` counts within a run.
        run: String,
        /// Its number: connections count from 0 in the order in which they began.
        number: u64,
        /// Address of who opened it: sent the SYN or the first Initial. Hidden as asked.
        client: String,
        /// The TCP or UDP port of `client`.
        client_port: u16,
        /// The network of `client`, its bits beyond the prefix zero: `192.0.2.0/24`.
        client_network: String,
        /// Address of the other one. Hidden as asked.
        server: String,
        /// The TCP or UDP port of `server`.
        server_port: u16,
        /// `tcp` or `quic`.
        transport: String,
        /// Whether client and server are known by what they sent; if not, the lower port was taken
        /// for the server's.
        roles_known: bool,
        /// The host name asked for (SNI). Hidden as asked.
        sni: Option<String>,
        /// The application protocols offered (ALPN).
        alpn_offered: Vec<String>,
        /// The one chosen, where TLS shows it: below TLS 1.3.
        alpn: Option<String>,
        /// The version negotiated: `TLS 1.3`, `TLS 1.3 draft 23`.
        version: Option<String>,
        /// Its number on the wire: 772 is 0x0304, TLS 1.3.
        version_number: Option<u16>,
        /// The versions offered, GREASE left out.
        versions_offered: Vec<String>,
        /// The cipher suite chosen: IANA's name, or its number as `0x…`.
        cipher_suite: Option<String>,
        /// The group of the server's key share; in TLS 1.2 not told.
        group_name: Option<String>,
        /// The groups of the client's first key shares, GREASE left out.
        key_shares: Vec<String>,
        /// `full`, `resumed`, `zero_rtt`, `hello_retry` or `failed`; null without TLS.
        class: Option<String>,
        /// By what a session was resumed: `none`, `psk`, `ticket` or `session_id`; null without TLS.
        resumption: Option<String>,
        /// The client offered a pre-shared key (TLS 1.3).
        psk_offered: Option<bool>,
        /// The server chose it.
        psk_accepted: Option<bool>,
        /// The client sent a ticket (TLS 1.2).
        ticket_offered: Option<bool>,
        /// The session was resumed by it.
        ticket_accepted: Option<bool>,
        /// What became of early data: `not_offered`, `offered` (nothing decides), `rejected`,
        /// `likely` (QUIC) or `accepted`.
        early_data: Option<String>,
        /// The server asked for another ClientHello.
        hello_retry_request: Option<bool>,
        /// The server asked for a certificate; null where TLS hides it.
        certificate_requested: Option<bool>,
        /// The client offered encrypted_client_hello, in earnest or as GREASE.
        ech_offered: Option<bool>,
        /// JA3: an MD5 in hexadecimal.
        ja3: Option<String>,
        /// JA4 of the ClientHello.
        ja4: Option<String>,
        /// Length of the ClientHello message with its header, bytes.
        client_hello_bytes: Option<u32>,
        /// The first frame.
        first_frame: u64,
        /// The last frame; where `goes_on`, the last one before this row was made.
        last_frame: u64,
        /// The first SYN.
        syn: Option<u64>,
        /// The first SYN+ACK.
        syn_ack: Option<u64>,
        /// The first acknowledgment of the SYN+ACK.
        ack: Option<u64>,
        /// First byte of the ClientHello.
        client_hello: Option<u64>,
        /// Last byte of the ServerHello.
        server_hello: Option<u64>,
        /// Last byte of the server's first flight.
        server_flight_end: Option<u64>,
        /// The client's Finished.
        client_finished: Option<u64>,
        /// The client's first application data.
        client_data: Option<u64>,
        /// The server's first application data.
        server_data: Option<u64>,
        /// From SYN or first Initial to the client's Finished.
        handshake: Option<u64>,
        /// From ClientHello to the client's Finished.
        tls_handshake: Option<u64>,
        /// From the client's Finished to its first application data; 0 if these came first.
        think: Option<u64>,
        /// From ClientHello to the client's first application data: both of these together.
        hello_to_data: Option<u64>,
        /// The round trip by TCP's handshake; null if a part of it was sent again. Over QUIC the part
        /// between capture and client.
        round_trip: Option<u64>,
        /// `tls_handshake` over `round_trip`.
        tls_round_trips: Option<f64>,
        /// Name of the first alert, its number if it has none, `encrypted` if it cannot be read.
        alert: Option<String>,
        /// Its level: 1 warning, 2 fatal; null if encrypted.
        alert_level: Option<u8>,
        /// Who sent it: `client` or `server`.
        alert_from: Option<String>,
        /// How it ended: `open`, `fin` or `reset`. Where `goes_on`, the ending row has it.
        ended: String,
        /// Whether it was dropped from a full table: what came later is not counted.
        dropped: bool,
        /// Whether an ending row with this number follows.
        goes_on: bool,
        /// Why some of this may be wrong: `mid_stream`, `one_direction`, …; empty if nothing is in
        /// doubt.
        uncertain: Vec<String>,
        /// Frames from the client.
        frames_up: u64,
        /// Their bytes on the link, headers included.
        bytes_up: u64,
        /// Frames from the server.
        frames_down: u64,
        /// Their bytes on the link, headers included.
        bytes_down: u64,
        /// Segments that the client sent again.
        retransmitted_up: Option<u64>,
        /// Segments that the server sent again.
        retransmitted_down: Option<u64>,
    }
}

table! {
    /// How a connection ended whose row was written before.
    pub struct EndingRow: "endings" of "ending" at last_frame {
        /// Which run of the program saw it.
        run: String,
        /// Number of the connection in that run.
        number: u64,
        /// The last frame, nanoseconds since the Unix epoch.
        last_frame: u64,
        /// All frames from the client.
        frames_up: u64,
        /// Their bytes on the link, headers included.
        bytes_up: u64,
        /// All frames from the server.
        frames_down: u64,
        /// Their bytes on the link, headers included.
        bytes_down: u64,
        /// How it ended: `open`, `fin` or `reset`.
        ended: String,
        /// Whether it was dropped from a full table.
        dropped: bool,
    }
}
