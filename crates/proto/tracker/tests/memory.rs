//! What a tracked connection takes once its record is out, by a counting allocator: the entry, its
//! share of the index, of the chunk and of the tracker, everything.
#![allow(missing_docs)]

mod common;

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

/// Bytes a connection in a tracker with so many, and the most there ever were a connection.
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
