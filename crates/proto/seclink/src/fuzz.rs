//! Entry points for fuzzing. What a peer without the keys sends is never delivered: a panic says that it was.

pub mod session;

pub use session::session as mka_session;

use crate::macsec::{
    Association, Confidentiality, Dropped, Extended, Receive, ReceiveAssociation, Suite, Validation,
};
use crate::path::{Carrier, Cipher, IpVersion, Protection, Reach, Topology};
use crate::plane::{self, HEADROOM, Plan, TAILROOM, Way};
use crate::{Secret, Slot, esp, macsec, wireguard};
use units::Time;
use wire::macsec::Sci;

/// Bytes that a frame may be long here.
const MOST: usize = 2048;

/// The channel that the receivers know.
const SCI: Sci = Sci([2, 0, 0, 0, 0, 1, 0, 1]);

fn suite(choice: u8) -> Suite {
    let all = Suite::ALL;
    all.get(usize::from(choice) % all.len()).copied().unwrap_or_default()
}

fn association(suite: Suite) -> Association {
    Association {
        number: 0,
        suite,
        key: Secret::new(vec![0x5a; suite.key_len()]),
        extended: suite.is_extended().then_some(Extended { ssci: 1, salt: [7; 12] }),
        confidentiality: Confidentiality::All,
    }
}

/// Any bytes as frames with MAC security tags.
///
/// # Panics
/// A strict receiver delivers a frame that nobody sealed.
pub fn macsec(bytes: &[u8]) {
    let Some((choice, frame)) = bytes.split_first() else { return };
    let mut buffer = frame.get(..MOST.min(frame.len())).unwrap_or_default().to_vec();
    let range = 0..buffer.len();
    let Ok(key) = ReceiveAssociation::new(association(suite(*choice)), SCI) else { return };
    let mut receive = Receive::new(Validation::Strict, (choice & 0x80 != 0).then_some(64));
    receive.install(SCI, key);
    let Some(mut slot) = Slot::new(&mut buffer, range) else { return };
    let opened = receive.open(&mut slot);
    assert!(matches!(opened, macsec::Opened::Dropped(_)), "{opened:?}");
    let counted = receive.counters();
    let channel = receive.channel_counters(SCI).copied().unwrap_or_default();
    let sum = counted.no_tag
        + counted.bad_tag
        + counted.no_association_error
        + channel.late
        + channel.not_valid;
    let is_uncounted = opened == macsec::Opened::Dropped(Dropped::KeyAgreement);
    assert_eq!(sum, u64::from(!is_uncounted), "{opened:?}");
}

/// Any bytes as ESP packets.
///
/// # Panics
/// One that nobody sealed is delivered.
pub fn esp(bytes: &[u8]) {
    let Some((choice, packet)) = bytes.split_first() else { return };
    let all = esp::Suite::ALL;
    let suite = all.get(usize::from(*choice) % all.len()).copied().unwrap_or_default();
    let key = Secret::new(vec![0x5a; suite.key_material()]);
    let parameters = esp::Parameters { spi: 1, suite, key, extended: choice & 0x80 != 0 };
    let Ok(mut inbound) = esp::Inbound::new(parameters, Some(64)) else { return };
    let mut buffer =
        [&[0, 0, 0, 1][..], packet.get(..MOST.min(packet.len())).unwrap_or_default()].concat();
    for start in [0, 4] {
        let range = start..buffer.len();
        let Some(mut slot) = Slot::new(&mut buffer, range) else { return };
        let opened = inbound.open(&mut slot);
        assert!(matches!(opened, esp::Opened::Dropped(_)), "{opened:?}");
    }
}

/// Any bytes as WireGuard's transport data.
///
/// # Panics
/// A message that nobody sealed is delivered.
pub fn wireguard(bytes: &[u8]) {
    let key = Secret::new(vec![0x5a; 32]);
    let Ok(mut receiver) = wireguard::Receiver::new(1, key) else { return };
    let bytes = bytes.get(..MOST.min(bytes.len())).unwrap_or_default();
    for head in [&[][..], &[4, 0, 0, 0, 1, 0, 0, 0]] {
        let mut buffer = [head, bytes].concat();
        let range = 0..buffer.len();
        let Some(mut slot) = Slot::new(&mut buffer, range) else { return };
        let opened = receiver.open(&mut slot);
        assert!(matches!(opened, wireguard::Opened::Dropped(_)), "{opened:?}");
    }
}

/// The path that two bytes choose, and a node of it on the way.
fn chosen(kind: u8, place: u8) -> Option<(Topology, Way, u8)> {
    let pick = |count: usize, choice: u8| usize::from(choice).checked_rem(count).unwrap_or(0);
    let all = Protection::ALL;
    let protection = *all.get(pick(all.len(), kind & 0x0f))?;
    let can: Vec<Cipher> =
        Cipher::ALL.iter().copied().filter(|cipher| protection.can(*cipher)).collect();
    let cipher = *can.get(pick(can.len(), place >> 4))?;
    let reach = if kind & 0x10 == 0 { Reach::EndToEnd } else { Reach::EveryHop };
    let (pseudowire, tagged) = (kind & 0x20 != 0, kind & 0x40 != 0);
    let hops = if pseudowire { 4 } else { 2 };
    let carrier = match usize::from(kind & 0x0f) / all.len() {
        0 => Carrier::default(),
        round => Carrier {
            ip: if protection.has_outer_ip() { IpVersion::V6 } else { IpVersion::V4 },
            pppoe: round > 1 && protection != Protection::MacSec,
            nat_traversal: round > 1 && protection.has_esp(),
        },
    };
    let gateway = None;
    let topology =
        Topology { protection, cipher, reach, hops, pseudowire, tagged, gateway, carrier };
    topology.check().ok()?;
    let way = if kind & 0x80 == 0 { Way::Forward } else { Way::Backward };
    Some((topology, way, pick(usize::from(topology.nodes()), place & 0x0f) as u8))
}

/// Any bytes as frames that come to a node of any path.
///
/// # Panics
/// A node that opens lets one through that nobody sealed, or one is not counted.
pub fn node(bytes: &[u8]) {
    let Some((&[kind, place], frame)) = bytes.split_first_chunk::<2>() else { return };
    let Some((topology, way, at)) = chosen(kind, place) else { return };
    let key = |id: plane::KeyId| Secret::new(vec![0x5a; id.len]);
    let Ok(mut nodes) = plane::nodes(&topology, &Plan::numbered(&topology), key) else { return };
    let number = match way {
        Way::Forward => at,
        Way::Backward => topology.hops.saturating_sub(at),
    };
    let Some(node) = nodes.get_mut(usize::from(number)) else { return };
    let hop = match way {
        Way::Forward => &mut node.forward,
        Way::Backward => &mut node.backward,
    };
    let frame = frame.get(..MOST.min(frame.len())).unwrap_or_default();
    let (before, behind) = (usize::from(HEADROOM), usize::from(TAILROOM));
    let mut buffer = [&vec![0; before][..], frame, &vec![0; behind]].concat();
    let range = before..before.saturating_add(frame.len());
    let Some(mut slot) = Slot::new(&mut buffer, range) else { return };
    let handled = hop.handle(Time::ZERO, &mut slot);
    let is_secure = topology.protection != Protection::Plain;
    let opens = is_secure && at > 0 && (topology.reach == Reach::EveryHop || at == topology.hops);
    assert!(!(opens && handled.is_ok()), "node {at} lets through what nobody sealed");
    let dropped: u64 = hop.counters().drops().map(|(_, count)| count).sum();
    assert_eq!((hop.counters().taken, hop.counters().given + dropped), (1, 1));
}
