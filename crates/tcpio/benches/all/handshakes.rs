//! Handshakes a second and processor through two stacks on a bare veth pair, with a scripted engine
//! in TLS's place: 1200 bytes on the SYN, a flight of 3000 on and behind the SYN-ACK, 80 with the ACK:
//! `cargo bench -p tcpio -- handshakes [--rounds N --seconds S]`.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use lab_test::TestResult;
use lab_test::net::WAIT;
use lab_test::net::peers::{PORT, open_on, our_addresses, stack_options};
use tcp::{ConnectOptions, ListenOptions, SynWithData};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::{judge, support};

const HELLO: usize = 1200;
const FLIGHT: usize = 3000;
const FINISHED: usize = 80;
/// Connections that are being opened at the same time.
const AT_ONCE: usize = 32;

pub fn main() -> TestResult {
    let arguments = support::arguments(5, Duration::from_secs(2))?;
    println!("handshakes with a scripted engine, {:?} each:", arguments.time);
    let (mut rates, mut per_core) = (Vec::new(), Vec::new());
    for _ in 0..arguments.rounds {
        let (rate, server) = measure(arguments.time)?;
        rates.push(rate);
        per_core.push(server);
    }
    judge::row("both sides, a processor each", &rates, "/s")?;
    let core = judge::row("server, a second of its CPU time", &per_core, "/s")?;
    judge::required("handshakes a second and core", core, 2000.0);
    Ok(())
}

fn admit(_: &SynWithData<'_>) -> bool {
    true
}

/// Handshakes a second, and a second of the server's CPU time.
fn measure(time: Duration) -> TestResult<(f64, f64)> {
    let pair = support::direct(false)?;
    let config = tcp::Config::default;
    let client = open_on(&pair.client, stack_options(&pair.client, &pair.server, config())?)?;
    let server = open_on(&pair.server, stack_options(&pair.server, &pair.client, config())?)?;
    let to = SocketAddr::from((our_addresses(&pair.server)?.0, PORT));
    let options = ListenOptions { admit, ..ListenOptions::default() };
    let listening = pair.server.spawn(move || async move { server.listen(to, options) });
    let listener = listening.join_within(WAIT)??;
    drop(pair.server.spawn(move || async move {
        loop {
            let mut stream = listener.accept().await?;
            tokio::spawn(async move {
                stream.read_exact(&mut [0; HELLO]).await?;
                stream.write_all(&[2; FLIGHT]).await?;
                stream.answer();
                stream.read_exact(&mut [0; FINISHED]).await?;
                stream.write_all(b"done").await?;
                stream.read(&mut [0]).await
            });
        }
        #[allow(unreachable_code, reason = "names the type")]
        TestResult::Ok(())
    }));
    let before = pair.server.cpu_time().ok_or("the server has ended")?;
    let done = pair.client.spawn(move || async move {
        let until = Instant::now() + time;
        let mut clients = tokio::task::JoinSet::new();
        for _ in 0..AT_ONCE {
            let client = client.clone();
            clients.spawn(async move {
                let mut count = 0_u32;
                while Instant::now() < until {
                    let syn_data = vec![1; HELLO];
                    let options = ConnectOptions { syn_data, ..ConnectOptions::default() };
                    let mut stream = client.connect(to, options)?;
                    stream.read_exact(&mut [0; FLIGHT]).await?;
                    stream.write_all(&[3; FINISHED]).await?;
                    stream.read_exact(&mut [0; 4]).await?;
                    // The ports would not last for orderly ends.
                    stream.abort();
                    count += 1;
                }
                std::io::Result::Ok(count)
            });
        }
        let mut count = 0;
        while let Some(one) = clients.join_next().await {
            count += one??;
        }
        TestResult::Ok(count)
    });
    let began = Instant::now();
    let count = f64::from(done.join_within(WAIT + time)??);
    let wall = began.elapsed().as_secs_f64();
    let cpu = pair.server.cpu_time().ok_or("the server has ended")?.saturating_sub(before);
    Ok((count / wall, count / cpu.as_secs_f64()))
}
