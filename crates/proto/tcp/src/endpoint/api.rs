//! What an application does.

use std::net::SocketAddr;

use units::Time;

use super::{Endpoint, Listener};
use crate::config::{ConnectOptions, ListenOptions};
use crate::connection::{Connection, Opening};
use crate::event::{
    CloseReason, ConnectError, ConnectionId, Ignored, ListenError, ListenerId, StreamError,
};
use crate::info::{IcmpError, Info, PathMtu};

impl Endpoint {
    /// Listens on `local`; an unspecified address stands for any.
    ///
    /// # Errors
    /// [`ListenError`]: somebody listens there, or the port is 0.
    pub fn listen(
        &mut self,
        local: SocketAddr,
        options: ListenOptions,
    ) -> Result<ListenerId, ListenError> {
        if local.port() == 0 {
            return Err(ListenError::NoPort);
        }
        let local = plain(local);
        if self.listeners.values().any(|listener| listener.local == local) {
            return Err(ListenError::InUse(local));
        }
        let listener = Listener { local, options, waiting: Default::default() };
        self.listened = self.listened.wrapping_add(1);
        let id = ListenerId(self.listened);
        self.listeners.insert(id, listener);
        Ok(id)
    }

    /// Stops listening. Connections that nobody has accepted are reset.
    pub fn unlisten(&mut self, now: Time, id: ListenerId) {
        self.listeners.remove(&id);
        for connection in self.table.ids() {
            let is_its = self.table.get(connection).is_some_and(|connection| {
                connection.listener == Some(id) && !connection.owned && connection.closed.is_none()
            });
            if is_its {
                self.abort(now, connection);
            }
        }
    }

    /// The next connection of a listener: established, or half-open with data on its SYN that await
    /// an answer ([`Endpoint::answer`]).
    pub fn accept(&mut self, id: ListenerId) -> Option<ConnectionId> {
        loop {
            let listener = self.listeners.get_mut(&id)?;
            let connection = listener.waiting.pop_front()?;
            if let Some(waiting) = self.table.get_mut(connection)
                && !waiting.is_done_unread()
            {
                waiting.owned = true;
                return Some(connection);
            }
        }
    }

    /// Begins a connection; port 0 of `local` has one chosen (RFC 6056).
    ///
    /// # Errors
    /// [`ConnectError`]: addresses that do not go together, no free port, too many connections.
    pub fn connect(
        &mut self,
        now: Time,
        local: SocketAddr,
        remote: SocketAddr,
        options: ConnectOptions,
    ) -> Result<ConnectionId, ConnectError> {
        let (local, remote) = (plain(local), plain(remote));
        let unusable =
            |address: SocketAddr| address.ip().is_unspecified() || address.ip().is_multicast();
        let mixed = local.is_ipv4() != remote.is_ipv4();
        if mixed || unusable(local) || unusable(remote) || remote.port() == 0 {
            return Err(ConnectError::Address { local, remote });
        }
        if self.table.len() >= self.config.max_connections {
            return Err(ConnectError::TooMany(self.config.max_connections));
        }
        let (len, limit) = (options.syn_data.len(), self.config.send_buffer);
        if len > limit {
            return Err(ConnectError::SynData { len, limit });
        }
        let local = self.choose_port(now, local, remote)?;
        let address = remote.ip();
        let has_data = !options.syn_data.is_empty();
        let refused = options.fast_open_cookie && self.destinations.has_refused(now, remote);
        let black_hole = refused || has_data && self.destinations.is_black_hole(now, address);
        let cookie = options.fast_open_cookie.then(|| self.destinations.cookies.get(address));
        let opening =
            Opening { local, remote, black_hole, cookie: cookie.flatten().copied(), options };
        let connection = Connection::open(now, opening, &self.config, &self.secrets);
        self.counters.active_opens += 1;
        let id = self.table.insert(connection);
        self.counters.connections = self.table.len();
        self.touch(now, id.index);
        Ok(id)
    }

    fn choose_port(
        &mut self,
        now: Time,
        local: SocketAddr,
        remote: SocketAddr,
    ) -> Result<SocketAddr, ConnectError> {
        let Endpoint { table, time_wait, secrets, .. } = self;
        let is_free = |port| {
            let tuple = (SocketAddr::new(local.ip(), port), remote);
            !table.contains(&tuple) && time_wait.get(now, &tuple).is_none()
        };
        let port = match local.port() {
            0 => secrets.port(local.ip(), remote, is_free),
            port => is_free(port).then_some(port),
        };
        let port = port.ok_or(ConnectError::NoPort(local))?;
        Ok(SocketAddr::new(local.ip(), port))
    }

    /// Reads received bytes; 0 at the end of the stream.
    ///
    /// # Errors
    /// [`StreamError::WouldBlock`] when there are none yet, or the connection is gone.
    pub fn read(
        &mut self,
        now: Time,
        id: ConnectionId,
        into: &mut [u8],
    ) -> Result<usize, StreamError> {
        let spare = self.spare().receive;
        let connection = self.table.get_mut(id).ok_or(StreamError::Unknown)?;
        let count = connection.read(now, into, &self.config, spare)?;
        self.touch(now, id.index);
        Ok(count)
    }

    /// Queues bytes to be sent; returns how many there was room for, at least one.
    ///
    /// # Errors
    /// [`StreamError::WouldBlock`] when there is no room, or the connection is gone or shut down.
    pub fn write(
        &mut self,
        now: Time,
        id: ConnectionId,
        data: &[u8],
    ) -> Result<usize, StreamError> {
        let spare = self.spare().send;
        let connection = self.table.get_mut(id).ok_or(StreamError::Unknown)?;
        let count = connection.write(data, &self.config, spare)?;
        self.touch(now, id.index);
        Ok(count)
    }

    /// Bytes that can be read at once.
    #[must_use]
    pub fn readable(&self, id: ConnectionId) -> usize {
        self.table.get(id).map_or(0, Connection::readable)
    }

    /// Bytes that can be written at once.
    #[must_use]
    pub fn writable(&self, id: ConnectionId) -> usize {
        self.table.get(id).map_or(0, Connection::writable)
    }

    /// Server: the answer to a SYN with data is written, or there is none. The SYN-ACK goes now.
    pub fn answer(&mut self, now: Time, id: ConnectionId) {
        if let Some(connection) = self.table.get_mut(id) {
            connection.answer();
            self.touch(now, id.index);
        }
    }

    /// Closes this side's direction: FIN after what is buffered (RFC 9293 §3.10.4).
    pub fn shutdown(&mut self, now: Time, id: ConnectionId) {
        if let Some(connection) = self.table.get_mut(id) {
            connection.shutdown();
            self.touch(now, id.index);
        }
    }

    /// Resets a connection (RFC 9293 §3.10.5).
    pub fn abort(&mut self, now: Time, id: ConnectionId) {
        let Some(connection) = self.table.get_mut(id) else { return };
        let reset = connection.reset_segment();
        connection.close(CloseReason::Aborted);
        self.push_reset(reset);
        self.touch(now, id.index);
    }

    /// Resets all connections and stops listening.
    pub fn abort_all(&mut self, now: Time) {
        self.listeners.clear();
        for id in self.table.ids() {
            self.abort(now, id);
        }
    }

    /// The application is done with a connection: it closes in order, within the time of
    /// [`Config::orphan_wait`](crate::Config::orphan_wait). If bytes were received and not read it is
    /// reset, so that the peer learns of their loss (RFC 9293 §3.6.1, SHLD-3). Its [`EventKind::Closed`] is the last
    /// that is heard of it.
    ///
    /// [`EventKind::Closed`]: crate::EventKind::Closed
    pub fn release(&mut self, now: Time, id: ConnectionId) {
        if let Some(connection) = self.table.get_mut(id) {
            connection.release(now, &self.config);
            self.touch(now, id.index);
            self.limit_orphans(now);
        }
    }

    /// What is known of a connection; `None` once it is released and over.
    #[must_use]
    pub fn info(&self, id: ConnectionId) -> Option<Info> {
        self.table.get(id).map(Connection::info)
    }

    /// A router says that a packet of ours was too big (RFC 1191, RFC 8201).
    ///
    /// # Errors
    /// [`Ignored`] if the quoted packet is not one under way (RFC 5927 §7), or its size is no news.
    pub fn set_path_mtu(&mut self, now: Time, reported: PathMtu) -> Result<(), Ignored> {
        let index =
            self.table.find(&(reported.local, reported.remote)).ok_or(Ignored::NoConnection)?;
        let connection = self.table.at_mut(index).ok_or(Ignored::NoConnection)?;
        if !connection.set_path_mtu(reported.sequence, reported.mtu) {
            return Err(Ignored::Unacceptable);
        }
        self.touch(now, index);
        Ok(())
    }

    /// Why a connection is over; `None` if it is not, or is released and forgotten.
    #[must_use]
    pub fn close_reason(&self, id: ConnectionId) -> Option<CloseReason> {
        self.table.get(id)?.closed
    }

    /// Takes an ICMP error about a segment of ours (RFC 9293 §3.9.2.2). A [hard](crate::IcmpKind::is_hard) one
    /// ends a connection that is not open yet; any other is told by [`Info::icmp_error`], and names the reason if
    /// the connection is given up later.
    ///
    /// # Errors
    /// [`Ignored`] if the quoted segment is not one under way (RFC 5927 §4.1).
    pub fn report_icmp_error(&mut self, now: Time, reported: IcmpError) -> Result<(), Ignored> {
        let tuple = (plain(reported.local), plain(reported.remote));
        let index = self.table.find(&tuple).ok_or(Ignored::NoConnection)?;
        let connection = self.table.at_mut(index).ok_or(Ignored::NoConnection)?;
        let (sequence, kind) = (reported.sequence, reported.kind);
        if !connection.take_icmp_error(now, sequence, kind, &mut self.destinations) {
            return Err(Ignored::Unacceptable);
        }
        self.touch(now, index);
        Ok(())
    }
}

/// Without IPv6's flow label and scope, which packets do not bring.
fn plain(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip(), address.port())
}
