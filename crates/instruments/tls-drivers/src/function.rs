//! Functions that differ between libraries: `enum wt_function` of the drivers' interface, bits of
//! [`Described::functions`](crate::Described::functions).

/// TLS 1.0 (RFC 2246).
pub const TLS_1_0: u64 = 1 << 0;
/// TLS 1.1 (RFC 4346).
pub const TLS_1_1: u64 = 1 << 1;
/// TLS 1.2 (RFC 5246).
pub const TLS_1_2: u64 = 1 << 2;
/// TLS 1.3 (RFC 8446).
pub const TLS_1_3: u64 = 1 << 3;
/// An interface for 0-RTT data (RFC 8446 §2.3).
pub const EARLY_DATA: u64 = 1 << 4;
/// An interface for QUIC stacks of others (RFC 9001 §4.1).
pub const QUIC_TLS: u64 = 1 << 5;
/// A QUIC stack of its own (RFC 9000).
pub const QUIC_TRANSPORT: u64 = 1 << 6;
/// The group X25519MLKEM768.
pub const POST_QUANTUM: u64 = 1 << 7;
/// The build has its FIPS module.
pub const FIPS: u64 = 1 << 8;
/// Kernel TLS can be asked for.
pub const KTLS: u64 = 1 << 9;
/// Encrypted Client Hello (RFC 9849), as a client at least.
pub const ECH: u64 = 1 << 10;
/// A server's own cache of sessions (RFC 5246 §7.3), and as a client session IDs.
pub const SESSION_CACHE: u64 = 1 << 11;
/// A server's store of sessions outside the library, and as a client session IDs.
pub const SESSION_STORE: u64 = 1 << 12;
/// ECH can be asked of its client by the drivers' interface.
pub const ECH_CLIENT: u64 = 1 << 13;
/// ECH can be asked of its server by the drivers' interface.
pub const ECH_SERVER: u64 = 1 << 14;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::tests::{HEADER, SHIM};

    #[test]
    fn the_functions_are_those_of_the_header() {
        let own = [
            ("TLS_1_0", TLS_1_0),
            ("TLS_1_1", TLS_1_1),
            ("TLS_1_2", TLS_1_2),
            ("TLS_1_3", TLS_1_3),
            ("EARLY_DATA", EARLY_DATA),
            ("QUIC_TLS", QUIC_TLS),
            ("QUIC_TRANSPORT", QUIC_TRANSPORT),
            ("POST_QUANTUM", POST_QUANTUM),
            ("FIPS", FIPS),
            ("KTLS", KTLS),
            ("ECH", ECH),
            ("SESSION_CACHE", SESSION_CACHE),
            ("SESSION_STORE", SESSION_STORE),
            ("ECH_CLIENT", ECH_CLIENT),
            ("ECH_SERVER", ECH_SERVER),
        ];
        let lines = HEADER.lines().skip_while(|line| *line != "enum wt_function {").skip(1);
        let in_the_header: Vec<(&str, &str)> = lines
            .take_while(|line| *line != "};")
            .filter_map(|line| line.trim().strip_prefix("WT_")?.split_once(','))
            .filter_map(|(row, _)| row.split_once(" = "))
            .collect();
        let own: Vec<(&str, String)> = own
            .iter()
            .map(|(name, bit)| (*name, format!("1 << {}", bit.trailing_zeros())))
            .collect();
        assert_eq!(own.len(), in_the_header.len());
        for ((name, bit), (header_name, header_bit)) in own.iter().zip(in_the_header) {
            assert_eq!((*name, bit.as_str()), (header_name, header_bit));
        }
        let of_the_shim: Vec<(&str, &str)> = SHIM
            .lines()
            .filter_map(|line| {
                line.strip_prefix("pub const ")?.strip_suffix(';')?.split_once(": u64 = ")
            })
            .collect();
        assert!(!of_the_shim.is_empty());
        for (name, bit) in of_the_shim {
            assert!(own.iter().any(|one| (one.0, one.1.as_str()) == (name, bit)), "{name}");
        }
    }
}
