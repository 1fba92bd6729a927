//! No node allocates for a frame, whatever protects it, and whatever is wrong with the frame.
#![allow(missing_docs)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use seclink::path::{Protection, Reach, Topology};
use seclink::plane::{self, HEADROOM, KeyId, Plan, TAILROOM, VLAN, Way};
use seclink::{Secret, Slot};
use units::Time;

/// The system's allocator, counting each thread's calls.
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

/// A tagged frame of a tester with an IPv4 packet in it.
fn frame(to: [u8; 6], from: [u8; 6], len: usize) -> Vec<u8> {
    let head = [&to[..], &from, &[0x81, 0], &VLAN.to_be_bytes(), &[8, 0]].concat();
    let header = wire::ipv4::Repr {
        source: [172, 16, 1, 2].into(),
        destination: [172, 16, 2, 2].into(),
        protocol: 17,
        traffic_class: 0,
        identification: 0,
        dont_fragment: true,
        time_to_live: 64,
        payload_len: len - head.len() - wire::ipv4::HEADER_LEN,
    };
    let mut packet = vec![0; len - head.len()];
    header.emit(&mut packet).unwrap();
    [head, packet].concat()
}

/// Sends frames from end to end, some of them mangled on their way; how many came and were dropped, and the calls
/// to the allocator meanwhile.
fn calls(topology: Topology) -> (u64, u64, u64) {
    let plan = Plan::numbered(&topology);
    let key =
        |id: KeyId| Secret::new(vec![7 + id.link + u8::from(id.way == Way::Backward); id.len]);
    let mut nodes = plane::nodes(&topology, &plan, key).unwrap();
    let [near, far] = plan.lans;
    let to = if topology.carries_ethernet() { far.host } else { near.own };
    let frame = frame(to.0, near.host.0, 1000);
    let before = usize::from(HEADROOM);
    let mut buffer = vec![0; before + frame.len() + usize::from(TAILROOM)];
    let (mut came, mut dropped, calls) = (0, 0, CALLS.get());
    for number in 0..100 {
        buffer[before..before + frame.len()].copy_from_slice(&frame);
        let mut slot = Slot::new(&mut buffer, before..before + frame.len()).unwrap();
        let mut passes = true;
        for (at, node) in nodes.iter_mut().enumerate() {
            passes = passes && node.forward.handle(Time::ZERO, &mut slot).is_ok();
            if number % 10 == 9 && at == 0 {
                // Within what is protected.
                let at = slot.len() - 20;
                slot.frame_mut()[at] ^= 1;
            }
        }
        came += u64::from(passes);
        dropped += u64::from(!passes);
    }
    (came, dropped, CALLS.get() - calls)
}

#[test]
fn no_node_allocates_for_a_frame() {
    for protection in Protection::ALL {
        let cipher = protection.usual_cipher();
        let whole = Topology { protection: *protection, cipher, ..Topology::default() };
        // A plain frame is delivered as it has become.
        let (came, dropped) = if *protection == Protection::Plain { (100, 0) } else { (90, 10) };
        assert_eq!(calls(whole), (came, dropped, 0), "{protection}");
        let every = Topology { reach: Reach::EveryHop, pseudowire: false, ..whole };
        if every.check().is_ok() {
            assert_eq!(calls(every), (came, dropped, 0), "{protection} on every hop");
        }
    }
}

#[test]
fn a_slow_gateway_does_not_allocate_either() {
    let gateway = Some("1mbit".parse().unwrap());
    assert_eq!(calls(Topology { gateway, ..Topology::default() }), (64, 36, 0));
}
