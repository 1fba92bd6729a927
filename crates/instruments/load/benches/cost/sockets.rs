//! Connections without TLS: the bytes of one with TLS, by the fewest system calls that nonblocking sockets
//! take.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use packet::clock::thread_cpu;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, connect, ipproto, recv, send,
    socket_with,
};

use crate::memory::Lengths;
use crate::{CONCURRENT, Result};

/// A connection, and the bytes that it still waits for.
struct Lane {
    socket: OwnedFd,
    awaited: usize,
    is_last: bool,
}

/// The CPU time of a connection's client, in microseconds, over so many connections.
pub fn run(address: SocketAddr, lengths: Lengths, connections: u64) -> Result<f64> {
    let began = thread_cpu();
    let set = epoll::create(CreateFlags::CLOEXEC)?;
    let mut lanes: Vec<Option<Lane>> = Vec::new();
    let (mut left, mut done) = (connections, 0);
    for number in 0..CONCURRENT {
        lanes.push(match left {
            0 => None,
            _ => Some(open(&set, number, address, lengths)?),
        });
        left = left.saturating_sub(1);
    }
    let mut events: Vec<Event> = Vec::with_capacity(CONCURRENT);
    let mut buffer = vec![0; 32 * 1024];
    while done < connections {
        events.clear();
        epoll::wait(&set, rustix::buffer::spare_capacity(&mut events), None)?;
        for event in &events {
            let number = usize::try_from(event.data.u64())?;
            let Some(place) = lanes.get_mut(number) else { continue };
            let Some(lane) = place else { continue };
            if !hear(lane, lengths, &mut buffer)? {
                continue;
            }
            done += 1;
            *place = None;
            if left > 0 {
                left -= 1;
                *place = Some(open(&set, number, address, lengths)?);
            }
        }
    }
    let cpu = thread_cpu() - began;
    Ok(cpu.as_secs_f64() * 1e6 / connections as f64)
}

fn open(set: &OwnedFd, number: usize, address: SocketAddr, lengths: Lengths) -> Result<Lane> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, Some(ipproto::TCP))?;
    match connect(&socket, &address) {
        Ok(()) | Err(Errno::INPROGRESS) => {}
        Err(errno) => return Err(errno.into()),
    }
    // On loopback the connection stands.
    give(&socket, lengths[0])?;
    let flags = EventFlags::IN | EventFlags::RDHUP | EventFlags::ET;
    epoll::add(set, &socket, EventData::new_u64(number as u64), flags)?;
    Ok(Lane { socket, awaited: lengths[1], is_last: false })
}

fn give(socket: &OwnedFd, len: usize) -> Result<()> {
    let sent = send(socket, &vec![0; len], SendFlags::NOSIGNAL)?;
    if sent == len { Ok(()) } else { Err("the kernel took a part".into()) }
}

/// Reads what is there; whether the connection has all.
fn hear(lane: &mut Lane, lengths: Lengths, buffer: &mut [u8]) -> Result<bool> {
    let len = match recv(&lane.socket, &mut *buffer, RecvFlags::empty()) {
        Ok((len, _)) => len,
        Err(Errno::AGAIN) => return Ok(false),
        Err(errno) => return Err(errno.into()),
    };
    lane.awaited = lane.awaited.saturating_sub(len);
    if lane.awaited > 0 {
        return if len == 0 { Err("the server closed early".into()) } else { Ok(false) };
    }
    if lane.is_last {
        return Ok(true);
    }
    give(&lane.socket, lengths[2])?;
    (lane.awaited, lane.is_last) = (lengths[3], true);
    Ok(false)
}
