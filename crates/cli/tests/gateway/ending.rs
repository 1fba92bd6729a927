//! How gateways end, and the limits that they keep.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use tls::KeyType;

use super::world::{LOCAL, METRICS, OWN, SERVE, World, wiretax};
use super::world::{check, until};
use lab_test::{Test, TestResult};

pub fn tests() -> Vec<Test> {
    vec![
        Test::new("open_connections_may_end_after_sigterm", drain),
        Test::new("draining_has_a_bound", bound),
        Test::new("a_second_signal_ends_it_at_once", second),
        Test::new("beyond_the_limit_connections_wait", limit),
        Test::new("a_server_behind_that_is_gone_is_an_error_of_a_line", no_backend),
        Test::new("log_lines_can_be_json", json),
    ]
}

/// A server behind the gateway that answers each connection when it is told to.
fn backend(world: &World) -> TestResult<TcpListener> {
    Ok(world.server.run(|| TcpListener::bind("127.0.0.1:80"))??)
}

/// A program's connection by way of the gateways, and the server's end of it.
fn opened(world: &World, backend: &TcpListener) -> TestResult<(TcpStream, TcpStream)> {
    let program = world.client.run(|| -> std::io::Result<TcpStream> {
        let mut stream = TcpStream::connect(LOCAL)?;
        stream.set_read_timeout(Some(Duration::from_secs(20)))?;
        stream.write_all(b"hello")?;
        Ok(stream)
    })??;
    let (mut server, _) = backend.accept()?;
    let mut hello = [0; 5];
    server.read_exact(&mut hello)?;
    check(&hello == b"hello", || format!("{hello:?}"))?;
    Ok((program, server))
}

fn refused(world: &World) -> TestResult<bool> {
    Ok(world.client.run(|| TcpStream::connect(LOCAL).is_err())?)
}

fn drain() -> TestResult {
    let world = World::new("10ms", KeyType::EcdsaP256)?;
    let backend = backend(&world)?;
    let mut serve = world.serve(SERVE, &[])?;
    let mut connect = world.connect(SERVE, &[])?;
    let (mut program, mut server) = opened(&world, &backend)?;
    for gateway in [&serve, &connect] {
        gateway.signal("-TERM")?;
        gateway.wait_for("no new connections; 1 open")?;
    }
    until("nobody listens", || Ok(refused(&world)?.then_some(())))?;
    server.write_all(b"late answer")?;
    drop(server);
    let mut got = String::new();
    program.read_to_string(&mut got)?;
    check(got == "late answer", || got.clone())?;
    drop(program);
    for gateway in [&mut serve, &mut connect] {
        check(gateway.end()? == Some(0), || gateway.log())?;
        check(!gateway.log().contains("cut off"), || gateway.log())?;
    }
    Ok(())
}

fn bound() -> TestResult {
    let world = World::new("10ms", KeyType::EcdsaP256)?;
    let backend = backend(&world)?;
    let _serve = world.serve(SERVE, &[])?;
    let mut connect = world.connect(SERVE, &["--drain", "100ms"])?;
    let (mut program, _server) = opened(&world, &backend)?;
    connect.signal("-TERM")?;
    check(connect.end()? == Some(0), || connect.log())?;
    check(connect.log().contains("1 connection cut off"), || connect.log())?;
    // Not an end of data, as if the answer had been whole.
    let read = program.read(&mut [0; 10]);
    check(read.is_err(), || format!("{read:?}"))
}

fn second() -> TestResult {
    let world = World::new("10ms", KeyType::EcdsaP256)?;
    let backend = backend(&world)?;
    let _serve = world.serve(SERVE, &[])?;
    let mut connect = world.connect(SERVE, &[])?;
    let _open = opened(&world, &backend)?;
    connect.signal("-INT")?;
    connect.wait_for("no new connections")?;
    connect.signal("-INT")?;
    check(connect.end()? == Some(130), || connect.log())
}

fn limit() -> TestResult {
    let world = World::new("10ms", KeyType::EcdsaP256)?;
    let backend = backend(&world)?;
    let _serve = world.serve(SERVE, &[])?;
    let connect = world.connect(SERVE, &["--max-connections", "1", "--metrics", METRICS])?;
    let (program, server) = opened(&world, &backend)?;
    let waiting = world.client.run(|| TcpStream::connect(LOCAL))??;
    let page = world.metrics()?;
    let open = "wiretax_gateway_connections_open{role=\"connect\"} 1\n";
    check(page.contains(open), || format!("{page}\n{}", connect.log()))?;
    drop((program, server));
    // Now it is its turn.
    let (mut server, _) = backend.accept()?;
    server.write_all(b"x")?;
    let mut waiting = waiting;
    waiting.set_read_timeout(Some(Duration::from_secs(20)))?;
    let mut got = [0];
    waiting.read_exact(&mut got)?;
    check(&got == b"x", || format!("{got:?}"))
}

fn no_backend() -> TestResult {
    let world = World::new("10ms", KeyType::EcdsaP256)?;
    let serve = world.serve(SERVE, &[])?;
    let _connect = world.connect(SERVE, &[])?;
    let output = world.curl(&[&format!("http://{LOCAL}/")])?;
    check(!output.status.success(), || "an answer from nowhere".to_owned())?;
    serve.wait_for("check whether the server at 127.0.0.1:80 is running")
}

fn json() -> TestResult {
    let world = World::new("10ms", KeyType::EcdsaP256)?;
    let mut serve = world.serve(SERVE, &["--json"])?;
    serve.signal("-TERM")?;
    check(serve.end()? == Some(0), || serve.log())?;
    let arguments = [
        "gateway",
        "connect",
        "--listen",
        LOCAL,
        "--to",
        SERVE,
        "--address",
        OWN,
        "--interface",
        "nowhere0",
        "--insecure",
        "--json",
    ];
    let output = world.command(&world.client, wiretax(), &arguments)?;
    check(output.status.code() == Some(3), || format!("{output:?}"))?;
    let failed = String::from_utf8_lossy(&output.stderr).into_owned();
    for line in serve.log().lines().chain(failed.lines()) {
        let value: serde_json::Value =
            serde_json::from_str(line).map_err(|error| format!("{error}: {line}"))?;
        check(value["message"].is_string() && value["level"].is_string(), || line.to_owned())?;
    }
    check(failed.contains("\"level\":\"ERROR\"") && failed.contains("nowhere0"), || failed.clone())
}
