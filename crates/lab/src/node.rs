//! A node: a thread in a network namespace of its own.

use std::fs;
use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc as std_mpsc;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::{self, ThreadId};
use std::time::Duration;

use futures_util::FutureExt;
use packet::clock::ThreadCpuClock;
use tokio::sync::mpsc;
use tokio::task::LocalSet;

use crate::join::{self, JoinHandle};
use crate::program::{Running, Shared};
use crate::{Error, link::End, netlink, setting};

/// How long a stopped node may take to end what it is in before it is left to the process's end.
const STOP_LIMIT: Duration = Duration::from_secs(5);

/// Settings that every node starts with; each would otherwise make one connection of a run depend
/// on those before it.
const DEFAULTS: [(&str, &str); 3] = [
    // The kernel remembers the RTT and thresholds of closed connections, and starts the next one
    // to the same address with them.
    ("net.ipv4.tcp_no_metrics_save", "1"),
    // After a few lost Fast Open SYNs the kernel gives Fast Open up for an hour: with an emulated
    // loss, the rest of a run would silently measure something else.
    ("net.ipv4.tcp_fastopen_blackhole_timeout_sec", "0"),
    // Inherited from the host, where it may be strict; it would drop what chains route.
    ("net.ipv4.conf.all.rp_filter", "0"),
];

enum Command {
    Run(Box<dyn FnOnce() + Send>),
    Stop,
}

/// What the node's thread tells once it stands.
struct Started {
    namespace: OwnedFd,
    cpu: Option<ThreadCpuClock>,
    thread: ThreadId,
    ipv6: bool,
}

struct Inner {
    name: Arc<str>,
    commands: mpsc::UnboundedSender<Command>,
    started: Started,
    ends: Mutex<Vec<End>>,
    /// The other ends of its links.
    peers: Mutex<Vec<End>>,
    programs: Mutex<Vec<Weak<Shared>>>,
    /// Names of devices that are to be given back.
    adopted: Mutex<Vec<String>>,
    /// Set when the thread is about to end: its clock's number may then become another's.
    ending: Arc<AtomicBool>,
    /// Disconnected when the thread has ended, but for its last instructions.
    ended: Mutex<std_mpsc::Receiver<()>>,
}

/// A node: a thread in a network namespace of its own, with a single-threaded tokio runtime.
/// Clones are the same node. It ends with its lab.
#[derive(Clone)]
pub struct Node(Arc<Inner>);

impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Node").field("name", &self.0.name).finish_non_exhaustive()
    }
}

impl Node {
    pub(crate) fn start(name: &str, cpu: Option<usize>) -> Result<Node, Error> {
        let name: Arc<str> = Arc::from(name);
        let (commands, receiver) = mpsc::unbounded_channel();
        let (started_sender, started) = std_mpsc::sync_channel(1);
        let (ended_sender, ended) = std_mpsc::channel();
        let ending = Arc::new(AtomicBool::new(false));
        let (thread_name, ending_too) = (Arc::clone(&name), Arc::clone(&ending));
        thread::Builder::new()
            .name(name.to_string())
            .spawn(move || {
                // Dropped when the thread is done with everything.
                let _ended = ended_sender;
                main(&thread_name, cpu, &started_sender, receiver);
                ending_too.store(true, Ordering::Release);
            })
            .map_err(Error::Thread)?;
        let started =
            started.recv().map_err(|_| Error::NodeStopped { node: name.to_string() })??;
        let inner = Inner {
            name,
            commands,
            started,
            ends: Mutex::default(),
            peers: Mutex::default(),
            programs: Mutex::default(),
            adopted: Mutex::default(),
            ending,
            ended: Mutex::new(ended),
        };
        let node = Node(Arc::new(inner));
        for (key, value) in DEFAULTS {
            // A kernel that lacks one has nothing to switch off.
            match node.sysctl(key, value) {
                Err(Error::Setting { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
                other => other?,
            }
        }
        Ok(node)
    }

    /// The node's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Runs `work` on the node's thread, in its namespace, and waits for it. Tasks of the node
    /// stand still meanwhile.
    ///
    /// # Errors
    /// [`Error::Panicked`], [`Error::NodeStopped`].
    pub fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        let (completer, handle) = join::pair(&self.0.name);
        let job = move || completer.complete(catch_unwind(AssertUnwindSafe(work)));
        if thread::current().id() == self.0.started.thread {
            // The node's own tasks may call it too.
            job();
        } else {
            self.send(Command::Run(Box::new(job)))?;
        }
        handle.join()
    }

    /// Starts a task on the node's runtime, in its namespace: `work` makes the future there, so
    /// that it need not be `Send`. A node that is stopped drops its tasks.
    pub fn spawn<T, F>(&self, work: impl FnOnce() -> F + Send + 'static) -> JoinHandle<T>
    where
        T: Send + 'static,
        F: Future<Output = T> + 'static,
    {
        let (completer, handle) = join::pair(&self.0.name);
        let job = move || {
            tokio::task::spawn_local(async move {
                let task = async { work().await };
                completer.complete(AssertUnwindSafe(task).catch_unwind().await);
            });
        };
        // If the node is stopped, dropping the job tells the handle.
        let _ = self.send(Command::Run(Box::new(job)));
        handle
    }

    fn send(&self, command: Command) -> Result<(), Error> {
        let stopped = |_| Error::NodeStopped { node: self.0.name.to_string() };
        self.0.commands.send(command).map_err(stopped)
    }

    /// Sets a network setting in the node's namespace, such as `net.ipv4.tcp_fastopen`.
    ///
    /// # Errors
    /// [`Error::SettingName`] for a name that is none, [`Error::Setting`] if the kernel refuses.
    pub fn sysctl(&self, key: &str, value: &str) -> Result<(), Error> {
        let (path, value) = (setting::path(key)?, value.to_owned());
        let written = self.run(move || fs::write(path, value))?;
        written.map_err(|source| self.setting_error(key, source))
    }

    /// Reads a network setting of the node's namespace.
    ///
    /// # Errors
    /// As [`Node::sysctl`].
    pub fn read_sysctl(&self, key: &str) -> Result<String, Error> {
        let path = setting::path(key)?;
        let read = self.run(move || fs::read_to_string(path))?;
        read.map(|text| text.trim_end().to_owned())
            .map_err(|source| self.setting_error(key, source))
    }

    fn setting_error(&self, key: &str, source: io::Error) -> Error {
        Error::Setting { node: self.0.name.to_string(), key: key.to_owned(), source }
    }

    /// CPU time that the node's thread has used: user and system, and so most of the kernel's work
    /// for its packets. `None` once the node has ended.
    #[must_use]
    pub fn cpu_time(&self) -> Option<Duration> {
        let time = self.0.started.cpu.and_then(ThreadCpuClock::read);
        // Looked at after the reading: if it is not ending by now, the clock was still its own.
        time.filter(|_| !self.0.ending.load(Ordering::Acquire))
    }

    /// The node's ends of links, in the order in which they were made.
    #[must_use]
    pub fn ends(&self) -> Vec<End> {
        self.lock_ends().clone()
    }

    fn lock_ends(&self) -> std::sync::MutexGuard<'_, Vec<End>> {
        self.0.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add_end(&self, end: End) {
        self.lock_ends().push(end);
    }

    pub(crate) fn add_peer(&self, end: End) {
        self.0.peers.lock().unwrap_or_else(PoisonError::into_inner).push(end);
    }

    /// Both ends of each of its links.
    pub(crate) fn named_ends(&self) -> Vec<End> {
        let peers = self.0.peers.lock().unwrap_or_else(PoisonError::into_inner).clone();
        [self.ends(), peers].concat()
    }

    /// Keeps a program in mind, which is to end with the node.
    pub(crate) fn note_program(&self, program: &Running) {
        let mut programs = self.0.programs.lock().unwrap_or_else(PoisonError::into_inner);
        programs.retain(|program| program.strong_count() > 0);
        programs.push(Arc::downgrade(&program.shared()));
    }

    /// Kills the programs that still run on the node, and waits for their end.
    pub(crate) fn end_programs(&self) {
        let programs =
            std::mem::take(&mut *self.0.programs.lock().unwrap_or_else(PoisonError::into_inner));
        let programs: Vec<_> = programs.iter().filter_map(Weak::upgrade).collect();
        programs.iter().for_each(|program| program.kill());
        for program in programs {
            if !program.wait_gone() {
                tracing::warn!(node = self.name(), "a killed program is still there");
            }
        }
    }

    pub(crate) fn note_adopted(&self, interface: &str) {
        let mut adopted = self.0.adopted.lock().unwrap_or_else(PoisonError::into_inner);
        adopted.push(interface.to_owned());
    }

    pub(crate) fn take_adopted(&self) -> Vec<String> {
        std::mem::take(&mut self.0.adopted.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The node's end of its first link.
    pub(crate) fn first_end(&self) -> Result<End, Error> {
        let no_link = || Error::NoLink { node: self.0.name.to_string() };
        self.lock_ends().first().cloned().ok_or_else(no_link)
    }

    /// The node's IPv4 address on its first link.
    ///
    /// # Errors
    /// [`Error::NoLink`], [`Error::NoAddress`].
    pub fn addr4(&self) -> Result<Ipv4Addr, Error> {
        self.first_end()?.addr4()
    }

    /// The node's IPv6 address on its first link.
    ///
    /// # Errors
    /// [`Error::NoLink`], [`Error::NoIpv6`], [`Error::NoAddress`].
    pub fn addr6(&self) -> Result<Ipv6Addr, Error> {
        let end = self.first_end()?;
        if self.has_ipv6() { end.addr6() } else { Err(Error::NoIpv6 { node: end.node }) }
    }

    /// Adds a route to `network`/`prefix_len` by way of the neighbour `gateway`.
    ///
    /// # Errors
    /// [`Error::Netlink`].
    pub fn add_route(&self, network: IpAddr, prefix_len: u8, gateway: IpAddr) -> Result<(), Error> {
        self.netlink(move |handle| netlink::add_route(handle, network, prefix_len, gateway))
    }

    /// Whether the node has IPv6.
    pub(crate) fn has_ipv6(&self) -> bool {
        self.0.started.ipv6
    }

    /// The node's network namespace, to move an interface to.
    pub(crate) fn namespace_for_move(&self) -> Result<OwnedFd, Error> {
        let failed = |source| Error::Node {
            node: self.0.name.to_string(),
            doing: "referring to its network namespace",
            source,
        };
        self.0.started.namespace.try_clone().map_err(failed)
    }

    /// Whether both are the same node.
    pub(crate) fn is(&self, other: &Node) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Runs a netlink exchange in the node's namespace.
    pub(crate) fn netlink<T, F>(
        &self,
        work: impl FnOnce(rtnetlink::Handle) -> F + Send + 'static,
    ) -> Result<T, Error>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + 'static,
    {
        self.spawn(move || netlink::with(work)).join_within(netlink::LIMIT)?
    }

    /// Asks the node to end; its tasks are dropped.
    pub(crate) fn stop(&self) {
        // Already ended is as good.
        let _ = self.0.commands.send(Command::Stop);
    }

    /// Waits until the node's thread has ended, for a bounded time. False if it has not.
    pub(crate) fn wait(&self) -> bool {
        let ended = self.0.ended.lock().unwrap_or_else(PoisonError::into_inner);
        ended.recv_timeout(STOP_LIMIT) == Err(std_mpsc::RecvTimeoutError::Disconnected)
    }
}

/// The node's thread.
fn main(
    name: &str,
    cpu: Option<usize>,
    started: &std_mpsc::SyncSender<Result<Started, Error>>,
    mut commands: mpsc::UnboundedReceiver<Command>,
) {
    let runtime = match set_up(name, cpu) {
        Ok((runtime, facts)) => {
            if started.send(Ok(facts)).is_err() {
                return;
            }
            runtime
        }
        Err(error) => {
            // Nobody left to tell is no matter.
            let _ = started.send(Err(error));
            return;
        }
    };
    let local = LocalSet::new();
    local.block_on(&runtime, async move {
        while let Some(Command::Run(job)) = commands.recv().await {
            job();
        }
    });
}

/// Descriptors that a process's first runtime takes: epoll, a waker, a pair of sockets for signals, the last of
/// which tokio takes for granted.
const DESCRIPTORS: usize = 6;

/// A runtime on this thread, if there is room for its descriptors.
pub(crate) fn runtime() -> io::Result<tokio::runtime::Runtime> {
    let room = fs::File::open("/dev/null")?;
    let room: Vec<_> = (1..DESCRIPTORS).map(|_| room.try_clone()).collect::<io::Result<_>>()?;
    drop(room);
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

fn set_up(name: &str, cpu: Option<usize>) -> Result<(tokio::runtime::Runtime, Started), Error> {
    let failed = |doing| move |source| Error::Node { node: name.to_owned(), doing, source };
    if let Some(cpu) = cpu {
        packet::thread::pin(cpu)?;
    }
    // SAFETY: moves this thread alone into a new, empty network namespace.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
        let source = io::Error::last_os_error();
        return Err(failed("making its network namespace")(source));
    }
    if !crate::enter::loopback_up() {
        let source = io::Error::last_os_error();
        return Err(failed("bringing its loopback interface up")(source));
    }
    let namespace = fs::File::open("/proc/thread-self/ns/net")
        .map_err(failed("opening its network namespace"))?;
    let runtime = runtime().map_err(failed("making its runtime"))?;
    let started = Started {
        namespace: namespace.into(),
        cpu: ThreadCpuClock::of_current_thread(),
        thread: thread::current().id(),
        ipv6: Path::new("/proc/sys/net/ipv6/conf/lo").exists(),
    };
    Ok((runtime, started))
}
