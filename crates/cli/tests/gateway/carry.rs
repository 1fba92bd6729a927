//! curl to nginx through a pair of gateways, in round trips.

use tls::KeyType;

use super::rounds::Watch;
use super::world::{LOCAL, METRICS, NAME, NGINX_TLS, SERVE, World, value};
use super::world::{check, until};
use lab_test::{Test, TestResult};

pub fn tests() -> Vec<Test> {
    vec![
        Test::new("curl_to_nginx_takes_two_round_trips_by_tls13", tls13),
        Test::new("curl_to_nginx_takes_one_round_trip_by_0rtt", zero_rtt),
        Test::new("curl_to_nginx_takes_three_round_trips_by_paper", paper),
        Test::new("much_data_both_ways_is_the_same_data", much_data),
    ]
}

fn local(page: &str) -> String {
    format!("http://{LOCAL}/{page}")
}

/// The page by curl's own TLS over the kernel's TCP.
fn direct(world: &World, version: &[&str]) -> TestResult {
    let url = format!("https://{NAME}:{NGINX_TLS}/page");
    let resolve = format!("{NAME}:{NGINX_TLS}:{}", world.server.addr4()?);
    let roots = world.path("roots.pem");
    let arguments = ["--cacert", &roots, "--resolve", &resolve, &url];
    world.get("page", &[&arguments[..], version].concat())
}

fn tls13() -> TestResult {
    let world = World::new("50ms", KeyType::EcdsaP256)?;
    let _nginx = world.nginx()?;
    let serve = world.serve(SERVE, &[])?;
    let connect = world.connect(SERVE, &[])?;
    // ARP, once each, is no part of it.
    world.get("page", &[&local("page")])?;
    direct(&world, &[])?;
    let watch = Watch::start(&world.client)?;
    for _ in 0..3 {
        world.get("page", &[&local("page")])?;
        direct(&world, &[])?;
    }
    let rounds = watch.rounds()?;
    // TCP's handshake, TLS's, the request; and through the gateways the first two in one.
    check(rounds == [2, 3, 2, 3, 2, 3], || {
        format!("{rounds:?}\n{}\n{}", serve.log(), connect.log())
    })
}

fn zero_rtt() -> TestResult {
    let world = World::new("50ms", KeyType::EcdsaP256)?;
    let _nginx = world.nginx()?;
    let serve = world.serve(SERVE, &["--early-data", "-v"])?;
    let options = ["--profile", "0rtt", "-v", "--first-bytes-wait", "500ms"];
    let connect = world.connect(SERVE, &[&options[..], &["--metrics", METRICS]].concat())?;
    let watch = Watch::at_server(&world.server)?;
    let body = world.path("chain.pem");
    let posted = format!("@{body}");
    for _ in 0..3 {
        world.get("page", &[&local("page")])?;
        // A ticket comes a round trip after the response.
        until("a ticket", || {
            let tickets = value(&world.metrics()?, "wiretax_gateway_tickets{");
            Ok((tickets == Some(1.0)).then_some(()))
        })?;
    }
    // A request that may not be replayed is not sent early; nginx answers a POST to a file by 405.
    let output = world.curl(&["--data-binary", &posted, &local("page")])?;
    let answer = String::from_utf8_lossy(&output.stdout).into_owned();
    let rounds = watch.rounds()?;
    let logs = || format!("{rounds:?} {answer}\n{}\n{}", serve.log(), connect.log());
    check(answer.contains("405"), logs)?;
    // The first has no ticket yet. nginx's answer to the last is too short to be told from a
    // handshake: its round trips are not counted to the end.
    check(rounds.get(..3) == Some(&[2, 1, 1]), logs)?;
    check(rounds.get(3).is_some_and(|rounds| *rounds >= 2), logs)
}

fn paper() -> TestResult {
    let world = World::new("50ms", KeyType::Rsa2048)?;
    let _nginx = world.nginx()?;
    let serve = world.serve(SERVE, &["--paper"])?;
    let connect = world.connect(SERVE, &["--profile", "paper"])?;
    let watch = Watch::start(&world.client)?;
    world.get("page", &[&local("page")])?;
    direct(&world, &["--tls-max", "1.2"])?;
    world.get("page", &[&local("page")])?;
    let rounds = watch.rounds()?;
    // TLS 1.2 takes two round trips, of which one rides in TCP's; resumed by a ticket, one.
    check(rounds == [3, 4, 2], || format!("{rounds:?}\n{}\n{}", serve.log(), connect.log()))
}

fn much_data() -> TestResult {
    let world = World::new("10ms", KeyType::EcdsaP256)?;
    let _nginx = world.nginx()?;
    let _serve = world.serve(SERVE, &[])?;
    let _connect = world.connect(SERVE, &[])?;
    // Two transfers on a connection, then several connections at once.
    let url = local("large");
    let twice = world.curl(&[
        "--output",
        &world.path("one"),
        &url,
        "--output",
        &world.path("two"),
        &url,
    ])?;
    check(twice.status.success(), || String::from_utf8_lossy(&twice.stderr).into_owned())?;
    let expected = std::fs::read(world.path("www/large"))?;
    for name in ["one", "two"] {
        check(std::fs::read(world.path(name))? == expected, || format!("{name} differs"))?;
    }
    let several = format!("http://{LOCAL}/large?[1-4]");
    let pattern = world.path("several-#1");
    let output =
        world.curl(&["--parallel", "--parallel-immediate", "--output", &pattern, &several])?;
    check(output.status.success(), || String::from_utf8_lossy(&output.stderr).into_owned())?;
    for number in 1..=4 {
        let same = std::fs::read(world.path(&format!("several-{number}")))? == expected;
        check(same, || format!("{number} differs"))?;
    }
    Ok(())
}
