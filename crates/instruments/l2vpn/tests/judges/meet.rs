//! A path whose first node is ours and whose second is the kernel's.

use l2vpn::{Direction, KernelOptions, Side, Standing, keys};
use lab::Lab;
use lab_test::TestResult;
use seclink::path::{Cipher, Protection, Topology};
use seclink::plane::{self, HEADROOM, Hop, KeyId, Node, Plan, Reason, TAILROOM, Way};
use seclink::{Secret, Slot};
use units::Time;

use super::port::{Port, frame, kept};
use super::{SEED, carriers, every_cipher, new_lab, one_hop};

/// Lengths of the testers' frames.
const LENGTHS: [usize; 6] = [64, 77, 78, 512, 1000, 1514];

/// A path of the kernel's, and our nodes of the same path. Ours speak in place of its first node, on its link.
pub struct Meeting {
    pub standing: Standing,
    pub ours: Vec<Node>,
    /// What the kernel's second node sends to the first, and the way to it.
    pub link: Port,
    /// The second tester.
    pub tester: Port,
    _lab: Lab,
}

/// The key of one way over a stretch, as a path of the kernel's has it.
pub fn key_of(topology: &Topology) -> impl FnMut(KeyId) -> Secret {
    let protection = topology.protection;
    move |id| {
        let direction = match id.way {
            Way::Forward => Direction::Forward,
            Way::Backward => Direction::Backward,
        };
        keys(SEED, protection, id.link, direction, id.len).into_secret()
    }
}

impl Meeting {
    pub fn new(topology: &Topology, options: &KernelOptions) -> TestResult<Meeting> {
        let mut lab = new_lab()?;
        let options = KernelOptions { seed: SEED, ..*options };
        let standing = Standing::of_kernel(&mut lab, topology, &options)?;
        let ours = plane::nodes(topology, &Plan::numbered(topology), key_of(topology))?;
        let link = Port::at(&standing, 1, Side::Left)?;
        let tester = Port::tester(&standing, Side::Right)?;
        Ok(Meeting { standing, ours, link, tester, _lab: lab })
    }

    /// What our first node makes of a frame of the first tester.
    pub fn sealed(&mut self, frame: &[u8]) -> TestResult<Vec<u8>> {
        pass(&mut self.ours[0].forward, frame).map_err(|why| format!("not sealed: {why}").into())
    }

    /// The next frame that the kernel's second node has sealed. Its first node opens it too, and what comes out of an
    /// ESP tunnel comes in at the same interface once more: that is passed over.
    pub fn next_sealed(&mut self) -> TestResult<Vec<u8>> {
        loop {
            let frame = self.link.next()?;
            let packet = wire::ipv4::Packet::new_checked(frame.get(14..).unwrap_or_default());
            let tester = self.standing.ends[0].ip;
            if !packet.is_ok_and(|packet| packet.destination() == tester) {
                return Ok(frame);
            }
        }
    }

    /// What our first node makes of a frame of the kernel's.
    pub fn opened(&mut self, frame: &[u8]) -> Result<Vec<u8>, Reason> {
        pass(&mut self.ours[0].backward, frame)
    }

    /// What our second node makes of a frame that the kernel's is given too.
    pub fn opened_beside(&mut self, frame: &[u8]) -> Result<Vec<u8>, Reason> {
        pass(&mut self.ours[1].forward, frame)
    }
}

/// What a hop makes of a frame.
pub fn pass(hop: &mut Hop, frame: &[u8]) -> Result<Vec<u8>, Reason> {
    let (before, behind) = (usize::from(HEADROOM), usize::from(TAILROOM));
    let mut buffer = [&vec![0; before][..], frame, &vec![0; behind]].concat();
    let mut slot = Slot::new(&mut buffer, before..before + frame.len()).unwrap();
    hop.handle(Time::ZERO, &mut slot)?;
    Ok(slot.frame().to_vec())
}

/// What ours seals the kernel opens, and the other way round, with every cipher.
pub fn peers() -> TestResult {
    let paths = every_cipher(&[
        Protection::MacSec,
        Protection::Esp,
        Protection::L2tp,
        Protection::MacSecVxlan,
    ]);
    for path in paths {
        let what = (path.protection, path.cipher);
        meet(&path).map_err(|error| format!("{what:?}: {error}"))?;
    }
    Ok(())
}

/// The same over IPv6 and behind a NAT.
pub fn carried() -> TestResult {
    let paths = [
        (Protection::Esp, Cipher::AesGcm128),
        (Protection::Esp, Cipher::AesCbc128Sha1),
        (Protection::L2tp, Cipher::AesGcm128),
        (Protection::MacSecVxlan, Cipher::AesGcm128),
    ];
    for (protection, cipher) in paths {
        for carrier in carriers(protection) {
            let path = Topology { carrier, ..one_hop(protection, cipher) };
            meet(&path).map_err(|error| format!("{protection} {cipher} {carrier:?}: {error}"))?;
        }
    }
    Ok(())
}

fn meet(path: &Topology) -> TestResult {
    let mut met = Meeting::new(path, &KernelOptions::default())?;
    for (number, len) in (1..).zip(LENGTHS) {
        let sent = frame(&met.standing, Side::Left, len, number);
        let sealed = met.sealed(&sent)?;
        met.link.send(&sealed)?;
        let came = met.tester.next().map_err(|error| format!("ours, {len} bytes: {error}"))?;
        assert_eq!(kept(&met.standing, &came), kept(&met.standing, &sent), "{path:?}");

        let sent = frame(&met.standing, Side::Right, len, number);
        met.tester.send(&sent)?;
        let sealed = met.next_sealed().map_err(|error| format!("its, {len} bytes: {error}"))?;
        let came = met.opened(&sealed).map_err(|why| format!("its, {len} bytes: {why}"))?;
        assert_eq!(kept(&met.standing, &came), kept(&met.standing, &sent), "{path:?}");
    }
    let drops = met.standing.drops()?;
    assert!(drops.is_empty(), "{drops:?}");
    Ok(())
}
