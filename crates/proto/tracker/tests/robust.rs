//! Captures that were cut, damaged or made to harm, in both modes: no panic, no frame uncounted,
//! and neither more connections nor more memory than the limits allow.
#![allow(missing_docs)]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use common::{Frame, frames};
use rand::{Rng, SeedableRng};
use tracker::{HandOut, Limits, LinkType, Output, Tracker};
use wire::ethernet::EtherType;

struct Counting;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
}

// SAFETY: every call is passed on to the system's allocator unchanged; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.with(|held| held.set(held.get() + layout.size() as isize));
        // SAFETY: the caller keeps `alloc`'s contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        HELD.with(|held| held.set(held.get() - layout.size() as isize));
        // SAFETY: `place` came from `alloc` above, hence from `System`.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const NAMES: [&str; 7] = [
    "openssl-3.0-modes.pcap",
    "ecdhe.pcap",
    "tls-13draft19-early-data.pcap",
    "tls-early-alert.pcap",
    "tls1.2.pcap",
    "tls13_psk_succesfull.pcap",
    "tls13draft23-chrome67.0.3368.0-canary.pcap",
];

const CONNECTIONS: usize = 4;
/// A chunk of the table, four connections with a hello of 32 KiB and as much held behind a hole in
/// each direction, and what is left of fragments.
const MEMORY: isize = 1024 * 1024;

fn feed(link: LinkType, frames: &[(units::Time, &[u8], usize)]) {
    for hand_out in [HandOut::AtEnd, HandOut::AfterHandshake] {
        let before = HELD.with(Cell::get);
        let limits = Limits {
            connections: CONNECTIONS,
            held_bytes: 64 * 1024,
            hand_out,
            ..Limits::default()
        };
        let mut tracker = Tracker::new(limits);
        let (mut records, mut due, mut endings) = (0, 0, 0);
        for (at, bytes, len) in frames {
            tracker.handle_packet(*at, link, bytes, *len);
            assert!(tracker.active() <= CONNECTIONS);
            assert!(HELD.with(Cell::get) - before < MEMORY);
            while let Some(output) = tracker.poll_output() {
                match output {
                    Output::Connection(c) => {
                        (records, due) = (records + 1, due + u64::from(c.goes_on))
                    }
                    Output::Ending(_) => endings += 1,
                }
            }
        }
        assert!(tracker.counters().add_up());
        tracker.close();
        while let Some(output) = tracker.poll_output() {
            match output {
                Output::Connection(c) => (records, due) = (records + 1, due + u64::from(c.goes_on)),
                Output::Ending(_) => endings += 1,
            }
        }
        assert_eq!((records, endings), (tracker.counters().connections, due));
    }
}

/// Every byte of every frame is an end: all frames cut at the same length.
#[test]
fn cut_at_every_byte() {
    for name in NAMES {
        let frames = frames(name);
        let longest = frames.iter().map(|frame| frame.1.len()).max().unwrap_or(0);
        for cut in 0..=longest {
            let cut: Vec<_> = frames
                .iter()
                .map(|(at, bytes, len)| (*at, &bytes[..cut.min(bytes.len())], *len))
                .collect();
            feed(LinkType::Ethernet, &cut);
        }
    }
}

/// The capture ends within each frame, at each of its bytes.
#[test]
fn ending_at_every_byte_of_every_frame() {
    for name in ["tls1.2.pcap", "tls13_psk_succesfull.pcap"] {
        let frames = frames(name);
        for last in 0..frames.len() {
            for cut in 0..frames[last].1.len() {
                let mut ending: Vec<_> = frames[..=last]
                    .iter()
                    .map(|(at, bytes, len)| (*at, &bytes[..], *len))
                    .collect();
                ending[last].1 = &ending[last].1[..cut];
                // What comes before was seen whole for the other ends.
                feed(LinkType::Ethernet, &ending[last.saturating_sub(3)..]);
            }
        }
    }
}

/// A packet with its number, as one frame or several.
type Wrap<'a> = &'a dyn Fn(usize, &[u8]) -> Vec<Vec<u8>>;

/// The same frames through tunnels and in fragments.
fn ways(original: &[Frame]) -> Vec<(LinkType, Vec<Frame>)> {
    let map = |wrap: Wrap<'_>| -> Vec<Frame> {
        let all = original.iter().enumerate().flat_map(|(number, (at, bytes, _))| {
            let total = usize::from(u16::from_be_bytes([bytes[16], bytes[17]]));
            let packet = &bytes[14..(14 + total).min(bytes.len())];
            wrap(number, packet).into_iter().map(|frame| {
                let len = frame.len();
                (*at, frame, len)
            })
        });
        all.collect()
    };
    let v4 = EtherType::IPV4;
    vec![
        (LinkType::Ethernet, original.to_vec()),
        (LinkType::Ethernet, map(&|_, p| vec![common::wrap::labelled(p, 3)])),
        (LinkType::Ethernet, map(&|_, p| vec![common::wrap::pppoe(p)])),
        (LinkType::RawIp, map(&|_, p| vec![common::wrap::ipv4(47, &common::wrap::gre(v4, p))])),
        (
            LinkType::RawIp,
            map(&|_, p| {
                vec![common::wrap::ipv6(17, &common::wrap::vxlan(&common::wrap::ethernet(v4, p)))]
            }),
        ),
        (LinkType::LinuxCooked, map(&|_, p| vec![common::wrap::cooked(v4, None, p)])),
        (LinkType::LinuxCooked2, map(&|_, p| vec![common::wrap::cooked(v4, Some(3), p)])),
        (LinkType::RawIp, map(&|n, p| common::wrap::fragments_v4(p, n as u16, 256))),
        (LinkType::RawIp, map(&|n, p| common::wrap::fragments_v6(4, p, n as u32, 256))),
    ]
}

#[test]
fn random_bits_and_hostile_lengths() {
    let mut random = rand_pcg::Pcg64::seed_from_u64(5);
    for name in NAMES {
        for (link, original) in ways(&frames(name)) {
            for _ in 0..20 {
                let mut damaged = original.clone();
                for _ in 0..random.random_range(1..60) {
                    let frame = random.random_range(0..damaged.len());
                    let bytes = &mut damaged[frame].1;
                    // Headers more often than the rest.
                    let reach = if random.random() { bytes.len() } else { bytes.len().min(100) };
                    let at = random.random_range(0..reach);
                    if random.random() {
                        bytes[at] ^= 1 << random.random_range(0..8);
                    } else {
                        // A length that lies: all ones, or none.
                        let value = if random.random() { 0xff } else { 0 };
                        let end = (at + 2).min(bytes.len());
                        bytes[at..end].fill(value);
                    }
                }
                let damaged: Vec<_> =
                    damaged.iter().map(|(at, b, len)| (*at, &b[..], *len)).collect();
                feed(link, &damaged);
            }
        }
    }
}
