//! Judges from outside: the kernel's own MACsec, ESP, L2TP, VXLAN and WireGuard, and wpa_supplicant.

mod esn;
mod forge;
mod guest;
mod meet;
mod mka;
mod mtus;
mod noise;
mod options;
mod port;
mod rekey;
mod standing;
mod unseen;

pub use guest::Judge;
pub use standing::lacking;

use lab::{Lab, LabOptions};
use lab_test::{Test, TestResult};
use seclink::path::{Carrier, Cipher, IpVersion, Protection, Topology};

/// A name, and what says that something is wrong.
type Named = (&'static str, fn() -> TestResult);

/// What is judged, by name: in a guest where this machine's kernel cannot do it.
const JUDGES: [Named; 14] = [
    ("sizes", standing::sizes),
    ("limited", standing::limited),
    ("peers", meet::peers),
    ("forged", forge::forged),
    ("extended", esn::extended),
    ("rekey", rekey::rekey),
    ("rollover", rekey::rollover),
    ("options", options::options),
    ("wireguard", noise::wireguard),
    ("agreement", mka::key_agreement),
    ("unseen", unseen::unseen),
    ("carried", standing::carried),
    ("carried-peers", meet::carried),
    ("mtus", mtus::mtus),
];

/// A test each, of what belongs together.
pub fn tests() -> Vec<Test> {
    let tests = [
        Test::new("what_a_kernel_lacks_is_found_before_anything_stands", lacking),
        Test::new("every_path_carries_frames_of_the_computed_length", || {
            guest::judged(&["sizes", "limited"])
        }),
        Test::new("keys_are_in_no_command_line", || guest::judged(&["unseen"])),
        Test::new("our_nodes_and_the_kernels_understand_each_other", || {
            guest::judged(&[
                "peers",
                "forged",
                "extended",
                "rekey",
                "rollover",
                "options",
                "wireguard",
            ])
        }),
        Test::new("tunnels_over_ipv6_and_behind_a_nat_are_the_kernels_too", || {
            guest::judged(&["carried", "carried-peers"])
        }),
        Test::new("the_longest_packet_passes_the_kernels_drivers", || guest::judged(&["mtus"])),
        Test::new("wpa_supplicant_agrees_on_keys_with_us", || guest::judged(&["agreement"])),
    ];
    // The kernel's MACsec takes keys of root's alone.
    let judged = |test: Test| test.prepared(lab_test::net::enter_with_rights).within(guest::LONG);
    tests.map(judged).to_vec()
}

/// What keys are made of in these tests.
pub const SEED: u64 = 12;

pub fn new_lab() -> TestResult<Lab> {
    Ok(Lab::new(LabOptions { seed: SEED, ..LabOptions::default() })?)
}

/// One hop without a pseudowire, untagged.
pub fn one_hop(protection: Protection, cipher: Cipher) -> Topology {
    Topology {
        protection,
        cipher,
        hops: 1,
        pseudowire: false,
        tagged: false,
        ..Topology::default()
    }
}

/// The networks under a tunnel that the kernel has too, the usual one last.
pub fn carriers(protection: Protection) -> Vec<Carrier> {
    let nats: &[bool] = if protection.has_esp() { &[true, false] } else { &[false] };
    let versions: &[IpVersion] = match protection.has_outer_ip() {
        true => &[IpVersion::V6, IpVersion::V4],
        false => &[IpVersion::V4],
    };
    let carrier = |ip: &IpVersion, nat_traversal: &bool| Carrier {
        ip: *ip,
        pppoe: false,
        nat_traversal: *nat_traversal,
    };
    versions.iter().flat_map(|ip| nats.iter().map(move |nat| carrier(ip, nat))).collect()
}

/// Every cipher of these protections.
pub fn every_cipher(protections: &[Protection]) -> Vec<Topology> {
    let all = protections.iter().flat_map(|protection| {
        let ciphers = Cipher::ALL.iter().filter(|cipher| protection.can(**cipher));
        ciphers.map(|cipher| one_hop(*protection, *cipher))
    });
    all.collect()
}
