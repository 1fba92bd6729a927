//! Packet formats, one file each: a checked view over bytes and, where Wiretax emits the format, a
//! representation (`Repr`) that is parsed from a view and emitted into a buffer.
//!
//! A view is made only by its checked constructor. After that no accessor fails or panics,
//! whatever the bytes are. Views copy nothing and allocate nothing.
//!
//! | module | format | source |
//! |---|---|---|
//! | [`ethernet`] | Ethernet II and LLC frames | IEEE 802.3 §3 |
//! | [`llc`] | SNAP headers | IEEE 802.2, RFC 1042 |
//! | [`vlan`] | 802.1Q and 802.1ad tags, and other tags before an EtherType | IEEE 802.1Q §9 |
//! | [`mpls`] | MPLS label stacks, and what they carry | RFC 3032, 4385 |
//! | [`macsec`] | MAC security tags | IEEE 802.1AE §9 |
//! | [`mka`] | EAPOL, and MACsec's key agreement in it | IEEE 802.1X §11 |
//! | [`ppp`] | PPP | RFC 1661, 1662 |
//! | [`pppoe`] | PPPoE sessions | RFC 2516 |
//! | [`proxy`] | the PROXY protocol's header | HAProxy's proxy-protocol.txt |
//! | [`gre`] | GRE | RFC 2784, 2890 |
//! | [`erspan`], [`tzsp`] | mirrored frames | draft-foschiano-erspan-03 |
//! | [`vxlan`] | VXLAN, and its generic protocol extension | RFC 7348, draft-ietf-nvo3-vxlan-gpe-13 |
//! | [`nsh`] | network service headers | RFC 8300 |
//! | [`geneve`] | Geneve | RFC 8926 |
//! | [`gtpu`] | GTP-U's packets of subscribers | 3GPP TS 29.281 |
//! | [`capwap`] | CAPWAP's data channel, IEEE 802.11 data frames | RFC 5415 |
//! | [`cooked`] | Linux cooked captures, BSD loopback | libpcap's LINKTYPE_ 113, 276, 0, 108 |
//! | [`ipv4`] | IPv4 | RFC 791 |
//! | [`ipv6`] | IPv6 and its extension headers | RFC 8200 |
//! | [`arp`] | ARP for IPv4 over Ethernet | RFC 826 |
//! | [`icmpv4`], [`icmpv6`], [`icmp`] | packets too big for a link, neighbour discovery | RFC 792, 1191, 4443, 4861 |
//! | [`tcp`] | TCP and its options | RFC 9293, 7323, 2018, 7413 |
//! | [`udp`] | UDP | RFC 768 |
//! | [`ah`] | AH | RFC 4302 |
//! | [`esp`] | ESP, and in UDP | RFC 4303, 3948 |
//! | [`l2tp`] | L2TP version 2 | RFC 2661 |
//! | [`l2tpv3`] | data messages of L2TP version 3 over UDP | RFC 3931 |
//! | [`wireguard`] | WireGuard's messages | the WireGuard paper §5.4 |
//! | [`dtls`] | DTLS record headers | RFC 6347 |
//! | [`tls`] | TLS records, ClientHello, ServerHello | RFC 8446, 5246, 6066, 7301, 5077 |
//! | [`quic`] | QUIC packets and the frames of Initial packets | RFC 8999, 9000, 9369 |
//! | [`http2`] | HTTP/2 frames | RFC 9113 |
//! | [`spdy`] | frames of SPDY/3 and 3.1, name/value header blocks | SPDY Protocol, drafts 3 and 3.1 |
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

pub mod ah;
pub mod arp;
pub mod capwap;
pub mod checksum;
pub mod cooked;
pub mod dtls;
mod error;
pub mod erspan;
pub mod esp;
pub mod ethernet;
pub mod fuzz;
pub mod geneve;
pub mod gre;
pub mod gtpu;
pub mod http2;
pub mod icmp;
pub mod icmpv4;
pub mod icmpv6;
pub mod ipv4;
pub mod ipv6;
pub mod l2tp;
pub mod l2tpv3;
pub mod llc;
pub mod macsec;
pub mod mka;
pub mod mpls;
pub mod nsh;
pub mod ppp;
pub mod pppoe;
pub mod proxy;
pub mod quic;
mod reader;
pub mod spdy;
pub mod tcp;
pub mod tls;
pub mod tzsp;
pub mod udp;
pub mod vlan;
pub mod vxlan;
pub mod wireguard;

pub use error::Error;
pub use reader::Reader;
