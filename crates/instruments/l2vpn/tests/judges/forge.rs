//! Frames that are replayed, reordered, mangled or cut short: given to the kernel's node and to ours, which must agree.

use std::collections::BTreeMap;

use l2vpn::{KernelOptions, Side};
use lab_test::TestResult;
use seclink::path::{Cipher, Protection, Topology};
use seclink::plane::Reason;

use super::meet::Meeting;
use super::one_hop;
use super::port::{frame, kept};

/// What is done with a sealed frame of ours, and what is to come of it.
struct Case {
    what: &'static str,
    /// Makes what is sent of a sealed frame that was not sent yet, and of the last one that was delivered.
    make: fn(fresh: Vec<u8>, last: Vec<u8>) -> Vec<u8>,
    ours: Reason,
    /// The kernel's counter; `None` if it drops such a frame before its security, which counts nothing.
    theirs: Option<&'static str>,
}

const fn case(
    what: &'static str,
    make: fn(Vec<u8>, Vec<u8>) -> Vec<u8>,
    ours: Reason,
    theirs: Option<&'static str>,
) -> Case {
    Case { what, make, ours, theirs }
}

/// Where MACsec's tag begins, behind the addresses: EtherType, TCI and AN, short length, number, channel.
const TAG: usize = 12;

/// What is wrong with MACsec frames (IEEE 802.1AE-2018 §10.6; the kernel has the names of the 2006 edition).
const MACSEC: [Case; 11] = [
    case("again", |_, last| last, Reason::MacsecLate, Some("InPktsLate")),
    case("ICV", |f, _| flipped(f, -1), Reason::MacsecNotValid, Some("InPktsNotValid")),
    case("text", |f, _| flipped(f, -40), Reason::MacsecNotValid, Some("InPktsNotValid")),
    case("address", |f, _| flipped(f, 11), Reason::MacsecNotValid, Some("InPktsNotValid")),
    case("number", |f, _| flipped(f, 16), Reason::MacsecNotValid, Some("InPktsNotValid")),
    case("a byte short", |f, _| cut(f, 1), Reason::MacsecNotValid, Some("InPktsNotValid")),
    case("no room for the ICV", |f, _| first(f, 36), Reason::MacsecBadTag, Some("InPktsBadTag")),
    case("version", |f, _| xored(f, TAG + 2, 0x80), Reason::MacsecBadTag, Some("InPktsBadTag")),
    case("no tag", |f, _| untagged(f), Reason::MacsecNoTag, Some("InPktsNoTag")),
    case("channel", |f, _| flipped(f, 26), Reason::MacsecNoAssociation, Some("InPktsNoSCI")),
    case(
        "association",
        |f, _| xored(f, TAG + 2, 1),
        Reason::MacsecNoAssociation,
        Some("InPktsNotUsingSA"),
    ),
];

/// Where ESP begins, behind Ethernet and IPv4.
const ESP: usize = 34;

/// What is wrong with ESP packets (RFC 4303 §3.4).
const OF_ESP: [Case; 8] = [
    case("again", |_, last| last, Reason::EspReplayed, Some("XfrmInStateSeqError")),
    case("ICV", |f, _| flipped(f, -1), Reason::EspNotAuthentic, Some("XfrmInStateProtoError")),
    case("text", |f, _| flipped(f, -40), Reason::EspNotAuthentic, Some("XfrmInStateProtoError")),
    case("vector", |f, _| flipped(f, 44), Reason::EspNotAuthentic, Some("XfrmInStateProtoError")),
    case(
        "a block short",
        |f, _| resized(cut(f, 16)),
        Reason::EspNotAuthentic,
        Some("XfrmInStateProtoError"),
    ),
    case(
        "other association",
        |f, _| flipped(f, ESP as i32),
        Reason::EspNoAssociation,
        Some("XfrmInNoStates"),
    ),
    case("cut short on the way", |f, _| cut(f, 4), Reason::BadHeader, None),
    case(
        "nothing in it",
        |f, _| resized(first(f, ESP + 8 + 8)),
        Reason::EspMalformed,
        Some("XfrmInStateProtoError"),
    ),
];

/// Changes a bit of the byte at a place; a negative one counts from the end.
fn flipped(frame: Vec<u8>, at: i32) -> Vec<u8> {
    let len = frame.len() as i32;
    xored(frame, (if at < 0 { len + at } else { at }) as usize, 4)
}

fn xored(mut frame: Vec<u8>, at: usize, bits: u8) -> Vec<u8> {
    frame[at] ^= bits;
    frame
}

fn cut(frame: Vec<u8>, by: usize) -> Vec<u8> {
    let len = frame.len() - by;
    first(frame, len)
}

fn first(mut frame: Vec<u8>, len: usize) -> Vec<u8> {
    frame.truncate(len);
    frame
}

/// A frame of another protocol in its place: an experiment's (IEEE 802 §9.2.3).
fn untagged(mut frame: Vec<u8>) -> Vec<u8> {
    frame[TAG..TAG + 2].copy_from_slice(&[0x88, 0xb5]);
    frame
}

/// Has the IPv4 header say the length that there is.
fn resized(mut frame: Vec<u8>) -> Vec<u8> {
    let len = (frame.len() - 14) as u16;
    frame[16..18].copy_from_slice(&len.to_be_bytes());
    frame[24..26].fill(0);
    let header: [u8; 20] = frame[14..34].try_into().unwrap();
    let sum = header
        .chunks(2)
        .fold(0u32, |sum, pair| sum + u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    let sum = (sum & 0xffff) + (sum >> 16);
    let checksum = !((sum & 0xffff) + (sum >> 16)) as u16;
    frame[24..26].copy_from_slice(&checksum.to_be_bytes());
    frame
}

/// Neither the kernel's node nor ours delivers such a frame, and both count it under the same name.
pub fn forged() -> TestResult {
    let macsec = one_hop(Protection::MacSec, Cipher::AesGcm128);
    let extended = one_hop(Protection::MacSec, Cipher::AesGcmXpn128);
    let esp = one_hop(Protection::Esp, Cipher::AesGcm128);
    let cbc = one_hop(Protection::Esp, Cipher::AesCbc128Sha1);
    for (path, cases) in
        [(macsec, &MACSEC[..]), (extended, &MACSEC), (esp, &OF_ESP), (cbc, &OF_ESP)]
    {
        let mut met = Meeting::new(&path, &KernelOptions::default())?;
        let failed = |error| format!("{:?}: {error}", path.cipher);
        for_the_kernel(&mut met, cases).map_err(failed)?;
        for_us(&mut met, cases).map_err(failed)?;
    }
    reordered(&esp)
}

/// What the kernel dropped for its security's sake: a device counts the same frames once more.
fn drops(met: &Meeting) -> TestResult<BTreeMap<String, u64>> {
    let drops = met.standing.drops()?.into_iter();
    Ok(drops.filter(|(name, _)| !name.contains("rx_")).collect())
}

/// Made of frames that we sealed, for the kernel's second node and for ours.
fn for_the_kernel(met: &mut Meeting, cases: &[Case]) -> TestResult {
    let mut last = good(met, 0)?;
    for (number, case) in (1..).zip(cases) {
        let sent = frame(&met.standing, Side::Left, 300, 100 + number);
        let bad = (case.make)(met.sealed(&sent)?, last);
        let before = drops(met)?;
        met.link.send(&bad)?;
        assert_eq!(met.opened_beside(&bad), Err(case.ours), "{}", case.what);
        // What follows comes first, so that nothing came of this one.
        last = good(met, number)?;
        let mut expected = before;
        if let Some(name) = case.theirs {
            *expected.entry(name.to_owned()).or_default() += 1;
        }
        assert_eq!(drops(met)?, expected, "{}", case.what);
    }
    Ok(())
}

/// A frame of ours that the kernel delivers, and so do we; it, sealed.
fn good(met: &mut Meeting, number: u8) -> TestResult<Vec<u8>> {
    let sent = frame(&met.standing, Side::Left, 300, number);
    let sealed = met.sealed(&sent)?;
    met.link.send(&sealed)?;
    let came = met.tester.next()?;
    assert_eq!(kept(&met.standing, &came), kept(&met.standing, &sent));
    let beside = met.opened_beside(&sealed).map_err(|why| why.to_string())?;
    assert_eq!(kept(&met.standing, &beside), kept(&met.standing, &sent));
    Ok(sealed)
}

/// Made of frames that the kernel sealed, for our first node.
fn for_us(met: &mut Meeting, cases: &[Case]) -> TestResult {
    let mut last = sealed_by_the_kernel(met, 0)?;
    met.opened(&last).map_err(|why| why.to_string())?;
    for (number, case) in (1..).zip(cases) {
        let bad = (case.make)(sealed_by_the_kernel(met, 100 + number)?, last);
        let before = met.ours[0].backward.counters().dropped(case.ours);
        assert_eq!(met.opened(&bad), Err(case.ours), "{}", case.what);
        assert_eq!(met.ours[0].backward.counters().dropped(case.ours), before + 1);
        last = sealed_by_the_kernel(met, number)?;
        met.opened(&last).map_err(|why| format!("after {}: {why}", case.what))?;
    }
    Ok(())
}

fn sealed_by_the_kernel(met: &mut Meeting, number: u8) -> TestResult<Vec<u8>> {
    met.tester.send(&frame(&met.standing, Side::Right, 300, number))?;
    met.next_sealed()
}

/// Packets of ESP that overtook each other are all delivered, each once (RFC 4303 §3.4.3).
fn reordered(path: &Topology) -> TestResult {
    let mut met = Meeting::new(path, &KernelOptions::default())?;
    let sent: Vec<Vec<u8>> =
        (0..8).map(|number| frame(&met.standing, Side::Left, 200, number)).collect();
    let sealed = sent.iter().map(|frame| met.sealed(frame)).collect::<TestResult<Vec<_>>>()?;
    for at in [3, 0, 7, 1, 6, 2, 5, 4] {
        met.link.send(&sealed[at])?;
        let came = met.tester.next()?;
        assert_eq!(kept(&met.standing, &came), kept(&met.standing, &sent[at]));
        assert!(met.opened_beside(&sealed[at]).is_ok());
        met.link.send(&sealed[at])?;
        assert_eq!(met.opened_beside(&sealed[at]), Err(Reason::EspReplayed));
    }
    let replayed = drops(&met)?.get("XfrmInStateSeqError").copied();
    assert_eq!(replayed, Some(8));
    Ok(())
}
