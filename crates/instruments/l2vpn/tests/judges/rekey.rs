//! MACsec's next key, by configuration: the kernel's and ours go on with it together.

use l2vpn::{Direction, KernelOptions, Side, ends, keys};
use lab::{Event, Node, Program};
use lab_test::TestResult;
use seclink::Secret;
use seclink::macsec::{
    Association, Confidentiality, Extended, Naming, Receive, ReceiveAssociation, Transmit,
    TransmitAssociation, Validation,
};
use seclink::path::{Cipher, Protection, Topology};
use seclink::plane::{Hop, Opener, Reason, Sealer};
use wire::macsec::Sci;

use super::meet::{Meeting, pass};
use super::port::{WAIT, frame};
use super::{SEED, one_hop};

const LEN: usize = 300;

/// Frames of the old key and of the new one pass side by side until the old one is dropped.
pub fn rekey() -> TestResult {
    let path = one_hop(Protection::MacSec, Cipher::AesGcm128);
    let mut met = Meeting::new(&path, &KernelOptions::default())?;
    let (node, _) = met.standing.link_end(1, Side::Right)?;
    let ours = ends::mac(1, Side::Left);
    let next = [[0x31; 16], [0x32; 16]];
    // Both keys are there for receiving before anybody sends with them (IEEE 802.1X-2020 §9.10).
    ip(
        &node,
        &format!(
            "macsec add sec1 rx port 1 address {ours} sa 1 pn 1 on key 31 {}\n\
         macsec add sec1 tx sa 1 pn 1 on key 32 {}\n",
            hex(&next[0]),
            hex(&next[1]),
        ),
    )?;
    let (own, peer) = (sci(Side::Left), sci(Side::Right));
    let mut transmit = Transmit::new(own, Naming::Explicit);
    transmit.install(TransmitAssociation::new(association(&path, 0, Direction::Forward), own, 1)?);
    let mut old = Hop::sealing(None, Sealer::MacSec(Box::new(transmit)));
    let mut transmit = Transmit::new(own, Naming::Explicit);
    transmit.install(TransmitAssociation::new(with_key(1, next[0]), own, 1)?);
    assert!(transmit.use_association(1));
    let mut new = Hop::sealing(None, Sealer::MacSec(Box::new(transmit)));
    for number in 1..=4 {
        let sealing = if number % 2 == 1 { &mut old } else { &mut new };
        let sent = frame(&met.standing, Side::Left, LEN, number);
        let sealed = pass(sealing, &sent).map_err(|why| why.to_string())?;
        met.link.send(&sealed)?;
        assert_eq!(met.tester.next()?, sent, "{number}");
    }

    // The other way: the kernel sends with its old key, then with its new one.
    let mut receive = Receive::new(Validation::Strict, Some(0));
    receive
        .install(peer, ReceiveAssociation::new(association(&path, 0, Direction::Backward), peer)?);
    receive.install(peer, ReceiveAssociation::new(with_key(1, next[1]), peer)?);
    let mut opening = Hop::opening(Opener::MacSec(Box::new(receive)), None);
    for number in 0..2 {
        if number == 1 {
            ip(&node, "link set dev sec1 type macsec encodingsa 1\n")?;
        }
        let sent = frame(&met.standing, Side::Right, LEN, number);
        met.tester.send(&sent)?;
        let sealed = met.next_sealed()?;
        // The association is in the last two bits behind the EtherType (IEEE 802.1AE-2018 §9.5).
        assert_eq!(sealed[14] & 3, number);
        assert_eq!(pass(&mut opening, &sealed), Ok(sent));
    }

    // The old key is dropped: what is sealed with it goes nowhere.
    let old_key = format!("sec1 rx port 1 address {ours} sa 0");
    ip(&node, &format!("macsec set {old_key} off\nmacsec del {old_key}\n"))?;
    let sent = frame(&met.standing, Side::Left, LEN, 5);
    met.link.send(&pass(&mut old, &sent).map_err(|why| why.to_string())?)?;
    let sent = frame(&met.standing, Side::Left, LEN, 6);
    met.link.send(&pass(&mut new, &sent).map_err(|why| why.to_string())?)?;
    assert_eq!(met.tester.next()?, sent);
    let drops = met.standing.drops()?;
    // One of them is of the kernel's first node, which heard the second's new key too and was told none.
    assert!(drops.contains(&("InPktsNotUsingSA".to_owned(), 2)), "{drops:?}");
    let untagged = pass(&mut opening, &sent);
    assert_eq!(untagged, Err(Reason::MacsecNoTag));
    Ok(())
}

pub fn sci(side: Side) -> Sci {
    Sci::new(ends::mac(1, side), Sci::END_STATION_PORT)
}

pub fn association(path: &Topology, number: u8, direction: Direction) -> Association {
    let suite = path.cipher.macsec().expect("a cipher of MACsec");
    let key = keys(SEED, path.protection, 0, direction, suite.key_len()).into_secret();
    let confidentiality = Confidentiality::All;
    Association { number, suite, key, extended: None, confidentiality }
}

/// Extended numbers go on when their lower half, which alone is sent, begins again (IEEE 802.1AE-2018 §10.6.2).
pub fn rollover() -> TestResult {
    let path = one_hop(Protection::MacSec, Cipher::AesGcmXpn128);
    let mut met = Meeting::new(&path, &KernelOptions::default())?;
    let (node, _) = met.standing.link_end(1, Side::Right)?;
    let [span] = ends::spans(&path)[..] else { return Err("one span".into()) };
    let extended = |direction| Extended { ssci: span.ssci(direction), salt: ends::SALT };
    let (own, peer) = (sci(Side::Left), sci(Side::Right));
    let first = u64::from(u32::MAX) - 2;
    let mut key = association(&path, 0, Direction::Forward);
    key.extended = Some(extended(Direction::Forward));
    let mut transmit = Transmit::new(own, Naming::Explicit);
    transmit.install(TransmitAssociation::new(key, own, first)?);
    let mut sealing = Hop::sealing(None, Sealer::MacSec(Box::new(transmit)));
    let mut key = association(&path, 0, Direction::Backward);
    key.extended = Some(extended(Direction::Backward));
    let mut receive = Receive::new(Validation::Strict, Some(0));
    receive.install(peer, ReceiveAssociation::new(key, peer)?);
    let mut opening = Hop::opening(Opener::MacSec(Box::new(receive)), None);
    ip(&node, &format!("macsec set sec1 tx sa 0 xpn {first} on\n"))?;
    for number in 0..6 {
        let low = (first + u64::from(number)) as u32;
        let sent = frame(&met.standing, Side::Left, LEN, number);
        let sealed = pass(&mut sealing, &sent).map_err(|why| why.to_string())?;
        assert_eq!(sealed[16..20], low.to_be_bytes());
        met.link.send(&sealed)?;
        assert_eq!(met.tester.next()?, sent, "{low:#x}");

        let sent = frame(&met.standing, Side::Right, LEN, number);
        met.tester.send(&sent)?;
        let sealed = met.next_sealed()?;
        assert_eq!(sealed[16..20], low.to_be_bytes());
        assert_eq!(pass(&mut opening, &sealed), Ok(sent), "{low:#x}");
    }
    Ok(())
}

fn with_key(number: u8, key: [u8; 16]) -> Association {
    let (suite, key) = (seclink::macsec::Suite::GcmAes128, Secret::new(key.to_vec()));
    let confidentiality = Confidentiality::All;
    Association { number, suite, key, extended: None, confidentiality }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Has `ip` do these lines.
pub fn ip(node: &Node, script: &str) -> TestResult {
    let running = node.launch(&Program::new("ip").args(["-batch", "-"]).stdin(script))?;
    let mut said = Vec::new();
    while let Some(event) = running.next_event(WAIT) {
        match event {
            Event::Line { text, .. } => said.push(text),
            Event::Ended { status, .. } if status.success() => return Ok(()),
            Event::Ended { .. } => break,
        }
    }
    Err(format!("ip failed: {}", said.join("; ")).into())
}
