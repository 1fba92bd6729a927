//! ESP in transport mode.

use proptest::prelude::*;
use seclink::esp::{Dropped, Inbound, Opened, Outbound, Parameters, Suite, overhead, transport};
use seclink::{SealError, Secret, Slot};

use crate::common::{ipv4_packet, ipv6_packet, worked};

fn parameters(suite: Suite) -> Parameters {
    let key = Secret::new((0..suite.key_material() as u8).collect());
    Parameters { spi: 7, suite, key, extended: false }
}

fn both(suite: Suite) -> (Outbound, Inbound) {
    let outbound = Outbound::new(parameters(suite)).unwrap();
    (outbound, Inbound::new(parameters(suite), Some(64)).unwrap())
}

proptest! {
    #[test]
    fn the_header_stays_in_front_and_comes_back_as_it_was(
        suite in prop::sample::select(Suite::ALL), len in 20usize..300, padding in 0usize..20,
    ) {
        let (mut outbound, mut inbound) = both(suite);
        let packet = ipv4_packet(len);
        let padded = [&packet[..], &vec![0; padding]].concat();
        let (said, sealed) = worked(&padded, |slot| transport::seal(&mut outbound, slot, false));
        said.unwrap();
        prop_assert_eq!(sealed.len(), len + overhead(suite, len - 20));
        let outer = wire::ipv4::Packet::new_checked(&sealed).unwrap();
        prop_assert!(outer.checksum_ok());
        prop_assert_eq!((outer.protocol(), outer.payload_len()), (50, sealed.len() - 20));
        let padded = [&sealed[..], &vec![0; padding]].concat();
        let opened = worked(&padded, |slot| transport::open(&mut inbound, slot, false));
        prop_assert_eq!(opened, (Opened::Delivered { next_header: 17 }, packet));
    }
}

proptest! {
    /// Over either IP version, with UDP before ESP and without.
    #[test]
    fn either_version_and_udp_come_back_as_they_were(
        suite in prop::sample::select(Suite::ALL), len in 48usize..300, is_v6: bool, in_udp: bool,
    ) {
        let (mut outbound, mut inbound) = both(suite);
        let packet = if is_v6 { ipv6_packet(len) } else { ipv4_packet(len) };
        let header = if is_v6 { 40 } else { 20 };
        let (said, sealed) = worked(&packet, |slot| transport::seal(&mut outbound, slot, in_udp));
        said.unwrap();
        let udp_len = if in_udp { 8 } else { 0 };
        prop_assert_eq!(sealed.len(), len + udp_len + overhead(suite, len - header));
        if is_v6 && in_udp {
            let outer = wire::ipv6::Packet::new_checked(&sealed).unwrap();
            let datagram = wire::udp::Datagram::new_checked(outer.payload()).unwrap();
            let (source, destination) = (outer.source().into(), outer.destination().into());
            prop_assert!(datagram.checksum() != 0 && datagram.checksum_ok(source, destination));
        }
        let opened = worked(&sealed, |slot| transport::open(&mut inbound, slot, in_udp));
        prop_assert_eq!(opened, (Opened::Delivered { next_header: 17 }, packet));
        // With UDP where none is expected, or without where it is.
        let (_, sealed) = worked(&sealed, |slot| transport::open(&mut inbound, slot, !in_udp));
        let _ = sealed;
        prop_assert_eq!(inbound.counters().malformed, 1);
    }
}

#[test]
fn extension_headers_that_routers_read_are_not_protected() {
    let (mut outbound, _) = both(Suite::AesGcm128);
    for next_header in [0, 43, 44] {
        let mut packet = ipv6_packet(100);
        packet[6] = next_header;
        let said = worked(&packet, |slot| transport::seal(&mut outbound, slot, false));
        assert_eq!(said, (Err(SealError::TooShort), packet));
    }
}

#[test]
fn options_stay_in_front_too() {
    let (mut outbound, mut inbound) = both(Suite::AesGcm128);
    // A header of 24 bytes, whose checksum nobody has looked at.
    let mut packet = ipv4_packet(60);
    packet[0] = 0x46;
    let (said, sealed) = worked(&packet, |slot| transport::seal(&mut outbound, slot, false));
    said.unwrap();
    assert_eq!((sealed[0], &sealed[20..24]), (0x46, &packet[20..24]));
    let (said, opened) = worked(&sealed, |slot| transport::open(&mut inbound, slot, false));
    assert_eq!(said, Opened::Delivered { next_header: 17 });
    assert_eq!((&opened[..10], &opened[12..]), (&packet[..10], &packet[12..]));
}

#[test]
fn what_is_no_esp_in_ip_is_dropped_and_counted() {
    let (mut outbound, mut inbound) = both(Suite::AesGcm128);
    let packet = ipv4_packet(60);
    let sealed = worked(&packet, |slot| transport::seal(&mut outbound, slot, false)).1;
    let mut fragment = sealed.clone();
    fragment[7] = 1;
    for bytes in [&packet, &fragment, &sealed[..40].to_vec(), &vec![]] {
        let said = worked(bytes, |slot| transport::open(&mut inbound, slot, false)).0;
        assert_eq!(said, Opened::Dropped(Dropped::Malformed));
    }
    assert_eq!(inbound.counters().malformed, 4);
    let said = worked(&fragment, |slot| transport::seal(&mut outbound, slot, false));
    assert_eq!(said, (Err(SealError::TooShort), fragment));
}

#[test]
fn without_room_the_packet_stays_as_it_was() {
    let (mut outbound, _) = both(Suite::AesGcm128);
    let packet = ipv4_packet(60);
    for (before, behind) in [(0, 64), (10, 64), (64, 0), (64, 10)] {
        let mut buffer = [&vec![0; before][..], &packet, &vec![0; behind]].concat();
        let mut slot = Slot::new(&mut buffer, before..before + 60).unwrap();
        let said = transport::seal(&mut outbound, &mut slot, false);
        assert!(matches!(said, Err(SealError::NoRoom { .. })), "{said:?}");
        assert_eq!(slot.frame(), packet);
    }
}
