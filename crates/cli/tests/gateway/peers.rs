//! Ordinary TLS peers on the gateway's port, peers that are not what they say, and strangers.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use tls::KeyType;

use super::world::{LOCAL, METRICS, NAME, NGINX_TLS, SERVE, World, value};
use super::world::{check, until};
use lab_test::{Test, TestResult};

pub fn tests() -> Vec<Test> {
    vec![
        Test::new("ordinary_tls_peers_are_served_on_the_same_port", ordinary),
        Test::new("an_ordinary_tls_server_is_reached_too", ordinary_server),
        Test::new("a_wrong_certificate_is_refused", wrong_certificate),
        Test::new("each_direction_ends_by_itself", half_close),
        Test::new("strangers_do_no_harm", strangers),
        Test::new("metrics_tell_what_was_carried", metrics),
    ]
}

fn direct(world: &World, more: &[&str]) -> TestResult {
    let url = format!("https://{NAME}/page");
    let address = SERVE.split(':').next().unwrap_or_default();
    let resolve = format!("{NAME}:443:{address}");
    let roots = world.path("roots.pem");
    world.get("page", &[&["--cacert", &roots, "--resolve", &resolve, &url][..], more].concat())
}

fn ordinary() -> TestResult {
    let world = World::new("10ms", KeyType::EcdsaP256)?;
    let _nginx = world.nginx()?;
    let serve = world.serve(SERVE, &[])?;
    for version in ["1.2", "1.3"] {
        direct(&world, &["--tls-max", version])
            .map_err(|error| format!("TLS {version}: {error}\n{}", serve.log()))?;
    }
    let roots = world.path("roots.pem");
    let script = format!(
        "printf 'GET /page HTTP/1.0\\r\\n\\r\\n' | openssl s_client -connect {SERVE} -servername \
         {NAME} -CAfile {roots} -verify_return_error -verify_hostname {NAME} -ign_eof"
    );
    let output = world.command(&world.client, "sh", &["-c", &script])?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    for part in ["TLSv1.3", "Verify return code: 0 (ok)", "HTTP/1.1 200 OK"] {
        check(text.contains(part), || format!("{part}: {text}\n{}", serve.log()))?;
    }
    Ok(())
}

/// nginx's own TLS over the kernel's TCP, which ignores data in SYNs.
fn ordinary_server() -> TestResult {
    let world = World::new("10ms", KeyType::EcdsaP256)?;
    let _nginx = world.nginx()?;
    let to = format!("{}:{NGINX_TLS}", world.server.addr4()?);
    let connect = world.connect(&to, &["--metrics", METRICS])?;
    for _ in 0..2 {
        world
            .get("page", &[&format!("http://{LOCAL}/page")])
            .map_err(|error| format!("{error}\n{}", connect.log()))?;
    }
    let page = world.metrics()?;
    let refused = "wiretax_gateway_connections_total{role=\"connect\",carried=\"refused\"} 2\n";
    check(page.contains(refused), || page.clone())
}

fn wrong_certificate() -> TestResult {
    let world = World::new("10ms", KeyType::EcdsaP256)?;
    let _nginx = world.nginx()?;
    let _serve = world.serve(SERVE, &[])?;
    let url = format!("http://{LOCAL}/page");
    // Another name, then another root.
    let other = tls::Identity::generate(KeyType::EcdsaP256, 1, &[NAME])?;
    std::fs::write(world.path("other.pem"), other.root_pem()?)?;
    for options in [&["--name", "other.test"][..], &["--ca", &world.path("other.pem")]] {
        let mut connect = match options {
            ["--name", name] => {
                let roots = world.path("roots.pem");
                let all = [
                    "gateway",
                    "connect",
                    "--listen",
                    LOCAL,
                    "--to",
                    SERVE,
                    "--name",
                    name,
                    "--ca",
                    &roots,
                    "--address",
                    super::world::OWN,
                    "--metrics",
                    METRICS,
                ];
                let running =
                    world.start(&world.client, "connect", super::world::wiretax(), &all)?;
                running.wait_for("connecting")?;
                running
            }
            _ => world.connect(SERVE, &[options, &["--metrics", METRICS]].concat())?,
        };
        let output = world.curl(&[&url])?;
        check(!output.status.success() && output.stdout.is_empty(), || connect.log())?;
        connect.wait_for("does not verify")?;
        let remedies = ["ask for a name that the certificate carries", "trust the root"];
        let log = connect.log();
        check(remedies.iter().any(|remedy| log.contains(remedy)), || log.clone())?;
        let page = world.metrics()?;
        let failed = "wiretax_gateway_failures_total{role=\"connect\",reason=\"certificate\"} 1\n";
        check(page.contains(failed), || page.clone())?;
        connect.signal("-TERM")?;
        check(connect.end()? == Some(0), || connect.log())?;
    }
    // Whoever insists gets it, and a warning.
    let roots = world.path("roots.pem");
    let all = [
        "gateway",
        "connect",
        "--listen",
        LOCAL,
        "--to",
        SERVE,
        "--name",
        "other.test",
        "--insecure",
        "--address",
        super::world::OWN,
    ];
    let connect = world.start(&world.client, "connect", super::world::wiretax(), &all)?;
    connect.wait_for("connecting")?;
    check(connect.log().contains("--insecure"), || connect.log())?;
    check(std::fs::exists(&roots)?, || roots.clone())?;
    world.get("page", &[&url])
}

/// A server that answers when the request has ended, and a client that ends its request.
fn half_close() -> TestResult {
    let world = World::new("10ms", KeyType::EcdsaP256)?;
    let backend = world.server.run(|| TcpListener::bind("127.0.0.1:80"))??;
    let answering = std::thread::spawn(move || -> std::io::Result<()> {
        let (mut stream, _) = backend.accept()?;
        let mut request = Vec::new();
        stream.read_to_end(&mut request)?;
        request.reverse();
        stream.write_all(&request)
    });
    let serve = world.serve(SERVE, &[])?;
    let connect = world.connect(SERVE, &[])?;
    let got = world.client.run(|| -> std::io::Result<Vec<u8>> {
        let mut stream = TcpStream::connect(LOCAL)?;
        stream.set_read_timeout(Some(Duration::from_secs(20)))?;
        stream.write_all(b"stressed")?;
        stream.shutdown(std::net::Shutdown::Write)?;
        let mut got = Vec::new();
        stream.read_to_end(&mut got)?;
        Ok(got)
    })?;
    let got = got.map_err(|error| format!("{error}\n{}\n{}", serve.log(), connect.log()))?;
    check(got == b"desserts", || format!("{got:?}"))?;
    answering.join().map_err(|_| "the server behind panicked")??;
    Ok(())
}

fn strangers() -> TestResult {
    let world = World::new("10ms", KeyType::EcdsaP256)?;
    let _nginx = world.nginx()?;
    let metrics = ["--metrics", METRICS];
    let serve = world.serve(SERVE, &metrics)?;
    let strange: [&'static [u8]; 5] = [
        b"GET / HTTP/1.1\r\n\r\n",
        &[0; 3000],
        &[0x16, 0x03, 0x01, 0xff, 0xff],
        &[0x16, 0x03, 0x01, 0, 5, 1, 0, 0, 1, 0],
        b"",
    ];
    let to: SocketAddr = SERVE.parse()?;
    let answers = world.client.run(move || {
        strange.map(|bytes| -> std::io::Result<()> {
            let mut stream = TcpStream::connect(to)?;
            stream.write_all(bytes)?;
            stream.shutdown(std::net::Shutdown::Write)?;
            stream.set_read_timeout(Some(Duration::from_secs(20)))?;
            // An alert, the end or a RST: not silence.
            match stream.read_to_end(&mut Vec::new()) {
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Err(error),
                _ => Ok(()),
            }
        })
    })?;
    for answer in answers {
        answer.map_err(|error| format!("{error}\n{}", serve.log()))?;
    }
    // The metrics' port has clients that never finish.
    let slow = world.server.run(|| -> std::io::Result<Vec<TcpStream>> {
        (0..12)
            .map(|_| {
                let mut stream = TcpStream::connect(METRICS)?;
                stream.write_all(b"GET /metrics HT")?;
                Ok(stream)
            })
            .collect()
    })??;
    let page =
        world.command(&world.server, "curl", &["-s", &format!("http://{METRICS}/metrics")])?;
    check(page.status.success(), || String::from_utf8_lossy(&page.stderr).into_owned())?;
    drop(slow);
    direct(&world, &[])?;
    check(!serve.log().contains("panicked"), || serve.log())
}

fn metrics() -> TestResult {
    let world = World::new("10ms", KeyType::EcdsaP256)?;
    let _nginx = world.nginx()?;
    let serve = world.serve(SERVE, &["--metrics", METRICS])?;
    let _connect = world.connect(SERVE, &["--metrics", METRICS])?;
    for _ in 0..3 {
        world.get("large", &[&format!("http://{LOCAL}/large")])?;
    }
    direct(&world, &[])?;
    let page = until("no open connection", || {
        let page = world.metrics()?;
        let open = value(&page, "wiretax_gateway_connections_open{");
        Ok((open == Some(0.0)).then_some(page))
    })?;
    for (name, least) in [
        ("wiretax_gateway_connections_total{role=\"connect\",carried=\"embedded\"}", 3.0),
        ("wiretax_gateway_handshake_seconds_count{", 3.0),
        ("wiretax_gateway_bytes_total{role=\"connect\",direction=\"from_peer\"}", 6e6),
        ("wiretax_gateway_bytes_total{role=\"connect\",direction=\"to_peer\"}", 100.0),
        ("wiretax_gateway_tickets{", 1.0),
    ] {
        check(value(&page, name) >= Some(least), || format!("{name}\n{page}"))?;
    }
    let output =
        world.command(&world.server, "curl", &["-s", &format!("http://{METRICS}/metrics")])?;
    let page = String::from_utf8_lossy(&output.stdout).into_owned();
    for (carried, count) in [("embedded", 3.0), ("sequential", 1.0)] {
        let name =
            format!("wiretax_gateway_connections_total{{role=\"serve\",carried=\"{carried}\"}}");
        check(value(&page, &name) == Some(count), || format!("{page}\n{}", serve.log()))?;
    }
    Ok(())
}
