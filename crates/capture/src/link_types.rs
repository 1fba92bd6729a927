//! Names of link types, so that one that is not read can be called by its name.

/// The name of a LINKTYPE number (draft-ietf-opsawg-pcaplinktype), if it is one of the usual ones.
#[must_use]
pub const fn link_type_name(number: u32) -> Option<&'static str> {
    Some(match number {
        0 => "BSD loopback",
        1 => "Ethernet",
        6 => "Token Ring (IEEE 802.5)",
        7 => "ARCNET",
        8 => "SLIP",
        9 => "PPP",
        10 => "FDDI",
        50 => "PPP in HDLC-like framing",
        51 => "PPPoE without Ethernet",
        12 | 101 => "raw IP",
        100 => "ATM (RFC 2684)",
        104 => "Cisco HDLC",
        105 => "IEEE 802.11",
        107 => "Frame Relay",
        108 => "OpenBSD loopback",
        113 => "Linux cooked capture",
        117 => "OpenBSD pflog",
        119 => "IEEE 802.11 with Prism headers",
        122 => "IP over Fibre Channel",
        127 => "IEEE 802.11 with radiotap headers",
        138 => "IP over IEEE 1394",
        143 => "DOCSIS",
        163 => "IEEE 802.11 with AVS headers",
        166 => "PPP of pppd with directions",
        182 => "multi-link Frame Relay",
        187 | 201 => "Bluetooth HCI H4",
        189 | 220 => "USB of Linux",
        192 => "Per-Packet Information",
        195 | 215 | 230 | 283 => "IEEE 802.15.4",
        197 => "Endace ERF",
        204 => "PPP with directions",
        227 => "CAN of Linux",
        228 => "IPv4",
        229 => "IPv6",
        239 => "NFLOG of Linux",
        240 | 241 => "Hilscher netANALYZER",
        247 => "InfiniBand",
        249 => "USB of Windows",
        251 | 256 => "Bluetooth Low Energy",
        252 => "Wireshark's exported PDUs",
        253 => "Linux netlink",
        276 => "Linux cooked capture, version 2",
        149 | 258 => "PKTAP of Apple",
        140 | 139 => "SS7 MTP2",
        141 => "SS7 MTP3",
        142 => "SS7 SCCP",
        177 => "LAPD of Linux",
        202 => "AX.25 with KISS",
        226 => "ipnet of Solaris",
        248 => "SCTP",
        271 => "vsock of Linux",
        272 => "Bluetooth of Nordic",
        280 => "VPP's dispatch trace",
        147..=162 => "private use",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::link_type_name;

    #[test]
    fn names_are_of_the_registry() {
        assert_eq!(link_type_name(105), Some("IEEE 802.11"));
        for number in [149, 258] {
            assert_eq!(link_type_name(number), Some("PKTAP of Apple"));
        }
        assert_eq!(link_type_name(127), Some("IEEE 802.11 with radiotap headers"));
        assert_eq!(link_type_name(9999), None);
    }
}
