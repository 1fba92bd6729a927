//! Makes connections.

use std::fmt;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::rc::Rc;
use std::sync::Arc;

use conn::{FastOpen, TcpInfo, now};
use rustls::client::Resumption;
use rustls_pki_types::ServerName;
use socket2::{Domain, SockRef, Type};
use tokio::net::TcpSocket;
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::exchange::Exchange;
use super::plan::{ConnectPlan, Request};
use super::state::{Ended, Facts, State};
use super::{h1, h2, h3, sessions, spdy};
use crate::gate::Gate;
use crate::socket::{Socket, WeakSocket};
use crate::stream::Stream;
use crate::tcp_stalls::Look;
use crate::{Bottleneck, Failure, Protocol, UserTcp};

/// What all connections of a browser share: roots, versions, groups. Tickets are resumed only by the
/// client that they came to. Cheap to clone.
#[derive(Clone)]
pub struct Client {
    tcp: Arc<rustls::ClientConfig>,
    quic: Option<Arc<rustls::ClientConfig>>,
    sessions: sessions::Clients,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Client")
    }
}

/// A connection that is ready for requests. Dropped, it closes; exchanges under way fail.
pub struct Connection {
    facts: Facts,
    kind: Kind,
    state: Rc<State>,
    limit: std::time::Duration,
    /// With early data.
    gate: Option<Gate>,
    carrier: Carrier,
    /// [`ConnectPlan::bottleneck`].
    bottleneck: Option<Bottleneck>,
}

/// What carries a connection, to look at while it sends a body.
#[derive(Clone)]
enum Carrier {
    Tcp(WeakSocket),
    Quic(h3::Connection),
}

impl Carrier {
    fn look(&self) -> Option<Look> {
        match self {
            Carrier::Tcp(socket) => socket.look(),
            Carrier::Quic(connection) => connection.look(),
        }
    }

    /// What is told when it is given bytes to send.
    fn writes(&self) -> Option<Arc<Notify>> {
        match self {
            Carrier::Tcp(socket) => socket.writes(),
            Carrier::Quic(connection) => connection.writes(),
        }
    }
}

#[derive(Clone)]
enum Kind {
    Http1(h1::Connection),
    Http2(h2::Connection),
    Http3(h3::Connection),
    Spdy(spdy::Connection),
}

impl Client {
    /// A client that verifies servers by `config`; its server name and `alpn` are those of each
    /// [`ConnectPlan`], and so is whether early data is sent. HTTP/3 needs TLS 1.3 among the versions.
    ///
    /// # Errors
    /// [`Failure::Transport`]: the configuration cannot work.
    pub fn new(config: &tls::ClientConfig) -> Result<Client, Failure> {
        let sessions = sessions::Clients::new(config.clone());
        let config = tls::ClientConfig { early_data: false, alpn: Vec::new(), ..config.clone() };
        let tcp = tls::direct::client_config(&config).map_err(conn::Failure::from)?;
        let quic = match config.versions.contains(&tls::Version::Tls13) {
            false => None,
            true => {
                let versions = vec![tls::Version::Tls13];
                let config = tls::ClientConfig { versions, ..config };
                Some(tls::direct::client_config(&config).map_err(conn::Failure::from)?)
            }
        };
        Ok(Client { tcp: Arc::new(tcp), quic: quic.map(Arc::new), sessions })
    }

    /// Another configuration for TLS by [`tls::Session`]s, which may be that of either library: over our TCP, and
    /// over the kernel's with early data or where the library is not rustls.
    #[must_use]
    pub fn with_session_tls(self, config: tls::ClientConfig) -> Client {
        Client { sessions: sessions::Clients::new(config), ..self }
    }

    /// Makes a connection. Tasks of the current [`tokio::task::LocalSet`] carry it.
    ///
    /// # Errors
    /// [`Failure::Plan`], [`Failure::Unsupported`]: the plan cannot work; [`Failure::Transport`]: TCP,
    /// TLS or QUIC failed, by a wrong certificate too; [`Failure::TimedOut`].
    pub async fn connect(&self, plan: &ConnectPlan) -> Result<Connection, Failure> {
        plan.check()?;
        let after = plan.timeouts.connect;
        let connecting = async {
            match plan.protocols.first() {
                Some(Protocol::Http3) => self.connect_quic(plan).await,
                _ => match &plan.user_tcp {
                    Some(user) => self.connect_user_tcp(plan, user).await,
                    None => self.connect_tcp(plan).await,
                },
            }
        };
        match timeout(after, connecting).await {
            Ok(result) => result,
            Err(_) => Err(Failure::TimedOut { during: "connecting", after }),
        }
    }

    async fn connect_tcp(&self, plan: &ConnectPlan) -> Result<Connection, Failure> {
        let failed = |call| move |error| Failure::from_io(call, "connecting", &error);
        let kind = Type::STREAM.nonblocking();
        let socket = socket2::Socket::new(Domain::for_address(plan.address), kind, None)
            .map_err(failed("socket"))?;
        plan.tcp.apply(SockRef::from(&socket))?;
        plan.tcp.fast_open.set_on_client(socket.as_fd())?;
        if let Some(source) = plan.source {
            socket.bind(&SocketAddr::new(source, 0).into()).map_err(failed("bind"))?;
        }
        let started = now();
        let stream = TcpSocket::from_std_stream(socket.into()).connect(plan.address).await;
        let stream = stream.map_err(failed("connect"))?;
        let connected = now();
        // With a Fast Open cookie nothing was sent yet.
        let is_there = plan.tcp.fast_open == FastOpen::Off
            || TcpInfo::of(stream.as_fd()).is_ok_and(|info| !info.is_connecting());
        let socket = Socket::new(stream, plan.address).map_err(failed("getsockname"))?;
        let mut facts = Facts {
            local: socket.local(),
            peer: socket.peer(),
            protocol: Protocol::Http1Clear,
            started,
            connected: is_there.then_some(connected),
            secured: None,
            ready: connected,
            resumed: None,
            alpn: None,
            tls: None,
        };
        let (stream, gate) = if plan.protocols.contains(&Protocol::Http1Clear) {
            (Stream::Clear(socket.clone()), None)
        } else if self.sessions.secures(plan) {
            self.sessions.secure(socket.clone(), plan, &mut facts).await?
        } else {
            (self.secure(socket.clone(), plan, &mut facts).await?, None)
        };
        begin(stream, &socket, facts, plan, gate).await
    }

    async fn connect_user_tcp(
        &self,
        plan: &ConnectPlan,
        user: &UserTcp,
    ) -> Result<Connection, Failure> {
        let (socket, facts, gate) = self.sessions.connect(plan, user).await?;
        begin(Stream::Clear(socket.clone()), &socket, facts, plan, gate).await
    }

    /// The handshake of TLS.
    async fn secure(
        &self,
        socket: Socket,
        plan: &ConnectPlan,
        facts: &mut Facts,
    ) -> Result<Stream, Failure> {
        let mut config = (*self.tcp).clone();
        config.alpn_protocols = plan.protocols.iter().map(|each| each.alpn().to_vec()).collect();
        if let Some(tickets) = &plan.tickets {
            config.resumption = Resumption::store(Arc::clone(&tickets.tcp));
        }
        let connector = TlsConnector::from(Arc::new(config));
        let stream = connector.connect(server_name(plan)?, socket).await;
        let stream = stream
            .map_err(|error| Failure::from_io("connect", "making the TLS handshake", &error))?;
        facts.secured = Some(now());
        let session = tls::direct::facts(stream.get_ref().1);
        facts.resumed = Some(session.resumed);
        let alpn = session.alpn.clone();
        facts.alpn = alpn.as_deref().map(|name| String::from_utf8_lossy(name).into_owned());
        facts.tls = Some(tls::Facts { server_name: Some(plan.name.clone()), ..session });
        // A server without ALPN speaks HTTP/1.1, which only an offer of it makes right.
        let chosen = Protocol::of_alpn(alpn.as_deref());
        facts.protocol = chosen
            .filter(|protocol| plan.protocols.contains(protocol))
            .ok_or_else(|| Failure::Alpn(facts.alpn.clone().unwrap_or("none".to_owned())))?;
        Ok(Stream::Client(Box::new(stream)))
    }

    async fn connect_quic(&self, plan: &ConnectPlan) -> Result<Connection, Failure> {
        let Some(base) = &self.quic else {
            return Err(Failure::Plan("HTTP/3 needs TLS 1.3 among the versions".to_owned()));
        };
        let mut config = (**base).clone();
        config.alpn_protocols = vec![Protocol::Http3.alpn().to_vec()];
        config.enable_early_data = plan.early_data;
        if let Some(tickets) = &plan.tickets {
            config.resumption = Resumption::store(Arc::clone(&tickets.quic));
        }
        server_name(plan)?;
        let state = Rc::new(State::default());
        let (connection, facts, gate) = h3::connect(config, plan, &state).await?;
        let limit = plan.timeouts.exchange;
        let (carrier, kind) = (Carrier::Quic(connection.clone()), Kind::Http3(connection));
        let bottleneck = plan.bottleneck.clone();
        Ok(Connection { facts, kind, state, limit, gate, carrier, bottleneck })
    }
}

/// Begins HTTP or SPDY on a stream.
async fn begin(
    stream: Stream,
    socket: &Socket,
    mut facts: Facts,
    plan: &ConnectPlan,
    gate: Option<Gate>,
) -> Result<Connection, Failure> {
    let state = Rc::new(State::default());
    let kind = match facts.protocol {
        Protocol::Http2 => {
            let gauge = socket.clone();
            Kind::Http2(h2::connect(stream, gauge, plan, &state).await?)
        }
        protocol @ (Protocol::Spdy3 | Protocol::Spdy31) => {
            let gauge = socket.clone();
            Kind::Spdy(spdy::connect(stream, gauge, protocol, plan, &state)?)
        }
        protocol => Kind::Http1(h1::connect(stream, protocol, &plan.settings, &state).await?),
    };
    facts.ready = now();
    let (carrier, bottleneck) = (Carrier::Tcp(socket.downgrade()), plan.bottleneck.clone());
    Ok(Connection { facts, kind, state, limit: plan.timeouts.exchange, gate, carrier, bottleneck })
}

fn server_name(plan: &ConnectPlan) -> Result<ServerName<'static>, Failure> {
    ServerName::try_from(plan.name.clone()).map_err(|_| {
        conn::Failure::from(tls::Error::from(tls::CallerError::ServerName(plan.name.clone())))
            .into()
    })
}

impl Connection {
    /// What is known of it.
    #[must_use]
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Begins a request. On a multiplexed connection many may be under way; beyond the peer's limit they
    /// wait for a free stream. HTTP/1.1 has one at a time: another fails with [`Failure::Busy`].
    #[must_use]
    pub fn request(&self, request: Request) -> Exchange {
        let (protocol, limit) = (self.facts.protocol, self.limit);
        let (kind, state) = (self.kind.clone(), Rc::clone(&self.state));
        let (asked, gate, carrier) = (request.clone(), self.gate.clone(), self.carrier.clone());
        let bottleneck = self.bottleneck.clone().filter(|_| request.upload > 0);
        Exchange::start(protocol, &asked, limit, move |sink| async move {
            let _watch = bottleneck.map(|bottleneck| {
                let writes = carrier.writes().unwrap_or_default();
                sink.tcp_stalls().watching(&bottleneck, writes, move || carrier.look())
            });
            if let Some(gate) = gate {
                gate.admit(request.may_be_early()).await;
            }
            match kind {
                Kind::Http1(connection) => connection.exchange(&state, &request, &sink).await,
                Kind::Http2(connection) => connection.exchange(&state, &request, &sink).await,
                Kind::Http3(connection) => connection.exchange(&state, &request, &sink).await,
                Kind::Spdy(connection) => connection.exchange(&state, &request, &sink).await,
            }
        })
    }

    /// What became of early data so far; [`tls::EarlyData::NotOffered`] on a connection that began without.
    #[must_use]
    pub fn early_data(&self) -> tls::EarlyData {
        self.gate.as_ref().map_or(tls::EarlyData::NotOffered, Gate::early_data)
    }

    /// Exchanges under way.
    #[must_use]
    pub fn active(&self) -> usize {
        self.state.active()
    }

    /// Exchanges that the peer allows at once: 1 with HTTP/1.1, SETTINGS_MAX_CONCURRENT_STREAMS with
    /// HTTP/2 and SPDY (unlimited before the peer's SETTINGS came). `None`: QUIC's limit is a count of streams
    /// opened so far, and quinn does not say it.
    #[must_use]
    pub fn max_concurrent(&self) -> Option<usize> {
        match &self.kind {
            Kind::Http1(_) => Some(1),
            Kind::Http2(connection) => Some(connection.max_concurrent()),
            Kind::Spdy(connection) => Some(connection.max_concurrent()),
            Kind::Http3(_) => None,
        }
    }

    /// How it ended, if it did.
    #[must_use]
    pub fn ended(&self) -> Option<Ended> {
        self.state.ended()
    }

    /// Waits for its end.
    pub async fn closed(&self) -> Ended {
        self.state.closed().await
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("facts", &self.facts).finish_non_exhaustive()
    }
}
