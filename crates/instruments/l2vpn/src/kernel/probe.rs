//! What a kernel lacks, by trying it in a namespace that nobody else sees.

use lab::{Lab, LabOptions, Node};
use seclink::path::{Cipher, IpVersion, Protection, Topology};

use super::program::run;
use crate::Error;

/// Keys of zeros: nothing is ever protected with them.
const ZEROS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// A feature, and what `ip` or `tc` must be able to do in a namespace that has the veth pair `base1`, `base2`.
struct Probe {
    name: &'static str,
    program: &'static str,
    script: String,
}

/// What of the kernel's features a path needs and this kernel has not, by trying them. In a lab only.
///
/// # Errors
/// There is no lab, or it does not let programs run.
pub fn lacking(topology: &Topology) -> Result<Vec<&'static str>, Error> {
    let mut lab = Lab::new(LabOptions::default())?;
    let node = lab.add_node("probe")?;
    match run(&node, "ip", &["-batch", "-"], "link add name base1 type veth peer name base2\n") {
        Ok(ended) if ended.succeeded => {}
        Ok(_) => return Ok(vec!["veth"]),
        Err(Error::Lab(lab::Error::Program { .. })) => return Ok(vec!["iproute2"]),
        Err(other) => return Err(other),
    }
    let mut lacking = Vec::new();
    for probe in probes(topology) {
        if !run(&node, probe.program, &["-batch", "-"], &probe.script)?.succeeded {
            lacking.push(probe.name);
        }
    }
    if needs_swap(topology) && !has_mpls(&node) {
        lacking.push("mpls");
    }
    Ok(lacking)
}

/// Whether providers stand between the provider edges.
fn needs_swap(topology: &Topology) -> bool {
    topology.pseudowire && topology.hops > seclink::path::LEAST_PSEUDOWIRE_HOPS
}

fn has_mpls(node: &Node) -> bool {
    node.read_sysctl("net.mpls.platform_labels").is_ok()
}

/// All that a path needs, but for label switching, which is no device.
fn probes(topology: &Topology) -> Vec<Probe> {
    let probe =
        |name, program, script: &str| Probe { name, program, script: format!("{script}\n") };
    let ip = |name, script: &str| probe(name, "ip", script);
    let routed = !topology.carries_ethernet();
    let is_v6 = topology.carrier.ip == IpVersion::V6;
    let mut all = Vec::new();
    if !routed {
        all.push(ip(
            "bridge",
            "link add name probe0 type bridge group_fwd_mask 8 mcast_snooping 0",
        ));
    }
    if routed && topology.tagged {
        all.push(ip("vlan", "link add link base1 name probe1 type vlan id 10"));
    }
    match topology.protection {
        Protection::Plain => {}
        Protection::MacSec => all.push(macsec(topology)),
        Protection::MacSecVxlan => {
            let remote = if is_v6 { "fd09::2" } else { "10.9.0.2" };
            let vxlan = format!(
                "link add name probe3 type vxlan id 1 remote {remote} dstport 4789 dev base1"
            );
            all.extend([macsec(topology), ip("vxlan", &vxlan)]);
        }
        Protection::Esp => all.push(esp(topology, "tunnel")),
        Protection::L2tp => {
            let here = loopback(topology);
            let l2tp = format!(
                "l2tp add tunnel tunnel_id 1 peer_tunnel_id 1 encap udp local {here} \
                 remote {here} udp_sport 1701 udp_dport 1701\n\
                 l2tp add session name probe4 tunnel_id 1 session_id 1 peer_session_id 1"
            );
            all.extend([esp(topology, "transport"), ip("l2tp_eth", &l2tp)]);
        }
        Protection::WireGuard => all.push(ip("wireguard", "link add name probe5 type wireguard")),
    }
    if topology.pseudowire {
        // As far as the kernel has to know the words.
        let tc = "qdisc add dev base1 clsact\n\
                  filter add dev base1 ingress matchall action mpls mac_push protocol mpls_uc label 500 tc 0 \
                  ttl 64 bos 1 pipe action vlan push_eth dst_mac 02:00:00:00:00:01 src_mac 02:00:00:00:00:02 \
                  pipe action mirred egress redirect dev base2\n\
                  filter add dev base1 ingress protocol mpls_uc flower mpls lse depth 1 label 100 lse depth 2 \
                  label 500 bos 1 action vlan pop_eth";
        all.push(probe("tc's actions on MPLS labels (act_mpls, act_vlan, cls_flower)", "tc", tc));
    }
    if topology.gateway.is_some() {
        let netem = "qdisc add dev base2 root netem limit 64 rate 1000000bit";
        all.push(probe("netem", "tc", netem));
    }
    all
}

/// The loopback address of a tunnel's IP version.
const fn loopback(topology: &Topology) -> &'static str {
    match topology.carrier.ip {
        IpVersion::V4 => "127.0.0.1",
        IpVersion::V6 => "::1",
    }
}

/// No address in particular.
pub(super) const fn unspecified(version: IpVersion) -> &'static str {
    match version {
        IpVersion::V4 => "0.0.0.0",
        IpVersion::V6 => "::",
    }
}

fn macsec(topology: &Topology) -> Probe {
    let suite = topology.cipher.macsec().unwrap_or_default();
    let device = format!("link add link base2 name probe2 type macsec cipher {suite}");
    // The cipher is asked for when there is a key.
    let key = ZEROS.get(..suite.key_len().saturating_mul(2)).unwrap_or_default();
    let number = match suite.is_extended() {
        true => "xpn 1 ssci 1 salt 000000000000000000000000",
        false => "pn 1",
    };
    let script = format!("{device}\nmacsec add probe2 tx sa 0 {number} on key 01 {key}\n");
    Probe { name: "macsec", program: "ip", script }
}

fn esp(topology: &Topology, mode: &str) -> Probe {
    let zeros = |bytes: usize| "00".repeat(bytes);
    let (algorithm, name) = match topology.cipher {
        Cipher::AesGcm256 => (format!("aead rfc4106(gcm(aes)) 0x{} 128", zeros(36)), "esp"),
        Cipher::ChaCha20Poly1305 => {
            let algorithm = format!("aead rfc7539esp(chacha20,poly1305) 0x{} 128", zeros(36));
            (algorithm, "esp with ChaCha20-Poly1305")
        }
        Cipher::AesCbc128Sha1 => {
            let authentication = format!("auth-trunc hmac(sha1) 0x{} 96", zeros(20));
            (format!("enc cbc(aes) 0x{} {authentication}", zeros(16)), "esp with AES-CBC and SHA-1")
        }
        _ => (format!("aead rfc4106(gcm(aes)) 0x{} 128", zeros(20)), "esp"),
    };
    let (here, any) = (loopback(topology), unspecified(topology.carrier.ip));
    let in_udp = match topology.carrier.nat_traversal {
        true => format!(" encap espinudp {0} {0} {any}", wire::esp::UDP_PORT),
        false => String::new(),
    };
    let script = format!(
        "xfrm state add src {here} dst {here} proto esp spi 0x1001 mode {mode}{in_udp} {algorithm}\n"
    );
    Probe { name, program: "ip", script }
}

#[cfg(test)]
mod tests {
    use super::*;
    use seclink::path::Reach;

    #[test]
    fn a_path_asks_for_what_it_is_made_of() {
        let names = |topology: &Topology| {
            probes(topology).iter().map(|probe| probe.name).collect::<Vec<_>>()
        };
        let plain = Topology { pseudowire: false, ..Topology::default() };
        assert_eq!(names(&plain), ["bridge"]);
        let esp = Topology { protection: Protection::Esp, cipher: Cipher::AesGcm128, ..plain };
        assert_eq!(names(&esp), ["vlan", "esp"]);
        let limited = Topology {
            protection: Protection::MacSecVxlan,
            reach: Reach::EveryHop,
            cipher: Cipher::AesGcmXpn256,
            gateway: units::Rate::new(1_000_000, units::CountedBytes::Ethernet),
            ..plain
        };
        assert_eq!(names(&limited), ["bridge", "macsec", "vxlan", "netem"]);
        assert!(needs_swap(&Topology::default()) && !needs_swap(&plain));
    }
}
