//! The model allocates nothing per frame once it has grown to its load.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use common::{Token, config};
use linkmodel::Link;
use units::Time;

/// The system's allocator, counting the calls of each thread.
struct Counting;

thread_local! {
    static CALLS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call is passed on unchanged to the system's allocator, which keeps the contract; the
// counter is a plain thread-local without a destructor and does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.set(CALLS.get() + 1);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`; the pointer is the system's.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Sends frames from `from` to `to`, one each 100 us, and polls at each.
fn load(link: &mut Link<Token>, from: usize, to: usize) {
    for number in from..to {
        let now = Time::from_micros(100 * number as u64);
        let _refused = link.handle_frame(now, Token { number, len: 1000 });
        while link.poll(now).is_some() {}
    }
}

#[test]
fn nothing_is_allocated_per_frame_in_steady_state() {
    for text in [
        "delay = \"10ms\"",
        "delay = \"10ms\"\njitter = { uniform = \"5ms\" }\njitter_may_reorder = true\nreorder = \"5%\"",
        "loss = \"10%\"\nduplicate = \"10%\"\ncorrupt = \"10%\"",
        "delay = \"10ms\"\nrate = \"50mbit\"\nqueue = { packets = 100 }",
        "delay = \"10ms\"\nrate = \"50mbit\"\nqueue = { codel = {} }",
        "delay = \"10ms\"\nrate = { trace = [1, 2, 2, 5] }\nqueue = { bytes = \"64kB\" }",
        "outages = [{ start = \"1ms\", duration = \"5ms\", every = \"20ms\", frames = \"drop\" }]",
    ] {
        let mut link = Link::new(config(text), 1).unwrap();
        load(&mut link, 0, 100_000);
        let before = CALLS.get();
        load(&mut link, 100_000, 150_000);
        assert_eq!(CALLS.get() - before, 0, "{text}");
    }
}
