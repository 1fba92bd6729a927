//! Reads the sockets of both nodes while the program runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ::lab::{Node, TcpSocket};
use conn::TcpInfo;

use super::{Flow, Seen, Way};

/// Time from one look to the next.
const PERIOD: Duration = Duration::from_millis(50);
/// Looking may take one part in this many of the time.
const SHARE: u32 = 20;
/// Most connections of one way that are kept.
const MOST: usize = 4096;

/// Looks until it is ended.
pub struct Watch {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Option<Seen>>,
}

impl Watch {
    /// Begins to look. `None` where there is no thread for it.
    pub fn start(client: &Node, server: &Node) -> Option<Watch> {
        let stop = Arc::new(AtomicBool::new(false));
        let (client, server, stopped) = (client.clone(), server.clone(), Arc::clone(&stop));
        let watch = move || look(&client, &server, &stopped);
        let thread = std::thread::Builder::new().name("sockets".to_owned()).spawn(watch).ok()?;
        Some(Watch { stop, thread })
    }

    /// Ends it. `None` where the kernel says nothing of sockets.
    pub fn end(self) -> Option<Seen> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.thread().unpark();
        self.thread.join().ok().flatten()
    }
}

fn look(client: &Node, server: &Node, stop: &AtomicBool) -> Option<Seen> {
    let mut seen = Seen::default();
    for (way, sender, receiver) in
        [(&mut seen.up, client, server), (&mut seen.down, server, client)]
    {
        way.most_send_buffer = most(sender, "net.ipv4.tcp_wmem");
        way.most_receive_buffer = most(receiver, "net.ipv4.tcp_rmem");
    }
    loop {
        let began = Instant::now();
        // Read before the sockets: what happened until now is seen in any case.
        let last = stop.load(Ordering::Relaxed);
        let (at_client, at_server) = (client.tcp_sockets().ok()?, server.tcp_sockets().ok()?);
        note(&mut seen.up, &at_client, &at_server);
        note(&mut seen.down, &at_server, &at_client);
        if last {
            return Some(seen);
        }
        std::thread::park_timeout(PERIOD.max(began.elapsed() * SHARE));
    }
}

/// The third of a setting's three numbers: the most that the kernel gives.
fn most(node: &Node, key: &str) -> Option<u64> {
    node.read_sysctl(key).ok()?.split_whitespace().nth(2)?.parse().ok()
}

/// Notes what the senders' kernel has counted since the last look.
fn note(way: &mut Way, senders: &[TcpSocket], receivers: &[TcpSocket]) {
    let mut busiest = Duration::ZERO;
    for socket in senders {
        let info = TcpInfo::parse(&socket.info);
        if info.bytes_acknowledged <= 1 && info.in_flight() == 0 {
            continue;
        }
        let is_known = way.flows.contains_key(&socket.cookie);
        if !is_known && way.flows.len() >= MOST {
            continue;
        }
        let flow = way.flows.entry(socket.cookie).or_default();
        busiest = busiest.max(info.busy.saturating_sub(flow.info.busy));
        let peer = receivers.iter().find(|peer| is_same(socket, peer));
        let receive_buffer = peer.and_then(|peer| peer.receive_buffer).unwrap_or_default();
        let congestion = u64::from(info.congestion_window) * u64::from(info.send_mss);
        *flow = Flow {
            info,
            send_buffer: flow.send_buffer.max(socket.send_buffer.unwrap_or_default()),
            receive_buffer: flow.receive_buffer.max(receive_buffer),
            window: flow.window.max(info.send_window.unwrap_or_default()),
            congestion_window: flow.congestion_window.max(congestion),
        };
    }
    way.active += busiest;
}

/// Whether two sockets are the ends of one connection.
fn is_same(one: &TcpSocket, other: &TcpSocket) -> bool {
    let plain = |address: std::net::SocketAddr| (address.ip().to_canonical(), address.port());
    plain(one.local) == plain(other.remote) && plain(one.remote) == plain(other.local)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn socket(cookie: u64, busy_us: u64, acknowledged: u64) -> TcpSocket {
        let mut info = vec![0; 240];
        info[16..20].copy_from_slice(&1448u32.to_ne_bytes());
        info[80..84].copy_from_slice(&10u32.to_ne_bytes());
        info[120..128].copy_from_slice(&acknowledged.to_ne_bytes());
        info[168..176].copy_from_slice(&busy_us.to_ne_bytes());
        info[228..232].copy_from_slice(&65_000u32.to_ne_bytes());
        TcpSocket {
            cookie,
            local: "10.77.1.1:4000".parse().unwrap(),
            remote: "10.77.1.2:80".parse().unwrap(),
            receive_buffer: Some(100_000),
            send_buffer: Some(50_000),
            info,
        }
    }

    #[test]
    fn time_in_which_several_are_busy_counts_once() {
        let mut way = Way::default();
        let peer = TcpSocket {
            local: "[::ffff:10.77.1.2]:80".parse().unwrap(),
            remote: "[::ffff:10.77.1.1]:4000".parse().unwrap(),
            receive_buffer: Some(131_072),
            ..socket(9, 0, 0)
        };
        note(
            &mut way,
            &[socket(1, 40_000, 5000), socket(2, 50_000, 6000)],
            std::slice::from_ref(&peer),
        );
        note(&mut way, &[socket(1, 90_000, 9000), socket(2, 60_000, 7000)], &[]);
        assert_eq!(way.active, Duration::from_millis(100));
        let largest = way.largest().unwrap();
        assert_eq!(largest.info.bytes_acknowledged, 9000);
        assert_eq!((largest.receive_buffer, largest.window), (131_072, 65_000));
        assert_eq!(largest.congestion_window, 14_480);
        // A socket that sends nothing belongs to the other direction.
        note(&mut way, &[peer], &[]);
        assert_eq!(way.flows.len(), 2);
    }
}
