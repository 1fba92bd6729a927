//! Memory of connections that are open and idle, and how fast they were opened:
//! `cargo bench -p sslmtcp --bench idle [-- --connections N]`.
//!
//! The server is a process of its own (this program with `--server`), so that its resident memory
//! is the server's alone: our stack, rustls, a task and a stream for each connection.

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use lab::{Backend, EnterOptions, Lab, LabOptions};
use linkmodel::Path;
use sslmtcp::{ConnectOptions, Embedding, ListenOptions, SslmTcpListener, SslmTcpStream};
use tcpio::{DeviceOptions, InterfaceAddress, MacAddr, Stack, StackOptions};
use tls::{Client, ClientConfig, Identity, KeyType, Library, Server, ServerConfig, Trust};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

type Failure = Box<dyn Error + Send + Sync>;
type Outcome<T = ()> = Result<T, Failure>;

const NAME: &str = "server.test";
const PORT: u16 = 7000;
const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 77, 1, 101);
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 77, 1, 102);
/// Connections that are being opened at the same time.
const AT_ONCE: usize = 16;
/// The longest that opening them may take.
const LIMIT: Duration = Duration::from_secs(300);

fn main() -> Outcome {
    let (mut full, mut connections, mut server) = (false, None, None);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--bench" => full = true,
            "--connections" => connections = Some(words.next().unwrap_or_default().parse()?),
            "--server" => server = words.next(),
            _ => {}
        }
    }
    if let Some(peer_mac) = server {
        return serve(&peer_mac);
    }
    let connections = connections.unwrap_or(if full { 10_000 } else { 20 });
    if let Err(error) = lab::enter(&EnterOptions::new()) {
        println!("SKIPPED: {error}");
        return Ok(());
    }
    for embedding in [Embedding::Tls13, Embedding::None] {
        measure(embedding, connections)?;
    }
    Ok(())
}

fn options(own: Ipv4Addr, peer: Ipv4Addr, peer_mac: [u8; 6]) -> Outcome<StackOptions> {
    let device = DeviceOptions::Interface { name: "link1".to_owned(), vnet_header: false };
    let address = InterfaceAddress::new(IpAddr::V4(own), 24)?;
    let mut options = StackOptions::new(device, vec![address]);
    options.neighbours = vec![(peer.into(), MacAddr { 0: peer_mac })];
    Ok(options)
}

fn measure(embedding: Embedding, connections: usize) -> Outcome {
    let options_of_lab = LabOptions { backend: Backend::Direct, ..LabOptions::default() };
    let mut lab = Lab::new(options_of_lab)?;
    let (client, server) = (lab.add_node("client")?, lab.add_node("server")?);
    let link = lab.connect(&client, &server, &Path::default())?;
    let [here, there] = link.ends().clone();
    let mac: Vec<String> = here.mac.iter().map(u8::to_string).collect();
    // A child of the node's thread, and so in the node's namespace.
    let child = server.run(move || {
        Command::new(std::env::current_exe()?)
            .args(["--server", &mac.join(":")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
    })??;
    let mut process = Process::new(child)?;
    let root = hex(&process.line()?)?;
    let before: usize = process.ask("memory")?;
    let config = ClientConfig::new(Library::Rustls, NAME, Trust::Roots(vec![root]));
    let tls = Client::new(&config)?;
    let opening = client.spawn(move || open(here_options(there.mac), tls, embedding, connections));
    let (streams, took) = opening.join_within(LIMIT)??;
    let served: usize = process.ask("served")?;
    let after: usize = process.ask("memory")?;
    println!(
        "{connections} connections ({embedding}), {served} at the server: {:.1} MB resident, {:.1} \
         MB before, {:.2} kB each; opened in {:.1} s, {:.0}/s on the machine",
        after as f64 / 1e6,
        before as f64 / 1e6,
        after.saturating_sub(before) as f64 / 1e3 / connections as f64,
        took.as_secs_f64(),
        connections as f64 / took.as_secs_f64()
    );
    if served != connections {
        return Err(format!("{served} of {connections} are open").into());
    }
    let verdict = if after < 200_000_000 { "reached" } else { "MISSED" };
    println!("  required less than 200 MB: {verdict}");
    // Ended by their node, on whose runtime they live.
    client.run(move || drop(streams))?;
    Ok(())
}

fn here_options(peer_mac: [u8; 6]) -> Outcome<StackOptions> {
    options(CLIENT, SERVER, peer_mac)
}

/// Opens them, some at a time; each has exchanged a word.
async fn open(
    options: Outcome<StackOptions>,
    tls: Client,
    embedding: Embedding,
    connections: usize,
) -> Outcome<(Vec<SslmTcpStream>, Duration)> {
    let stack = Stack::open(options?)?;
    let to = SocketAddr::from((SERVER, PORT));
    let began = Instant::now();
    let mut openers = tokio::task::JoinSet::new();
    for number in 0..AT_ONCE {
        let share = connections / AT_ONCE + usize::from(number < connections % AT_ONCE);
        let (stack, tls) = (stack.clone(), tls.clone());
        openers.spawn(async move {
            let mut streams = Vec::with_capacity(share);
            for _ in 0..share {
                let options = ConnectOptions { embedding, ..ConnectOptions::default() };
                let mut stream = SslmTcpStream::connect_ssl(&stack, to, &tls, options).await?;
                stream.write_all(b"word").await?;
                stream.read_exact(&mut [0; 4]).await?;
                streams.push(stream);
            }
            Outcome::Ok(streams)
        });
    }
    let mut streams = Vec::with_capacity(connections);
    while let Some(opened) = openers.join_next().await {
        streams.extend(opened??);
    }
    Ok((streams, began.elapsed()))
}

/// The server's process, which answers questions on its standard input. Killed when dropped.
struct Process {
    child: Child,
    input: std::process::ChildStdin,
    output: BufReader<std::process::ChildStdout>,
}

impl Process {
    fn new(mut child: Child) -> Outcome<Process> {
        let input = child.stdin.take().ok_or("no standard input")?;
        let output = child.stdout.take().ok_or("no standard output")?;
        Ok(Process { child, input, output: BufReader::new(output) })
    }

    fn line(&mut self) -> Outcome<String> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        Ok(line.trim_end().to_owned())
    }

    fn ask(&mut self, question: &str) -> Outcome<usize> {
        writeln!(self.input, "{question}")?;
        Ok(self.line()?.parse()?)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Ended already is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn hex(text: &str) -> Outcome<Vec<u8>> {
    (0..text.len() / 2)
        .map(|at| Ok(u8::from_str_radix(text.get(2 * at..2 * at + 2).unwrap_or(""), 16)?))
        .collect()
}

/// The server: prints its root certificate, then answers `memory` and `served`.
fn serve(peer_mac: &str) -> Outcome {
    let parts: Vec<u8> = peer_mac.split(':').map(str::parse).collect::<Result<_, _>>()?;
    let peer_mac = parts.try_into().map_err(|_| "no Ethernet address")?;
    let identity = Arc::new(Identity::generate(KeyType::EcdsaP256, 2, &[NAME])?);
    let root = identity.roots().into_iter().next().ok_or("no root")?;
    let tls = Server::new(&ServerConfig::new(Library::Rustls, identity))?;
    let served = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = Arc::clone(&served);
    let (ready, wait) = std::sync::mpsc::channel::<Outcome>();
    std::thread::spawn(move || {
        let run = || -> Outcome {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(async {
                let stack = Stack::open(options(SERVER, CLIENT, peer_mac)?)?;
                let to = SocketAddr::from((SERVER, PORT));
                let listener = SslmTcpListener::bind(&stack, to, tls, ListenOptions::default())?;
                ready.send(Ok(()))?;
                loop {
                    let mut stream = listener.accept().await?;
                    let count = Arc::clone(&count);
                    tokio::spawn(async move {
                        let mut word = [0; 4];
                        stream.read_exact(&mut word).await?;
                        stream.write_all(&word).await?;
                        count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                        // Idle from here on.
                        stream.read(&mut word).await
                    });
                }
            })
        };
        if let Err(error) = run() {
            eprintln!("the server: {error}");
        }
    });
    wait.recv()??;
    let line: String = root.iter().map(|byte| format!("{byte:02x}")).collect();
    println!("{line}");
    for question in std::io::stdin().lines() {
        match question?.as_str() {
            "memory" => println!("{}", resident()?),
            _ => println!("{}", served.load(std::sync::atomic::Ordering::Relaxed)),
        }
    }
    Ok(())
}

/// Bytes of memory that the process has resident.
fn resident() -> Outcome<usize> {
    let text = std::fs::read_to_string("/proc/self/statm")?;
    let pages: usize = text.split_whitespace().nth(1).ok_or("statm has no such field")?.parse()?;
    Ok(pages * rustix::param::page_size())
}
