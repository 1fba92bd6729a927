//! One address for the machine and the gateway: one port, or the answers of one server, are taken.

use std::fs::OpenOptions;

use lab::Node;
use tls::KeyType;

use super::rounds::Watch;
use super::world::{LOCAL, NAME, NGINX_TLS, World, wiretax};
use super::world::{check, until};
use lab_test::{Need, Test, TestResult, program, skip};

pub fn tests() -> Vec<Test> {
    vec![
        Test::new("one_port_of_the_machine_s_address_is_enough", one_port),
        Test::new("both_sides_share_their_machine_s_address", both),
        Test::new("a_kill_leaves_no_redirect", kill),
        Test::new("a_redirect_that_is_gone_ends_the_gateway", lost),
        Test::new("without_nft_the_error_says_so", no_nft),
    ]
}

/// The server's own address and the port.
const SHARED: &str = "10.77.1.2:443";

fn world() -> TestResult<World> {
    let world = World::new("10ms", KeyType::EcdsaP256)?;
    if program("nft").is_none() {
        return skip(Need::Nft, "nft is not on this machine (Debian: apt-get install nftables)");
    }
    let tun = OpenOptions::new().read(true).write(true).open("/dev/net/tun");
    if let Err(error) = tun {
        return skip(Need::Tap, format!("/dev/net/tun may not be used: {error}"));
    }
    let tried = "nft add table netdev t '{ flags owner; }; add chain netdev t c { type filter hook \
                 ingress device \"link1\" priority 0; }; add rule netdev t c fwd ip to 192.0.0.8 \
                 device \"link1\"'";
    let output = world.command(&world.server, "sh", &["-c", tried])?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        return skip(Need::Nft, format!("this kernel has no such rules: {said}"));
    }
    Ok(world)
}

/// What is left of a gateway on a node: its table, its device.
fn traces(world: &World, node: &Node) -> TestResult<String> {
    let script = "nft list ruleset; ip -o link | grep -o 'wiretax[0-9]*'";
    let output = world.command(node, "sh", &["-c", script])?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn none_left(world: &World, node: &Node) -> TestResult {
    until("no trace of the gateway", || Ok(traces(world, node)?.is_empty().then_some(())))
}

fn https(world: &World, port: u16) -> TestResult {
    let url = format!("https://{NAME}:{port}/page");
    let resolve = format!("{NAME}:{port}:{}", world.server.addr4()?);
    let roots = world.path("roots.pem");
    world.get("page", &["--cacert", &roots, "--resolve", &resolve, &url])
}

fn one_port() -> TestResult {
    let world = world()?;
    let _nginx = world.nginx()?;
    let mut serve = world.serve(SHARED, &["--redirect"])?;
    let connect = world.connect(SHARED, &[])?;
    let logs = || format!("{}\n{}", serve.log(), connect.log());
    world
        .get("page", &[&format!("http://{LOCAL}/page")])
        .map_err(|e| format!("{e}\n{}", logs()))?;
    world
        .get("large", &[&format!("http://{LOCAL}/large")])
        .map_err(|e| format!("{e}\n{}", logs()))?;
    let watch = Watch::start(&world.client)?;
    world.get("page", &[&format!("http://{LOCAL}/page")])?;
    let rounds = watch.rounds()?;
    check(rounds == [2], || format!("{rounds:?}\n{}", logs()))?;
    https(&world, 443).map_err(|error| format!("an ordinary peer: {error}\n{}", logs()))?;
    // Every other port is the kernel's, as before.
    https(&world, NGINX_TLS)?;
    // The port is taken for as long as the gateway runs.
    let (chain, key) = (world.path("chain.pem"), world.path("key.pem"));
    let again = [
        "gateway",
        "serve",
        "--listen",
        SHARED,
        "--to",
        "127.0.0.1:80",
        "--certificate",
        &chain,
        "--key",
        &key,
        "--redirect",
    ];
    let output = world.command(&world.server, wiretax(), &again)?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    check(
        output.status.code() == Some(3) && said.contains("stop the program that has this port"),
        || said.clone(),
    )?;
    // Without --redirect the kernel's address is refused.
    let output = world.command(&world.server, wiretax(), &again[..again.len() - 1])?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    check(output.status.code() == Some(2) && said.contains("--redirect"), || said.clone())?;
    serve.signal("-TERM")?;
    check(serve.end()? == Some(0), || serve.log())?;
    none_left(&world, &world.server)
}

fn both() -> TestResult {
    let world = world()?;
    let _nginx = world.nginx()?;
    let serve = world.serve(SHARED, &["--redirect"])?;
    let mut connect = world.connect_by(SHARED, &["--redirect"])?;
    let logs = || format!("{}\n{}", serve.log(), connect.log());
    for page in ["page", "large", "page"] {
        world
            .get(page, &[&format!("http://{LOCAL}/{page}")])
            .map_err(|error| format!("{error}\n{}", logs()))?;
    }
    // The client's kernel speaks to the same server at the same time.
    https(&world, 443)?;
    https(&world, NGINX_TLS)?;
    connect.signal("-INT")?;
    check(connect.end()? == Some(0), || connect.log())?;
    none_left(&world, &world.client)
}

fn kill() -> TestResult {
    let world = world()?;
    let _nginx = world.nginx()?;
    for _ in 0..2 {
        let mut serve = world.serve(SHARED, &["--redirect"])?;
        let found = traces(&world, &world.server)?;
        check(found.contains("flags owner") && found.contains("fwd ip to"), || found.clone())?;
        serve.signal("-KILL")?;
        check(serve.end()?.is_none(), || serve.log())?;
        none_left(&world, &world.server)?;
    }
    Ok(())
}

fn lost() -> TestResult {
    let world = world()?;
    let mut serve = world.serve(SHARED, &["--redirect"])?;
    // The lab has processes of its own only.
    let killed = world.command(
        &world.server,
        "sh",
        &["-c", &format!("kill -9 $(cat /proc/{0}/task/*/children)", serve.child.id())],
    )?;
    check(killed.status.success(), || String::from_utf8_lossy(&killed.stderr).into_owned())?;
    check(serve.end()? == Some(3), || serve.log())?;
    let log = serve.log();
    check(log.contains("error: ") && log.contains("hint: start the gateway again"), || {
        log.clone()
    })?;
    none_left(&world, &world.server)
}

fn no_nft() -> TestResult {
    let world = World::new("10ms", KeyType::EcdsaP256)?;
    if OpenOptions::new().read(true).write(true).open("/dev/net/tun").is_err() {
        return skip(Need::Tap, "/dev/net/tun may not be used");
    }
    let (chain, key) = (world.path("chain.pem"), world.path("key.pem"));
    // Hidden from it alone.
    let hide =
        "for nft in /usr/sbin/nft /sbin/nft; do [ -e $nft ] && mount --bind /dev/null $nft; done";
    let script = format!(
        "{hide}; exec timeout 20 {} gateway serve --listen {SHARED} --to 127.0.0.1:80 \
         --certificate {chain} --key {key} --redirect",
        wiretax()
    );
    let output = world.command(&world.server, "unshare", &["-m", "sh", "-c", &script])?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    check(output.status.code() == Some(3), || said.clone())?;
    check(said.contains("hint: install it (Debian: apt-get install nftables)"), || said.clone())
}
