//! The table as packetdrill uses it.

use std::ffi::{c_int, c_void};
use std::net::Ipv4Addr;
use std::ptr::null_mut;

use wire::tcp::{Flags, OptionList, Repr, Segment};

use super::abi::Interface;
use super::packetdrill_interface_init;

const LOCAL: Ipv4Addr = Ipv4Addr::new(192, 168, 0, 1);
const REMOTE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

struct Table(Interface);

// SAFETY: the functions may be called by any thread.
unsafe impl Send for Table {}

impl Table {
    fn new() -> Self {
        let mut table = std::mem::MaybeUninit::<Interface>::uninit();
        // SAFETY: the flags end with a zero and the place is large enough.
        let interface = unsafe {
            packetdrill_interface_init(c"wscale=7".as_ptr(), table.as_mut_ptr());
            table.assume_init()
        };
        Table(interface)
    }

    fn micros(&self) -> i64 {
        let mut now = libc::timeval { tv_sec: 0, tv_usec: 0 };
        // SAFETY: the place is a `timeval`.
        unsafe { self.0.gettimeofday.unwrap()(self.0.userdata, &mut now, null_mut()) };
        now.tv_sec * 1_000_000 + now.tv_usec
    }

    fn socket(&self, flags: c_int) -> c_int {
        // SAFETY: the arguments are numbers.
        unsafe {
            self.0.socket.unwrap()(self.0.userdata, libc::AF_INET, libc::SOCK_STREAM | flags, 0)
        }
    }

    fn address(port: u16, ip: Ipv4Addr) -> libc::sockaddr_in {
        libc::sockaddr_in {
            sin_family: libc::AF_INET as u16,
            sin_port: port.to_be(),
            sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(ip.octets()) },
            sin_zero: [0; 8],
        }
    }

    fn give(&self, made: &Repr<'_>, payload: &[u8]) {
        let len = made.buffer_len(payload.len());
        let mut packet = vec![0; wire::ipv4::HEADER_LEN + len];
        let (header, segment) = packet.split_at_mut(wire::ipv4::HEADER_LEN);
        let ip = wire::ipv4::Repr {
            source: REMOTE,
            destination: LOCAL,
            protocol: wire::tcp::PROTOCOL,
            traffic_class: 0,
            identification: 0,
            dont_fragment: true,
            time_to_live: 64,
            payload_len: len,
        };
        ip.emit(header).unwrap();
        made.emit(REMOTE.into(), LOCAL.into(), payload, segment).unwrap();
        // SAFETY: the packet has that length.
        unsafe {
            self.0.netdev_send.unwrap()(self.0.userdata, packet.as_ptr().cast(), packet.len())
        };
    }

    /// The next packet and its time.
    fn take(&self) -> (i64, Vec<u8>) {
        let mut packet = vec![0u8; 4096];
        let (mut len, mut time) = (packet.len(), 0);
        // SAFETY: there is room for `len` bytes.
        let result = unsafe {
            let receive = self.0.netdev_receive.unwrap();
            receive(self.0.userdata, packet.as_mut_ptr().cast(), &mut len, &mut time)
        };
        assert_eq!(result, 0);
        packet.truncate(len);
        (time, packet)
    }
}

fn segment(packet: &[u8]) -> Segment<'_> {
    Segment::new_checked(&packet[20..]).unwrap()
}

fn made(port: (u16, u16), sequence: u32, acknowledgment: u32, flags: Flags) -> Repr<'static> {
    Repr {
        source_port: port.0,
        destination_port: port.1,
        sequence,
        acknowledgment: Some(acknowledgment),
        flags,
        window: 60_000,
        options: OptionList { mss: Some(1460), ..OptionList::default() },
    }
}

/// A client's SYN goes again a second of virtual time later; the SYN-ACK lets connect() in another thread return;
/// data go both ways.
#[test]
fn a_blocking_client_in_virtual_time() {
    let table = Table::new();
    let fd = table.socket(0);
    let blocked = Table(table.0);
    let thread = std::thread::spawn(move || {
        let to = Table::address(8080, REMOTE);
        let table = blocked;
        // SAFETY: the address is a `sockaddr_in`.
        unsafe {
            let connect = table.0.connect.unwrap();
            connect(table.0.userdata, fd, (&raw const to).cast(), size_of_val(&to) as u32)
        }
    });
    let begun = std::time::Instant::now();
    let (mut first, mut syn) = (0, Vec::new());
    while syn.is_empty() {
        (first, syn) = table.take();
        std::thread::yield_now();
    }
    let (second, again) = table.take();
    assert_eq!(second - first, 1_000_000);
    assert!(begun.elapsed() < std::time::Duration::from_secs(600), "virtual time");
    let (iss, port) = (segment(&syn).sequence(), segment(&syn).source_port());
    assert_eq!(segment(&again).sequence(), iss);
    table.give(&made((8080, port), 1000, iss.wrapping_add(1), Flags::SYN), &[]);
    assert_eq!(thread.join().unwrap(), 0);
    let (_, ack) = table.take();
    assert_eq!(segment(&ack).acknowledgment(), Some(1001));
    // SAFETY: the buffer has that length.
    let wrote = unsafe {
        table.0.write.unwrap()(table.0.userdata, fd, b"hello".as_ptr().cast::<c_void>(), 5)
    };
    assert_eq!((wrote, segment(&table.take().1).payload()), (5, &b"hello"[..]));
    table.give(&made((8080, port), 1001, iss.wrapping_add(6), Flags(0)), b"world!");
    let mut into = [0u8; 100];
    // SAFETY: the buffer has that length.
    let read = unsafe {
        table.0.read.unwrap()(table.0.userdata, fd, into.as_mut_ptr().cast(), into.len())
    };
    assert_eq!(&into[..usize::try_from(read).unwrap()], b"world!");
    // SAFETY: nothing is called after this.
    unsafe { table.0.free.unwrap()(table.0.userdata) };
}

/// A server accepts without waiting; usleep() passes virtual time and gettimeofday() a microsecond.
#[test]
fn a_server_that_does_not_wait() {
    let table = Table::new();
    let fd = table.socket(libc::SOCK_NONBLOCK);
    let local = Table::address(8080, LOCAL);
    let user = table.0.userdata;
    // SAFETY: the address is a `sockaddr_in`; accept() takes none.
    let accept = || unsafe { table.0.accept.unwrap()(user, fd, null_mut(), null_mut()) };
    // SAFETY: as above.
    unsafe {
        let len = size_of_val(&local) as u32;
        assert_eq!(table.0.bind.unwrap()(user, fd, (&raw const local).cast(), len), 0);
        assert_eq!(table.0.listen.unwrap()(user, fd, 1), 0);
    }
    assert_eq!(accept(), -1);
    assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::EAGAIN));
    let syn = Repr { acknowledgment: None, ..made((40_000, 8080), 1000, 0, Flags::SYN) };
    table.give(&syn, &[]);
    let (at, syn_ack) = table.take();
    let iss = segment(&syn_ack).sequence();
    let before = table.micros();
    // SAFETY: `user` is the table's.
    unsafe { table.0.usleep.unwrap()(user, 250_000) };
    assert_eq!((table.micros() - before, before - at), (250_001, 1));
    table.give(&made((40_000, 8080), 1001, iss.wrapping_add(1), Flags(0)), &[]);
    let accepted = accept();
    assert!(accepted > fd);
    // SAFETY: the argument is a number.
    assert_eq!(unsafe { table.0.close.unwrap()(user, accepted) }, 0);
    assert!(segment(&table.take().1).flags().has(Flags::FIN));
    // SAFETY: nothing is called after this.
    unsafe { table.0.free.unwrap()(user) };
}
