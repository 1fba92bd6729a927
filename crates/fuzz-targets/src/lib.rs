//! The fuzz targets: each takes any bytes and panics where the code under it does, or where it breaks
//! its word. `fuzz/` hands them to libFuzzer; the tests of this crate replay the seeds and inputs
//! made of them.
#![forbid(unsafe_code)]

mod formats;
mod sessions;
mod small;
mod sources;

/// A target: its name, which is that of its folder of seeds, and what it does with an input.
pub type Target = (&'static str, fn(&[u8]));

/// All targets; `scripts/fuzz.sh` reads the names from these lines.
#[rustfmt::skip]
pub const TARGETS: &[Target] = &[
    ("wire_ethernet", wire::fuzz::ethernet),
    ("wire_vlan", wire::fuzz::vlan),
    ("wire_mpls", wire::fuzz::mpls),
    ("wire_macsec", wire::fuzz::macsec),
    ("wire_mka", wire::fuzz::mka),
    ("wire_esp", wire::fuzz::esp),
    ("wire_l2tp", wire::fuzz::l2tp),
    ("wire_l2tpv3", wire::fuzz::l2tpv3),
    ("wire_wireguard", wire::fuzz::wireguard),
    ("wire_pppoe", wire::fuzz::pppoe),
    ("wire_gre", wire::fuzz::gre),
    ("wire_vxlan", wire::fuzz::vxlan),
    ("wire_geneve", wire::fuzz::geneve),
    ("wire_gtpu", wire::fuzz::gtpu),
    ("wire_ppp", wire::fuzz::ppp),
    ("wire_capwap", wire::fuzz::capwap),
    ("wire_wrappings", wire::fuzz::wrappings),
    ("wire_cooked", wire::fuzz::cooked),
    ("wire_dtls", wire::fuzz::dtls),
    ("wire_ipv4", wire::fuzz::ipv4),
    ("wire_ipv6", wire::fuzz::ipv6),
    ("wire_tcp", wire::fuzz::tcp),
    ("wire_udp", wire::fuzz::udp),
    ("wire_arp", wire::fuzz::arp),
    ("wire_icmp", wire::fuzz::icmp),
    ("wire_tls_records", wire::fuzz::tls_records),
    ("wire_tls_messages", wire::fuzz::tls_messages),
    ("wire_tls_client_hello", wire::fuzz::tls_client_hello),
    ("wire_tls_server_hello", wire::fuzz::tls_server_hello),
    ("wire_tls_ech_configs", wire::fuzz::tls_ech_configs),
    ("wire_quic", wire::fuzz::quic),
    ("wire_quic_frames", wire::fuzz::quic_frames),
    ("wire_spdy_frames", wire::fuzz::spdy_frames),
    ("wire_http2_frames", wire::fuzz::http2_frames),
    ("tracker_key_log", tracker::fuzz::key_log),
    ("tracker_packets", tracker::fuzz::tracker),
    ("tracker_fragments", tracker::fuzz::fragments),
    ("tracker_tcp_streams", tracker::fuzz::tcp_streams),
    ("tracker_plain_streams", tracker::fuzz::streams),
    ("tracker_quic_datagrams", tracker::fuzz::quic_datagrams),
    ("link_script", small::link_script),
    ("link_middlebox", linkmodel::fuzz::middlebox),
    ("link_texts", small::link_texts),
    ("page_har", page::fuzz::har),
    ("page_load", page::fuzz::load),
    ("page_link", page::fuzz::link),
    ("results", small::results),
    ("quantities", small::quantities),
    ("tls_server", sessions::server),
    ("tls_client", sessions::client),
    ("conn_untrusted", small::conn_untrusted),
    ("tcp_packets", tcp::fuzz::packets),
    ("tcp_conversation", tcp::fuzz::conversation),
    ("seclink_macsec", seclink::fuzz::macsec),
    ("seclink_esp", seclink::fuzz::esp),
    ("seclink_wireguard", seclink::fuzz::wireguard),
    ("seclink_node", seclink::fuzz::node),
    ("seclink_mka_session", seclink::fuzz::mka_session),
    ("traffic_probes", traffic::fuzz::probes),
    ("handoff_scenario", handoff::fuzz::scenario),
    ("handoff_timeline", handoff::fuzz::timeline),
    ("sequence_connection", sequence::fuzz::connection),
    ("spdy_session", spdy::fuzz::session),
    ("starttls_dialog", starttls::fuzz::dialog),
    ("starttls_proxy", starttls::fuzz::proxy),
    ("sslmtcp_envelope", small::sslmtcp_envelope),
    ("sslmtcp_carrier", sslmtcp::fuzz::carrier),
    ("callgrind_output", small::callgrind_output),
    ("load_http_response", small::load_http_response),
    ("capture_formats", formats::formats),
    ("capture_source", sources::source),
];
