//! Compares protocols by our own client and our own server: requests per second, and the CPU time of the server's and
//! of the client's thread per request, in turns. Each has a thread of its own; TLS 1.3, no log.
//!
//! usage: compare [ROUNDS] [REQUESTS] [BYTES] [AT_ONCE] [PROTOCOL...]
//! By default 5 rounds of 20,000 requests for 100 bytes, 100 at once on one connection, spdy/3.1 and h2.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Instant;

use futures_util::StreamExt;
use tls::{Identity, KeyType, Library, ServerConfig, Trust, Version};
use web::{
    Answer, Client, ConnectPlan, Protocol, Request, RequestHead, Server, ServerPlan, Settings,
    TlsPlan,
};

const NAME: &str = "server.test";

type Failing = Box<dyn std::error::Error>;

/// What is compared.
struct Task {
    rounds: u32,
    requests: u32,
    bytes: u64,
    at_once: usize,
    protocols: Vec<Protocol>,
}

fn task(arguments: &[String]) -> Result<Task, Failing> {
    let number = |at: usize, default: u32| -> Result<u32, Failing> {
        let given = arguments.get(at).map_or(Ok(default), |text| text.parse());
        given.map_err(|error| format!("argument {}: {error}", at + 1).into())
    };
    let protocols = arguments.get(4..).unwrap_or_default().iter();
    let protocols: Vec<Protocol> = protocols.map(|name| name.parse()).collect::<Result<_, _>>()?;
    Ok(Task {
        rounds: number(0, 5)?,
        requests: number(1, 20_000)?.max(1),
        bytes: number(2, 100)?.into(),
        at_once: number(3, 100)?.max(1) as usize,
        protocols: match protocols.is_empty() {
            true => vec![Protocol::Spdy31, Protocol::Http2],
            false => protocols,
        },
    })
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

/// What the client needs of the server's thread.
struct Serving {
    address: std::net::SocketAddr,
    /// The thread in /proc.
    thread: PathBuf,
}

/// CPU time of a thread in /proc in nanoseconds, by the kernel's count.
fn cpu(thread: &Path) -> Result<u64, Failing> {
    let text = std::fs::read_to_string(thread.join("schedstat"))?;
    Ok(text.split(' ').next().unwrap_or_default().parse()?)
}

/// The thread that asks, in /proc.
fn own_thread() -> std::io::Result<PathBuf> {
    Ok(Path::new("/proc").join(std::fs::read_link("/proc/thread-self")?))
}

/// Serves until the process ends.
fn serve(
    identity: Arc<Identity>,
    task: &Task,
    ready: &mpsc::Sender<Serving>,
) -> Result<(), Failing> {
    let bytes = task.bytes;
    let mut plan = ServerPlan::new(Arc::new(move |_: &RequestHead<'_>| Answer::new(bytes)));
    plan.tls = Some(TlsPlan {
        addresses: vec![([127, 0, 0, 1], 0).into()],
        config: ServerConfig::new(Library::Rustls, identity),
        protocols: task.protocols.clone(),
        user_tcp: None,
    });
    plan.settings.max_concurrent_streams = u32::try_from(task.at_once)?.max(100);
    plan.log_capacity = 0;
    let thread = own_thread()?;
    tokio::task::LocalSet::new().block_on(&runtime()?, async {
        let server = Server::start(plan)?;
        let address = server.addresses().first().copied().ok_or("there is no address")?;
        ready.send(Serving { address, thread })?;
        std::future::pending().await
    })
}

/// One protocol's round: requests per second, and nanoseconds of the server's and of the client's CPU per request.
async fn round(
    client: &Client,
    serving: &Serving,
    task: &Task,
    protocol: Protocol,
) -> Result<(f64, [f64; 2]), Failing> {
    let settings = Settings::OFF;
    let plan = ConnectPlan { settings, ..ConnectPlan::new(serving.address, NAME, protocol) };
    let connection = client.connect(&plan).await?;
    let threads = [serving.thread.clone(), own_thread()?];
    let (started, before) = (Instant::now(), [cpu(&threads[0])?, cpu(&threads[1])?]);
    let mut outcomes = futures_util::stream::iter(0..task.requests)
        .map(|_| connection.request(Request::get(NAME, "/")).finish())
        .buffer_unordered(task.at_once);
    while let Some(outcome) = outcomes.next().await {
        if outcome.body != task.bytes {
            return Err(format!("{protocol}: {outcome:?}").into());
        }
    }
    let requests = f64::from(task.requests);
    let rate = requests / started.elapsed().as_secs_f64();
    let after = [cpu(&threads[0])?, cpu(&threads[1])?];
    let each = [0, 1].map(|at| after[at].saturating_sub(before[at]) as f64 / requests);
    Ok((rate, each))
}

fn run(task: Task) -> Result<(), Failing> {
    let identity = Arc::new(Identity::generate(KeyType::EcdsaP256, 1, &[NAME])?);
    let client = Client::new(&tls::ClientConfig {
        versions: vec![Version::Tls13],
        ..tls::ClientConfig::new(Library::Rustls, NAME, Trust::Roots(identity.roots()))
    })?;
    let task = Arc::new(task);
    let (sender, ready) = mpsc::channel();
    let of_server = Arc::clone(&task);
    std::thread::spawn(move || {
        if let Err(error) = serve(identity, &of_server, &sender) {
            eprintln!("error: {error}");
        }
    });
    let serving = ready.recv()?;
    tokio::task::LocalSet::new().block_on(&runtime()?, async {
        println!("protocol round requests/s server-CPU-us/request client-CPU-us/request");
        for number in 1..=task.rounds {
            for protocol in &task.protocols {
                let (rate, [server, of_client]) =
                    round(&client, &serving, &task, *protocol).await?;
                let (server, of_client) = (server / 1000.0, of_client / 1000.0);
                println!("{protocol} {number} {rate:.0} {server:.2} {of_client:.2}");
            }
        }
        Ok(())
    })
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match task(&arguments).and_then(run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
