//! `wiretax lab`: any programs over an emulated path, without root.

mod args;
mod hold;
mod path;
mod profiles;
mod serve;
mod summary;

use std::ffi::OsStr;
use std::os::unix::process::ExitStatusExt;
use std::path::Path as FilePath;
use std::process::{ExitCode, ExitStatus};
use std::time::{Duration, Instant};

use ::lab::{
    Capture, EnterOptions, HeldSignals, Lab, LabOptions, Link, LinkOptions, Node, Outside, Program,
};
use fault::{Fault, Problem};
use linkmodel::Path;
use outfile::OutFile;
use units::counted;

pub use self::args::LabCommandArgs;
use self::args::Side;
use self::hold::{Seen, Watch};
use self::serve::Served;
use crate::diagnostics::Diagnostics;
use crate::exit::Exit;
use crate::output::say_text;

/// Columns of the text at the end.
const COLUMNS: usize = 80;

/// What shells say of a program that is not there, and of one that cannot be executed.
const NOT_FOUND: u8 = 127;
const NOT_EXECUTED: u8 = 126;

/// Runs the program over the path; its exit status is ours.
pub fn lab(args: &LabCommandArgs, diagnostics: &Diagnostics) -> Result<ExitCode, Problem> {
    if args.profiles {
        say_text(&profiles::text())?;
        return Ok(Exit::Done.into());
    }
    let path = path::path(&args.path)?;
    ::lab::enter(&EnterOptions::new().keep_rights(args.outside))?;
    // Before any thread is started: they are for the program from now on.
    let held = HeldSignals::hold()?;
    let bench = Bench::make(args, &path)?;
    let served = args.serve.as_deref().map(|command| bench.serve(command, *diagnostics));
    let served = served.transpose()?;
    bench.link.restart()?;
    let began = Instant::now();
    let running = match bench.launch(args, diagnostics) {
        Ok(running) => running,
        Err(error) => {
            let program = args.program.first().map_or(OsStr::new("/bin/sh"), |name| name);
            let code = not_started(&error, program).ok_or(error)?;
            let name = args.program.first().map(|name| name.to_string_lossy());
            let name = name.unwrap_or_else(|| "the shell".into());
            let (what, remedy) = match code {
                NOT_FOUND => (format!("there is no program `{name}`"), "check its name, and PATH"),
                _ => (format!("`{name}` cannot be executed"), "check whether you may execute it"),
            };
            diagnostics.error(&Problem::new(Fault::Caller, what).with_remedy(remedy));
            return Ok(code.into());
        }
    };
    let watch = Watch::start(&bench.client, &bench.server);
    let status = running.wait_with(&held);
    let took = began.elapsed();
    let seen = watch.and_then(Watch::end);
    drop(running);
    if let Some(served) = served {
        served.note_ended(diagnostics);
        served.end();
    }
    bench.finish(args, &path, &Ended { code: code_of(status), took, seen }, diagnostics)?;
    Ok(code_of(status).into())
}

/// The exit status of a shell whose program ended so.
fn code_of(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| Some(128 + status.signal()?));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

/// The exit status for a program that could not be executed; `None` where that was not the reason.
fn not_started(error: &::lab::Error, program: &OsStr) -> Option<u8> {
    let ::lab::Error::Program { doing: "executing it", source, .. } = error else { return None };
    Some(match source.kind() {
        std::io::ErrorKind::NotFound => NOT_FOUND,
        // There can be no more processes: nothing of this program's.
        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::OutOfMemory => return None,
        // A folder of PATH that this user may not look into is no reason to think that it is there.
        std::io::ErrorKind::PermissionDenied if !is_on_path(program) => NOT_FOUND,
        _ => NOT_EXECUTED,
    })
}

/// Whether there is such a file, at its path or in a folder of `PATH`.
fn is_on_path(program: &OsStr) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let has_folder = FilePath::new(program).components().count() > 1;
    has_folder || std::env::split_paths(&path).any(|folder| folder.join(program).exists())
}

/// The program's exit code, its duration and its connections.
struct Ended {
    code: u8,
    took: Duration,
    seen: Option<Seen>,
}

/// Two nodes and the path between them.
struct Bench {
    client: Node,
    server: Node,
    link: Link,
    capture: Option<Capture>,
    /// Where the counters go.
    stats: Option<OutFile>,
    outside: Option<Outside>,
    /// The lab, which ends last.
    _lab: Lab,
}

impl Bench {
    fn make(args: &LabCommandArgs, path: &Path) -> Result<Bench, Problem> {
        let options = LabOptions {
            seed: args.path.seed,
            backend: args.path.backend.into(),
            ..LabOptions::default()
        };
        let mut lab = Lab::new(options)?;
        let (client, server) = (lab.add_node("client")?, lab.add_node("server")?);
        let options = LinkOptions { mtu: args.path.mtu, ..LinkOptions::default() };
        let link = lab.connect_with(&client, &server, path, &options)?;
        let outside = args.outside.then(|| server.open_outside()).transpose()?;
        if outside.is_some() {
            let everywhere = std::net::Ipv4Addr::UNSPECIFIED.into();
            client.add_route(everywhere, 0, server.addr4()?.into())?;
        }
        let capture = args.pcap.as_ref().map(|file| client.capture(file)).transpose()?;
        let stats = args.stats.as_deref().map(summary::open).transpose()?;
        Ok(Bench { client, server, link, capture, stats, outside, _lab: lab })
    }

    fn serve(&self, command: &str, diagnostics: Diagnostics) -> Result<Served, Problem> {
        let program = self.prepared(Program::new("sh").args(["-c", command]), &self.server)?;
        Served::start(&self.server, &program, command, diagnostics)
    }

    /// Starts the program, or the shell.
    fn launch(
        &self,
        args: &LabCommandArgs,
        diagnostics: &Diagnostics,
    ) -> Result<::lab::Running, ::lab::Error> {
        let (node, program) = match (args.shell, args.program.split_first()) {
            (None, Some((program, arguments))) => {
                (&self.client, Program::new(program).args(arguments))
            }
            (shell, _) => {
                let shell = shell.unwrap_or(Side::Client);
                let (node, other) = match shell {
                    Side::Client => (&self.client, "server"),
                    Side::Server => (&self.server, "client"),
                };
                let name = node.name();
                diagnostics.note(format!(
                    "a shell on the node {name}; the other node is called {other}; `exit` ends the lab"
                ));
                let shell = std::env::var_os("SHELL").filter(|shell| !shell.is_empty());
                (node, Program::new(shell.unwrap_or_else(|| "/bin/sh".into())))
            }
        };
        node.launch(&self.prepared(program, node)?.in_foreground())
    }

    /// The program with this process's environment, and with names of its own.
    fn prepared(&self, program: Program, node: &Node) -> Result<Program, ::lab::Error> {
        let program = program.inherit_env().env("WIRETAX_NODE", node.name());
        let program = match FilePath::new("/etc/hosts").exists() {
            true => program.hosts(self.hosts()?),
            false => program,
        };
        // Without a way out no name server is there: this one refuses at once.
        let nobody = std::net::Ipv4Addr::LOCALHOST;
        let asked = if self.outside.is_some() { name_server() } else { Some(nobody) };
        Ok(match asked.filter(|_| FilePath::new("/etc/resolv.conf").exists()) {
            Some(address) => program.name_server(address.into()),
            None => program,
        })
    }

    /// The nodes' names, for hosts(5). An IPv6 address has a name of its own: a server that listens by IPv4
    /// alone would else cost a refused connection.
    fn hosts(&self) -> Result<String, ::lab::Error> {
        let mut lines = "127.0.0.1 localhost\n::1 localhost\n".to_owned();
        if let Ok(host) = std::fs::read_to_string("/proc/sys/kernel/hostname") {
            lines += &format!("127.0.1.1 {}\n", host.trim());
        }
        for node in [&self.client, &self.server] {
            lines += &format!("{} {}\n", node.addr4()?, node.name());
            if let Ok(address) = node.addr6() {
                lines += &format!("{address} {}6\n", node.name());
            }
        }
        Ok(lines)
    }

    /// Ends the capture, and says what the path did.
    fn finish(
        self,
        args: &LabCommandArgs,
        path: &Path,
        ended: &Ended,
        diagnostics: &Diagnostics,
    ) -> Result<(), Problem> {
        if let Some(capture) = self.capture {
            let written = capture.stop()?;
            if written.kernel_drops > 0 {
                diagnostics.warning(format!(
                    "the capture lacks {}: more came than could be written",
                    counted(written.kernel_drops, "frame")
                ));
            }
        }
        let stats = match self.link.stats() {
            Ok(stats) => {
                summary::say(&stats, diagnostics);
                Some(stats)
            }
            Err(::lab::Error::NoStats) => {
                diagnostics.note("no counters: netem does not report any");
                None
            }
            Err(error) => return Err(error.into()),
        };
        let held = ended.seen.as_ref().map(|seen| hold::held(seen, path, stats.as_ref()));
        for way in held.iter().flatten() {
            diagnostics.notes(&way.text(COLUMNS));
        }
        match (self.stats, &args.stats) {
            (Some(to), Some(file)) => {
                summary::write((to, file), path, (stats.as_ref(), held.as_deref()), ended)
            }
            _ => Ok(()),
        }
    }
}

/// The machine's own name server, where it is one that a node can ask: not a local one.
fn name_server() -> Option<std::net::Ipv4Addr> {
    let files = ["/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"];
    files.into_iter().find_map(|file| {
        let text = std::fs::read_to_string(file).ok()?;
        let addresses = text.lines().filter_map(|line| line.strip_prefix("nameserver"));
        let mut addresses = addresses.filter_map(|address| address.trim().parse().ok());
        addresses.find(|address: &std::net::Ipv4Addr| !address.is_loopback())
    })
}
