//! Judges from outside: the kernel's own MACsec, ESP, L2TP, VXLAN and WireGuard, and wpa_supplicant.

mod esn;
mod forge;
mod meet;
mod mka;
mod noise;
mod port;
mod rekey;
mod standing;

pub use esn::extended;
pub use forge::forged;
pub use meet::peers;
pub use mka::key_agreement;
pub use noise::wireguard;
pub use rekey::rekey;
pub use standing::{lacking, sizes};

use lab::{Lab, LabOptions};
use lab_test::{Need, TestResult, skip};
use seclink::path::{Cipher, Protection, Topology};

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

/// Every cipher of these protections.
pub fn every_cipher(protections: &[Protection]) -> Vec<Topology> {
    let all = protections.iter().flat_map(|protection| {
        let ciphers = Cipher::ALL.iter().filter(|cipher| protection.can(**cipher));
        ciphers.map(|cipher| one_hop(*protection, *cipher))
    });
    all.collect()
}

/// Skips a test where the kernel cannot do what it is about.
pub fn need(topologies: &[Topology]) -> TestResult {
    let mut lacking = std::collections::BTreeSet::new();
    for topology in topologies {
        lacking.extend(l2vpn::kernel::lacking(topology)?);
    }
    match lacking.is_empty() {
        true => Ok(()),
        false => {
            let names: Vec<_> = lacking.into_iter().collect();
            skip(Need::Host, format!("this kernel has no {}", names.join(", ")))
        }
    }
}
