//! One load: carries out what the browser's policy asks for, and reports what happens back to it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::future::pending;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

use conn::now;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, COOKIE, IF_MODIFIED_SINCE, IF_NONE_MATCH, LINK, USER_AGENT,
};
use http::{HeaderName, HeaderValue};
use page::{
    Action, Carries, Certificate, ConnectionId, Event, HostId, Load, Loaded, Memory, Object,
    ObjectId, Page, PushId, Ready, Storage, Urgency, Validator,
};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use units::Time;
use web::{
    Bottleneck, ClientTimeouts, ConnectPlan, Connection, Ended, Head, Priority, Protocol,
    PushLimits, Request, Tickets, UserTcp, What,
};

use crate::names::Resolver;
use crate::pushed::{Pushes, follow};
use crate::setting::{ServerPush, Setting};
use crate::watch::{self, Upload};

/// Events on their way to the load. A connection whose events wait stops reading: none is lost.
const WAITING_EVENTS: usize = 1024;
/// Most objects that the head of a response may name.
const MOST_HINTS: usize = 100;
/// Hosts whose sessions are remembered.
const TICKET_HOSTS: usize = 1024;
/// What a browser says of itself: the length is a usual one, which counts where headers are not
/// compressed.
const AGENT: &str = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) \
                     Wiretax/1.0 Safari/537.36";
const ENCODINGS: &str = "gzip, deflate, br";

/// What happened, and when.
pub(crate) type Told = (Time, Event);
type Open = Rc<RefCell<HashMap<ConnectionId, Held>>>;
type Uploads = Rc<RefCell<Vec<Upload>>>;

/// A connection that is open, and who waits for its end.
struct Held {
    connection: Rc<Connection>,
    watch: Option<AbortHandle>,
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(watch) = &self.watch {
            watch.abort();
        }
    }
}

/// A browser: what it keeps between loads, and the connections that are open. It lives on one thread,
/// in a [`tokio::task::LocalSet`].
pub struct Browser {
    client: web::Client,
    resolver: Resolver,
    port: u16,
    user_tcp: Option<UserTcp>,
    source: Option<IpAddr>,
    setting: Setting,
    tickets: Tickets,
    memory: Memory,
    open: Open,
    bottleneck: Option<Bottleneck>,
    /// The requests with a body of the last load.
    uploads: Uploads,
}

impl Browser {
    /// A browser that has never seen a page. Servers are asked at `port`.
    #[must_use]
    pub fn new(client: web::Client, resolver: Resolver, port: u16, setting: Setting) -> Browser {
        Browser {
            client,
            resolver,
            port,
            user_tcp: None,
            source: None,
            tickets: Tickets::new(TICKET_HOSTS),
            memory: Memory::new(&setting.policy),
            setting,
            open: Open::default(),
            bottleneck: None,
            uploads: Uploads::default(),
        }
    }

    /// Connects by our TCP, where a protocol is over TCP and TLS.
    #[must_use]
    pub fn with_user_tcp(self, user_tcp: Option<UserTcp>) -> Browser {
        Browser { user_tcp, ..self }
    }

    /// Counts no request's body as stalled, on a window or on TCP, while packets to the servers wait there.
    #[must_use]
    pub fn with_bottleneck(self, bottleneck: Option<Bottleneck>) -> Browser {
        Browser { bottleneck, ..self }
    }

    /// Connects from this address from now on, of the kernel's TCP, which keeps its Fast Open cookies by it.
    pub fn set_source(&mut self, source: Option<IpAddr>) {
        self.source = source;
    }

    /// Forgets everything but what the kernel keeps by addresses: the next load is a first visit.
    pub fn forget(&mut self) {
        self.close_connections();
        self.memory = Memory::new(&self.setting.policy);
        self.tickets = Tickets::new(TICKET_HOSTS);
    }

    /// Closes all connections, and keeps the rest.
    pub fn close_connections(&mut self) {
        self.memory.close_connections();
        self.open.borrow_mut().clear();
    }

    /// Loads a page to its end, or until the setting's time is over: what has not come by then has
    /// failed.
    pub async fn load(&mut self, page: &Page) -> Loaded {
        let dead: Vec<ConnectionId> = self.ended();
        for id in dead {
            self.memory.closed(id);
            self.open.borrow_mut().remove(&id);
        }
        let begin = now();
        let mut memory = std::mem::replace(&mut self.memory, Memory::new(&self.setting.policy));
        if self.setting.protocol == Protocol::Http3 {
            // Nobody finds out about QUIC by ALPN on TCP: it was said before (RFC 7838, RFC 9460).
            page.hosts().iter().for_each(|host| memory.expect(host, true));
        }
        let load = Load::new(page, self.setting.policy.clone(), memory, begin);
        let (sender, events) = mpsc::channel(WAITING_EVENTS);
        let mut run = Run {
            browser: self,
            page,
            load,
            certificate: Certificate::new(page.hosts().iter().cloned()),
            sender,
            tasks: JoinSet::new(),
            pushes: Pushes::default(),
        };
        run.watch_kept();
        run.until_done(events, begin).await;
        let Run { load, tasks, .. } = run;
        drop(tasks);
        let (loaded, memory) = load.finish(now());
        let kept: Vec<ConnectionId> = memory.connections().collect();
        self.open.borrow_mut().retain(|id, _| kept.contains(id));
        self.memory = memory;
        loaded
    }

    /// The same, with how long requests' bodies stalled.
    pub(crate) async fn told(&mut self, page: &Page) -> watch::Told {
        self.uploads.borrow_mut().clear();
        let loaded = self.load(page).await;
        watch::Told { uploads: self.uploads.take(), ..watch::Told::of(loaded) }
    }

    /// The connections that ended since the last load.
    fn ended(&self) -> Vec<ConnectionId> {
        let open = self.open.borrow();
        open.iter().filter(|(_, h)| h.connection.ended().is_some()).map(|(id, _)| *id).collect()
    }

    fn plan(&self, address: IpAddr, host: &str) -> ConnectPlan {
        let protocol = self.setting.protocol;
        ConnectPlan {
            // Sessions are stored for later connections even where there is none to resume yet.
            tickets: self.setting.policy.tickets.then(|| self.tickets.clone()),
            settings: self.setting.settings,
            push: (self.setting.server_push == ServerPush::Push).then(PushLimits::default),
            tcp: self.setting.tcp(),
            source: self.source,
            early_data: self.setting.early_data(),
            user_tcp: self.user_tcp.clone(),
            bottleneck: self.bottleneck.clone(),
            quic: self.setting.quic(),
            timeouts: ClientTimeouts {
                connect: self.setting.timeout,
                exchange: self.setting.timeout,
                ..ClientTimeouts::default()
            },
            ..ConnectPlan::new(SocketAddr::new(address, self.port), host, protocol)
        }
    }
}

/// A load under way.
struct Run<'a> {
    browser: &'a mut Browser,
    page: &'a Page,
    load: Load,
    certificate: Certificate,
    sender: mpsc::Sender<Told>,
    tasks: JoinSet<()>,
    /// What was pushed, until the load has said what becomes of it.
    pushes: Pushes,
}

impl Run<'_> {
    async fn until_done(&mut self, mut events: mpsc::Receiver<Told>, begin: Time) {
        let over = begin + self.browser.setting.timeout;
        loop {
            while let Some(action) = self.load.poll() {
                self.act(action);
            }
            if self.load.is_done() {
                return;
            }
            // What ended is dropped, so that the set does not grow with the page.
            while self.tasks.try_join_next().is_some() {}
            tokio::select! {
                biased;
                told = events.recv() => {
                    let Some((at, event)) = told else { return };
                    self.load.handle(event, at);
                    while let Ok((at, event)) = events.try_recv() {
                        self.load.handle(event, at);
                    }
                }
                () = until(self.load.wakeup()) => self.load.handle(Event::Wake, now()),
                () = until(Some(over)) => return,
            }
        }
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Resolve { host } => self.resolve(host),
            Action::Open { connection, host, .. } => self.open(connection, host),
            Action::Send { object, connection, urgency, incremental, validator } => {
                self.send(object, connection, (urgency, incremental), validator);
            }
            Action::Take { push, object } => self.take(push, object),
            Action::Refuse { push } => drop(self.pushes.take(push)),
            Action::Close { connection } => {
                self.browser.open.borrow_mut().remove(&connection);
            }
        }
    }

    /// Tells the load, after the action that it asked for has returned.
    fn tell(&mut self, event: Event) {
        let sender = self.sender.clone();
        self.tasks.spawn_local(async move {
            let _ = sender.send((now(), event)).await;
        });
    }

    fn resolve(&mut self, host: HostId) {
        let Some(name) = self.page.host(host).map(str::to_owned) else {
            return self.tell(Event::NotResolved { host });
        };
        let resolver = self.browser.resolver;
        let sender = self.sender.clone();
        self.tasks.spawn_local(async move {
            let event = match resolver.resolve(&name).await {
                Ok(Some(found)) => Event::Resolved {
                    host,
                    addresses: found.addresses,
                    valid_for: Some(found.valid_for),
                },
                Ok(None) | Err(_) => Event::NotResolved { host },
            };
            let _ = sender.send((now(), event)).await;
        });
    }

    fn open(&mut self, id: ConnectionId, host: HostId) {
        let name = self.page.host(host).unwrap_or_default().to_owned();
        let Some(address) = self.load.address(host) else {
            return self.tell(Event::Closed { connection: id });
        };
        let plan = self.browser.plan(address, &name);
        let limit = self.browser.setting.settings.max_concurrent_streams as usize;
        let (client, open) = (self.browser.client.clone(), Rc::clone(&self.browser.open));
        let (sender, certificate) = (self.sender.clone(), self.certificate.clone());
        self.tasks.spawn_local(async move {
            let Ok(connection) = client.connect(&plan).await else {
                let _ = sender.send((now(), Event::Closed { connection: id })).await;
                return;
            };
            let connection = Rc::new(connection);
            let facts = connection.facts();
            let ready = Ready {
                tcp: facts.secured.and(facts.connected),
                carries: match facts.protocol.is_multiplexed() {
                    false => Carries::One,
                    true => Carries::Many {
                        limit: connection.max_concurrent().unwrap_or(limit).min(limit).max(1),
                    },
                },
                address: Some(facts.peer.ip()),
                certificate,
                resumed: facts.resumed.unwrap_or(false),
            };
            let at = facts.ready;
            let held = Held { connection: Rc::clone(&connection), watch: None };
            open.borrow_mut().insert(id, held);
            if sender.send((at, Event::Ready { connection: id, ready })).await.is_err() {
                return;
            }
            if plan.tickets.is_some() {
                let _ = sender.send((now(), Event::Ticket { host })).await;
            }
            until_ended(&connection, id, &sender).await;
        });
    }

    /// Connections that were kept may end while the page is loaded.
    fn watch_kept(&mut self) {
        for (id, held) in self.browser.open.borrow_mut().iter_mut() {
            let (id, connection, sender) = (*id, Rc::clone(&held.connection), self.sender.clone());
            let watch = self.tasks.spawn_local(async move {
                until_ended(&connection, id, &sender).await;
            });
            held.watch = Some(watch);
        }
    }

    /// Follows a push as an object's response.
    fn take(&mut self, push: PushId, object: ObjectId) {
        let wanted = self.page.object(object).map(|object| object.body.count());
        let (Some(push), Some(bytes)) = (self.pushes.take(push), wanted) else {
            return self.tell(Event::Failed { object, refused: false });
        };
        let sender = self.sender.clone();
        self.tasks.spawn_local(async move { follow(push, object, bytes, &sender).await });
    }

    fn send(
        &mut self,
        object: ObjectId,
        id: ConnectionId,
        (urgency, incremental): (Urgency, bool),
        validator: Option<Validator>,
    ) {
        let connection = {
            let open = self.browser.open.borrow();
            open.get(&id).map(|held| Rc::clone(&held.connection))
        };
        let wanted = self.page.object(object).map(|wanted| {
            let host = self.page.host(wanted.host).unwrap_or_default();
            request(wanted, host, Priority { urgency: urgency.value(), incremental }, validator)
        });
        let (Some(connection), Some(request)) = (connection, wanted) else {
            return self.tell(Event::Failed { object, refused: false });
        };
        let (sender, pushes) = (self.sender.clone(), self.pushes.clone());
        let uploads = Rc::clone(&self.browser.uploads);
        self.tasks.spawn_local(async move {
            exchange(&connection, request, (object, id), (&pushes, &uploads), &sender).await;
        });
    }
}

/// Tells how a connection ended.
async fn until_ended(connection: &Connection, id: ConnectionId, sender: &mpsc::Sender<Told>) {
    let event = match connection.closed().await {
        Ended::GoAway => Event::GoAway { connection: id },
        Ended::Closed | Ended::Failed(_) => Event::Closed { connection: id },
    };
    let _ = sender.send((now(), event)).await;
}

/// The request for an object. `validator`: only if it has changed.
fn request(
    object: &Object,
    host: &str,
    priority: Priority,
    validator: Option<Validator>,
) -> Request {
    let mut request = match object.upload {
        Some(bytes) => Request::post(host, &object.path, bytes.count()),
        None => Request::get(host, &object.path),
    };
    request.priority = Some(priority);
    request.headers = vec![
        (USER_AGENT, HeaderValue::from_static(AGENT)),
        (ACCEPT, HeaderValue::from_static("*/*")),
        (ACCEPT_ENCODING, HeaderValue::from_static(ENCODINGS)),
    ];
    if object.request_extra.count() > 0 {
        let length = usize::try_from(object.request_extra.count()).unwrap_or(usize::MAX);
        let cookie = "c".repeat(length.min(64 << 10));
        request.headers.extend(HeaderValue::from_str(&cookie).ok().map(|value| (COOKIE, value)));
    }
    let condition =
        |name: HeaderName, text: &str| HeaderValue::from_str(text).ok().map(|value| (name, value));
    request.headers.extend(match &validator {
        Some(Validator::Etag(tag)) => condition(IF_NONE_MATCH, tag),
        Some(Validator::Modified(date)) => condition(IF_MODIFIED_SINCE, date),
        None => None,
    });
    if validator.is_none() {
        request.expected = Some(object.body.count());
    }
    request
}

/// Makes a request and tells what happens to it.
async fn exchange(
    connection: &Connection,
    request: Request,
    (object, id): (ObjectId, ConnectionId),
    (pushes, uploads): (&Pushes, &Uploads),
    sender: &mpsc::Sender<Told>,
) {
    let upload = request.upload;
    let mut exchange = connection.request(request);
    let mut uploaded = 0;
    while let Some(web::Event { at, what }) = exchange.next().await {
        // Before the end is told, with which the load may be over.
        if upload > 0 && matches!(what, What::End | What::Failed(_)) {
            let (stalled, tcp_stalls) = (exchange.stalled(), exchange.tcp_stalls());
            uploads.borrow_mut().push(Upload { object, stalled, tcp_stalls });
        }
        let event = match what {
            What::Sent if upload > 0 => continue,
            What::Sent => Event::Sent { object },
            What::Uploaded(bytes) => {
                let more = bytes.saturating_sub(uploaded);
                uploaded = bytes;
                if uploaded >= upload {
                    let _ = sender.send((at, Event::Uploaded { object, bytes: more })).await;
                    Event::Sent { object }
                } else {
                    Event::Uploaded { object, bytes: more }
                }
            }
            What::Pushed(push) => pushes.put(*push, id),
            What::Head(head) => {
                let hints = hints_of(object, &head);
                if sender.send((at, head_of(object, &head))).await.is_err() {
                    return;
                }
                for hint in hints {
                    let _ = sender.send((at, hint)).await;
                }
                continue;
            }
            What::Data(bytes) => Event::Body { object, bytes },
            What::End => Event::Complete { object, reusable: connection.ended().is_none() },
            What::Failed(_) => match connection.ended() {
                Some(Ended::Closed | Ended::Failed(_)) => Event::Closed { connection: id },
                Some(Ended::GoAway) | None => Event::Failed { object, refused: false },
            },
        };
        if sender.send((at, event)).await.is_err() {
            return;
        }
    }
}

/// What a head names that will be needed.
fn hints_of(by: ObjectId, head: &Head) -> Vec<Event> {
    let fields = head.headers.get_all(LINK).iter().filter_map(|value| value.to_str().ok());
    let targets = fields.flat_map(page::preloads).take(MOST_HINTS);
    targets.map(|target| Event::Hinted { by, target: target.into() }).collect()
}

/// A response's head, as the load is told.
pub(crate) fn head_of(object: ObjectId, head: &Head) -> Event {
    let field = |name| head.headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let storage = Storage::of_fields(field("cache-control"), field("etag"), field("last-modified"));
    Event::Head { object, status: head.status.as_u16(), storage }
}

/// Waits until a time of our clock; without one, for ever.
async fn until(time: Option<Time>) {
    match time {
        Some(time) => {
            let left = time.checked_since(now()).unwrap_or(Duration::ZERO);
            tokio::time::sleep(left).await;
        }
        None => pending().await,
    }
}
