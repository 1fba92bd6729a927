//! A flood of SYNs with data from random addresses: memory stays bounded, and a real client is served.
#![allow(missing_docs)]

mod host;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use host::{Host, PORT, Plan, Script, World, rtt};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use tcp::{Checksum, Config, Endpoint, HALF_OPEN_BYTES};
use units::Time;
use wire::tcp::{Flags, OptionList, Repr};
use wire::{ipv4, tcp as wire_tcp};

/// The system's allocator, counting what each thread holds.
struct Counting;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
}

// SAFETY: every call is passed on unchanged to the system's allocator, which keeps the contract; the
// counter is a plain thread-local without a destructor and does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.set(HELD.get() + layout.size() as isize);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.set(HELD.get() - layout.size() as isize);
        // SAFETY: the caller keeps the contract of `dealloc`; the pointer is the system's.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const SERVER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);

/// A SYN with `data` bytes from an address of 16 million.
fn syn(rng: &mut Pcg64Mcg, data: usize, buffer: &mut [u8]) -> usize {
    let source = Ipv4Addr::from(0x1400_0000 | rng.random_range(0..1u32 << 24));
    let repr = Repr {
        source_port: rng.random_range(1024..=65_535),
        destination_port: PORT,
        sequence: rng.random(),
        acknowledgment: None,
        flags: Flags::SYN,
        window: 65_000,
        options: OptionList { mss: Some(1460), sack_permitted: true, ..OptionList::default() },
    };
    let ip = ipv4::Repr {
        source,
        destination: SERVER,
        protocol: wire_tcp::PROTOCOL,
        traffic_class: 0,
        identification: 0,
        dont_fragment: true,
        time_to_live: 64,
        payload_len: repr.buffer_len(data),
    };
    ip.emit(buffer).unwrap();
    let payload = vec![0x16; data];
    repr.emit(IpAddr::V4(source), IpAddr::V4(SERVER), &payload, &mut buffer[20..]).unwrap();
    20 + ip.payload_len
}

fn server(_: u8) -> Script {
    Script::new(&[(1200, 1400), (1480, 1000)])
}

fn client(at: Time) -> Plan {
    let mut plan =
        Plan::new(Script::new(&[(0, 1200), (1400, 280)]).closing_after(2400)).with_data();
    plan.at = at;
    plan
}

#[test]
fn a_flood_of_loaded_syns_leaves_the_server_serving() {
    const FLOOD: usize = 100_000;
    let mut rng = Pcg64Mcg::seed_from_u64(9);
    let mut one = Host::client(client(Time::from_millis(10)));
    // Clients before, in the midst and after; 100 SYNs in each millisecond from 0 to 1 s.
    for at in [300, 700, 1_500, 20_000] {
        one = one.with_plan(client(Time::from_millis(at)));
    }
    let mut two = Host::server(server);
    (one.keep_log, two.keep_log) = (false, false);
    two.answers_floods = true;
    let mut world = World::new(1, &rtt(20), one, two);
    let mut buffer = vec![0; 2000];
    let before = HELD.get();
    let mut most = 0;
    for millisecond in 0..1000u64 {
        let now = Time::from_millis(millisecond);
        world.sim.run(sim::Limits { until: now, events: 1_000_000 });
        let id = world.server;
        for _ in 0..FLOOD / 1000 {
            let len = syn(&mut rng, 1200, &mut buffer);
            world.sim.node_mut(id).flood(now, &buffer[..len]);
        }
        most = most.max(HELD.get() - before);
    }
    world.run(300);
    let counters = format!("{:#?}", world.server().endpoint.counters());
    println!(
        "100,000 SYNs with data: at most {:.1} MB held, all told\n{counters}",
        most as f64 / 1e6
    );
    let sent = world.server().sent_bytes + world.server().flood_answer_bytes;
    let got = world.server().received_bytes;
    assert!(sent <= 3 * got, "sent {sent} bytes for {got}");
    for (number, player) in world.client().players.iter().enumerate() {
        assert!(player.is_complete(), "client {number}: {player:#?}\n{counters}");
        assert_eq!((player.received, player.wrong), (2400, None));
        // The first and the last come when there is room: one round trip to the server's flight.
        let start = player.sent[0];
        let late = player.got(1400).unwrap().saturating_since(start);
        assert!(late <= Duration::from_millis(60), "client {number}: {late:?}");
    }
    assert!(most < 64 << 20, "{most} bytes");
    let left = HELD.get() - before;
    assert!(left < 8 << 20, "{left} bytes are left when all is over");
}

/// What one half-open connection holds: stated in the documentation, bounded here.
#[test]
fn bytes_held_by_a_half_open_connection() {
    for (data, count, bound) in [(0, 200, HALF_OPEN_BYTES), (1200, 200, HALF_OPEN_BYTES + 2048)] {
        let mut endpoint = Endpoint::new(Config::default(), [1; 32]);
        let local = SocketAddr::new(SERVER.into(), PORT);
        let listener = endpoint.listen(local, host::listen_options()).unwrap();
        let mut rng = Pcg64Mcg::seed_from_u64(1);
        let mut buffer = vec![0; 2000];
        let mut give = |endpoint: &mut Endpoint, count: usize| {
            for _ in 0..count {
                let len = syn(&mut rng, data, &mut buffer);
                endpoint.handle_packet(Time::ZERO, &buffer[..len], Checksum::Verify).unwrap();
                while endpoint.accept(listener).is_some() {}
                while endpoint.poll_event().is_some() {}
                while endpoint.poll_transmit(Time::ZERO, &mut [0; 2000]).is_some() {}
            }
        };
        // The tables grow in steps: measured from a state in which they have grown.
        give(&mut endpoint, 56);
        let before = HELD.get();
        give(&mut endpoint, count);
        let each = (HELD.get() - before) / count as isize;
        println!("a half-open connection with {data} bytes on its SYN holds {each} bytes");
        assert!(each <= bound as isize, "{each} bytes, above {bound}");
    }
}
