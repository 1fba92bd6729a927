//! What goes through the proxies: a server that answers with as many bytes as it is asked for, and clients that ask.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lab_test::TestResult;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Bytes of a small response.
const SMALL: usize = 64;
/// Bytes that are written or read at once, at most.
const BLOCK: usize = 128 << 10;
/// What the server sends.
static BYTES: [u8; BLOCK] = [0x5a; BLOCK];
/// How long one exchange may take before it counts as failed.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long the proxies have for the ends of a few connections.
const BREATH: Duration = Duration::from_millis(5);
/// How long a client waits after a failure.
const PAUSE: Duration = Duration::from_millis(10);

/// Answers whoever comes, for ever: a request is the number of bytes that the response is to have.
pub async fn serve(listener: TcpListener) -> io::Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        // A client that goes away is no failure of the server's.
        tokio::spawn(async move { drop(answer(stream).await) });
    }
}

async fn answer(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    loop {
        let mut request = [0; 8];
        stream.read_exact(&mut request).await?;
        let mut left = u64::from_be_bytes(request);
        while left > 0 {
            let len = BLOCK.min(usize::try_from(left).unwrap_or(BLOCK));
            stream.write_all(&BYTES[..len]).await?;
            left -= len as u64;
        }
    }
}

async fn open(to: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(to).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// A small request and its response.
async fn ask(stream: &mut TcpStream) -> io::Result<()> {
    stream.write_all(&(SMALL as u64).to_be_bytes()).await?;
    let mut response = [0; SMALL];
    stream.read_exact(&mut response).await?;
    if response == BYTES[..SMALL] { Ok(()) } else { Err(io::ErrorKind::InvalidData.into()) }
}

/// Asks for more than can ever be read.
pub async fn ask_for_ever(stream: &TcpStream) -> io::Result<()> {
    let request = u64::MAX.to_be_bytes();
    loop {
        stream.writable().await?;
        match stream.try_write(&request) {
            Ok(len) if len == request.len() => return Ok(()),
            Ok(_) => return Err(io::ErrorKind::WriteZero.into()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

/// A connection, a request and its response; then the connection ends.
pub async fn exchange(to: SocketAddr) -> io::Result<()> {
    held(to).await.map(drop)
}

/// A connection that has had a response.
async fn held(to: SocketAddr) -> io::Result<TcpStream> {
    timeout(PATIENCE, asked(to)).await?
}

async fn asked(to: SocketAddr) -> io::Result<TcpStream> {
    let mut stream = open(to).await?;
    ask(&mut stream).await?;
    Ok(stream)
}

/// What became of connections.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counts {
    pub done: u64,
    pub failed: u64,
}

/// Connections with one response each, so many at once, one after another until the time is up.
pub async fn connections(to: SocketAddr, at_once: usize, time: Duration) -> TestResult<Counts> {
    let until = Instant::now() + time;
    let mut clients = JoinSet::new();
    for _ in 0..at_once {
        clients.spawn(async move {
            let mut counts = Counts::default();
            while Instant::now() < until {
                if exchange(to).await.is_ok() {
                    counts.done += 1;
                } else {
                    counts.failed += 1;
                    tokio::time::sleep(PAUSE).await;
                }
            }
            counts
        });
    }
    let mut sum = Counts::default();
    while let Some(counts) = clients.join_next().await {
        let counts = counts?;
        sum.done += counts.done;
        sum.failed += counts.failed;
    }
    Ok(sum)
}

/// So many connections that have had a response and stay open, opened so many at once.
pub async fn hold(to: SocketAddr, count: usize, at_once: usize) -> TestResult<Vec<TcpStream>> {
    let mut openers = JoinSet::new();
    for number in 0..at_once {
        let share = count / at_once + usize::from(number < count % at_once);
        openers.spawn(async move {
            let mut streams = Vec::with_capacity(share);
            for _ in 0..share {
                streams.push(held(to).await?);
            }
            io::Result::Ok(streams)
        });
    }
    let mut streams = Vec::with_capacity(count);
    while let Some(opened) = openers.join_next().await {
        streams.extend(opened??);
    }
    Ok(streams)
}

/// Ends connections a few at a time: a thousand ends in one instant are a burst that has its own cost, of segments that
/// are lost and sent again.
pub async fn release(streams: Vec<TcpStream>, at_once: usize) {
    let mut left = streams.into_iter().peekable();
    while left.peek().is_some() {
        left.by_ref().take(at_once).for_each(drop);
        tokio::time::sleep(BREATH).await;
    }
}

/// Bytes per second that so many connections receive together, after a while to get going. `edge` is called where
/// the counted time begins and where it ends.
pub async fn download(
    to: SocketAddr,
    connections: usize,
    time: Duration,
    mut edge: impl FnMut(),
) -> TestResult<f64> {
    let received = Arc::new(AtomicU64::new(0));
    let mut readers = JoinSet::new();
    for _ in 0..connections {
        readers.spawn(receive(to, Arc::clone(&received)));
    }
    let counted = async {
        tokio::time::sleep(time / 3).await;
        edge();
        let (from, before) = (Instant::now(), received.load(Ordering::Relaxed));
        tokio::time::sleep(time).await;
        let bytes = received.load(Ordering::Relaxed) - before;
        let rate = bytes as f64 / from.elapsed().as_secs_f64();
        edge();
        rate
    };
    tokio::select! {
        rate = counted => Ok(rate),
        Some(ended) = readers.join_next() => {
            ended??;
            Err("a download ended".into())
        }
    }
}

/// Reads for ever what a server sends for ever, and counts the bytes.
async fn receive(to: SocketAddr, received: Arc<AtomicU64>) -> io::Result<()> {
    let mut stream = open(to).await?;
    stream.write_all(&u64::MAX.to_be_bytes()).await?;
    let mut block = vec![0; BLOCK];
    loop {
        match stream.read(&mut block).await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            len => received.fetch_add(len as u64, Ordering::Relaxed),
        };
    }
}

/// Round trips of small requests on one open connection, in microseconds.
pub async fn round_trips(to: SocketAddr, count: usize) -> TestResult<Vec<f64>> {
    let mut stream = held(to).await?;
    let mut trips = Vec::with_capacity(count);
    for _ in 0..count {
        let from = Instant::now();
        timeout(PATIENCE, ask(&mut stream)).await??;
        trips.push(from.elapsed().as_secs_f64() * 1e6);
    }
    Ok(trips)
}

/// From the first SYN to the response, connection after connection, in microseconds.
pub async fn first_responses(to: SocketAddr, count: usize) -> TestResult<Vec<f64>> {
    let mut times = Vec::with_capacity(count);
    for _ in 0..count {
        let from = Instant::now();
        let stream = held(to).await?;
        times.push(from.elapsed().as_secs_f64() * 1e6);
        drop(stream);
    }
    Ok(times)
}
