//! WireGuard's transport data against the kernel's. Keys come of a handshake, as the kernel wants it: the WireGuard
//! paper §5.4, by snow's Noise.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_lc_rs::agreement::{PrivateKey, X25519};
use blake2::digest::consts::U16;
use blake2::digest::{Digest, FixedOutput, KeyInit, Update};
use blake2::{Blake2s256, Blake2sMac};
use l2vpn::{Direction, KernelOptions, Side, Span, ends, keys};
use lab_test::TestResult;
use seclink::path::{Protection, Topology};
use seclink::plane::{HEADROOM, Hop, Lan, Opener, Plan, Reason, Sealer};
use seclink::underlay::Underlay;
use seclink::wireguard::{Receiver, Sender};
use seclink::{Secret, Slot};
use snow::{Builder, HandshakeState};
use wire::wireguard::{Message, RESPONSE_LEN};

use super::meet::{Meeting, pass};
use super::port::{WAIT, frame, kept};
use super::{SEED, one_hop};

const PATTERN: &str = "Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s";
const PROLOGUE: &[u8] = b"WireGuard v1 zx2c4 Jason@zx2c4.com";
const LABEL_MAC1: &[u8] = b"mac1----";
/// What we call the session.
const OURS: u32 = 0x0707_0707;
/// Bytes of an initiation before its MACs, and of a response.
const INITIATION: usize = 116;
const RESPONSE: usize = 60;
/// Initiations of a peer come at most so often.
const PACE: Duration = Duration::from_millis(100);

/// Both ends' keys, and what stands between them.
struct Peers {
    span: Span,
    underlay: Underlay,
    lan: Option<Lan>,
    private: Vec<u8>,
    /// The kernel's public key.
    public: Vec<u8>,
}

impl Peers {
    fn new(path: &Topology) -> TestResult<Peers> {
        let [span] = ends::spans(path)[..] else { return Err("one span".into()) };
        let key = |direction| keys(SEED, Protection::WireGuard, span.number, direction, 32);
        let theirs = PrivateKey::from_private_key(&X25519, key(Direction::Backward).expose())?;
        let plan = Plan::numbered(path);
        let [mut own, mut peer] = plan.links[0];
        [own.ip, peer.ip] = plan.through;
        Ok(Peers {
            span,
            underlay: Underlay::between(own, peer),
            lan: Some(plan.lans[0]),
            private: key(Direction::Forward).expose().to_vec(),
            public: theirs.compute_public_key()?.as_ref().to_vec(),
        })
    }

    /// A frame with this message in it.
    fn wrapped(&self, message: &[u8]) -> TestResult<Vec<u8>> {
        let (room, port) = (usize::from(HEADROOM), self.span.wireguard_port());
        let mut buffer = [&vec![0; room][..], message].concat();
        let end = buffer.len();
        let mut slot = Slot::new(&mut buffer, room..end).ok_or("a slot")?;
        self.underlay.put_udp(&mut slot, port, port)?;
        self.underlay.put_ip(&mut slot, wire::udp::PROTOCOL)?;
        self.underlay.put_ethernet(&mut slot)?;
        Ok(slot.frame().to_vec())
    }

    fn initiation(&self) -> TestResult<(HandshakeState, Vec<u8>)> {
        let mut noise = Builder::new(PATTERN.parse()?)
            .local_private_key(&self.private)?
            .remote_public_key(&self.public)?
            .prologue(PROLOGUE)?
            .psk(2, &[0; 32])?
            .build_initiator()?;
        let mut message = vec![0; INITIATION];
        message[0] = 1;
        message[4..8].copy_from_slice(&OURS.to_le_bytes());
        noise.write_message(&later(), &mut message[8..])?;
        let key = Digest::finalize(Digest::chain_update(
            Digest::chain_update(<Blake2s256 as Digest>::new(), LABEL_MAC1),
            &self.public,
        ));
        let mut mac: Blake2sMac<U16> = KeyInit::new_from_slice(&key)?;
        Update::update(&mut mac, &message);
        message.extend_from_slice(&mac.finalize_fixed());
        // No cookie, and so no second MAC.
        message.extend_from_slice(&[0; 16]);
        Ok((noise, message))
    }
}

/// TAI64N of a time later than any that the kernel has said for this key: it takes no earlier one.
fn later() -> [u8; 12] {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = 0x4000_0000_0000_000a + now.as_secs() + 1_000_000;
    let mut stamp = [0; 12];
    stamp[..8].copy_from_slice(&seconds.to_be_bytes());
    stamp
}

/// Both ways, and nothing that is replayed, mangled, cut short or of another session.
pub fn wireguard() -> TestResult {
    let path = one_hop(Protection::WireGuard, Protection::WireGuard.usual_cipher());
    let mut met = Meeting::new(&path, &KernelOptions::default())?;
    let peers = Peers::new(&path)?;
    let (mut sealing, mut opening) = shake_hands(&mut met, &peers)?;
    let mut last = Vec::new();
    for (number, len) in (1..).zip([64, 77, 78, 512, 1000, 1514]) {
        let sent = frame(&met.standing, Side::Left, len, number);
        let sealed = pass(&mut sealing, &sent).map_err(|why| why.to_string())?;
        met.link.send(&sealed)?;
        let came = met.tester.next().map_err(|error| format!("ours, {len} bytes: {error}"))?;
        assert_eq!(kept(&met.standing, &came), kept(&met.standing, &sent));
        // Once more, mangled, cut short, and of a session that there is not.
        let mangled = |at: usize| {
            let mut frame = sealed.clone();
            frame[at] ^= 1;
            frame
        };
        let end = sealed.len() - 1;
        for bad in [sealed.clone(), mangled(end), mangled(70), mangled(46), mangled(42)] {
            met.link.send(&bad)?;
        }

        let sent = frame(&met.standing, Side::Right, len, number);
        met.tester.send(&sent)?;
        let sealed = next_data(&mut met)?;
        let came = pass(&mut opening, &sealed).map_err(|why| format!("its: {why}"))?;
        assert_eq!(kept(&met.standing, &came), kept(&met.standing, &sent));
        assert_eq!(pass(&mut opening, &sealed), Err(Reason::WireGuardReplayed));
        last = sealed;
    }
    let mangled = |at: usize, bit: u8| {
        let mut frame = last.clone();
        frame[at] ^= bit;
        frame
    };
    // The counter is in bytes 50 to 57: one that was not seen, so that the tag is looked at.
    for (bad, why) in [
        (mangled(52, 1), Reason::WireGuardNotAuthentic),
        (mangled(46, 1), Reason::WireGuardOtherSession),
        (mangled(42, 1), Reason::WireGuardMalformed),
    ] {
        assert_eq!(pass(&mut opening, &bad), Err(why));
        assert_eq!(opening.counters().dropped(why), 1);
    }
    assert_eq!(met.tester.next_within(PACE)?, None);
    Ok(())
}

/// The transport keys of a fresh session, which the kernel believes in after our first message.
fn shake_hands(met: &mut Meeting, peers: &Peers) -> TestResult<(Hop, Hop)> {
    std::thread::sleep(PACE);
    let (mut noise, message) = peers.initiation()?;
    met.link.send(&peers.wrapped(&message)?)?;
    let message = loop {
        let came = met.link.next_within(WAIT)?.ok_or("the kernel answers no initiation")?;
        let message = came.get(42..).unwrap_or_default().to_vec();
        match Message::new_checked(&message) {
            Ok(Message::Response { receiver: OURS, .. }) => break message,
            _ => continue,
        }
    };
    assert_eq!(message.len(), RESPONSE_LEN);
    let theirs = u32::from_le_bytes(message[4..8].try_into()?);
    noise.read_message(&message[12..RESPONSE], &mut [0; 64])?;
    let (send, receive) = noise.dangerously_get_raw_split();
    let (underlay, port) = (peers.underlay, peers.span.wireguard_port());
    let sender = Box::new(Sender::new(theirs, Secret::new(send.to_vec()))?);
    let receiver = Box::new(Receiver::new(OURS, Secret::new(receive.to_vec()))?);
    Ok((
        Hop::sealing(peers.lan, Sealer::WireGuard { sender, underlay, port }),
        Hop::opening(Opener::WireGuard { receiver, underlay, port }, peers.lan),
    ))
}

/// The kernel's next transport data that holds a packet.
fn next_data(met: &mut Meeting) -> TestResult<Vec<u8>> {
    loop {
        let frame = met.link.next()?;
        match Message::new_checked(frame.get(42..).unwrap_or_default()) {
            Ok(Message::Data { sealed, .. }) if sealed.len() > 16 => return Ok(frame),
            _ => continue,
        }
    }
}
