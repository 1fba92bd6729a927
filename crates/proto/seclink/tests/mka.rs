//! Key agreement in virtual time: members of a group on one lossy segment, and their MACsec on top.

use std::collections::BTreeSet;
use std::time::Duration;

use rand::{Rng, RngCore, SeedableRng};
use rand_pcg::Pcg64;
use seclink::Secret;
use seclink::macsec::{Confidentiality, Naming, Opened, Receive, Suite, Transmit, Validation};
use seclink::mka::{Action, Cak, Participant, Randomness, Rejected, Settings};
use units::Time;
use wire::macsec::Sci;

use crate::common::worked;

struct Seeded(Pcg64);

impl Randomness for Seeded {
    fn fill(&mut self, bytes: &mut [u8]) {
        self.0.fill_bytes(bytes);
    }
}

/// A member with its MACsec.
struct Station {
    sci: Sci,
    member: Participant,
    transmit: Transmit,
    receive: Receive,
    /// Since when it sends with a key.
    secured: Option<Time>,
}

impl Station {
    fn new(
        address: u8,
        settings: impl FnOnce(Sci) -> Settings,
        now: Time,
        random: &mut Seeded,
    ) -> Self {
        let sci = Sci([2, 0, 0, 0, 0, address, 0, 1]);
        Station {
            sci,
            member: Participant::new(&settings(sci), now, random).unwrap(),
            transmit: Transmit::new(sci, Naming::Explicit),
            receive: Receive::new(Validation::Strict, Some(0)),
            secured: None,
        }
    }

    fn obey(&mut self, now: Time, channels: &mut BTreeSet<Sci>) {
        for action in self.member.take_actions() {
            match action {
                Action::Receive(sci, key) => {
                    channels.insert(sci);
                    self.receive.install(sci, key);
                }
                Action::Prepare(key) => {
                    self.transmit.prepare(key);
                }
                Action::Transmit(number) => {
                    assert!(self.transmit.use_association(number));
                    self.secured.get_or_insert(now);
                }
                Action::Remove(number) => {
                    self.transmit.remove(number);
                    for sci in channels.iter() {
                        self.receive.remove(*sci, number);
                    }
                }
                Action::RemovePeer(sci) => self.receive.remove_channel(sci),
            }
        }
    }
}

/// Members on one segment, which loses frames.
struct Segment {
    now: Time,
    stations: Vec<Station>,
    random: Seeded,
    loss: f64,
    channels: BTreeSet<Sci>,
}

impl Segment {
    fn new(stations: u8, suite: Suite, cak_len: usize, loss: f64, seed: u64) -> Self {
        let mut random = Seeded(Pcg64::seed_from_u64(seed));
        let settings = |priority| {
            move |sci| Settings {
                sci,
                cak: Cak::new(b"a name".to_vec(), Secret::new(vec![0x42; cak_len])).unwrap(),
                priority,
                suite,
                confidentiality: Confidentiality::All,
            }
        };
        let now = Time::ZERO;
        let stations = (0..stations)
            .map(|at| Station::new(at + 1, settings(16 + at), now, &mut random))
            .collect();
        Segment { now, stations, random, loss, channels: BTreeSet::new() }
    }

    /// Lets everybody do what is due until this time.
    fn run_until(&mut self, end: Time) {
        let mut steps = 0;
        while self.now <= end {
            let mut sent = Vec::new();
            for (at, station) in self.stations.iter_mut().enumerate() {
                while let Some(frame) = station.member.poll(self.now, &mut self.random) {
                    sent.push((at, frame));
                }
                station.obey(self.now, &mut self.channels);
            }
            let is_quiet = sent.is_empty();
            for (from, frame) in sent {
                for (at, station) in self.stations.iter_mut().enumerate() {
                    if at != from && !self.random.0.random_bool(self.loss) {
                        // A key may come before all members of its group were heard, or from one who has not heard
                        // the key server yet.
                        match station.member.receive(self.now, &frame) {
                            Ok(())
                            | Err(
                                Rejected::UnknownMember
                                | Rejected::NotKeyServer
                                | Rejected::NotNamed
                                | Rejected::UsedKey,
                            ) => {}
                            Err(error) => panic!("{error}"),
                        }
                        station.obey(self.now, &mut self.channels);
                    }
                }
            }
            let next = self.stations.iter().map(|station| station.member.next_timeout()).min();
            // A frame takes a millisecond.
            let step = self.now + Duration::from_millis(1);
            self.now = if is_quiet { next.unwrap().max(step) } else { step };
            steps += 1;
            assert!(steps < 100_000, "they do not come to rest");
        }
    }

    /// A frame of each member to all others.
    fn all_hear_all(&mut self) -> bool {
        let count = self.stations.len();
        (0..count).all(|from| {
            let mut frame = vec![0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
            frame.extend(&self.stations[from].sci.0[..6]);
            frame.extend([0x08, 0x00]);
            frame.extend([0x55; 80]);
            let (said, sealed) = worked(&frame, |slot| self.stations[from].transmit.seal(slot));
            said.is_ok()
                && (0..count).filter(|at| *at != from).all(|at| {
                    let receive = &mut self.stations[at].receive;
                    worked(&sealed, |slot| receive.open(slot)) == (Opened::Delivered, frame.clone())
                })
        })
    }
}

fn seconds(count: u64) -> Time {
    Time::ZERO + Duration::from_secs(count)
}

#[test]
fn two_members_agree_at_once_and_their_frames_pass() {
    for suite in Suite::ALL {
        for cak_len in [16, 32] {
            let mut segment = Segment::new(2, *suite, cak_len, 0.0, 1);
            segment.run_until(seconds(1));
            assert!(segment.stations[0].member.is_key_server());
            assert!(!segment.stations[1].member.is_key_server());
            assert!(segment.all_hear_all(), "{suite}");
            // No timer was waited for: a few packets of a millisecond each.
            let secured = segment.stations.iter().map(|station| station.secured.unwrap()).max();
            assert!(secured.unwrap() <= Time::ZERO + Duration::from_millis(8), "{secured:?}");
        }
    }
}

#[test]
fn a_group_agrees_in_spite_of_loss_and_keeps_to_it() {
    let mut agreed = 0;
    for seed in 0..20 {
        let mut segment = Segment::new(4, Suite::GcmAes128, 16, 0.2, seed);
        // With three hellos of a peer lost in a row it is not live for a moment (§9.4.3).
        for at in 21..=40 {
            segment.run_until(seconds(at));
            agreed += u32::from(segment.all_hear_all());
        }
        segment.loss = 0.0;
        segment.run_until(seconds(44));
        assert!(segment.all_hear_all(), "seed {seed}");
        let servers = segment.stations.iter().filter(|station| station.member.is_key_server());
        assert_eq!(servers.count(), 1, "seed {seed}");
    }
    assert!(agreed > 360, "in {agreed} of 400 seconds");
}

#[test]
fn a_fresh_key_replaces_the_one_before_without_a_frame_lost() {
    for suite in [Suite::GcmAes128, Suite::GcmAesXpn256] {
        let mut segment = Segment::new(3, suite, 16, 0.0, 7);
        segment.run_until(seconds(1));
        for round in 1..6 {
            let before = segment.stations[0].member.transmits_with().unwrap();
            let now = segment.now;
            segment.stations[0].member.rekey(now);
            // While it is agreed on, and after the old one is gone.
            for milliseconds in [1, 1, 1, 1, 1, 1, 10, 4000] {
                segment.run_until(segment.now + Duration::from_millis(milliseconds));
                assert!(segment.all_hear_all(), "{suite}, round {round}");
            }
            let after = segment.stations[0].member.transmits_with().unwrap();
            assert_eq!(after.number, before.number + 1);
        }
    }
}

#[test]
fn the_next_member_takes_over_from_a_key_server_that_is_gone() {
    let mut segment = Segment::new(3, Suite::GcmAes128, 16, 0.0, 3);
    segment.run_until(seconds(1));
    let gone = segment.stations.remove(0);
    segment.run_until(seconds(12));
    assert!(segment.stations[0].member.is_key_server());
    assert!(segment.stations[0].member.live_peers().all(|sci| sci != gone.sci));
    assert!(segment.all_hear_all());
    // Back, as another member of the same channel, it is the key server again.
    let mut back = Segment::new(1, Suite::GcmAes128, 16, 0.0, 99);
    let mut returned = back.stations.remove(0);
    returned.sci = gone.sci;
    segment.stations.insert(0, returned);
    segment.run_until(seconds(20));
    assert!(segment.stations[0].member.is_key_server());
    assert!(segment.all_hear_all());
}

// §9.4.2
#[test]
fn a_member_whose_identifier_was_used_before_draws_another() {
    let lives = || Segment::new(2, Suite::GcmAes128, 16, 0.0, 5);
    let (mut earlier, mut later) = (lives(), lives());
    let identifier = |segment: &mut Segment, seconds: u64| {
        let now = Time::ZERO + Duration::from_secs(seconds);
        let frame = segment.stations[0].member.poll(now, &mut segment.random).unwrap();
        let packet = wire::mka::Packet::new_checked(&frame[18..], wire::mka::ICV_LEN).unwrap();
        (packet.basic().member, packet.basic().message_number, frame.clone())
    };
    let (member, _, _) = identifier(&mut earlier, 0);
    let (_, number, ahead) = identifier(&mut earlier, 2);
    assert_eq!(identifier(&mut later, 0).0, member);
    assert_eq!(number, 2);
    assert_eq!(later.stations[0].member.receive(seconds(1), &ahead), Err(Rejected::Own));
    let (fresh, number, _) = identifier(&mut later, 2);
    assert_ne!(fresh, member);
    assert_eq!(number, 1);
    // Its own packets that come back are no reason.
    let (_, _, own) = identifier(&mut later, 4);
    assert_eq!(later.stations[0].member.receive(seconds(5), &own), Err(Rejected::Own));
    assert_eq!(identifier(&mut later, 6).0, fresh);
}

#[test]
fn strangers_forgers_and_replays_are_passed_over() {
    let mut segment = Segment::new(2, Suite::GcmAes128, 16, 0.0, 5);
    let now = segment.now;
    let random = &mut segment.random;
    let mut packet = |station: &mut Station| station.member.poll(now, random).unwrap();
    let first = packet(&mut segment.stations[0]);
    let own = packet(&mut segment.stations[1]);
    let other = |cak: Cak, random: &mut Seeded| {
        let settings = Settings {
            sci: Sci([2, 0, 0, 0, 0, 9, 0, 1]),
            cak,
            priority: 0,
            suite: Suite::GcmAes128,
            confidentiality: Confidentiality::All,
        };
        Participant::new(&settings, now, random).unwrap().poll(now, random).unwrap()
    };
    let stranger = other(
        Cak::new(b"another".to_vec(), Secret::new(vec![0x42; 16])).unwrap(),
        &mut segment.random,
    );
    let forger = other(
        Cak::new(b"a name".to_vec(), Secret::new(vec![0x43; 16])).unwrap(),
        &mut segment.random,
    );
    let member = &mut segment.stations[1].member;
    assert_eq!(member.receive(now, &stranger), Err(Rejected::OtherGroup));
    assert_eq!(member.receive(now, &forger), Err(Rejected::NotAuthentic));
    assert_eq!(member.receive(now, &own), Err(Rejected::Own));
    assert_eq!(member.receive(now, &first), Ok(()));
    assert_eq!(member.receive(now, &first), Err(Rejected::Replayed));
    for at in 0..first.len() {
        let mut mangled = first.clone();
        mangled[at] ^= 0x10;
        assert!(member.receive(now, &mangled).is_err(), "byte {at}");
        assert!(member.receive(now, &first[..at]).is_err(), "{at} bytes");
    }
    // Nobody but the genuine peer was heard, and it has not heard this side.
    assert_eq!(member.live_peers().count(), 0);
}
