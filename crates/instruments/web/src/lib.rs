//! One web server and one client for every version of HTTP, each step timed.
//!
//! A [`Server`] answers by its [`Site`] over HTTP/1.1 (in clear and in TLS), SPDY/3 and 3.1, HTTP/2 and HTTP/3; a
//! [`Client`] makes a [`Connection`], whose [`Exchange`]s say when each step of a request happened. Both
//! count bodies and keep none of them: the memory of a load does not grow with its bytes.
//!
//! Everything runs on one thread, in a [`tokio::task::LocalSet`] of a current-thread runtime, and in the
//! network namespace of that thread. Logs and counters may be read by any other thread.
//!
//! # Flow control
//! [`Settings`] say which windows a side announces. What the libraries fix is not hidden:
//!
//! | | SPDY (ours) | HTTP/2 (h2) | HTTP/3 (quinn) |
//! |---|---|---|---|
//! | windows are updated | as set: at half or at one eighth | at half (RFC 9113 leaves it open) | at one eighth |
//! | window before the peer's is known | 64 KB (draft 3.1 §2.6.8) | 65,535 bytes (RFC 9113 §6.9.2) | none: it comes in the handshake |
//! | window of the connection | SPDY/3 has none | yes | yes |
//! | send order | strictly by priority, then round robin | ours: urgency, then round robin | ours on quinn: urgency, then round robin |
//! | says the urgency | SYN_STREAM's priority | `priority` | `priority` |
//!
//! A threshold that a library cannot keep is an error ([`Settings::check`]). HTTP/1.1 has no windows of
//! its own, TCP's alone.
//!
//! # TCP
//! HTTP/1.1, SPDY and HTTP/2 run over the kernel's TCP, or over ours ([`UserTcp`]), whose handshake carries that
//! of TLS as SSLmTCP has it. What TCP_INFO would say is known in part there: no congestion window, no time
//! in which the peer's window was shut.
//!
//! # What a sender waits for below
//! Where somebody says when packets wait at the bottleneck ([`Bottleneck`]), both sides say when they had bytes to send
//! and sent none while nothing waited there ([`TcpStall`]): the server of each connection
//! ([`ConnectionRecord::tcp_stalls`]), the client of each request with a body ([`Exchange::tcp_stalls`]). What kept them
//! is looked at about 64 times in a round trip while there is something to send: in TCP_INFO of the kernel's TCP; ours says it itself
//! ([`tcp::Hold`]); of QUIC it is congestion control alone, whenever quinn has asked its controller for the window and
//! sent nothing since. Its flow control is that of the protocol, above.
//!
//! # Early data
//! With [`ConnectPlan::early_data`] a connection is there before its handshake: its first requests leave with the
//! ClientHello, or in QUIC's first packets, where a ticket allows it. What arrives so may arrive twice, since
//! whoever sees it can send it again (RFC 8446 §8, RFC 8470): only requests without a body whose method is safe
//! (RFC 9110 §9.2.1) go so, others wait for the handshake, and our server takes each ticket's early data once.
//! What a server refuses is sent again after the handshake. Over the kernel's TCP the TLS is then a
//! [`tls::Session`]'s on both sides, as with OpenSSL; else it is tokio-rustls's.
//!
//! # Limits
//! - h3 0.0.8 holds a request's HEADERS frame until it is whole, and looks at its size only then: what one
//!   stream can fill is bounded by [`ServerTimeouts::head`] and the link's rate alone. HTTP/1.1, HTTP/2
//!   and SPDY stop reading at [`Settings::max_header_list`].
//! - h3 has no dynamic table: QPACK compresses by its static table and Huffman coding.
//! - quinn does not say what a body waits for that it takes no more of: it is a window where the peer was told so, or
//!   where the send buffer cannot be full, and its congestion control says until when there was data to send.
//! - The `i` parameter of a priority is read and not used: responses of one urgency take turns.
//! - Over SPDY a head beyond [`Settings::max_header_list`] ends the connection, since what follows cannot be
//!   decompressed without it.
//!
//! # Push
//! A [`Site`] says by [`Answer::promises`] what is pushed with an answer, by SPDY and HTTP/2 (h3 has no
//! push). A client takes of it what [`ConnectPlan::push`] allows, as [`What::Pushed`]; without that it says that
//! it takes nothing: SETTINGS_ENABLE_PUSH 0 by HTTP/2, SETTINGS_MAX_CONCURRENT_STREAMS 0 by SPDY.
//!
//! # Adding a protocol
//! One module below `server` and one below `client`: each takes a stream of bytes
//! ([`tokio::io::AsyncRead`] and [`tokio::io::AsyncWrite`]) and is called from the one `match` over
//! [`Protocol`] in its parent.
#![forbid(unsafe_code)]

mod body;
mod client;
mod congestion;
mod counters;
mod failure;
mod flight;
mod gate;
mod log;
mod meter;
mod priority;
mod protocol;
mod quic;
mod server;
mod session;
mod settings;
mod site;
mod socket;
mod spdy;
mod stalls;
mod stream;
mod task;
mod tcp_stalls;
mod user_tcp;

pub use body::digest;
pub use client::{
    Client, ClientTimeouts, ConnectPlan, Connection, Ended, Event, Exchange, Facts, Head, Outcome,
    Push, PushLimits, Request, Tickets, What,
};
pub use congestion::Congestion;
pub use conn::FastOpen;
pub use counters::{Counters, Snapshot};
pub use failure::Failure;
pub use log::{ConnectionRecord, Finish, Log, QuicRecord, Sample, Stall, Stalled, StreamRecord};
pub use priority::Priority;
pub use protocol::Protocol;
pub use quic::QuicSettings;
pub use server::{Bottleneck, Server, ServerPlan, ServerTimeouts, TlsPlan, UserTcpPlan};
pub use settings::{Settings, WindowUpdate};
pub use site::{Answer, Promise, RequestHead, Site};
pub use socket::TcpSettings;
pub use sslmtcp::Embedding;
pub use tcp_stalls::{TcpLimit, TcpStall};
pub use user_tcp::UserTcp;
