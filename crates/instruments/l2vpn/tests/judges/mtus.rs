//! The MTUs that are computed, against the kernel's drivers: the longest packet passes as one packet that fills the
//! path, and one byte more does not.

use std::time::Duration;

use l2vpn::{KernelOptions, Side, Standing};
use lab_test::TestResult;
use seclink::path::{Carrier, Cipher, Encapsulation, Protection, Topology, Wrapping};

use super::port::{Port, frame, kept};
use super::rekey::ip;
use super::{SEED, carriers, new_lab, one_hop};

/// The path's MTU.
const PATH: usize = 1500;
const ETHERNET: usize = 14;
/// Time in which a frame that must not come could come.
const QUIET: Duration = Duration::from_millis(300);

/// Every protection with each of its sizes, over either IP version and behind a NAT.
pub fn mtus() -> TestResult {
    for protection in Protection::ALL.iter().copied().filter(|one| *one != Protection::Plain) {
        let usual = protection.usual_cipher();
        let ciphers = match protection.has_esp() {
            true => vec![usual, Cipher::AesCbc128Sha1],
            false => vec![usual],
        };
        for (cipher, carrier) in ciphers.iter().flat_map(|cipher| {
            carriers(protection).into_iter().map(move |carrier| (*cipher, carrier))
        }) {
            boundary(protection, cipher, carrier)
                .map_err(|error| format!("{protection} {cipher} {carrier:?}: {error}"))?;
        }
    }
    Ok(())
}

/// A path whose one link has the MTU of [`PATH`], and whose tunnel device has the computed one.
fn boundary(protection: Protection, cipher: Cipher, carrier: Carrier) -> TestResult {
    let path = Topology { carrier, ..one_hop(protection, cipher) };
    let wrapping = Wrapping::new(Encapsulation::from(protection), cipher, carrier)?;
    let mtu = wrapping.fit(PATH)?.mtu;
    let mut lab = new_lab()?;
    let options = KernelOptions { seed: SEED, ..KernelOptions::default() };
    let standing = Standing::of_kernel(&mut lab, &path, &options)?;
    for side in [Side::Left, Side::Right] {
        let (node, link) = standing.link_end(1, side)?;
        let mut script = format!("link set dev {link} mtu {PATH}\n");
        if protection == Protection::WireGuard {
            // The device on the right of the first node is its second.
            let device = if side == Side::Left { "wg2" } else { "wg1" };
            script += &format!("link set dev {device} mtu {mtu}\n");
        }
        ip(&node, &script)?;
    }
    let near = Port::tester(&standing, Side::Left)?;
    let mut far = Port::tester(&standing, Side::Right)?;
    let before = standing.link_bytes(1)?;
    let sent = frame(&standing, Side::Left, mtu + ETHERNET, 1);
    near.send(&sent)?;
    let came = far.next().map_err(|error| format!("{mtu} bytes: {error}"))?;
    assert_eq!(kept(&standing, &came), kept(&standing, &sent));
    let after = standing.link_bytes(1)?;
    let passed = (after.frames - before.frames, after.bytes - before.bytes);
    assert_eq!(passed, (1, (wrapping.outer_len(mtu) + ETHERNET) as u64), "{mtu} bytes");
    // Dropped, in pieces, or longer than the path: an Ethernet bridge lets four bytes more pass.
    near.send(&frame(&standing, Side::Left, mtu + 1 + ETHERNET, 2))?;
    let came = far.next_within(QUIET)?;
    let last = standing.link_bytes(1)?;
    let (frames, bytes) = (last.frames - after.frames, last.bytes - after.bytes);
    let fits = came.is_some() && frames == 1 && bytes <= (PATH + ETHERNET) as u64;
    assert!(!fits, "{} bytes pass as {bytes}", mtu + 1);
    Ok(())
}
