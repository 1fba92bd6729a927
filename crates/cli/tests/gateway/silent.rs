//! One host that opens connections and sends nothing, while others are served.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tcpio::{DeviceOptions, Stack, StackOptions};
use tls::KeyType;

use super::world::{LOCAL, METRICS, NAME, SERVE, World, value};
use super::world::{check, until};
use lab_test::net::WAIT;
use lab_test::{Failure, Test, TestResult};

pub fn tests() -> Vec<Test> {
    vec![
        Test::new("a_host_of_silent_connections_locks_nobody_out", silent),
        Test::new("one_source_has_a_bound_of_open_connections", open),
    ]
}

/// The host's address, on the client's link.
const HOST: &str = "10.77.1.66/24";
/// As many handshakes as may be under way, and more: they are opened at once.
const FIRST: usize = 1500;
/// Between two of the others, at least: 200 per second at most.
const APART: Duration = Duration::from_millis(5);
/// Clients of each kind.
const CLIENTS: usize = 20;

/// The host: its stack holds the connections, so that it needs no descriptors. How many it opened is
/// in `opened`.
async fn hold_silent(opened: Arc<AtomicUsize>, stop: Arc<AtomicBool>) -> Result<(), Failure> {
    let device = DeviceOptions::Interface { name: "link1".to_owned(), vnet_header: false };
    let mut options = StackOptions::new(device, vec![HOST.parse()?]);
    options.tcp.max_connections = 100_000;
    let stack = Stack::open(options)?;
    let mut streams = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        for _ in 0..if streams.len() < FIRST { 10 } else { 1 } {
            streams.push(stack.connect(SERVE.parse()?, Default::default())?);
        }
        opened.store(streams.len(), Ordering::Relaxed);
        tokio::time::sleep(APART).await;
    }
    Ok(())
}

/// A client on the client's node: how long it took, in seconds, if it got the page. The node goes on
/// with the silent host meanwhile.
fn client(world: &World, arguments: &[&str]) -> TestResult<Option<f64>> {
    let got = world.path("got");
    let form = ["--silent", "--max-time", "10", "--output", &got, "--write-out", "%{time_total}\n"];
    let mut curl = world.start(&world.client, "curl", "curl", &[&form, arguments].concat())?;
    if curl.end()? != Some(0) {
        println!("a client gave up after {} s", curl.log().trim());
        return Ok(None);
    }
    check(std::fs::read(got)? == std::fs::read(world.path("www/page"))?, || "other".to_owned())?;
    Ok(Some(curl.log().trim().parse()?))
}

fn silent() -> TestResult {
    let world = World::new("10ms", KeyType::EcdsaP256)?;
    let _nginx = world.nginx()?;
    // No silent handshake ends by itself while clients are served.
    let options = ["--handshake-timeout", "10min", "--metrics", METRICS];
    let serve = world.serve(SERVE, &options)?;
    let connect = world.connect(SERVE, &[])?;
    let (opened, stop) = (Arc::<AtomicUsize>::default(), Arc::<AtomicBool>::default());
    let host = {
        let (opened, stop) = (Arc::clone(&opened), Arc::clone(&stop));
        world.client.spawn(move || hold_silent(opened, stop))
    };
    until(
        "the silent connections",
        || Ok((opened.load(Ordering::Relaxed) >= FIRST).then_some(())),
    )?;
    let roots = world.path("roots.pem");
    let address = SERVE.split(':').next().unwrap_or_default();
    let resolve = format!("{NAME}:443:{address}");
    let by_tls = format!("https://{NAME}/page");
    let by_gateway = format!("http://{LOCAL}/page");
    for (kind, arguments) in [
        ("TCP, then TLS", &["--cacert", &roots, "--resolve", &resolve, &by_tls][..]),
        ("TLS in the SYN", &[&by_gateway]),
    ] {
        let (before, began) = (opened.load(Ordering::Relaxed), Instant::now());
        let mut took = Vec::new();
        for _ in 0..CLIENTS {
            match client(&world, arguments)? {
                Some(seconds) => took.push(seconds),
                None => break,
            }
        }
        took.sort_by(f64::total_cmp);
        let served = took.len();
        let rate = (opened.load(Ordering::Relaxed) - before) as f64 / began.elapsed().as_secs_f64();
        println!(
            "{kind}: {served} of {CLIENTS} clients served, median {:.3} s, longest {:.3} s, beside \
             {rate:.0} silent connections per second from one host",
            took.get(served / 2).unwrap_or(&f64::NAN),
            took.last().unwrap_or(&f64::NAN)
        );
        check(served == CLIENTS, || format!("{}\n{}", serve.log(), connect.log()))?;
    }
    stop.store(true, Ordering::Relaxed);
    host.join_within(WAIT)??;
    let page = world.metrics_of(&world.server)?;
    let displaced = |limit: &str| {
        value(
            &page,
            &format!(
                "wiretax_gateway_handshakes_displaced_total{{role=\"serve\",limit=\"{limit}\""
            ),
        )
    };
    // All the while SYNs with data were taken.
    let embedded = "wiretax_gateway_connections_total{role=\"serve\",carried=\"embedded\"";
    check(value(&page, embedded) == Some(CLIENTS as f64), || page.clone())?;
    // All of them its own.
    check(displaced("all") == Some(0.0) && displaced("source") > Some(1000.0), || page.clone())
}

/// Connections whose handshake is over, and that send nothing either.
fn open() -> TestResult {
    let world = World::new("10ms", KeyType::EcdsaP256)?;
    let _nginx = world.nginx()?;
    let options = ["--max-connections", "8", "--max-per-source", "3", "--metrics", METRICS];
    let _serve = world.serve(SERVE, &options)?;
    let connect = world.connect(SERVE, &[])?;
    let holding = "for n in 1 2 3 4 5 6 7 8; do exec {fd}<>/dev/tcp/127.0.0.1/8080; echo GET >&$fd; \
                   done; echo held; sleep 600";
    let host = world.start(&world.client, "host", "bash", &["-c", holding])?;
    host.wait_for("held")?;
    let read = |name: &str| -> TestResult<Option<f64>> {
        Ok(value(&world.metrics_of(&world.server)?, &format!("wiretax_gateway_{name}{{")))
    };
    until("refusals", || {
        let refused = read("refused_source_limit_total")?;
        Ok((refused == Some(5.0)).then_some(()))
    })
    .map_err(|error| format!("{error}\n{}", connect.log()))?;
    check(read("connections_open")? == Some(3.0), || "others are open".to_owned())?;
    // The machine's own address is another source.
    let roots = world.path("roots.pem");
    let address = SERVE.split(':').next().unwrap_or_default();
    let resolve = format!("{NAME}:443:{address}");
    world.get("page", &["--cacert", &roots, "--resolve", &resolve, &format!("https://{NAME}/page")])
}
