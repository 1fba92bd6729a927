//! MACsec's options that the kernel has too: integrity alone, and channels that frames do not name.

use l2vpn::{Direction, KernelOptions, Side, ends};
use lab_test::TestResult;
use seclink::macsec::{
    Confidentiality, Naming, Receive, ReceiveAssociation, Transmit, TransmitAssociation, Validation,
};
use seclink::path::{Cipher, Protection};
use seclink::plane::{Hop, Opener, Sealer};

use super::meet::{Meeting, pass};
use super::one_hop;
use super::port::frame;
use super::rekey::{association, ip, sci};

/// A way to seal, and how the kernel is told of it.
const WAYS: [(&str, Confidentiality, Naming); 4] = [
    ("encrypt off", Confidentiality::None, Naming::Explicit),
    ("encrypt on", Confidentiality::All, Naming::Explicit),
    ("send_sci off end_station on", Confidentiality::All, Naming::EndStation),
    ("send_sci off end_station on encrypt off", Confidentiality::None, Naming::EndStation),
];

/// Frames pass both ways, of the same length, and what is not encrypted can be read.
pub fn options() -> TestResult {
    let path = one_hop(Protection::MacSec, Cipher::AesGcm256);
    let mut met = Meeting::new(&path, &KernelOptions::default())?;
    let (node, _) = met.standing.link_end(1, Side::Right)?;
    // Each way goes on with numbers that those before it did not have.
    for ((told, confidentiality, naming), first) in WAYS.into_iter().zip([1, 101, 201, 301]) {
        ip(&node, &format!("link set dev sec1 type macsec {told}\n"))?;
        let (own, peer) = (sci(Side::Left), sci(Side::Right));
        let mut key = association(&path, 0, Direction::Forward);
        key.confidentiality = confidentiality;
        let mut transmit = Transmit::new(own, naming);
        transmit.install(TransmitAssociation::new(key, own, first)?);
        let mut sealing = Hop::sealing(None, Sealer::MacSec(Box::new(transmit)));
        let mut key = association(&path, 0, Direction::Backward);
        key.confidentiality = confidentiality;
        let mut receive = Receive::new(Validation::Strict, Some(0));
        receive.install(peer, ReceiveAssociation::new(key, peer)?);
        let mut opening = Hop::opening(Opener::MacSec(Box::new(receive)), None);
        // From lengths that the tag says on (IEEE 802.1AE-2018 §9.7).
        for (number, len) in (1..).zip([60, 61, 62, 300, 1514]) {
            let sent = from(frame(&met.standing, Side::Left, len, number), Side::Left);
            let ours = pass(&mut sealing, &sent).map_err(|why| why.to_string())?;
            met.link.send(&ours)?;
            let came = met.tester.next().map_err(|error| format!("{told}: {error}"))?;
            assert_eq!(came, sent, "{told}, {len} bytes");

            let sent = from(frame(&met.standing, Side::Right, len, number), Side::Right);
            met.tester.send(&sent)?;
            let theirs = met.next_sealed()?;
            assert_eq!(theirs.len(), ours.len(), "{told}");
            // Type, tag and short length.
            assert_eq!(theirs[12..16], ours[12..16], "{told}, {len} bytes");
            let text = theirs.len() - 16 - (len - 12);
            let is_clear = theirs[text..theirs.len() - 16] == sent[12..];
            assert_eq!(is_clear, confidentiality == Confidentiality::None, "{told}");
            assert_eq!(pass(&mut opening, &theirs), Ok(sent), "{told}, {len} bytes");
        }
    }
    Ok(())
}

/// The frame from the MACsec station itself: an end station's channel is named by the source address.
fn from(mut frame: Vec<u8>, side: Side) -> Vec<u8> {
    frame[6..12].copy_from_slice(&ends::mac(1, side).0);
    frame
}
