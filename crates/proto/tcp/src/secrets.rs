//! What strangers must not guess: initial sequence numbers, ports, cookies, places in hash tables.
//!
//! All of it comes from one seed by SipHash, so that a run with the same seed is the same run.

use std::hash::{BuildHasher, Hasher};
use std::net::{IpAddr, SocketAddr};

use siphasher::sip::SipHasher13;
use units::{SeqNumber, Time};

/// A key of SipHash; as a [`BuildHasher`] it keeps strangers from making a table's keys collide.
#[derive(Clone, Copy)]
pub(crate) struct Key([u64; 2]);

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key")
    }
}

impl Key {
    fn derive(seed: &[u8; 32], purpose: u64) -> Key {
        let mut halves = [0; 2];
        for (half, out) in halves.iter_mut().enumerate() {
            let mut hasher = SipHasher13::new_with_keys(purpose, half as u64);
            hasher.write(seed);
            *out = hasher.finish();
        }
        Key(halves)
    }

    fn hash(self, write: impl FnOnce(&mut SipHasher13)) -> u64 {
        let mut hasher = self.build_hasher();
        write(&mut hasher);
        hasher.finish()
    }
}

impl BuildHasher for Key {
    type Hasher = SipHasher13;

    fn build_hasher(&self) -> SipHasher13 {
        SipHasher13::new_with_keys(self.0[0], self.0[1])
    }
}

/// The keys of an endpoint.
#[derive(Debug, Clone)]
pub(crate) struct Secrets {
    pub table: Key,
    sequence: Key,
    port: Key,
    timestamp: Key,
    fast_open: Key,
    syn_cookie: Key,
    /// Ports handed out so far.
    ports: u32,
}

/// Ports that RFC 6056 §3.2 lets a client use: 1024 to 65535; like Linux, we keep off the low ones.
const FIRST_PORT: u16 = 32_768;
const PORTS: u32 = 65_536 - FIRST_PORT as u32;

/// Sizes that a SYN cookie can tell: the peer's MSS, rounded down (RFC 4987 §3.6).
const COOKIE_MSS: [u16; 8] = [536, 1024, 1200, 1300, 1380, 1420, 1440, 1460];
/// Seconds of one count of a SYN cookie's clock; a cookie lives through one or two.
const COOKIE_PERIOD: u64 = 64;

fn write_address(hasher: &mut SipHasher13, address: IpAddr) {
    match address {
        IpAddr::V4(v4) => hasher.write(&v4.octets()),
        IpAddr::V6(v6) => hasher.write(&v6.octets()),
    }
}

fn write_socket(hasher: &mut SipHasher13, address: SocketAddr) {
    write_address(hasher, address.ip());
    hasher.write_u16(address.port());
}

impl Secrets {
    pub(crate) fn new(seed: &[u8; 32]) -> Self {
        let key = |purpose| Key::derive(seed, purpose);
        Secrets {
            table: key(1),
            sequence: key(2),
            port: key(3),
            timestamp: key(4),
            fast_open: key(5),
            syn_cookie: key(6),
            ports: 0,
        }
    }

    /// An initial sequence number: a clock of 4 us plus a keyed hash (RFC 6528 §3).
    pub(crate) fn initial_sequence(
        &self,
        now: Time,
        local: SocketAddr,
        remote: SocketAddr,
    ) -> SeqNumber {
        let hash = self.sequence.hash(|hasher| {
            write_socket(hasher, local);
            write_socket(hasher, remote);
        });
        SeqNumber((now.as_nanos() / 4_000) as u32) + hash as u32
    }

    /// What is added to the clock in timestamps towards a peer (RFC 7323 §7.1).
    pub(crate) fn timestamp_offset(&self, local: SocketAddr, remote: SocketAddr) -> u32 {
        self.timestamp.hash(|hasher| {
            write_address(hasher, local.ip());
            write_address(hasher, remote.ip());
        }) as u32
    }

    /// A port that `is_free`, or none (RFC 6056 §3.3.3, simple hash-based selection).
    pub(crate) fn port(
        &mut self,
        local: IpAddr,
        remote: SocketAddr,
        mut is_free: impl FnMut(u16) -> bool,
    ) -> Option<u16> {
        let offset = self.port.hash(|hasher| {
            write_address(hasher, local);
            write_socket(hasher, remote);
        }) as u32;
        for _ in 0..PORTS {
            self.ports = self.ports.wrapping_add(1);
            let step = offset.wrapping_add(self.ports) % PORTS;
            let port = FIRST_PORT.saturating_add(step as u16);
            if is_free(port) {
                return Some(port);
            }
        }
        None
    }

    /// The Fast Open cookie of a client at a server's address (RFC 7413 §4.1.2).
    pub(crate) fn fast_open_cookie(&self, server: IpAddr, client: IpAddr) -> [u8; 8] {
        self.fast_open
            .hash(|hasher| {
                write_address(hasher, server);
                write_address(hasher, client);
            })
            .to_be_bytes()
    }

    /// An initial sequence number that says all that a half-open connection need know.
    pub(crate) fn syn_cookie(
        &self,
        now: Time,
        tuple: (SocketAddr, SocketAddr),
        irs: SeqNumber,
        mss: u16,
    ) -> SeqNumber {
        let index = COOKIE_MSS.iter().rposition(|known| *known <= mss).unwrap_or(0) as u32;
        self.cookie(now.as_nanos() / 1_000_000_000 / COOKIE_PERIOD, tuple, irs, index)
    }

    fn cookie(
        &self,
        count: u64,
        (local, remote): (SocketAddr, SocketAddr),
        irs: SeqNumber,
        index: u32,
    ) -> SeqNumber {
        let hash = self.syn_cookie.hash(|hasher| {
            write_socket(hasher, local);
            write_socket(hasher, remote);
            hasher.write_u32(irs.0);
            hasher.write_u64(count);
            hasher.write_u32(index);
        });
        let head = ((count as u32) & 0x1f) << 27 | (index & 7) << 24;
        SeqNumber(head | (hash as u32 & 0x00ff_ffff))
    }

    /// The MSS that a cookie tells, if `cookie` is one of ours and not old.
    pub(crate) fn check_syn_cookie(
        &self,
        now: Time,
        tuple: (SocketAddr, SocketAddr),
        irs: SeqNumber,
        cookie: SeqNumber,
    ) -> Option<u16> {
        let index = (cookie.0 >> 24) & 7;
        let count = now.as_nanos() / 1_000_000_000 / COOKIE_PERIOD;
        let counts = [Some(count), count.checked_sub(1)];
        counts
            .into_iter()
            .flatten()
            .any(|count| self.cookie(count, tuple, irs, index) == cookie)
            .then(|| COOKIE_MSS.get(index as usize).copied())
            .flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tuple() -> (SocketAddr, SocketAddr) {
        ("192.0.2.1:443".parse().unwrap(), "198.51.100.7:40000".parse().unwrap())
    }

    #[test]
    fn a_syn_cookie_reads_back_until_it_is_old() {
        let secrets = Secrets::new(&[7; 32]);
        let (at, irs) = (Time::from_millis(640_000), SeqNumber(99));
        for (mss, reported) in [(1460, 1460), (9000, 1460), (1439, 1420), (100, 536)] {
            let cookie = secrets.syn_cookie(at, tuple(), irs, mss);
            assert_eq!(secrets.check_syn_cookie(at, tuple(), irs, cookie), Some(reported));
            let later = Time::from_millis(640_000 + 127_000);
            assert_eq!(secrets.check_syn_cookie(later, tuple(), irs, cookie), Some(reported));
            let old = Time::from_millis(640_000 + 128_000);
            assert_eq!(secrets.check_syn_cookie(old, tuple(), irs, cookie), None);
            assert_eq!(secrets.check_syn_cookie(at, tuple(), irs + 1, cookie), None);
            assert_eq!(secrets.check_syn_cookie(at, tuple(), irs, cookie + 1), None);
        }
    }

    #[test]
    fn sequence_numbers_rise_with_the_clock_and_differ_between_peers() {
        let secrets = Secrets::new(&[7; 32]);
        let (local, remote) = tuple();
        let at = |ms| secrets.initial_sequence(Time::from_millis(ms), local, remote);
        assert_eq!(at(1004).distance(at(1000)), 1000, "a tick of 4 us");
        let other = "198.51.100.7:40001".parse().unwrap();
        assert_ne!(at(0), secrets.initial_sequence(Time::ZERO, local, other));
        assert_ne!(at(0), Secrets::new(&[8; 32]).initial_sequence(Time::ZERO, local, remote));
    }

    #[test]
    fn ports_are_free_high_and_not_in_order_for_another_peer() {
        let mut secrets = Secrets::new(&[7; 32]);
        let (local, remote) = tuple();
        let taken = secrets.port(local.ip(), remote, |_| true).unwrap();
        let next = secrets.port(local.ip(), remote, |port| port != taken).unwrap();
        assert!(taken >= FIRST_PORT && next >= FIRST_PORT && next != taken);
        assert_eq!(secrets.port(local.ip(), remote, |_| false), None);
    }
}
