//! The same frames in one TCP connection of several paths (MPTCP, RFC 8684), and who gives it a path more.

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ::traffic::Probe;
use daemons::{Daemon, kernel};
use handoff::What;
use l2vpn::kernel::must;
use lab::Node;
use rustix::net::{
    AddressFamily, SocketFlags, SocketType, bind, connect, ipproto, listen, socket_with,
};

use crate::Error;

/// The TCP port of the peer.
const PORT: u16 = 7001;
/// Bytes that are read at once.
const CHUNK: usize = 64 << 10;
/// How often is looked for an address that is new.
const LOOK: Duration = Duration::from_millis(2);

/// One end of a connection.
#[derive(Debug)]
pub(crate) struct End {
    stream: TcpStream,
    /// What is still to be written, from `written` on: it grows while there is no path, by what a trial sends at most.
    out: Vec<u8>,
    written: usize,
    /// What was read and not understood yet.
    read: Vec<u8>,
}

impl End {
    fn new(stream: TcpStream) -> io::Result<End> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        Ok(End { stream, out: Vec::new(), written: 0, read: Vec::new() })
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Sends a frame as soon as there is room for it.
    pub(crate) fn send(&mut self, probe: &Probe, payload: &mut [u8]) {
        if probe.emit(payload).is_ok() {
            self.out.extend_from_slice(payload);
        }
        self.flush();
    }

    /// Writes what there is room for. A connection that is dead takes nothing more.
    pub(crate) fn flush(&mut self) {
        while let Some(rest) = self.out.get(self.written..).filter(|rest| !rest.is_empty()) {
            match self.stream.write(rest) {
                Ok(count) if count > 0 => self.written += count,
                _ => return,
            }
        }
        self.out.clear();
        self.written = 0;
    }

    /// A frame of this many bytes, if one has come.
    pub(crate) fn take(&mut self, frame: usize) -> Option<Probe> {
        loop {
            if let Some(bytes) = self.read.get(..frame) {
                let probe = Probe::parse(bytes).ok();
                self.read.drain(..frame);
                return probe;
            }
            let mut chunk = [0; CHUNK];
            match self.stream.read(&mut chunk) {
                Ok(count) if count > 0 => {
                    self.read.extend_from_slice(chunk.get(..count).unwrap_or_default());
                }
                _ => return None,
            }
        }
    }
}

/// A connection: the host's end and the peer's.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) host: End,
    pub(crate) peer: End,
    /// Where paths join, too.
    _listener: TcpListener,
}

/// Opens a connection from the host to its peer, over the path that there is.
pub(crate) fn open(host: &Node, peer: &Node, to: Ipv4Addr) -> Result<Connection, Error> {
    for node in [host, peer] {
        must(node, "ip", &["mptcp", "endpoint", "flush"], "")?;
        let limits = ["mptcp", "limits", "set", "subflow", "8", "add_addr_accepted", "8"];
        must(node, "ip", &limits, "")?;
    }
    let socket = || {
        let (family, kind) = (AddressFamily::INET, SocketType::STREAM);
        socket_with(family, kind, SocketFlags::CLOEXEC, Some(ipproto::MPTCP))
    };
    let failed = |source| Error::Traffic { doing: "opening an MPTCP connection", source };
    let listener = peer.run(move || -> io::Result<TcpListener> {
        let listener = socket()?;
        rustix::net::sockopt::set_socket_reuseaddr(&listener, true)?;
        bind(&listener, &SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, PORT))?;
        listen(&listener, 1)?;
        Ok(listener.into())
    })?;
    let listener = listener.map_err(failed)?;
    other_paths(host, to)?;
    let stream = host.run(move || -> io::Result<TcpStream> {
        let stream = socket()?;
        connect(&stream, &SocketAddrV4::new(to, PORT))?;
        Ok(stream.into())
    })?;
    let stream = stream.map_err(failed)?;
    let (other, _) = listener.accept().map_err(failed)?;
    let (own, other) = (End::new(stream).map_err(failed)?, End::new(other).map_err(failed)?);
    Ok(Connection { host: own, peer: other, _listener: listener })
}

/// Has connections use what addresses the host has beside the one that it sends from. A connection asks once, when it
/// begins, whether there are any.
fn other_paths(host: &Node, to: Ipv4Addr) -> Result<(), Error> {
    let first = host.run(move || -> io::Result<IpAddr> {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        socket.connect((to, PORT))?;
        Ok(socket.local_addr()?.ip())
    })?;
    let failed = |source| Error::Traffic { doing: "looking for the way to the peer", source };
    let first = first.map_err(failed)?.to_string();
    for line in must(host, "ip", &["-4", "-oneline", "address", "show", "up"], "")? {
        match address_of(&line) {
            Some((interface, address)) if interface != "lo" && address != first => {
                add_path(host, interface, address);
            }
            _ => {}
        }
    }
    Ok(())
}

/// Has connections use another address. It may be gone again, or be used already.
fn add_path(host: &Node, interface: &str, address: &str) {
    let words = ["mptcp", "endpoint", "add", address, "dev", interface, "subflow"];
    if let Err(error) = must(host, "ip", &words, "") {
        tracing::debug!(address, %error, "no path more");
    }
}

/// Gives connections a path from each address that the host gets, as a path manager does, until `over`.
pub(crate) fn manage(host: &Node, addresses: &Daemon, over: &AtomicBool) -> Result<(), Error> {
    while !over.load(Ordering::Relaxed) {
        for seen in addresses.take()? {
            if seen.what != Some(What::AddressSet) {
                continue;
            }
            if let Some((interface, address)) = address_of(&seen.line) {
                add_path(host, interface, address);
            }
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}

/// Who says which addresses the host gets.
pub(crate) fn watch(host: &Node) -> Result<Daemon, Error> {
    Ok(kernel::routes(host)?)
}

/// Interface and address of `3: wlan2    inet 10.50.2.117/24 …` or `[ADDR]3: wlan2    inet 10.50.2.117/24 …`.
fn address_of(line: &str) -> Option<(&str, &str)> {
    let mut words = line.split_whitespace().skip(1);
    let interface = words.next()?;
    let address = words.find(|word| *word == "inet").and_then(|_| words.next())?;
    Some((interface, address.split('/').next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_with_its_interface() {
        let line = "[ADDR]3: wlan2    inet 10.50.2.117/24 brd 10.50.2.255 scope global wlan2";
        assert_eq!(address_of(line), Some(("wlan2", "10.50.2.117")));
        assert_eq!(address_of("[ADDR]3: wlan2"), None);
    }
}
