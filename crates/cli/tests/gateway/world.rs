//! Two machines, a link of 50 ms between them, nginx on one, and gateways on both.

use std::fs::{self, File};
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::time::Duration;

use lab::{Backend, Lab, LabOptions, Link, LinkOptions, Node};
use tempfile::TempDir;
use tls::{Identity, KeyType};

use lab_test::{Need, TestResult, program, skip};

/// The name that the certificate carries.
pub const NAME: &str = "server.test";
/// The serving gateway's own address.
pub const SERVE: &str = "10.77.1.102:443";
/// The connecting gateway's own address.
pub const OWN: &str = "10.77.1.101/24";
/// Where programs find the connecting gateway.
pub const LOCAL: &str = "127.0.0.1:8080";
/// Where a gateway tells its figures, on loopback.
pub const METRICS: &str = "127.0.0.1:9464";
/// nginx's own TLS, over the kernel's TCP.
pub const NGINX_TLS: u16 = 4443;
/// Bytes of the file `page`: more than any server's handshake, less than an initial window.
pub const PAGE: usize = 12_000;
/// Bytes of the file `large`.
pub const LARGE: usize = 2_000_000;

/// The two machines. Nothing of them outlives the process.
pub struct World {
    pub folder: Arc<TempDir>,
    pub client: Node,
    pub server: Node,
    /// Where there is nothing between.
    link: Option<Link>,
    /// Last: the nodes' processes go with it.
    _lab: Lab,
}

/// A program that runs on a node. It is killed when this is dropped.
pub struct Running {
    pub child: Child,
    log: PathBuf,
}

impl World {
    /// Enters the lab: to be called first.
    pub fn new(rtt: &str, key: KeyType) -> TestResult<World> {
        World::with(rtt, key, None)
    }

    /// With two routers in between, and a link of this MTU between those.
    pub fn beyond(rtt: &str, key: KeyType, mtu: u32) -> TestResult<World> {
        World::with(rtt, key, Some(mtu))
    }

    fn with(rtt: &str, key: KeyType, between: Option<u32>) -> TestResult<World> {
        lab_test::net::enter()?;
        let mut lab =
            Lab::new(LabOptions { seed: 7, backend: Backend::Veth, ..LabOptions::default() })?;
        let client = lab.add_node("client")?;
        let server = lab.add_node("server")?;
        let path = linkmodel::Path::symmetric(rtt.parse()?);
        let link = match between {
            None => Some(lab.connect(&client, &server, &path)?),
            Some(mtu) => {
                route(&mut lab, &client, &server, &path, mtu)?;
                None
            }
        };
        let folder = Arc::new(tempfile::tempdir()?);
        fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755))?;
        let world = World { folder, client, server, link, _lab: lab };
        // The lab's links have no ARP; ours is to find the kernel, and the kernel us. Behind routers
        // gateways have no address of their own.
        for node in [&world.client, &world.server].into_iter().filter(|_| between.is_none()) {
            world.command(node, "ip", &["link", "set", "dev", "link1", "arp", "on"])?;
        }
        world.write_identity(key)?;
        world.write_pages()?;
        Ok(world)
    }

    /// Changes what the link is like.
    pub fn set_path(&self, path: &linkmodel::Path) -> TestResult<()> {
        let link = self.link.as_ref().ok_or("there is more than one link")?;
        Ok(link.set_path(path)?)
    }

    pub fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn write_identity(&self, key: KeyType) -> TestResult<()> {
        let identity = Identity::generate(key, 1, &[NAME])?;
        fs::write(self.path("chain.pem"), identity.chain_pem()?)?;
        fs::write(self.path("key.pem"), identity.private_key_pem()?)?;
        fs::set_permissions(self.path("key.pem"), PermissionsExt::from_mode(0o600))?;
        fs::write(self.path("roots.pem"), identity.root_pem()?)?;
        Ok(())
    }

    fn write_pages(&self) -> TestResult<()> {
        fs::create_dir(self.path("www"))?;
        for (name, len) in [("page", PAGE), ("large", LARGE)] {
            let bytes: Vec<u8> =
                (0..len as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
            fs::write(self.path(&format!("www/{name}")), bytes)?;
        }
        Ok(())
    }

    /// Starts nginx on the server: plaintext on loopback, TLS on the kernel's own address.
    pub fn nginx(&self) -> TestResult<Running> {
        let Some(nginx) = program("nginx") else {
            return skip(
                Need::Nginx,
                "nginx is not on this machine (Debian: apt-get install nginx)",
            );
        };
        let (own, folder) = (self.server.addr4()?, self.folder.path().display());
        let config = format!(
            "daemon off; master_process off; pid {folder}/nginx.pid; error_log stderr warn;
             events {{ worker_connections 256; }}
             http {{
               access_log off; keepalive_timeout 5s;
               client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
               fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi;
               scgi_temp_path {folder}/scgi;
               server {{
                 listen 127.0.0.1:80; listen {own}:{NGINX_TLS} ssl; root {folder}/www;
                 ssl_certificate {folder}/chain.pem; ssl_certificate_key {folder}/key.pem;
                 ssl_protocols TLSv1.2 TLSv1.3;
               }}
             }}"
        );
        let file = self.path("nginx.conf");
        fs::write(&file, config)?;
        let error_log = self.path("nginx-start.log");
        let running = self.start(
            &self.server,
            "nginx",
            &nginx,
            &["-e", &error_log, "-p", &self.path(""), "-c", &file],
        )?;
        let connects = "exec 3<>/dev/tcp/127.0.0.1/80";
        until("nginx", || {
            let tried = self.command(&self.server, "bash", &["-c", connects])?;
            Ok(tried.status.success().then_some(()))
        })
        .map_err(|error| format!("{error}\n{}", running.log()))?;
        Ok(running)
    }

    /// What the connecting gateway tells at [`METRICS`].
    pub fn metrics(&self) -> TestResult<String> {
        self.metrics_of(&self.client)
    }

    /// What the gateway on a node tells there.
    pub fn metrics_of(&self, node: &Node) -> TestResult<String> {
        let url = format!("http://{METRICS}/metrics");
        let output = self.command(node, "curl", &["--silent", "--max-time", "30", &url])?;
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Starts the serving gateway with these options besides.
    pub fn serve(&self, listen: &str, options: &[&str]) -> TestResult<Running> {
        let (chain, key) = (self.path("chain.pem"), self.path("key.pem"));
        let all = [
            &["gateway", "serve", "--listen", listen, "--to", "127.0.0.1:80"][..],
            &["--certificate", &chain, "--key", &key],
            options,
        ];
        let running = self.start(&self.server, "serve", wiretax(), &all.concat())?;
        running.wait_for("serving")?;
        Ok(running)
    }

    /// Starts the connecting gateway, with an address of its own.
    pub fn connect(&self, to: &str, options: &[&str]) -> TestResult<Running> {
        self.connect_by(to, &[&["--address", OWN], options].concat())
    }

    /// Starts the connecting gateway.
    pub fn connect_by(&self, to: &str, options: &[&str]) -> TestResult<Running> {
        let roots = self.path("roots.pem");
        let all = [
            &["gateway", "connect", "--listen", LOCAL, "--to", to][..],
            &["--name", NAME],
            if options.contains(&"--ca") { &[][..] } else { &["--ca", &roots] },
            options,
        ];
        let running = self.start(&self.client, "connect", wiretax(), &all.concat())?;
        running.wait_for("connecting")?;
        Ok(running)
    }

    /// Starts a program on a node, its output in a file.
    pub fn start(
        &self,
        node: &Node,
        name: &str,
        program: &str,
        arguments: &[&str],
    ) -> TestResult<Running> {
        let log = (0..).map(|number| self.folder.path().join(format!("{name}-{number}.log")));
        let log = log.into_iter().find(|log| !log.exists()).ok_or("no name for a log")?;
        let file = File::create(&log)?;
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        command.env("NO_COLOR", "1").env_remove("RUST_LOG");
        let child = node.run(move || command.spawn())??;
        Ok(Running { child, log })
    }

    /// Runs a program on a node to its end.
    pub fn command(&self, node: &Node, program: &str, arguments: &[&str]) -> TestResult<Output> {
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).env("NO_COLOR", "1").env_remove("RUST_LOG");
        Ok(node.run(move || command.output())??)
    }

    /// What curl on the client gets.
    pub fn curl(&self, arguments: &[&str]) -> TestResult<Output> {
        if program("curl").is_none() {
            return skip(Need::Curl, "curl is not on this machine");
        }
        let all = [&["--silent", "--show-error", "--max-time", "30"], arguments].concat();
        self.command(&self.client, "curl", &all)
    }

    /// A page of nginx's, by a URL: the bytes are compared.
    pub fn get(&self, page: &str, arguments: &[&str]) -> TestResult<()> {
        let output = self.curl(arguments)?;
        let expected = fs::read(self.path(&format!("www/{page}")))?;
        if !output.status.success() || output.stdout != expected {
            let (got, said) = (output.stdout.len(), String::from_utf8_lossy(&output.stderr));
            return Err(format!("curl {arguments:?}: {got} bytes, {said}").into());
        }
        Ok(())
    }
}

/// Client, router, small link, router, server.
fn route(
    lab: &mut Lab,
    client: &Node,
    server: &Node,
    path: &linkmodel::Path,
    mtu: u32,
) -> TestResult<()> {
    let (near, far) = (lab.add_node("near")?, lab.add_node("far")?);
    let small = LinkOptions { mtu, ..LinkOptions::default() };
    let plain = linkmodel::Path::default();
    let first = lab.connect(client, &near, &plain)?;
    let middle = lab.connect_with(&near, &far, path, &small)?;
    let last = lab.connect(&far, server, &plain)?;
    let networks = [&first, &last].map(|link| link.ends()[0].addr4());
    for (node, to, by) in [
        (client, &networks[1], &first.ends()[1]),
        (&near, &networks[1], &middle.ends()[1]),
        (&far, &networks[0], &middle.ends()[0]),
        (server, &networks[0], &last.ends()[0]),
    ] {
        let [a, b, c, _] = to.as_ref().map_err(|error| error.to_string())?.octets();
        node.add_route(Ipv4Addr::new(a, b, c, 0).into(), 24, by.addr4()?.into())?;
    }
    // ICMP comes from the routers' address on the small link.
    client.add_route(Ipv4Addr::new(10, 77, 2, 0).into(), 24, first.ends()[1].addr4()?.into())?;
    server.add_route(Ipv4Addr::new(10, 77, 2, 0).into(), 24, last.ends()[0].addr4()?.into())?;
    for router in [&near, &far] {
        router.sysctl("net.ipv4.ip_forward", "1")?;
    }
    Ok(())
}

impl Running {
    /// What it printed so far.
    pub fn log(&self) -> String {
        fs::read(&self.log).map_or_else(
            |error| error.to_string(),
            |bytes| String::from_utf8_lossy(&bytes).into_owned(),
        )
    }

    /// Waits until it has printed this.
    pub fn wait_for(&self, text: &str) -> TestResult<()> {
        let pid = self.child.id();
        until(text, || {
            if self.log().contains(text) {
                return Ok(Some(()));
            }
            match ended(pid) {
                true => Err(format!("it ended before it said `{text}`").into()),
                false => Ok(None),
            }
        })
        .map_err(|error| format!("{error}; it said:\n{}", self.log()).into())
    }

    pub fn signal(&self, signal: &str) -> TestResult<()> {
        let sent = Command::new("kill").args([signal, &self.child.id().to_string()]).status()?;
        if sent.success() { Ok(()) } else { Err("no signal sent".into()) }
    }

    /// Waits for its end: its exit status.
    pub fn end(&mut self) -> TestResult<Option<i32>> {
        let status = until("its end", || Ok(self.child.try_wait()?));
        Ok(status.map_err(|error| format!("{error}; it said:\n{}", self.log()))?.code())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Ended already is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A zombie, or gone.
fn ended(pid: u32) -> bool {
    let state = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    state
        .rsplit(')')
        .next()
        .is_none_or(|rest| rest.trim_start().starts_with('Z') || rest.is_empty())
}

pub fn wiretax() -> &'static str {
    env!("CARGO_BIN_EXE_wiretax")
}

/// Ends a test as failed unless this holds.
pub fn check(holds: bool, otherwise: impl FnOnce() -> String) -> TestResult {
    if holds { Ok(()) } else { Err(otherwise().into()) }
}

/// Looks every few milliseconds until `look` finds something, for a bounded time.
pub fn until<T>(what: &str, look: impl FnMut() -> TestResult<Option<T>>) -> TestResult<T> {
    lab_test::until(what, Duration::from_secs(30), look)
}

/// The first value in a page of metrics whose line begins so.
pub fn value(page: &str, name: &str) -> Option<f64> {
    let line = page.lines().find(|line| line.starts_with(name))?;
    line.rsplit(' ').next()?.parse().ok()
}
