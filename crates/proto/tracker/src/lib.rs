//! Packets of a connection in, facts of its handshake out.
//!
//! [`Tracker`] takes captured frames with their times and gives one [`Connection`] for each TCP or
//! QUIC connection: when each step of its handshake went by, what was offered and negotiated, how
//! many frames and bytes it took. It reads no files, has no clock and draws no random numbers.
//!
//! # What times mean
//! A time is that of the frame with which the byte in question could be read in order: after a loss
//! before the capture point, the time of the frame that filled the hole. Of a frame captured twice
//! the first counts, also where the receiver took only the second. Data on a SYN are the exception:
//! they belong to the stream only as far as the server acknowledged them, for the client may put
//! other bytes in their place.
//!
//! Frames are taken in the order of cause and effect: one that acknowledges bytes of the other side comes after
//! them, wherever the capture has it. [`TcpFacts::clock_offset`] tells by how much the clocks of both directions
//! differ, where answers are dated before their questions.
//!
//! # SSLmTCP
//! Its TLS handshake rides in TCP's: data on the SYN and on the SYN+ACK are the first bytes of the
//! streams. Where the records of these are wrapped in envelopes, which [`TcpFacts::enveloped`] tells,
//! the facts of TLS are those of the records inside.
//!
//! # What is told without keys, and with them
//! Of TLS 1.3, records are told apart by the sizes that the suite fixes, by order and by TCP's
//! acknowledgments; `tls/rule13.rs` states the rule and where it is wrong. Where it cannot decide,
//! [`Connection::uncertain`] says why. Where a [`KeyLog`] has a connection's secrets, its records over
//! TCP are opened until both sides' first application data: what they hold takes the place of what the
//! rule found, and [`Decrypted::rule_agrees`] says whether that was the same. Of QUIC, Initial packets
//! are opened, whose keys are public; the other packets are counted and timed only.
//!
//! # Where TLS begins
//! With the first byte of the client, in the format of TLS or of SSL 2.0's greeting; or behind up to
//! 16 KiB of another protocol, as STARTTLS, PostgreSQL, a proxy's CONNECT and others have it: with a
//! ClientHello at the front of a segment or of a line. A PROXY header, version 1 or 2, is passed. Plain HTTP
//! requests and SSH are not looked into.
//!
//! Early data over TCP is proven accepted by EndOfEarlyData, which a client sends only then
//! (RFC 8446 §4.5). QUIC has no such message (RFC 9001 §8.3), and the server's answer is
//! encrypted: what is known is that 0-RTT packets were sent, whether a pre-shared key was chosen,
//! and whether the server sent 1-RTT packets before the client's Finished. Without a chosen key
//! early data is rejected; with one it is `likely` at best.
//!
//! # Around the transport
//! Passed are VLAN, QinQ, VN, E and I tags, Cisco MetaData, SNAP, MACsec without encryption, MPLS labels and
//! pseudowires, PPPoE, NSH, GRE, VXLAN (GPE too), Geneve, GTP-U, L2TP, AH, IP in IP, CAPWAP in the clear, and
//! mirrored frames (ERSPAN, TZSP): up to eight headers in all. A connection's addresses are the innermost.
//! [`Wrapping`] names what hides frames. Linux cooked captures, BSD loopback and PPP are read beside Ethernet
//! and raw IP ([`LinkType`]). IP fragments are put together,
//! bounded in number, bytes and time; where they overlap the datagram is dropped (RFC 5722). A
//! datagram's frames all count for the connection that it belongs to. DTLS is recognised and passed
//! over; DTLS 1.3's encrypted records, which nothing tells from other datagrams, count as
//! strays. [`Counters`] says of every frame what became of it.
//!
//! # Early records
//! With [`HandOut::AfterHandshake`] a record leaves once both sides have sent application data; how
//! the connection ends follows as an [`Ending`]. What is kept between them is 128 bytes, with the
//! index 139 to 160 a connection, as `tests/memory.rs` counts them. Streams that are no TLS leave
//! once both sides have sent, or one has sent 16 KiB; a handshake that goes nowhere stays until its
//! end.
//!
//! # What the application said
//! [`Streams`] reads connections to their end where the secrets are known, and hands out the bytes in
//! TLS: what is spoken there is for others to read.
//!
//! # Speed
//! A packet of a connection whose record is out takes about 110 to 150 ns of one core of a busy
//! 2.8 GHz machine, among 10,000 connections, whatever its length: its payload is not looked at.
//! Most of that is waiting for the two cache lines of the
//! connection and the one of the index; [`Tracker::handle_packets`] asks for those of several
//! packets at once. `benches/established.rs` measures it.
//!
//! # Several threads
//! [`Sharder`] shares frames out among trackers so that all of them together give the records that one
//! would.
//!
//! # Bounds
//! Connections are bounded by [`Limits::connections`]; each takes less than 4 KiB until its record is
//! out, beside what counts for [`Limits::held_bytes`]: what came out of order (at most
//! [`Limits::stream_bytes`] a direction), hellos that are not whole (32 KiB a direction), names and
//! lists of hellos. Of a host name 255 bytes are kept. There is one key log for all connections. In
//! order, nothing is copied or allocated per packet.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

mod content;
mod counters;
mod decode;
mod envelope;
mod flow;
mod fragments;
pub mod fuzz;
mod keylog;
mod label;
mod plain;
mod quic;
mod reassembly;
mod record;
mod shard;
mod side;
mod streams;
mod syn_data;
mod table;
mod tcp;
mod tls;
mod tracker;
mod wrapping;

pub use counters::Counters;
pub use decode::LinkType;
pub use fragments::FragmentDrops;
pub use keylog::{KeyLog, KeyLogCounters};
pub use plain::Plain;
pub use record::{
    AlertFacts, Class, ClockOffset, Connection, Decrypted, EarlyData, End, Ending, FastOpenFacts,
    KeyUse, Output, QuicFacts, Resumption, TcpFacts, TlsFacts, Traffic, Transport, Uncertain,
};
pub use shard::{Datagram, Place, Routed, Sharder};
pub use streams::{StreamCounters, StreamEvent, StreamFact, StreamLimits, Streams, Unreadable};
pub use tls::{ja3, ja3_text, ja4};
pub use tracker::{HandOut, Limits, Packet, Tracker};
pub use wrapping::{Wrapped, Wrapping};
