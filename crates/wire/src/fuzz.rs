//! Entry points for fuzzing: each parses any bytes as one format and touches every accessor.
//! They return nothing; a panic or a hang is the finding.

use std::hint::black_box;

use crate::tls::{ClientHello, HelloRetryRequestDraft, Messages, Records, ServerHello};
use crate::{
    ah, arp, capwap, cooked, dtls, erspan, esp, ethernet, geneve, gre, gtpu, http2, icmpv4, icmpv6,
    ipv4, ipv6, l2tp, l2tpv3, llc, macsec, mka, mpls, nsh, ppp, pppoe, proxy, quic, spdy, tcp, tls,
    tzsp, udp, vlan, vxlan, wireguard,
};

/// Any bytes as an Ethernet frame.
pub fn ethernet(bytes: &[u8]) {
    if let Ok(frame) = ethernet::Frame::new_checked(bytes) {
        black_box((ethernet::Repr::parse(&frame), frame.payload()));
        black_box(vlan::strip(frame.ether_type(), frame.payload()));
    }
}

/// Any bytes as a VLAN tag.
pub fn vlan(bytes: &[u8]) {
    if let Ok(tag) = vlan::Tag::new_checked(bytes) {
        black_box((vlan::Repr::parse(&tag), tag.payload()));
    }
    black_box(vlan::strip(ethernet::EtherType::QINQ, bytes));
}

/// Any bytes as an MPLS label stack.
pub fn mpls(bytes: &[u8]) {
    if let Ok(entry) = mpls::Entry::new_checked(bytes) {
        black_box((mpls::Repr::parse(&entry), entry.payload()));
    }
    black_box(mpls::ControlWord::parse(bytes).is_ok());
    black_box(mpls::strip(bytes));
    black_box(mpls::strip(&[&[0, 1, 1, 64][..], bytes].concat()).is_some());
}

/// Any bytes as a MAC security tag.
pub fn macsec(bytes: &[u8]) {
    if let Ok(tag) = macsec::Tag::new_checked(bytes) {
        black_box((macsec::Repr::parse(&tag), tag.header_len(), tag.rest()));
        black_box((tag.secure_data(16).is_ok(), tag.secure_data(usize::MAX).is_ok()));
    }
}

/// Any bytes as an EAPOL packet, and as a packet of MACsec's key agreement.
pub fn mka(bytes: &[u8]) {
    if let Ok(packet) = mka::Eapol::new_checked(bytes) {
        black_box((packet.version(), packet.kind(), packet.body()));
    }
    for icv_len in [16, 0] {
        let Ok(packet) = mka::Packet::new_checked(bytes, icv_len) else { continue };
        black_box((packet.basic(), packet.icv()));
        for set in packet.sets() {
            black_box(set.is_ok_and(|set| mka::Known::parse(&set).is_ok()));
        }
    }
}

/// Any bytes as an ESP packet, as what a datagram of its port holds, and as a decrypted payload.
pub fn esp(bytes: &[u8]) {
    if let Ok(packet) = esp::Packet::new_checked(bytes) {
        black_box((esp::Repr::parse(&packet), packet.rest()));
    }
    black_box((esp::Datagram::new_checked(bytes).is_ok(), esp::strip_trailer(bytes).is_ok()));
}

/// Any bytes as an L2TP message.
pub fn l2tp(bytes: &[u8]) {
    if let Ok(message) = l2tp::Message::new_checked(bytes) {
        black_box((l2tp::Repr::parse(&message), message.is_control(), message.payload()));
    }
}

/// Any bytes as a data message of L2TP version 3.
pub fn l2tpv3(bytes: &[u8]) {
    if let Ok(message) = l2tpv3::Data::new_checked(bytes) {
        black_box((l2tpv3::Repr::parse(&message), message.payload()));
    }
}

/// Any bytes as a message of WireGuard.
pub fn wireguard(bytes: &[u8]) {
    black_box(wireguard::Message::new_checked(bytes).is_ok());
}

/// Any bytes as a PPPoE session packet.
pub fn pppoe(bytes: &[u8]) {
    if let Ok(packet) = pppoe::Session::new_captured(bytes) {
        black_box((pppoe::Repr::parse(&packet), packet.ether_type(), packet.payload()));
    }
}

/// Any bytes as a stream that may begin with a PROXY header, in pieces as long as the first byte says.
pub fn proxy(bytes: &[u8]) {
    let Some((step, stream)) = bytes.split_first() else { return };
    let mut reader = proxy::HeaderReader::default();
    let mut given = 0usize;
    for piece in stream.chunks(usize::from(*step).max(1)) {
        match reader.next(piece) {
            proxy::Progress::More => given = given.saturating_add(piece.len()),
            proxy::Progress::End(at) => {
                assert!(at <= piece.len(), "it ends behind what was given");
                assert_eq!(reader.len(), given.saturating_add(at), "its length");
                return;
            }
            proxy::Progress::NotProxy => return,
        }
    }
    assert_eq!(reader.len(), given, "all of it was read");
}

/// Any bytes as a GRE packet.
pub fn gre(bytes: &[u8]) {
    if let Ok(packet) = gre::Packet::new_checked(bytes) {
        black_box((gre::Repr::parse(&packet), packet.payload()));
    }
}

/// Any bytes as a VXLAN packet.
pub fn vxlan(bytes: &[u8]) {
    if let Ok(packet) = vxlan::Packet::new_checked(bytes) {
        black_box((vxlan::Repr::parse(&packet), packet.payload()));
        black_box((packet.is_plain(), packet.next_protocol()));
    }
}

/// Any bytes as a Geneve packet.
pub fn geneve(bytes: &[u8]) {
    if let Ok(packet) = geneve::Packet::new_checked(bytes) {
        black_box((packet.protocol(), packet.network(), packet.payload()));
    }
}

/// Any bytes as a GTP-U message.
pub fn gtpu(bytes: &[u8]) {
    if let Ok(packet) = gtpu::Packet::new_captured(bytes) {
        black_box((packet.tunnel(), packet.payload()));
    }
}

/// Any bytes as a PPP packet.
pub fn ppp(bytes: &[u8]) {
    if let Ok(packet) = ppp::Packet::new_checked(bytes) {
        black_box((packet.ether_type(), packet.payload()));
    }
}

/// Any bytes as a CAPWAP data packet, and as an IEEE 802.11 frame.
pub fn capwap(bytes: &[u8]) {
    if let Ok(capwap::Payload::Ieee80211(frame)) = capwap::strip(bytes) {
        black_box(capwap::strip_80211(frame).is_ok());
    }
    black_box(capwap::strip_80211(bytes).is_ok());
}

/// Any bytes as the headers of wrappings that are only passed.
pub fn wrappings(bytes: &[u8]) {
    black_box((llc::strip(bytes).is_ok(), ah::strip(bytes).is_ok(), nsh::strip(bytes).is_ok()));
    black_box(tzsp::strip(bytes).is_ok());
    if let Ok(packet) = gre::Packet::new_checked(bytes) {
        black_box(erspan::strip(&packet).is_ok());
    }
    for ether_type in [ethernet::EtherType::CISCO_METADATA, ethernet::EtherType::E_TAG] {
        black_box(vlan::strip(ether_type, bytes));
    }
}

/// Any bytes as headers of Linux cooked captures and of BSD loopback.
pub fn cooked(bytes: &[u8]) {
    black_box((cooked::Repr::parse_v1(bytes).is_ok(), cooked::Repr::parse_v2(bytes).is_ok()));
    black_box(cooked::strip_loopback(bytes).is_ok());
}

/// Any bytes as a DTLS record.
pub fn dtls(bytes: &[u8]) {
    for whole in [bytes.len(), 65_535] {
        if let Ok(record) = dtls::Record::new_captured(bytes, whole) {
            black_box((record.begins_handshake(), record.payload));
        }
    }
}

/// Any bytes as an ARP packet.
pub fn arp(bytes: &[u8]) {
    if let Ok(packet) = arp::Packet::new_checked(bytes) {
        black_box(arp::Repr::parse(&packet));
    }
}

/// Any bytes as an ICMP message of either family, and what it quotes.
pub fn icmp(bytes: &[u8]) {
    if let Ok(message) = icmpv4::Message::new_checked(bytes) {
        black_box((message.checksum_ok(), icmpv4::FragmentationNeeded::parse(&message)));
        let needed = icmpv4::FragmentationNeeded { next_hop_mtu: 0, quoted: message.body() };
        black_box(needed.segment().map(|segment| needed.mtu(&segment)).is_ok());
    }
    if let Ok(message) = icmpv6::Message::new_checked(bytes) {
        let address = std::net::Ipv6Addr::LOCALHOST;
        black_box(message.checksum_ok(address, address));
        if let Ok(Some(icmpv6::Repr::PacketTooBig { quoted, .. })) = icmpv6::Repr::parse(&message) {
            black_box(icmpv6::quoted_segment(quoted).is_ok());
        }
    }
}

/// Any bytes as an IPv4 packet.
pub fn ipv4(bytes: &[u8]) {
    black_box(ipv4::Packet::new_checked(bytes).is_ok());
    if let Ok(packet) = ipv4::Packet::new_captured(bytes) {
        black_box((ipv4::Repr::parse(&packet), packet.checksum_ok(), packet.options()));
        black_box((packet.is_fragment(), packet.more_fragments(), packet.fragment_offset()));
        black_box((packet.payload_len(), packet.payload()));
    }
}

/// Any bytes as an IPv6 packet.
pub fn ipv6(bytes: &[u8]) {
    black_box(ipv6::Packet::new_checked(bytes).is_ok());
    if let Ok(packet) = ipv6::Packet::new_captured(bytes) {
        black_box((ipv6::Repr::parse(&packet), packet.upper().is_ok(), packet.payload()));
    }
    if let Some((first, rest)) = bytes.split_first() {
        black_box(ipv6::walk(*first, rest, rest.len()).is_ok());
    }
}

/// Any bytes as a TCP segment.
pub fn tcp(bytes: &[u8]) {
    if let Ok(segment) = tcp::Segment::new_checked(bytes) {
        let address = std::net::Ipv4Addr::LOCALHOST.into();
        black_box(tcp::Repr::parse(&segment));
        black_box((segment.options().count(), segment.checksum_ok(address, address)));
        black_box((segment.header_len(), segment.urgent(), segment.checksum(), segment.payload()));
    }
}

/// Any bytes as a UDP datagram.
pub fn udp(bytes: &[u8]) {
    black_box(udp::Datagram::new_checked(bytes).is_ok());
    if let Ok(datagram) = udp::Datagram::new_captured(bytes) {
        let address = std::net::Ipv6Addr::LOCALHOST.into();
        black_box((udp::Repr::parse(&datagram), datagram.checksum_ok(address, address)));
        black_box((datagram.payload_len(), datagram.payload()));
    }
}

/// Any bytes as TLS records, and their payloads as what they say they are.
pub fn tls_records(bytes: &[u8]) {
    for (header, payload) in Records::new(bytes) {
        black_box((header.to_bytes(), header.total_len()));
        if header.content_type == tls::ContentType::Handshake {
            tls_messages(payload);
        }
        black_box(tls::Alert::parse(payload).map(tls::Alert::name).is_ok());
    }
}

/// Any bytes as handshake messages, and the hellos among them.
pub fn tls_messages(bytes: &[u8]) {
    for message in Messages::new(bytes) {
        tls_client_hello(message.body);
        tls_server_hello(message.body);
    }
}

/// Any bytes as a ClientHello's body, and as one of SSL 2.0.
pub fn tls_client_hello(bytes: &[u8]) {
    if let Ok(hello) = tls::Ssl2ClientHello::new_checked(bytes) {
        black_box((hello.version().to_string(), hello.cipher_suites().count()));
        black_box((hello.session_id(), hello.challenge()));
    }
    black_box(tls::ssl2_server_version(bytes).is_ok());
    if let Some(first) = bytes.first_chunk() {
        black_box(tls::begins_ssl2_client_hello(first));
    }
    if let Ok(hello) = ClientHello::new_checked(bytes) {
        black_box((hello.legacy_version(), hello.random(), hello.session_id()));
        black_box((hello.cipher_suites().count(), hello.compression_methods()));
        black_box((hello.extensions().iter().count(), hello.server_name(), hello.alpn().count()));
        black_box((hello.versions().map(|version| version.to_string().len()).sum::<usize>(),));
        black_box((hello.ec_point_formats(), hello.signature_algorithms().count()));
        black_box((hello.groups().count(), hello.key_shares().count(), hello.pre_shared_key()));
        black_box((hello.psk_key_exchange_modes(), hello.early_data(), hello.session_ticket()));
        black_box((hello.encrypted_client_hello(), tls::ClientHelloRepr::parse(&hello)));
    }
}

/// Any bytes as a ServerHello's or a draft's HelloRetryRequest's body.
pub fn tls_server_hello(bytes: &[u8]) {
    if let Ok(hello) = ServerHello::new_checked(bytes) {
        black_box((hello.version(), hello.is_hello_retry_request(), hello.session_id()));
        black_box((hello.cipher_suite().to_string(), hello.group(), hello.selected_psk()));
        black_box((hello.alpn(), tls::ServerHelloRepr::parse(&hello)));
    }
    if let Ok(request) = HelloRetryRequestDraft::new_checked(bytes) {
        black_box((request.version(), request.group()));
    }
}

/// Any bytes as an ECHConfigList.
pub fn tls_ech_configs(bytes: &[u8]) {
    if let Ok(list) = tls::EchConfigList::new_checked(bytes) {
        for config in list.configs() {
            black_box((config, config.suites().count()));
        }
    }
}

/// Any bytes as a UDP payload of QUIC packets.
pub fn quic(bytes: &[u8]) {
    for packet in quic::Packets::new(bytes) {
        if let quic::Packet::Long(packet) = packet {
            black_box((packet.kind(), packet.version(), packet.destination(), packet.source()));
            black_box((packet.token(), packet.bytes(), packet.packet_number_offset()));
            black_box((packet.protected_len(), quic::LongRepr::parse(&packet)));
        }
        black_box(packet);
    }
}

/// Any bytes as the frames of an Initial packet.
pub fn quic_frames(bytes: &[u8]) {
    for frame in quic::frame::Frames::new(bytes) {
        black_box(frame.is_ok());
    }
    for frame in quic::AnyFrames::new(bytes).flatten() {
        if let quic::AnyFrame::Ack { ranges, .. } = frame {
            assert!(ranges.len() <= bytes.len(), "a range takes bytes");
        }
    }
}

/// Any bytes as SPDY frames, and the data of those with a header block as an uncompressed one.
pub fn spdy_frames(bytes: &[u8]) {
    let mut out = Vec::new();
    for frame in spdy::Frames::new(bytes).flatten() {
        match frame {
            spdy::Frame::SynStream { block, .. }
            | spdy::Frame::SynReply { block, .. }
            | spdy::Frame::Headers { block, .. } => spdy_block(block),
            spdy::Frame::Settings { entries, .. } => {
                black_box(entries.iter().map(|entry| entry.value).max());
            }
            _ => {}
        }
        out.clear();
        if frame.emit(&mut out).is_ok() {
            let again = spdy::Frames::new(&out).next();
            assert!(again == Some(Ok(frame)), "{frame:?} is read back as {again:?}");
        }
    }
}

/// Any bytes as HTTP/2 frames.
pub fn http2_frames(bytes: &[u8]) {
    for (header, frame) in http2::Frames::new(bytes).flatten() {
        assert!(http2::Header::parse(&header.to_bytes()) == header, "a header is read back");
        match frame {
            http2::Frame::Data { data, padding, .. } => {
                assert!(data.len() + padding == header.length as usize, "all of it is counted");
            }
            http2::Frame::Settings { entries, .. } => {
                black_box(entries.iter().map(|entry| entry.value).max());
            }
            other => {
                black_box((other, header.kind.name()));
            }
        }
    }
}

/// Any bytes as a name/value header block.
pub fn spdy_block(bytes: &[u8]) {
    if let Ok(headers) = spdy::Headers::from_block(bytes.to_vec()) {
        let walked = headers.iter().count();
        assert!(walked == headers.len(), "as many headers as it says");
        black_box((headers.get(":path"), headers.is_empty()));
        black_box(headers.iter().map(|(_, value)| spdy::values(value).count()).max());
    }
}
