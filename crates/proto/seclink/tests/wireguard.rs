//! WireGuard's transport data: both halves of a session, and what a hostile peer may try.

use proptest::prelude::*;
use seclink::wireguard::{Dropped, Opened, REJECT_AFTER_MESSAGES, Receiver, Sender};
use seclink::{SealError, Secret};

use crate::common::{ipv4_packet, worked};

const INDEX: u32 = 0x8899_aabb;

fn key() -> Secret {
    Secret::new((0..32).collect())
}

fn session() -> (Sender, Receiver) {
    (Sender::new(INDEX, key()).unwrap(), Receiver::new(INDEX, key()).unwrap())
}

fn sealed(sender: &mut Sender, packet: &[u8]) -> Vec<u8> {
    let (said, message) = worked(packet, |slot| sender.seal(slot));
    said.unwrap();
    message
}

proptest! {
    #[test]
    fn what_is_sealed_is_opened_without_its_padding(len in 20usize..200) {
        let (mut sender, mut receiver) = session();
        let packet = ipv4_packet(len);
        let message = sealed(&mut sender, &packet);
        prop_assert_eq!(message.len(), 16 + len.next_multiple_of(16) + 16);
        let opened = worked(&message, |slot| receiver.open(slot));
        prop_assert_eq!(opened, (Opened::Delivered, packet));
    }

    #[test]
    fn a_mangled_or_cut_message_is_never_delivered(
        len in 20usize..100, at: prop::sample::Index, bit in 0u8..8,
    ) {
        let (mut sender, mut receiver) = session();
        let mut message = sealed(&mut sender, &ipv4_packet(len));
        let at = at.index(message.len());
        let (said, _) = worked(&message[..at], |slot| receiver.open(slot));
        prop_assert!(matches!(said, Opened::Dropped(_)), "{:?} of {} bytes", said, at);
        message[at] ^= 1 << bit;
        let (said, _) = worked(&message, |slot| receiver.open(slot));
        prop_assert!(matches!(said, Opened::Dropped(_)), "{:?} of byte {}", said, at);
    }
}

#[test]
fn each_message_is_taken_once() {
    let (mut sender, mut receiver) = session();
    let packet = ipv4_packet(64);
    let messages: Vec<_> = (0..10).map(|_| sealed(&mut sender, &packet)).collect();
    for at in [9, 0, 5, 5, 0, 9] {
        worked(&messages[at], |slot| receiver.open(slot));
    }
    let counted = *receiver.counters();
    assert_eq!((counted.packets, counted.replayed), (3, 3));
}

#[test]
fn an_empty_message_keeps_the_session_alive_and_a_stranger_is_dropped() {
    let (mut sender, mut receiver) = session();
    let message = sealed(&mut sender, &[]);
    assert_eq!(message.len(), 32);
    assert_eq!(worked(&message, |slot| receiver.open(slot)), (Opened::KeepAlive, vec![]));
    let mut stranger = Sender::new(INDEX + 1, key()).unwrap();
    let message = sealed(&mut stranger, &ipv4_packet(40));
    let said = worked(&message, |slot| receiver.open(slot)).0;
    assert_eq!(said, Opened::Dropped(Dropped::OtherSession));
    let message = sealed(&mut sender, &[0; 40]);
    let said = worked(&message, |slot| receiver.open(slot)).0;
    assert_eq!(said, Opened::Dropped(Dropped::NoPacket));
}

#[test]
fn a_session_ends_at_its_last_message() {
    let mut sender = Sender::beginning(INDEX, key(), REJECT_AFTER_MESSAGES - 1).unwrap();
    let last = sealed(&mut sender, &ipv4_packet(40));
    let said = worked(&ipv4_packet(40), |slot| sender.seal(slot)).0;
    assert_eq!(said, Err(SealError::Exhausted));
    let mut receiver = Receiver::new(INDEX, key()).unwrap();
    assert_eq!(worked(&last, |slot| receiver.open(slot)).0, Opened::Delivered);
}
