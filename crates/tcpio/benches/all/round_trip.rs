//! From a SYN with data (1200 bytes) to the data on its SYN-ACK (1000 bytes) over a bare veth pair, our
//! stack on both sides, against the same exchange by UDP sockets, A B A B:
//! `cargo bench -p tcpio -- round_trip [--rounds N --seconds S]`.

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use lab_test::TestResult;
use lab_test::net::peers::{PORT, open_on, our_addresses, stack_options};
use lab_test::net::{Pair, WAIT};
use stats::Sample;
use tcp::{ConnectOptions, ListenOptions, SynWithData};
use tcpio::{Stack, TcpListener};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::{judge, support};

const REQUEST: usize = 1200;
const ANSWER: usize = 1000;
/// How long a spinning stack looks for packets before it sleeps.
const SPIN: Duration = Duration::from_millis(5);

pub fn main() -> TestResult {
    let arguments = support::arguments(5, Duration::from_secs(1))?;
    println!("round trip of {REQUEST} and {ANSWER} bytes, {:?} each:", arguments.time);
    let names = ["SYN with data, blocking", "SYN with data, spinning", "UDP sockets, blocking"];
    let mut medians = [const { Vec::new() }; 3];
    let mut tails = [const { Vec::new() }; 3];
    for _ in 0..arguments.rounds {
        for (which, (medians, tails)) in medians.iter_mut().zip(&mut tails).enumerate() {
            let times = match which {
                0 => syns_with_data(Duration::ZERO, arguments.time)?,
                1 => syns_with_data(SPIN, arguments.time)?,
                _ => udp(arguments.time)?,
            };
            let sample = Sample::from_vec(times)?;
            medians.push(sample.median());
            tails.push(sample.quantile(0.99)?);
        }
    }
    for (name, (medians, tails)) in names.iter().zip(medians.iter().zip(&tails)) {
        judge::row(&format!("{name}, median"), medians, "us")?;
        judge::row(&format!("{name}, 99th percentile"), tails, "us")?;
    }
    Ok(())
}

fn admit(_: &SynWithData<'_>) -> bool {
    true
}

/// Round trips of SYNs with data for a time, in microseconds.
fn syns_with_data(spin: Duration, time: Duration) -> TestResult<Vec<f64>> {
    let pair = support::direct(false)?;
    let open = |node, peer| -> TestResult<Stack> {
        let mut options = stack_options(node, peer, tcp::Config::default())?;
        options.spin = spin;
        open_on(node, options)
    };
    let (client, server) = (open(&pair.client, &pair.server)?, open(&pair.server, &pair.client)?);
    let to = SocketAddr::from((our_addresses(&pair.server)?.0, PORT));
    let options = ListenOptions { admit, ..ListenOptions::default() };
    let listening = pair.server.spawn(move || async move { server.listen(to, options) });
    let listener = listening.join_within(WAIT)??;
    drop(pair.server.spawn(move || serve(listener)));
    let measured = pair.client.spawn(move || async move {
        let (mut times, until) = (Vec::new(), Instant::now() + time);
        let mut answer = vec![0; ANSWER];
        while Instant::now() < until {
            let syn_data = vec![1; REQUEST];
            let began = Instant::now();
            let options = ConnectOptions { syn_data, ..ConnectOptions::default() };
            let mut stream = client.connect(to, options)?;
            stream.read_exact(&mut answer).await?;
            times.push(began.elapsed().as_secs_f64() * 1e6);
            stream.abort();
        }
        TestResult::Ok(times)
    });
    measured.join_within(WAIT + time)?
}

async fn serve(listener: TcpListener) -> TestResult {
    let mut request = vec![0; REQUEST];
    loop {
        let mut stream = listener.accept().await?;
        stream.read_exact(&mut request).await?;
        stream.write_all(&[2; ANSWER]).await?;
        stream.answer();
        // The client resets it.
        tokio::spawn(async move { stream.read(&mut [0]).await });
    }
}

/// Round trips of datagrams for a time, in microseconds; blocking sockets on threads.
fn udp(time: Duration) -> TestResult<Vec<f64>> {
    let Pair { lab: _lab, client, server, .. } = support::direct(false)?;
    let ip = server.addr4()?;
    let socket = server.run(move || UdpSocket::bind((ip, 0)))??;
    let to = socket.local_addr()?;
    drop(server.spawn(move || async move {
        tokio::task::spawn_blocking(move || {
            let mut request = vec![0; 2000];
            // Without a word for a second, the client is done.
            socket.set_read_timeout(Some(Duration::from_secs(1)))?;
            while let Ok((_, from)) = socket.recv_from(&mut request) {
                socket.send_to(&[2; ANSWER], from)?;
            }
            std::io::Result::Ok(())
        })
        .await
    }));
    client.run(move || {
        let socket = UdpSocket::bind(("0.0.0.0", 0))?;
        socket.connect(to)?;
        socket.set_read_timeout(Some(WAIT))?;
        let (mut times, until) = (Vec::new(), Instant::now() + time);
        let mut answer = vec![0; ANSWER];
        while Instant::now() < until {
            let began = Instant::now();
            socket.send(&[1; REQUEST])?;
            socket.recv(&mut answer)?;
            times.push(began.elapsed().as_secs_f64() * 1e6);
        }
        Ok(times)
    })?
}
