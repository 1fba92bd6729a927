//! What a tracked connection takes once its record is out, by a counting allocator: the entry, its
//! share of the index, of the chunk and of the tracker, everything. And what hostile captures can
//! make a tracker hold.
#![allow(missing_docs)]

mod common;
mod talk;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::Duration;

use tracker::{HandOut, Limits, LinkType, Output, Tracker};
use units::Time;

struct Counting;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
}

fn count(change: isize) {
    HELD.with(|held| {
        held.set(held.get() + change);
        MOST.with(|most| most.set(most.get().max(held.get())));
    });
}

// SAFETY: every call is passed on to the system's allocator unchanged; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller keeps `alloc`'s contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: `place` came from `alloc` above, hence from `System`.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Bytes per connection in a tracker with this many, and the most per connection at any time.
fn bytes_each(name: &str, opening: usize, connections: u32) -> (isize, isize) {
    let mut frames: Vec<_> = common::frames(name).into_iter().take(opening).collect();
    let client = frames[0].1[26..30].to_vec();
    let from_client: Vec<bool> = frames.iter().map(|f| f.1[26..30] == client[..]).collect();
    let hand_out = HandOut::AfterHandshake;
    let limits = Limits { connections: 1_000_000, hand_out, ..Limits::default() };
    let before = HELD.with(Cell::get);
    MOST.with(|most| most.set(before));
    let mut tracker = Tracker::new(limits);
    let (mut at, mut records) = (Time::ZERO, 0);
    for number in 0..connections {
        for ((_, frame, len), up) in frames.iter_mut().zip(&from_client) {
            let place = if *up { 26 } else { 30 };
            frame[place..place + 4].copy_from_slice(&(0x0a00_0000 | number).to_be_bytes());
            at += Duration::from_nanos(10);
            tracker.handle_packet(at, LinkType::Ethernet, frame, *len);
        }
        while let Some(output) = tracker.poll_output() {
            let Output::Connection(record) = output else { panic!("an ending") };
            assert!(record.goes_on && record.tls.is_some());
            records += 1;
        }
    }
    assert_eq!((tracker.active(), records), (connections as usize, connections));
    let each = |held: isize| (held - before) / connections as isize;
    let (now, most) = (HELD.with(Cell::get), MOST.with(Cell::get));
    drop(tracker);
    assert_eq!(HELD.with(Cell::get), before);
    (each(now), each(most))
}

#[test]
fn below_300_bytes_a_connection_at_any_number_and_at_any_time() {
    // Many; then right after the index grew, and right before.
    for connections in [100_000, 25_000, 24_000] {
        let (held, most) = bytes_each("tls1.2.pcap", 19, connections);
        println!("{connections} connections: {held} bytes each, never more than {most}");
        assert!((128..200).contains(&held) && most < 300, "{connections}: {held}, {most}");
    }
}

/// What a connection takes at most until its record is out, beside what [`Limits::held_bytes`] counts.
const UNFINISHED: isize = 4096;

/// What the tracker takes now, and what it counts of that.
fn taken(before: isize, tracker: &Tracker) -> (isize, isize) {
    (HELD.with(Cell::get) - before, tracker.held_bytes() as isize)
}

/// A capture of 110 KB may have a Decryption Secrets Block before each of its connections.
#[test]
fn many_blocks_of_keys_and_many_connections_have_one_log() {
    const BOTH: isize = 1000;
    let before = HELD.with(Cell::get);
    let mut t = talk::talk_with(Tracker::new(Limits::default()));
    for number in 0..BOTH {
        let secret = "ab".repeat(32);
        let line = format!("CLIENT_TRAFFIC_SECRET_0 {number:064x} {secret}\n");
        t.tracker.add_keys(line.as_bytes());
        t.port = 2000 + number as u16;
        t.next = [0, 0];
        t.syn().send(0, &[22, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3]);
        t.frames.clear();
    }
    let (taken, counted) = taken(before, &t.tracker);
    println!("{BOTH} blocks and connections: {taken} bytes, {counted} of them counted");
    assert_eq!(t.tracker.key_log().connections(), BOTH as usize);
    // A secret's entry with the room that a tree leaves free takes less than 1 KiB.
    assert!(taken < BOTH * (UNFINISHED + 1024), "{taken}");
}

/// Hellos that never end, hellos full of names, and single bytes behind holes.
#[test]
fn what_unfinished_connections_hold_is_counted_and_bounded() {
    const LIMIT: isize = 4 << 20;
    const CONNECTIONS: isize = 600;
    let endless = [&[22, 3, 1, 0x40, 0, 1, 0, 0x7f, 0xf0, 3, 3][..], &[7; 12_000]].concat();
    let named = hello_of_names();
    let cases = [("endless", Some((&endless, 1400))), ("names", Some((&named, 20_000)))];
    for (what, bytes) in cases.into_iter().chain([("holes", None)]) {
        let before = HELD.with(Cell::get);
        let limits = Limits { held_bytes: LIMIT as usize, ..Limits::default() };
        let mut t = talk::talk_with(Tracker::new(limits));
        let mut most = 0;
        for number in 0..CONNECTIONS {
            t.port = 2000 + number as u16;
            t.next = [0, 0];
            t.at(number as u64).open();
            if let Some((bytes, segment)) = bytes {
                for part in bytes.chunks(segment) {
                    t.send(0, part);
                }
            } else {
                for hole in 1..=60 {
                    t.next = [2 * hole, 2 * hole];
                    t.send(0, &[1]).send(1, &[1]);
                }
            }
            t.frames.clear();
            let (taken, counted) = taken(before, &t.tracker);
            most = most.max(taken);
            assert!(counted <= LIMIT, "{what}: {counted} are counted");
            // Records of those that gave way wait to be polled.
            let mut given_out = 0;
            while let Some(output) = t.tracker.poll_output() {
                assert!(matches!(output, Output::Connection(one) if one.dropped));
                given_out += 1;
            }
            assert!(given_out <= 8, "{what}: {given_out} at once");
        }
        let counters = *t.tracker.counters();
        // Names are kept until a connection is given out; what is not whole can be given up.
        assert_eq!(counters.dropped > 0, what == "names", "{what}");
        println!("{what}: {most} bytes at most, {} gave way", counters.dropped);
        assert!(most < LIMIT + CONNECTIONS * UNFINISHED + (1 << 19), "{what}: {most}");
        assert!(counters.add_up());
    }
}

/// A hello with a host name of 3000 bytes and 40 protocols of 255.
fn hello_of_names() -> Vec<u8> {
    use wire::tls::{ClientHelloRepr, Extension, ExtensionKind, body};
    let protocols = [[b'p'; 255]; 40];
    let protocols: Vec<&[u8]> = protocols.iter().map(|name| &name[..]).collect();
    let bodies = [(0, body::server_name(&"n".repeat(3000))), (16, body::alpn(&protocols))];
    let extension = |(kind, data)| Extension { kind: ExtensionKind(kind), data };
    let repr = ClientHelloRepr {
        legacy_version: 0x0303,
        random: [1; 32],
        session_id: &[2; 32],
        cipher_suites: (0..250).map(|n| 0xc000 + n).collect(),
        extensions: bodies.iter().map(|(kind, data)| extension((*kind, &data[..]))).collect(),
    };
    let mut message = vec![0; repr.buffer_len()];
    repr.emit(&mut message).unwrap();
    talk::record(22, &message)
}

#[test]
fn of_a_host_name_255_bytes_are_kept() {
    let mut t = talk::talk();
    t.open().send(0, &hello_of_names());
    let tls = t.finish().tls.unwrap();
    assert_eq!(tls.server_name.map(|name| name.len()), Some(255));
}
