//! Two machines of the lab with a bare veth pair between them: clients and one proxy on the one, the other proxy and
//! the server on the other. Proxies have one processor, clients and server another.

use std::ffi::CStr;
use std::fs;
use std::path::Path;
use std::sync::mpsc::{Sender, channel};

use lab::{Backend, Lab, LabOptions, LinkOptions, Node, NodeOptions};
use lab_test::TestResult;
use packet::offload::Offloads;
use rustix::mount::MountFlags;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tls::{Identity, KeyType};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use super::traffic;

/// The name that the certificate carries.
pub const NAME: &str = "server.test";
/// Where the programs' files are: in a file system of the lab's own, which goes with it whatever ends it.
pub const FOLDER: &str = "/run";
/// The certificate and its intermediate (PEM).
pub const CHAIN: &str = "chain.pem";
/// Its private key (PEM).
pub const KEY: &str = "key.pem";
/// Both in one file, as HAProxy wants them.
pub const BOTH: &str = "both.pem";
/// The root to trust (PEM), and the same as DER.
pub const ROOT: &str = "root.pem";
pub const ROOT_DER: &str = "root.der";
/// Where the client's side proxy listens, on its machine.
pub const LOCAL: &str = "127.0.0.1:8080";
/// Where the server listens for the proxy on its machine.
pub const ORIGIN: &str = "127.0.0.1:7000";
/// Where it can be reached without proxies.
pub const DIRECT: &str = "10.77.1.2:7000";

/// Descriptors that a process may have, where the system allows it.
const MOST_FILES: u64 = 65_536;

/// The two machines.
pub struct Site {
    pub client: Node,
    pub server: Node,
    /// The processor of clients and server; any, if the machine has one alone.
    pub traffic_cpu: Option<usize>,
    /// The processor of the proxies.
    pub proxy_cpu: Option<usize>,
    /// Bytes of the certificates, as DER: no full handshake takes fewer.
    pub chain_bytes: usize,
    /// Dropped, it ends the server.
    _stop: oneshot::Sender<()>,
    /// Last: all of it goes with the lab.
    _lab: Lab,
}

impl Site {
    /// Makes it; the lab is entered already.
    pub fn new() -> TestResult<Site> {
        allow_many_files()?;
        let cpus = packet::thread::allowed_cpus();
        let [proxy_cpu, traffic_cpu] = match cpus[..] {
            [first, second, ..] => [Some(first), Some(second)],
            _ => [None, None],
        };
        let mut lab = Lab::new(LabOptions { backend: Backend::Direct, ..LabOptions::default() })?;
        // What a node starts stays on its processor.
        let pinned = NodeOptions { cpu: proxy_cpu };
        let client = lab.add_node_with("client", pinned)?;
        let server = lab.add_node_with("server", pinned)?;
        let options = LinkOptions { backend: Backend::Direct, arp: true, ..LinkOptions::default() };
        let link = lab.connect_with(&client, &server, &linkmodel::Path::default(), &options)?;
        for (node, end) in [&client, &server].into_iter().zip(link.ends()) {
            let interface = end.interface.clone();
            node.run(move || packet::offload::set(&interface, ALL_OFFLOADS))??;
            // Thousands of connections a second between two addresses.
            node.sysctl("net.ipv4.ip_local_port_range", "1024 65535")?;
            node.sysctl("net.ipv4.tcp_tw_reuse", "1")?;
        }
        let chain_bytes = write_identity()?;
        let stop = start_server(&server, traffic_cpu)?;
        Ok(Site { client, server, traffic_cpu, proxy_cpu, chain_bytes, _stop: stop, _lab: lab })
    }

    /// Runs `work` on the client's machine, on a thread and a runtime of its own.
    pub fn on_client<T, F>(&self, work: impl FnOnce() -> F + Send + 'static) -> TestResult<T>
    where
        T: Send + 'static,
        F: Future<Output = TestResult<T>>,
    {
        let cpu = self.traffic_cpu;
        // Of the node's thread, and so in its namespace.
        let thread = self.client.run(move || std::thread::spawn(move || on_thread(cpu, work)))?;
        thread.join().map_err(|_| "a client's thread panicked")?
    }
}

/// As a network card has them.
const ALL_OFFLOADS: Offloads =
    Offloads { tx_checksum: true, scatter_gather: true, tso: true, gso: true, gro: true };

fn on_thread<T, F>(cpu: Option<usize>, work: impl FnOnce() -> F) -> TestResult<T>
where
    F: Future<Output = TestResult<T>>,
{
    if let Some(cpu) = cpu {
        packet::thread::pin(cpu)?;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(work())
}

/// A server that all proxies stand before. It ends when what this returns is dropped.
fn start_server(node: &Node, cpu: Option<usize>) -> TestResult<oneshot::Sender<()>> {
    let (stop, stopped) = oneshot::channel();
    let (ready, listens) = channel();
    node.run(move || {
        std::thread::spawn(move || {
            if let Err(error) = on_thread(cpu, || serve(ready, stopped)) {
                eprintln!("the server ended: {error}");
            }
        });
    })?;
    listens.recv().map_err(|_| "the server did not start")?;
    Ok(stop)
}

async fn serve(ready: Sender<()>, stopped: oneshot::Receiver<()>) -> TestResult {
    let near = TcpListener::bind(ORIGIN).await?;
    let far = TcpListener::bind(DIRECT).await?;
    ready.send(())?;
    tokio::select! {
        ended = traffic::serve(near) => ended?,
        ended = traffic::serve(far) => ended?,
        _ = stopped => {}
    }
    Ok(())
}

/// Writes the files that the programs read; bytes of the chain.
fn write_identity() -> TestResult<usize> {
    // The lab's mounts are its own.
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    rustix::mount::mount("none", FOLDER, "tmpfs", flags, None::<&CStr>)?;
    let identity = Identity::generate(KeyType::EcdsaP256, 2, &[NAME])?;
    let (chain, key) = (identity.chain_pem()?, identity.private_key_pem()?);
    write(BOTH, format!("{chain}{key}"))?;
    write(CHAIN, chain)?;
    write(KEY, key)?;
    write(ROOT, identity.root_pem()?)?;
    write(ROOT_DER, identity.roots().into_iter().next().ok_or("no root")?)?;
    Ok(identity.chain_der().iter().map(Vec::len).sum())
}

/// Writes a file into the folder.
pub fn write(name: &str, contents: impl AsRef<[u8]>) -> TestResult {
    Ok(fs::write(Path::new(FOLDER).join(name), contents)?)
}

/// Two descriptors for each connection that is open, in each process.
fn allow_many_files() -> TestResult {
    let maximum = getrlimit(Resource::Nofile).maximum;
    let current = Some(maximum.unwrap_or(MOST_FILES).min(MOST_FILES));
    Ok(setrlimit(Resource::Nofile, Rlimit { current, maximum })?)
}
