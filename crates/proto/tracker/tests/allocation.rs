//! Nothing is allocated for a frame whose bytes come in order.
#![allow(missing_docs)]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use tracker::{Limits, LinkType, Tracker};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call is passed on to the system's allocator unchanged; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps `alloc`'s contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: `place` came from `alloc` above, hence from `System`.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Which frames of a capture, counted from 1, made the tracker allocate.
fn allocating(name: &str) -> Vec<usize> {
    let frames = common::frames(name);
    let mut tracker = Tracker::new(Limits::default());
    let mut out = Vec::new();
    for (number, (at, bytes, len)) in (1..).zip(&frames) {
        let before = ALLOCATIONS.with(Cell::get);
        tracker.handle_packet(*at, LinkType::Ethernet, bytes, *len);
        if ALLOCATIONS.with(Cell::get) != before {
            out.push(number);
        }
    }
    out
}

#[test]
fn only_the_frames_that_tell_something_new_allocate() {
    // The SYN makes the connection, frame 4 has the ClientHello; the rest allocates nothing.
    assert_eq!(allocating("tls1.2.pcap"), [1, 4]);
    // Beside them frame 6, whose ServerHello brings the rule for TLS 1.3.
    assert_eq!(allocating("tls13_psk_succesfull.pcap"), [1, 4, 6]);
}
