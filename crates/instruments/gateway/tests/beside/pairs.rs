//! Pairs of proxies: plaintext in at one end, TLS between them, plaintext out at the other.
//!
//! All of them do the same: TLS 1.3 with AES-128-GCM and X25519, an ECDSA P-256 certificate with an intermediate that
//! the client's side verifies for its name, no resumption.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use lab::Node;
use lab_test::{TestResult, until};

use super::ours;
use super::site::{BOTH, CHAIN, DIRECT, FOLDER, KEY, LOCAL, NAME, ORIGIN, ROOT, Site, write};
use super::traffic;

/// Where the others' serving side listens: an address of the kernel's.
const SERVE: &str = "10.77.1.2:8443";
const SERVE_PORT: u16 = 8443;
/// How long a proxy may take to be ready.
const PATIENCE: Duration = Duration::from_secs(30);
/// The suite of all.
const SUITE: &str = "TLS_AES_128_GCM_SHA256";

units::named! {
    /// What stands between client and server.
    pub enum Pair: "pair of proxies" {
        /// Nothing: what clients and server take alone.
        Direct = "direct",
        /// The gateway, TLS's handshake in TCP's.
        Embedded = "wiretax-tls13",
        /// The gateway, TLS after TCP.
        Sequential = "wiretax-none",
        /// The gateway with little memory, in haste to find a peer gone.
        Tight = "wiretax-tight",
        Stunnel = "stunnel",
        Haproxy = "haproxy",
        Ghostunnel = "ghostunnel",
    }
}

/// Where the others' programs are, if not where their packages put them.
#[derive(Debug, Clone, Default)]
pub struct Programs {
    pub stunnel: Option<PathBuf>,
    pub haproxy: Option<PathBuf>,
    pub ghostunnel: Option<PathBuf>,
}

impl Programs {
    /// The program of a pair: none is needed, or it is there, or how it is installed.
    pub fn find(&self, pair: Pair) -> Result<Option<PathBuf>, String> {
        let (given, name, remedy) = match pair {
            Pair::Direct => return Ok(None),
            Pair::Embedded | Pair::Sequential | Pair::Tight => {
                return std::env::current_exe().map(Some).map_err(|error| error.to_string());
            }
            Pair::Stunnel => (&self.stunnel, "stunnel", "apt-get install stunnel4"),
            Pair::Haproxy => (&self.haproxy, "haproxy", "apt-get install haproxy"),
            Pair::Ghostunnel => (
                &self.ghostunnel,
                "ghostunnel",
                "go install github.com/ghostunnel/ghostunnel@latest, and name it by --ghostunnel",
            ),
        };
        let found = given.clone().or_else(|| lab_test::program(name).map(PathBuf::from));
        found.map(Some).ok_or_else(|| format!("{name} is not installed: left out ({remedy})"))
    }
}

/// A program that runs on a node, killed when this is dropped.
pub struct Process {
    child: Child,
    name: String,
    log: PathBuf,
}

/// A pair that carries connections.
pub struct Started {
    /// Where clients connect to.
    pub to: SocketAddr,
    /// The client's side, then the server's; none without proxies.
    pub processes: Vec<Process>,
}

impl Pair {
    /// Starts both sides and waits until a connection comes through.
    pub fn start(self, site: &Site, program: Option<&Path>) -> TestResult<Started> {
        let Some(program) = program else {
            return Ok(Started { to: DIRECT.parse()?, processes: Vec::new() });
        };
        let [connect, serve] = self.commands(program)?;
        let mut serve = Process::start(&site.server, "serve", serve)?;
        serve.wait(|serve| match self {
            Pair::Embedded | Pair::Sequential | Pair::Tight => {
                Ok(serve.said().contains(ours::READY))
            }
            _ => listens(&site.server, SERVE_PORT),
        })?;
        let mut connect = Process::start(&site.client, "connect", connect)?;
        let to = LOCAL.parse()?;
        connect.wait(|_| {
            site.on_client(move || async move { Ok(traffic::exchange(to).await.is_ok()) })
        })?;
        Ok(Started { to, processes: vec![connect, serve] })
    }

    /// The command lines of the client's side and the server's.
    fn commands(self, program: &Path) -> TestResult<[Command; 2]> {
        let with = |words: &[&str]| {
            let mut command = Command::new(program);
            command.args(words);
            command
        };
        Ok(match self {
            Pair::Direct => return Err("there is no proxy".into()),
            Pair::Embedded => {
                [with(&[ours::SIDE, ours::CONNECT, "tls13"]), with(&[ours::SIDE, ours::SERVE])]
            }
            Pair::Sequential => {
                [with(&[ours::SIDE, ours::CONNECT, "none"]), with(&[ours::SIDE, ours::SERVE])]
            }
            Pair::Tight => [
                with(&[ours::SIDE, ours::CONNECT, "tls13", ours::TIGHT]),
                with(&[ours::SIDE, ours::SERVE, "tls13", ours::TIGHT]),
            ],
            Pair::Stunnel => stunnel()?.map(|file| with(&[file.as_str()])),
            Pair::Haproxy => haproxy()?.map(|file| with(&["-db", "-q", "-f", file.as_str()])),
            Pair::Ghostunnel => ghostunnel().map(|words| {
                let mut command = with(&[]);
                command.args(words).env("GODEBUG", "tlsmlkem=0");
                command
            }),
        })
    }
}

fn path(name: &str) -> String {
    format!("{FOLDER}/{name}")
}

/// stunnel's configuration (stunnel(8)): the files of the client's side and the server's.
fn stunnel() -> TestResult<[String; 2]> {
    let common = format!(
        "foreground = yes\npid =\ndebug = err\nsocket = l:TCP_NODELAY=1\nsocket = r:TCP_NODELAY=1\n\
         [pair]\nsslVersion = TLSv1.3\nciphersuites = {SUITE}\ncurves = X25519\n\
         sessionResume = no\noptions = NO_TICKET\n"
    );
    let connect = format!(
        "{common}client = yes\naccept = {LOCAL}\nconnect = {SERVE}\nsni = {NAME}\ncheckHost = {NAME}\n\
         verifyChain = yes\nCAfile = {}\n",
        path(ROOT)
    );
    let serve = format!(
        "{common}accept = {SERVE}\nconnect = {ORIGIN}\ncert = {}\nkey = {}\n",
        path(CHAIN),
        path(KEY)
    );
    write("stunnel-connect.conf", connect)?;
    write("stunnel-serve.conf", serve)?;
    Ok(["stunnel-connect.conf", "stunnel-serve.conf"].map(path))
}

/// HAProxy's configuration: the files of the client's side and the server's.
fn haproxy() -> TestResult<[String; 2]> {
    let common = "global\n nbthread 1\n maxconn 8192\n tune.ssl.cachesize 0\n";
    let defaults =
        "defaults\n mode tcp\n timeout connect 5s\n timeout client 10m\n timeout server 10m\n";
    let connect = format!(
        "{common} ssl-default-server-options ssl-min-ver TLSv1.3 no-tls-tickets\n \
         ssl-default-server-ciphersuites {SUITE}\n{defaults}listen connect\n bind {LOCAL}\n \
         server peer {SERVE} ssl no-ssl-reuse verify required ca-file {} sni str({NAME}) verifyhost {NAME}\n",
        path(ROOT)
    );
    let serve = format!(
        "{common} ssl-default-bind-options ssl-min-ver TLSv1.3 no-tls-tickets\n \
         ssl-default-bind-ciphersuites {SUITE}\n ssl-default-bind-curves X25519\n{defaults}\
         listen serve\n bind {SERVE} ssl crt {}\n server origin {ORIGIN}\n",
        path(BOTH)
    );
    write("haproxy-connect.cfg", connect)?;
    write("haproxy-serve.cfg", serve)?;
    Ok(["haproxy-connect.cfg", "haproxy-serve.cfg"].map(path))
}

/// Ghostunnel's words: the client's side and the server's. Go's TLS 1.3 has no choice of suites; with AES in hardware it
/// takes AES-128-GCM, and its client resumes nothing.
fn ghostunnel() -> [Vec<String>; 2] {
    let words = |text: String| text.split_whitespace().map(str::to_owned).collect();
    let (root, chain, key) = (path(ROOT), path(CHAIN), path(KEY));
    let quiet = "--quiet=conns --quiet=conn-errs --quiet=handshake-errs";
    [
        words(format!(
            "client --listen {LOCAL} --target {SERVE} --cacert {root} --override-server-name {NAME} \
             --disable-authentication {quiet}"
        )),
        words(format!(
            "server --listen {SERVE} --target {ORIGIN} --cert {chain} --key {key} \
             --disable-authentication {quiet}"
        )),
    ]
}

impl Process {
    /// Starts a program on a node and its processor.
    fn start(node: &Node, role: &str, mut command: Command) -> TestResult<Process> {
        let log = Path::new(FOLDER).join(format!("{role}.log"));
        let file = File::create(&log)?;
        command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        command.env("NO_COLOR", "1").env_remove("RUST_LOG");
        let program = Path::new(command.get_program()).file_name().map(OsStr::to_os_string);
        let name = format!("{} ({role})", program.unwrap_or_default().to_string_lossy());
        let child = node.run(move || command.spawn())?;
        let child = child.map_err(|error| format!("{name} cannot be started: {error}"))?;
        Ok(Process { child, name, log })
    }

    /// What it printed so far.
    fn said(&self) -> String {
        fs::read(&self.log).map_or_else(
            |error| error.to_string(),
            |text| String::from_utf8_lossy(&text).into_owned(),
        )
    }

    /// Waits until it is ready.
    fn wait(&mut self, ready: impl Fn(&Process) -> TestResult<bool>) -> TestResult {
        let waited = until("it to be ready", PATIENCE, || {
            if let Some(status) = self.child.try_wait()? {
                return Err(format!("it ended: {status}").into());
            }
            Ok(ready(self)?.then_some(()))
        });
        waited.map_err(|error| format!("{}: {error}; it said:\n{}", self.name, self.said()).into())
    }

    /// CPU time that it has used so far, in seconds; threads that have ended are in it.
    pub fn cpu(&self) -> TestResult<f64> {
        let text = fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        let (_, rest) = text.rsplit_once(')').ok_or("no name in /proc/PID/stat")?;
        // utime and stime, the fourteenth field and the next (proc(5)).
        let fields = rest.split_whitespace().skip(11).take(2).map(str::parse::<u64>);
        let ticks = fields.sum::<Result<u64, _>>()?;
        Ok(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
    }

    /// Its resident memory, in bytes.
    pub fn memory(&self) -> TestResult<f64> {
        let text = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
        let kib = line.split_whitespace().next().ok_or("no figure for VmRSS")?;
        Ok(kib.parse::<f64>()? * 1024.0)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended of itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether the kernel of a node listens for TCP connections on a port.
fn listens(node: &Node, port: u16) -> TestResult<bool> {
    // Of the node's thread's namespace.
    let table = node.run(|| fs::read_to_string("/proc/thread-self/net/tcp"))??;
    let at = format!(":{port:04X}");
    // Local address, remote address, state: 0A is LISTEN.
    Ok(table.lines().skip(1).any(|line| {
        let mut fields = line.split_whitespace().skip(1);
        fields.next().is_some_and(|local| local.ends_with(&at)) && fields.nth(1) == Some("0A")
    }))
}

/// The line by which a program names its release.
pub fn version(pair: Pair, program: &Path) -> String {
    let word = match pair {
        Pair::Stunnel => "-version",
        Pair::Haproxy => "-v",
        Pair::Ghostunnel => "--version",
        Pair::Direct | Pair::Embedded | Pair::Sequential | Pair::Tight => {
            return concat!("wiretax ", env!("CARGO_PKG_VERSION")).to_owned();
        }
    };
    let said = Command::new(program).arg(word).stdin(Stdio::null()).output();
    let said = said.map(|output| [output.stdout, output.stderr].concat()).unwrap_or_default();
    let said = String::from_utf8_lossy(&said).into_owned();
    let mut lines = said.lines().map(str::trim).filter(|line| line.contains('.'));
    lines.next().unwrap_or("of an unknown release").to_owned()
}
