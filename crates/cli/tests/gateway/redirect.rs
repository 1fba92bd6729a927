//! One address for the machine and the gateway: one port, or the answers of one server, are taken.

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use lab::Node;
use tls::KeyType;

use super::rounds::Watch;
use super::world::{LARGE, LOCAL, NAME, NGINX_TLS, SERVE, World, wiretax};
use super::world::{check, until};
use lab_test::{Need, Test, TestResult, program, skip};

pub fn tests() -> Vec<Test> {
    vec![
        Test::new("one_port_of_the_machine_s_address_is_enough", one_port),
        Test::new("both_sides_share_their_machine_s_address", both),
        Test::new("a_kill_leaves_no_redirect", kill),
        Test::new("a_smaller_mtu_on_the_path_is_learnt_through_the_redirect", path_mtu),
        Test::new("only_allowed_networks_reach_the_redirect", allow),
        Test::new("no_thread_keeps_a_capability", privileges),
    ]
}

/// The server's own address and the port.
const SHARED: &str = "10.77.1.2:443";

fn world() -> TestResult<World> {
    skips(World::new("10ms", KeyType::EcdsaP256)?)
}

/// The world, unless the machine has no redirects.
pub fn skips(world: World) -> TestResult<World> {
    if program("nft").is_none() {
        return skip(Need::Nft, "nft is not on this machine (Debian: apt-get install nftables)");
    }
    let tun = OpenOptions::new().read(true).write(true).open("/dev/net/tun");
    if let Err(error) = tun {
        return skip(Need::Tap, format!("/dev/net/tun may not be used: {error}"));
    }
    let tried = "nft add table netdev t '{ flags owner; }; add chain netdev t c { type filter hook \
                 ingress device \"lo\" priority 0; }; add rule netdev t c fwd ip to 192.0.0.8 device \
                 \"lo\"'";
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

/// The small link of a longer path: ICMP must say so, since neither end's interface does.
const SMALL: u32 = 1280;

fn path_mtu() -> TestResult {
    let world = skips(World::beyond("10ms", KeyType::EcdsaP256, SMALL)?)?;
    let nginx = world.nginx()?;
    let shared = format!("{}:443", world.server.addr4()?);
    let serve = world.serve(&shared, &["--redirect"])?;
    let large = |world: &World| {
        let url = format!("https://{NAME}/large");
        let resolve = format!("{NAME}:443:{}", world.server.addr4()?);
        let roots = world.path("roots.pem");
        world.get("large", &["--cacert", &roots, "--resolve", &resolve, &url])
    };
    large(&world).map_err(|error| format!("{error}\n{}", serve.log()))?;
    drop((serve, nginx));
    // The other side: the client's packets are too big.
    let backend = world.server.run(|| TcpListener::bind("127.0.0.1:80"))??;
    let _serve = world.serve(&shared, &["--redirect"])?;
    let connect = world.connect_by(&shared, &["--redirect"])?;
    let mut program = world.client.run(|| TcpStream::connect(LOCAL))??;
    let sending = std::thread::spawn(move || {
        program.write_all(&[7; LARGE])?;
        std::io::Result::Ok(program)
    });
    let (mut server, _) = backend.accept()?;
    server.set_read_timeout(Some(Duration::from_secs(20)))?;
    let mut got = vec![0; LARGE];
    server.read_exact(&mut got).map_err(|error| format!("{error}\n{}", connect.log()))?;
    check(got.iter().all(|byte| *byte == 7), || "other bytes".to_owned())?;
    let _program = sending.join().map_err(|_| "the program panicked")??;
    Ok(())
}

fn allow() -> TestResult {
    let world = world()?;
    let _nginx = world.nginx()?;
    let allowed = ["--redirect", "--allow", "198.51.100.0/24", "--allow", "10.77.1.101/32"];
    let serve = world.serve(SHARED, &allowed)?;
    let connect = world.connect(SHARED, &[])?;
    world
        .get("page", &[&format!("http://{LOCAL}/page")])
        .map_err(|error| format!("{error}\n{}\n{}", serve.log(), connect.log()))?;
    // Packets of others stay with the kernel, where nobody listens.
    check(https(&world, 443).is_err(), || "the kernel's own address is not allowed".to_owned())?;
    let said = serve.log();
    check(
        said.contains(
            "--redirect: packets from the networks of --allow to 10.77.1.2:443 bypass this",
        ) && said.contains("hint"),
        || said.clone(),
    )
}

/// What the kernel says of every thread of a process, one line a thread and value.
fn status(world: &World, node: &Node, pid: u32) -> TestResult<String> {
    let script = format!(
        "grep -hE '^(Cap|Uid|Gid|Groups|NoNewPrivs)' /proc/{pid}/task/*/status; \
         cat /proc/{pid}/task/*/children"
    );
    let output = world.command(node, "sh", &["-c", &script])?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn privileges() -> TestResult {
    let world = world()?;
    let _nginx = world.nginx()?;
    // The lab of an ordinary user has one user only, who is root there.
    let users = std::fs::read_to_string("/proc/self/uid_map")?;
    let one = users.split_whitespace().last().is_some_and(|count| count == "1");
    {
        let mut serve = world.serve(SHARED, &["--redirect"])?;
        let mut connect = world.connect_by(SHARED, &["--redirect"])?;
        let other = world.serve(SERVE, &[])?;
        let page = format!("http://{LOCAL}/page");
        world.get("page", &[&page]).map_err(|e| format!("{e}\n{}", connect.log()))?;
        for (node, gateway) in
            [(&world.server, &serve), (&world.client, &connect), (&world.server, &other)]
        {
            let found = status(&world, node, gateway.child.id())?;
            check(found.contains("NoNewPrivs:\t1"), || found.clone())?;
            for line in found.lines() {
                let (name, value) = line.split_once(":\t").unwrap_or((line, ""));
                let good = match name {
                    "NoNewPrivs" => value == "1",
                    "Uid" | "Gid" => one || !value.split('\t').any(|id| id == "0"),
                    "Groups" => one || value.trim().is_empty(),
                    // CapInh, CapPrm, CapEff, CapBnd, CapAmb; a child would have a line of its own.
                    _ => value == "0000000000000000",
                };
                check(good, || format!("{line}\n{found}\n{}", gateway.log()))?;
            }
        }
        serve.signal("-KILL")?;
        connect.signal("-TERM")?;
        check(serve.end()?.is_none() && connect.end()? == Some(0), || connect.log())?;
        none_left(&world, &world.server)?;
        none_left(&world, &world.client)?;
    }
    Ok(())
}
