//! WireGuard's keys and peers, by its generic netlink family (linux/wireguard.h): so that no program is needed, and
//! no key is in a file.

use std::net::SocketAddr;

use aws_lc_rs::agreement::{PrivateKey, X25519};
use lab::Node;
use zeroize::Zeroizing;

use super::generic::{self, NESTED, attribute, with_null};
use crate::{Error, Key};

// linux/wireguard.h
const WG_CMD_SET_DEVICE: u8 = 1;
const WGDEVICE_A_IFNAME: u16 = 2;
const WGDEVICE_A_PRIVATE_KEY: u16 = 3;
const WGDEVICE_A_LISTEN_PORT: u16 = 6;
const WGDEVICE_A_PEERS: u16 = 8;
const WGPEER_A_PUBLIC_KEY: u16 = 1;
const WGPEER_A_ENDPOINT: u16 = 4;
const WGPEER_A_ALLOWEDIPS: u16 = 9;
const WGALLOWEDIP_A_FAMILY: u16 = 1;
const WGALLOWEDIP_A_IPADDR: u16 = 2;
const WGALLOWEDIP_A_CIDR_MASK: u16 = 3;
const AF_INET: u16 = 2;
const AF_INET6: u16 = 10;

/// A device and its one peer, through which all addresses are reached.
#[derive(Debug)]
pub struct Tunnel {
    /// The device, which is there.
    pub device: String,
    /// The UDP port that it listens at.
    pub port: u16,
    /// Its private key.
    pub private: Key,
    /// The peer's public key.
    pub peer: PublicKey,
    /// Where the peer is, until packets come from elsewhere.
    pub endpoint: SocketAddr,
}

/// The public half of a key pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublicKey([u8; 32]);

impl PublicKey {
    /// Of a private key.
    ///
    /// # Errors
    /// It has not 32 bytes.
    pub fn of(private: &Key) -> Result<PublicKey, Error> {
        let wrong = || seclink::KeyError::Length {
            cipher: "X25519",
            needed: 32,
            had: private.expose().len(),
        };
        let key = PrivateKey::from_private_key(&X25519, private.expose()).map_err(|_| wrong())?;
        let public = key.compute_public_key().map_err(|_| wrong())?;
        Ok(PublicKey(public.as_ref().try_into().map_err(|_| wrong())?))
    }
}

impl Tunnel {
    /// Tells the kernel.
    ///
    /// # Errors
    /// [`Error::Netlink`].
    pub fn configure(self, node: &Node) -> Result<(), Error> {
        let name = node.name().to_owned();
        let done = node.run(move || {
            generic::ask("wireguard", WG_CMD_SET_DEVICE, &self.attributes()).map(|_| ())
        })?;
        let doing = "configuring WireGuard";
        done.map_err(|source| Error::Netlink { doing, node: name, source })
    }

    fn attributes(&self) -> Zeroizing<Vec<u8>> {
        let mut allowed = Vec::new();
        attribute(&mut allowed, WGALLOWEDIP_A_FAMILY, &AF_INET.to_ne_bytes());
        attribute(&mut allowed, WGALLOWEDIP_A_IPADDR, &[0; 4]);
        attribute(&mut allowed, WGALLOWEDIP_A_CIDR_MASK, &[0]);
        let mut peer = Vec::new();
        attribute(&mut peer, WGPEER_A_PUBLIC_KEY, &self.peer.0);
        attribute(&mut peer, WGPEER_A_ENDPOINT, &socket_address(self.endpoint));
        attribute(&mut peer, WGPEER_A_ALLOWEDIPS | NESTED, &one_nested(&allowed));
        // Long enough for all, so that the key is nowhere but here.
        let mut all = Zeroizing::new(Vec::with_capacity(1024));
        attribute(&mut all, WGDEVICE_A_IFNAME, &with_null(&self.device));
        attribute(&mut all, WGDEVICE_A_PRIVATE_KEY, self.private.expose());
        attribute(&mut all, WGDEVICE_A_LISTEN_PORT, &self.port.to_ne_bytes());
        attribute(&mut all, WGDEVICE_A_PEERS | NESTED, &one_nested(&peer));
        all
    }
}

/// `struct sockaddr_in`, or `struct sockaddr_in6`.
fn socket_address(address: SocketAddr) -> Vec<u8> {
    let port = address.port().to_be_bytes();
    match address {
        SocketAddr::V4(address) => {
            [&AF_INET.to_ne_bytes()[..], &port, &address.ip().octets(), &[0; 8]].concat()
        }
        // Without flow information and scope.
        SocketAddr::V6(address) => {
            [&AF_INET6.to_ne_bytes()[..], &port, &[0; 4], &address.ip().octets(), &[0; 4]].concat()
        }
    }
}

/// A list of one element.
fn one_nested(element: &[u8]) -> Vec<u8> {
    let mut list = Vec::new();
    attribute(&mut list, NESTED, element);
    list
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ends::Direction;
    use crate::kernel::generic::find;
    use seclink::path::Protection;

    #[test]
    fn a_public_key_is_that_of_rfc_7748() {
        // RFC 7748 §6.1, Alice's.
        let private = "77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a";
        let public = "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a";
        let bytes = |hex: &str| {
            let digits = hex.as_bytes().chunks(2);
            let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16);
            digits.map(|pair| byte(pair).unwrap()).collect::<Vec<u8>>()
        };
        let key = PrivateKey::from_private_key(&X25519, &bytes(private)).unwrap();
        assert_eq!(key.compute_public_key().unwrap().as_ref(), bytes(public));
    }

    #[test]
    fn a_device_is_told_in_the_kernels_layout() {
        let private = crate::keys(1, Protection::WireGuard, 0, Direction::Forward, 32);
        let peer = PublicKey::of(&private).unwrap();
        let endpoint = "10.9.0.2:51820".parse().unwrap();
        let tunnel = Tunnel { device: "wg2".to_owned(), port: 51_820, private, peer, endpoint };
        let all = tunnel.attributes();
        assert_eq!(find(&all, WGDEVICE_A_IFNAME), Some(&b"wg2\0"[..]));
        assert_eq!(find(&all, WGDEVICE_A_PRIVATE_KEY).map(<[u8]>::len), Some(32));
        let peers = find(&all, WGDEVICE_A_PEERS | NESTED).unwrap();
        let only = find(peers, NESTED).unwrap();
        assert_eq!(find(only, WGPEER_A_PUBLIC_KEY), Some(&peer.0[..]));
        let endpoint = find(only, WGPEER_A_ENDPOINT).unwrap();
        assert_eq!((endpoint.len(), &endpoint[2..8]), (16, &[0xca, 0x6c, 10, 9, 0, 2][..]));
        let v6 = socket_address("[fd09::2]:51820".parse().unwrap());
        assert_eq!(
            (v6.len(), &v6[..4]),
            (28, &[&AF_INET6.to_ne_bytes()[..], &[0xca, 0x6c]].concat()[..])
        );
        assert_eq!((v6[8], v6[9], v6[23]), (0xfd, 9, 2));
        assert_eq!(find(&all, 99), None);
        assert_eq!(find(&[8, 0, 1], 1), None);
    }
}
