//! Key agreement with wpa_supplicant, which gives its keys to the kernel's MACsec.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use lab::{Addresses, Backend, Lab, Link, LinkOptions, Program, Running};
use lab_test::TestResult;
use linkmodel::Path;
use rand::{RngCore, SeedableRng};
use rand_pcg::Pcg64;
use seclink::macsec::{Confidentiality, Naming, Opened, Receive, Suite, Transmit, Validation};
use seclink::mka::{Action, Cak, Participant, Randomness, Rejected, Settings};
use seclink::{Secret, Slot};
use units::Time;
use wire::ethernet::{Address, EtherType, Frame};
use wire::macsec::Sci;

use super::port::{Port, packet};
use super::{SEED, new_lab};

const CAK: &str = "000102030405060708090a0b0c0d0e0f";
const CKN: &str = "6162636465666768696a6b6c6d6e6f707172737475767778797a303132333435";
/// How long agreement may take: a few hello times of two seconds.
const AGREED: Duration = Duration::from_secs(30);

struct Seeded(Pcg64);

impl Randomness for Seeded {
    fn fill(&mut self, bytes: &mut [u8]) {
        self.0.fill_bytes(bytes);
    }
}

/// Our member with its MACsec, and wpa_supplicant with the kernel's.
struct Group {
    ours: Participant,
    transmit: Transmit,
    receive: Receive,
    channels: BTreeSet<Sci>,
    random: Seeded,
    port: Port,
    /// The kernel's frames in the clear.
    theirs: Port,
    began: Instant,
    rejected: Vec<Rejected>,
    /// The last of wpa_supplicant's packets, and of ours.
    heard: Vec<u8>,
    said: Vec<u8>,
    _running: Running,
    _lab: Lab,
}

fn mac(end: usize) -> [u8; 6] {
    [2, 0, 0, 0, 1, end as u8 + 1]
}

fn configuration(priority: u8) -> String {
    format!(
        "eapol_version=3\nap_scan=0\nnetwork={{\n key_mgmt=NONE\n eapol_flags=0\n macsec_policy=1\n \
         macsec_integ_only=0\n macsec_replay_protect=1\n macsec_replay_window=0\n macsec_port=1\n \
         mka_cak={CAK}\n mka_ckn={CKN}\n mka_priority={priority}\n}}\n"
    )
}

impl Group {
    fn new(priority: u8, theirs: u8, suite: Suite) -> TestResult<Group> {
        let mut lab = new_lab()?;
        let (near, far) = (lab.add_node("ours")?, lab.add_node("theirs")?);
        far.sysctl("net.ipv6.conf.default.disable_ipv6", "1").ok();
        let options = LinkOptions {
            backend: Backend::Direct,
            addresses: Addresses::none(),
            macs: Some([mac(0), mac(1)]),
            ..LinkOptions::default()
        };
        let link: Link = lab.connect_with(&near, &far, &Path::default(), &options)?;
        let port = Port::open(&near, &link.ends()[0].interface)?;
        let supplicant = Program::new("wpa_supplicant")
            .args(["-i", &link.ends()[1].interface, "-D", "macsec_linux", "-c", "/run/wpa.conf"])
            .run_file("wpa.conf", configuration(theirs));
        let running = far.launch(&supplicant)?;
        let device = lab_test::until("wpa_supplicant's MACsec device", AGREED, || {
            let devices = far.devices()?;
            let found = devices.into_iter().find(|device| device.kind.as_deref() == Some("macsec"));
            Ok(found.map(|device| device.name))
        })?;
        let theirs = Port::open(&far, &device)?;
        let sci = Sci::new(Address(mac(0)), 1);
        let mut random = Seeded(Pcg64::seed_from_u64(SEED));
        let settings = Settings {
            sci,
            cak: Cak::new(hex(CKN), Secret::from_hex(CAK)?)?,
            priority,
            suite,
            confidentiality: Confidentiality::All,
        };
        Ok(Group {
            ours: Participant::new(&settings, Time::ZERO, &mut random)?,
            transmit: Transmit::new(sci, Naming::Explicit),
            receive: Receive::new(Validation::Strict, Some(0)),
            channels: BTreeSet::new(),
            random,
            port,
            theirs,
            began: Instant::now(),
            rejected: Vec::new(),
            heard: Vec::new(),
            said: Vec::new(),
            _running: running,
            _lab: lab,
        })
    }

    fn now(&self) -> Time {
        Time::ZERO + self.began.elapsed()
    }

    /// Says what is due, and does with the planes what was agreed.
    fn speak(&mut self) -> TestResult {
        let now = self.now();
        while let Some(frame) = self.ours.poll(now, &mut self.random) {
            self.port.send(&frame)?;
            self.said = frame;
        }
        for action in self.ours.take_actions() {
            match action {
                Action::Receive(sci, key) => {
                    self.channels.insert(sci);
                    self.receive.install(sci, key);
                }
                Action::Prepare(key) => self.transmit.prepare(key),
                Action::Transmit(number) => assert!(self.transmit.use_association(number)),
                Action::Remove(number) => {
                    self.transmit.remove(number);
                    self.channels.iter().for_each(|sci| self.receive.remove(*sci, number));
                }
                Action::RemovePeer(sci) => self.receive.remove_channel(sci),
            }
        }
        Ok(())
    }

    /// Runs until something is so; frames of MACsec that come are opened.
    fn until(
        &mut self,
        what: &str,
        mut reached: impl FnMut(&mut Group, Option<Vec<u8>>) -> TestResult<bool>,
    ) -> TestResult {
        let deadline = Instant::now() + AGREED;
        while Instant::now() < deadline {
            self.speak()?;
            let frame = self.port.next_within(Duration::from_millis(20))?;
            let opened = frame.and_then(|frame| self.hear(&frame));
            if reached(self, opened)? {
                return Ok(());
            }
        }
        Err(format!("waited in vain for: {what}; rejected {:?}", self.rejected).into())
    }

    /// Takes a frame; what MACsec delivers of it.
    fn hear(&mut self, frame: &[u8]) -> Option<Vec<u8>> {
        let now = self.now();
        if Frame::new_checked(frame).ok()?.ether_type() == EtherType::EAPOL {
            self.heard = frame.to_vec();
            self.rejected.extend(self.ours.receive(now, frame).err());
            return None;
        }
        let mut buffer = frame.to_vec();
        let mut slot = Slot::new(&mut buffer, 0..frame.len())?;
        (self.receive.open(&mut slot) == Opened::Delivered).then(|| slot.frame().to_vec())
    }

    /// A frame each way, until each was delivered once: until then one side may not have its key.
    fn talk(&mut self, number: u8) -> TestResult {
        let data = packet([192, 0, 2, 1].into(), [192, 0, 2, 2].into(), 400, number);
        let of = |to, from| [&mac(to)[..], &mac(from), &[8, 0], &data].concat();
        let (ours, theirs) = (of(1, 0), of(0, 1));
        let (mut heard, mut was_heard) = (false, false);
        self.until("a frame each way", |group, opened| {
            heard |= opened.is_some_and(|frame| frame == theirs);
            let mut buffer = [&[0; 64][..], &ours, &[0; 64]].concat();
            let mut slot = Slot::new(&mut buffer, 64..64 + ours.len()).expect("a slot");
            if group.transmit.seal(&mut slot).is_ok() {
                group.port.send(slot.frame())?;
            }
            // Refused while the kernel has no key.
            group.theirs.send(&theirs).ok();
            while let Some(frame) = group.theirs.next_within(Duration::ZERO)? {
                was_heard |= frame == ours;
            }
            Ok(heard && was_heard)
        })
    }
}

fn hex(text: &str) -> Vec<u8> {
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).expect("digits"), 16);
    text.as_bytes().chunks(2).map(|pair| byte(pair).expect("digits")).collect()
}

/// Whoever makes the keys, both sides have them and send with them; a fresh one follows without a gap.
pub fn key_agreement() -> TestResult {
    for (ours, theirs, suite) in
        [(16, 32, Suite::GcmAes128), (16, 32, Suite::GcmAes256), (32, 16, Suite::GcmAes128)]
    {
        agree(ours, theirs, suite).map_err(|e| format!("priority {ours}, {suite}: {e}"))?;
    }
    Ok(())
}

fn agree(priority: u8, other: u8, suite: Suite) -> TestResult {
    let we_serve = priority < other;
    let mut group = Group::new(priority, other, suite)?;
    group.until("a key", |group, _| Ok(group.ours.transmits_with().is_some()))?;
    assert_eq!(group.ours.is_key_server(), we_serve);
    assert_eq!(group.ours.live_peers().collect::<Vec<_>>(), [Sci::new(Address(mac(1)), 1)]);
    // wpa_supplicant takes such a key, but gives the kernel no other suite than the default (its version 2.10).
    if suite == Suite::GcmAes256 {
        return Ok(());
    }
    group.talk(1)?;
    forged(&mut group)?;
    group.talk(3)?;
    if we_serve {
        let first = group.ours.transmits_with();
        let now = group.now();
        group.ours.rekey(now);
        group.until("the next key", |group, _| Ok(group.ours.transmits_with() != first))?;
        group.talk(2)?;
    }
    Ok(())
}

/// Its packets again, mangled and cut short: nothing comes of them, and each has its reason. Nor does anything of ours
/// for wpa_supplicant: what follows shows it.
fn forged(group: &mut Group) -> TestResult {
    let said = group.said.clone();
    group.port.send(&said)?;
    for at in [0, 20, 30, 60, said.len() - 1] {
        let mut mangled = said.clone();
        mangled[at] ^= 1;
        group.port.send(&mangled)?;
        group.port.send(&said[..at.max(15)])?;
    }
    let heard = group.heard.clone();
    let now = group.now();
    let before = group.ours.transmits_with();
    assert_eq!(group.ours.receive(now, &heard), Err(Rejected::Replayed));
    for at in 14..heard.len() {
        let mut mangled = heard.clone();
        mangled[at] ^= 1;
        assert!(group.ours.receive(now, &mangled).is_err(), "byte {at} is another");
        assert!(group.ours.receive(now, &heard[..at]).is_err(), "{at} bytes");
    }
    assert_eq!(group.ours.transmits_with(), before);
    Ok(())
}
