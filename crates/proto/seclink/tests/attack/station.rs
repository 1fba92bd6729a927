//! A member with its MACsec.

use std::collections::HashSet;

use rand::RngCore;
use rand_pcg::Pcg64;
use seclink::macsec::{Confidentiality, Naming, Opened, Receive, Suite, Transmit, Validation};
use seclink::mka::{Action, Cak, Participant, Randomness, Settings};
use seclink::{SealError, Secret};
use units::Time;
use wire::macsec::Sci;
use wire::mka::MemberIdentifier;

use crate::common::worked;

/// The name and the bytes of the group's key.
pub const CKN: &[u8] = b"a name";
pub const CAK: [u8; 16] = [0x42; 16];

/// Bytes of a sealed frame before its user data.
const BEFORE: usize = 14 + wire::macsec::LONG_LEN;

/// Seeded random bytes.
pub struct Seeded(pub Pcg64);

impl Randomness for Seeded {
    fn fill(&mut self, bytes: &mut [u8]) {
        self.0.fill_bytes(bytes);
    }
}

/// A member with its MACsec.
pub struct Station {
    pub sci: Sci,
    pub suite: Suite,
    pub life: usize,
    pub member: Participant,
    /// Its identifier, if it sent a packet.
    pub identifier: Option<MemberIdentifier>,
    /// When any of its lives sent its last packet.
    pub last_sent: Option<Time>,
    /// The association that it was ordered to send with, until that has another key or none.
    pub ordered: Option<u8>,
    /// Whether it was ever ordered to send.
    pub was_ordered: bool,
    pub transmit: Transmit,
    receive: Receive,
    /// Delivered frames of all lives, by their key streams.
    taken: HashSet<[u8; 16]>,
    /// Until when it does nothing, and the packets that wait.
    pub paused: Time,
    pub waiting: Vec<usize>,
    /// State as it was last seen.
    pub live: usize,
    pub is_server: bool,
}

fn participant(
    sci: Sci,
    priority: u8,
    suite: Suite,
    now: Time,
    random: &mut Seeded,
) -> Participant {
    let cak = Cak::new(CKN.to_vec(), Secret::new(CAK.to_vec())).unwrap();
    let settings = Settings { sci, cak, priority, suite, confidentiality: Confidentiality::All };
    Participant::new(&settings, now, random).unwrap()
}

impl Station {
    pub fn new(sci: Sci, priority: u8, suite: Suite, now: Time, random: &mut Seeded) -> Self {
        Station {
            sci,
            suite,
            life: 0,
            member: participant(sci, priority, suite, now, random),
            identifier: None,
            last_sent: None,
            ordered: None,
            was_ordered: false,
            transmit: Transmit::new(sci, Naming::Explicit),
            receive: Receive::new(Validation::Strict, Some(0)),
            taken: HashSet::new(),
            paused: now,
            waiting: Vec::new(),
            live: 0,
            is_server: false,
        }
    }

    /// Forgets everything but the channel.
    pub fn restart(&mut self, priority: u8, now: Time, random: &mut Seeded) {
        let taken = std::mem::take(&mut self.taken);
        let fresh = Station::new(self.sci, priority, self.suite, now, random);
        let (life, last_sent) = (self.life + 1, self.last_sent);
        *self = Station { life, last_sent, taken, ..fresh };
    }

    /// Carries an order out. Whether it was possible.
    pub fn obey(&mut self, action: Action, channels: &[Sci]) -> bool {
        match action {
            Action::Receive(sci, key) => self.receive.install(sci, key),
            Action::Prepare(key) => {
                let text = format!("{key:?}");
                let number = text.chars().find_map(|letter| letter.to_digit(10));
                self.ordered = self.ordered.filter(|ordered| Some(u32::from(*ordered)) != number);
                self.transmit.prepare(key);
            }
            Action::Transmit(number) => {
                (self.ordered, self.was_ordered) = (Some(number), true);
                return self.transmit.use_association(number);
            }
            Action::Remove(number) => {
                self.ordered = self.ordered.filter(|ordered| *ordered != number);
                self.transmit.remove(number);
                channels.iter().for_each(|sci| self.receive.remove(*sci, number));
            }
            Action::RemovePeer(sci) => self.receive.remove_channel(sci),
        }
        true
    }

    /// Seals a frame of zeros, which shows the key stream.
    pub fn seal(&mut self) -> Result<Vec<u8>, SealError> {
        let mut frame = vec![0; 12 + 32];
        frame[..6].fill(0xff);
        frame[6..12].copy_from_slice(&self.sci.0[..6]);
        let (said, sealed) = worked(&frame, |slot| self.transmit.seal(slot));
        said.map(|()| sealed)
    }

    /// Opens a sealed frame. `None` if it is dropped, else whether it came for the first time.
    pub fn open(&mut self, sealed: &[u8]) -> Option<bool> {
        let (said, _) = worked(sealed, |slot| self.receive.open(slot));
        (said == Opened::Delivered).then(|| self.taken.insert(key_stream(sealed)))
    }
}

/// Returns the first block of a sealed frame's key stream: a function of key and nonce alone.
pub fn key_stream(sealed: &[u8]) -> [u8; 16] {
    *sealed[BEFORE..].first_chunk().unwrap()
}
