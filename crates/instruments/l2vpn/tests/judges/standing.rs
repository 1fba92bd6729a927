//! Paths of the kernel's, from tester to tester.

use std::time::Duration;

use fault::Explain;
use l2vpn::{Error, KernelOptions, Side, Standing};
use lab_test::TestResult;
use seclink::path::{Carrier, Cipher, FrameSize, Protection, Reach, Topology};

use units::{CountedBytes, Rate};

use super::port::{Port, frame, kept};
use super::{SEED, carriers, new_lab};

/// Lengths of the testers' frames: the least, the paper's, the longest, and around a cipher's blocks.
const LENGTHS: [usize; 5] = [64, 79, 80, 1000, 1518];

/// What each kernel has, and what none has: named before there is a node.
pub fn lacking() -> TestResult {
    let plain = Topology { pseudowire: false, hops: 1, ..Topology::default() };
    assert_eq!(l2vpn::kernel::lacking(&plain)?, Vec::<&str>::new());
    let mut lab = new_lab()?;
    drop(Standing::of_kernel(&mut lab, &plain, &KernelOptions::default())?);
    for protection in [Protection::MacSec, Protection::WireGuard] {
        let topology = Topology { protection, cipher: protection.usual_cipher(), ..plain };
        let lacking = l2vpn::kernel::lacking(&topology)?;
        let mut lab = new_lab()?;
        match Standing::of_kernel(&mut lab, &topology, &KernelOptions::default()) {
            Ok(_) => assert!(lacking.is_empty(), "{lacking:?}"),
            Err(Error::Lacking(named)) => {
                assert_eq!(named, lacking);
                let error = Error::Lacking(named);
                assert!(error.to_string().contains(lacking[0]), "{error}");
                assert!(error.remedy().is_some_and(|hint| hint.contains("--backend guest")));
                // No node was made: their names are free.
                lab.add_node("node1")?;
            }
            Err(other) => return Err(other.into()),
        }
    }
    Ok(())
}

/// The paths whose frames are measured: each protection over the paper's pseudowire, and somewhere else.
fn paths() -> Vec<Topology> {
    let usual = |protection: Protection| {
        let cipher = protection.usual_cipher();
        Topology { protection, cipher, ..Topology::default() }
    };
    let reach = Reach::EveryHop;
    let mut paths: Vec<Topology> = Protection::ALL.iter().map(|one| usual(*one)).collect();
    paths.extend([
        Topology { tagged: false, hops: 3, ..usual(Protection::Plain) },
        Topology { reach, tagged: false, ..usual(Protection::MacSec) },
        Topology { reach, hops: 2, pseudowire: false, ..usual(Protection::Esp) },
        Topology { reach, hops: 2, pseudowire: false, ..usual(Protection::WireGuard) },
        Topology { cipher: Cipher::AesCbc128Sha1, ..usual(Protection::Esp) },
    ]);
    paths
}

/// Frames come as they were sent, and are as long on each link as is computed of their formats.
pub fn sizes() -> TestResult {
    for path in paths() {
        measure(&path).map_err(|error| format!("{path:?}: {error}"))?;
    }
    Ok(())
}

/// The same over IPv6 and behind a NAT; PPPoE is refused before there is a node.
pub fn carried() -> TestResult {
    for protection in Protection::ALL.iter().copied().filter(|one| one.has_outer_ip()) {
        for carrier in carriers(protection) {
            if carrier == Carrier::default() {
                continue;
            }
            let cipher = protection.usual_cipher();
            let path = Topology { protection, cipher, carrier, ..Topology::default() };
            measure(&path).map_err(|error| format!("{path:?}: {error}"))?;
            let reach = Reach::EveryHop;
            let path = Topology { reach, hops: 2, pseudowire: false, ..path };
            measure(&path).map_err(|error| format!("{path:?}: {error}"))?;
        }
    }
    let carrier = Carrier { pppoe: true, ..Carrier::default() };
    let mut lab = new_lab()?;
    let path = Topology { carrier, hops: 1, pseudowire: false, ..Topology::default() };
    match Standing::of_kernel(&mut lab, &path, &KernelOptions::default()) {
        Err(Error::NoPppoe) => Ok(()),
        other => Err(format!("PPPoE by the kernel: {:?}", other.err()).into()),
    }
}

fn measure(path: &Topology) -> TestResult {
    let mut lab = new_lab()?;
    let options = KernelOptions { seed: SEED, ..KernelOptions::default() };
    let standing = Standing::of_kernel(&mut lab, path, &options)?;
    let mut testers = [Port::tester(&standing, Side::Left)?, Port::tester(&standing, Side::Right)?];
    let mut before = counted(path, &standing)?;
    for (number, len) in (1..).zip(LENGTHS) {
        for side in [Side::Left, Side::Right] {
            let [left, right] = &mut testers;
            let (near, far) = if side == Side::Left { (left, right) } else { (right, left) };
            let sent = frame(&standing, side, len, number);
            near.send(&sent)?;
            let came = far.next().map_err(|e| format!("{len} bytes from the {side}: {e}"))?;
            assert_eq!(came.len(), len, "{path:?}");
            assert_eq!(kept(&standing, &came), kept(&standing, &sent), "{path:?}");
            let after = counted(path, &standing)?;
            let size = FrameSize::of(path, len);
            for (link, (then, now)) in (1..).zip(before.iter().zip(&after)) {
                let is_core = link > 1 && link < path.hops;
                let expected = if is_core { size.core } else { size.access };
                let passed = (now.0 - then.0, now.1 - then.1);
                assert_eq!(passed, (1, expected as u64), "link {link}, {len} bytes, {path:?}");
            }
            before = after;
        }
    }
    let drops = standing.drops()?;
    assert!(drops.is_empty(), "{drops:?} on {path:?}");
    Ok(())
}

/// A gateway that opens no more than a rate: of a burst, what its queue holds is delivered at that rate, and the rest
/// is dropped and counted.
pub fn limited() -> TestResult {
    let rate = Rate::new(8_000_000, CountedBytes::Ethernet);
    let (sent, queue) = (100u8, 20);
    for protection in [Protection::Plain, Protection::Esp] {
        let cipher = protection.usual_cipher();
        let path = Topology { protection, cipher, gateway: rate, hops: 3, ..Topology::default() };
        let mut lab = new_lab()?;
        let options = KernelOptions { seed: SEED, queue, ..KernelOptions::default() };
        let standing = Standing::of_kernel(&mut lab, &path, &options)?;
        let (near, mut far) =
            (Port::tester(&standing, Side::Left)?, Port::tester(&standing, Side::Right)?);
        for number in 0..sent {
            near.send(&frame(&standing, Side::Left, 1000, number))?;
        }
        let mut delivered = 0;
        while far.next_within(Duration::from_millis(200))?.is_some() {
            delivered += 1;
        }
        let drops = standing.drops()?;
        let dropped = drops.iter().find(|(name, _)| name == "netem dropped").map(|(_, n)| *n);
        assert_eq!(delivered + dropped.unwrap_or(0), u64::from(sent), "{drops:?}");
        // One may have left while they came, a millisecond each.
        assert!((u64::from(queue)..=u64::from(sent) / 2).contains(&delivered), "{delivered}");
    }
    Ok(())
}

/// Frames and bytes that passed each link.
fn counted(path: &Topology, standing: &Standing) -> TestResult<Vec<(u64, u64)>> {
    let links = (1..=path.hops).map(|link| {
        let counted = standing.link_bytes(link)?;
        Ok((counted.frames, counted.bytes))
    });
    links.collect()
}
