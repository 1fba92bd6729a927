//! Measuring a plan: each run a HAProxy of its own, loaded, asked and ended.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use load::{Close, Control, Options, Report};
use record::{Finished, Outcome, Recorder, Sample};
use tls::{Identity, Trust, Version};

use crate::config::{Config, Role};
use crate::counters::{Handshakes, Side};
use crate::plan::WARM_UP;
use crate::process::in_folder;
use crate::{Built, Cell, Error, Plan, Process, Release, Run, Scenario};

/// The study's name in samples.
pub const STUDY: &str = "haproxy";
/// The name in all certificates.
pub const NAME: &str = "proxy.test";
/// The first port; below those that the system gives to clients.
const PORT: u16 = 4430;
/// A run whose resumption is below this share proves nothing.
const LEAST_RESUMED: f64 = 0.99;

/// Connections that each of the generator's makes, one after the other, at least.
const ROUNDS: u32 = 8;
/// For that a run may last so many times as long as planned.
const MOST_LONGER: u32 = 10;

/// Names of the values of a sample.
pub mod value {
    /// Connections a second, end to end.
    pub const PER_SECOND: &str = "connections_per_second";
    /// CPU time of HAProxy (of the process under test alone) a connection, the kernel's with it.
    pub const SERVER_CPU: &str = "server_cpu_us";
    /// The kernel's share of it.
    pub const KERNEL: &str = "server_kernel_share";
    /// Processors that HAProxy kept busy.
    pub const SERVER_BUSY: &str = "server_processors";
    /// CPU time of the load generator a connection.
    pub const CLIENT_CPU: &str = "client_cpu_us";
    /// Share of the generator's handshakes that were resumed.
    pub const CLIENT_RESUMED: &str = "client_resumed_share";
    /// Share of handshakes with clients that HAProxy counted as resumed, over all proxies.
    pub const FRONT_RESUMED: &str = "front_resumed_share";
    /// The same, with servers.
    pub const BACK_RESUMED: &str = "back_resumed_share";
    /// Handshakes that HAProxy took part in, on either side, a connection.
    pub const HANDSHAKES: &str = "handshakes_per_connection";
    /// Median time of a connection.
    pub const P50: &str = "total_p50_ms";
    /// 99 % of connections took no longer.
    pub const P99: &str = "total_p99_ms";
    /// Connections that succeeded.
    pub const COMPLETED: &str = "completed";
    /// Connections that failed.
    pub const FAILED: &str = "failed";
}

/// Names of the labels of a sample.
pub mod label {
    /// HAProxy's version, as it prints it.
    pub const HAPROXY: &str = "haproxy";
    /// Debian's version of its source.
    pub const SOURCE: &str = "source";
    /// The library that it says it runs on.
    pub const RUNS_ON: &str = "runs_on";
    /// Whether there is a build with light locks: `yes` or `no`.
    pub const LIGHT: &str = "light_locks";
}

/// What follows a measurement.
pub trait Watcher {
    /// A step begins; so much of the whole is done.
    fn progress(&mut self, step: &str, done: Duration, total: Duration);
    /// Whether to stop. Asked often.
    fn interrupted(&self) -> bool;
    /// A run failed, the others go on.
    fn warning(&mut self, text: &str);
}

/// How a measurement ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// All was measured.
    Done,
    /// The user stopped it; what was measured is recorded.
    Interrupted,
}

/// Measures all of a plan that is not recorded yet, and records it. `builds` holds what could be
/// built; a library that is not among them is left out.
///
/// # Errors
/// What keeps everything from being measured: a plan that cannot be, a certificate that cannot be
/// made, a sample that cannot be written. What happens to one run is recorded with it.
pub fn measure(
    plan: &Plan,
    builds: &[Built],
    finished: &Finished,
    recorder: &mut Recorder,
    watcher: &mut dyn Watcher,
) -> Result<End, Error> {
    plan.check()?;
    let identity = Identity::generate(plan.key, 1, &[NAME])?;
    let release = Release::find(&plan.release)?;
    let mut runs = plan.runs();
    runs.retain(|run| {
        builds.iter().any(|built| built.library == run.cell.library)
            && !finished.contains(STUDY, &run.cell.point(plan), run.repeat)
    });
    let each = plan.expected_run();
    let total = each * u32::try_from(runs.len()).unwrap_or(u32::MAX);
    for (done, run) in (0u32..).zip(&runs) {
        let Cell { scenario, version, threads, library, locks } = &run.cell;
        let step = format!("{scenario} {version}, {library} {locks}, threads: {threads}");
        watcher.progress(&step, each * done, total);
        let Some(built) = builds.iter().find(|built| built.library == *library) else { continue };
        let bench = Bench { plan, release, built, identity: &identity, run };
        let sample = match bench.run(&|| watcher.interrupted()) {
            Err(Error::Interrupted) => return Ok(End::Interrupted),
            Err(error) => {
                watcher.warning(&format!("{step}: {error}"));
                sample(plan, run, built, Err(error.to_string()), BTreeMap::new())
            }
            Ok(Measured { values, problem: None }) => sample(plan, run, built, Ok(()), values),
            Ok(Measured { values, problem: Some(problem) }) => {
                watcher.warning(&format!("{step}: {problem}"));
                sample(plan, run, built, Err(problem), values)
            }
        };
        recorder.record(&sample)?;
    }
    Ok(End::Done)
}

fn sample(
    plan: &Plan,
    run: &Run,
    built: &Built,
    ended: Result<(), String>,
    values: BTreeMap<String, f64>,
) -> Sample {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Sample {
        study: STUDY.to_owned(),
        point: run.cell.point(plan),
        repeat: run.repeat,
        seed: 0,
        at_unix_ms: u64::try_from(now.as_millis()).unwrap_or(u64::MAX),
        outcome: match ended {
            Ok(()) => Outcome::Completed,
            Err(reason) => Outcome::Failed { reason },
        },
        values,
        labels: labels(built),
        attachments: Vec::new(),
        command: run.cell.command(plan),
    }
}

/// What a build says of itself, for the report of samples whose builds are elsewhere or gone.
pub(crate) fn labels(built: &Built) -> BTreeMap<String, String> {
    let light = if built.light { "yes" } else { "no" };
    let labels = [
        (label::HAPROXY, built.haproxy.as_str()),
        (label::SOURCE, &built.debian),
        (label::RUNS_ON, &built.runs_on),
        (label::LIGHT, light),
    ];
    labels.into_iter().map(|(name, text)| (name.to_owned(), text.to_owned())).collect()
}

/// One run with all that it needs.
struct Bench<'a> {
    plan: &'a Plan,
    release: &'a Release,
    built: &'a Built,
    identity: &'a Identity,
    run: &'a Run,
}

/// What a run came to; a problem where it does not show what it should.
struct Measured {
    values: BTreeMap<String, f64>,
    problem: Option<String>,
}

impl Bench<'_> {
    fn run(&self, interrupted: &dyn Fn() -> bool) -> Result<Measured, Error> {
        let role = Role::of(self.run.cell.scenario, self.plan.proxies);
        // The server behind a chain is a process of its own, so that its CPU time is not the proxies'.
        let _origin = match role {
            Role::Answer => None,
            Role::Chain(proxies) => {
                let behind = PORT.saturating_add(u16::try_from(proxies).unwrap_or(u16::MAX));
                Some(self.start(Role::Answer, behind)?)
            }
        };
        let mut proxy = self.start(role, PORT)?;
        let measured = Duration::from_millis(self.plan.milliseconds);
        let warm_up = self.load(measured / WARM_UP, interrupted)?;
        if warm_up.completed == 0 {
            proxy.alive()?;
            return Err(Error::Load(format!(
                "no connection succeeded: {}",
                first_failure(&warm_up)
            )));
        }
        let measured = long_enough(measured, warm_up.latency.total.p50_us);
        let (before, cpu_before) = (proxy.handshakes()?, proxy.cpu()?);
        let report = self.load(measured, interrupted)?;
        let (cpu, handshakes) = (proxy.cpu()?, proxy.handshakes()?);
        proxy.alive()?;
        Ok(self.judge(&report, handshakes.since(before), cpu.since(cpu_before)))
    }

    fn start(&self, role: Role, port: u16) -> Result<Process, Error> {
        let cell = &self.run.cell;
        let config = in_folder(Config {
            release: self.release,
            folder: std::path::Path::new(""),
            role,
            threads: cell.threads,
            version: cell.version,
            group: self.plan.group,
            name: NAME,
            port,
            connections: self.plan.connections,
        });
        Process::start(self.built, cell.locks, self.identity, &config)
    }

    fn load(&self, duration: Duration, interrupted: &dyn Fn() -> bool) -> Result<Report, Error> {
        let options = self.options(duration)?;
        let control = Control::default();
        let report = load::run_with(&options, &control, |_| {
            if interrupted() {
                control.stop();
            }
        });
        let report = report.map_err(|error| Error::Load(error.to_string()))?;
        if interrupted() { Err(Error::Interrupted) } else { Ok(report) }
    }

    fn options(&self, duration: Duration) -> Result<Options, Error> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, PORT));
        let version = self.run.cell.version;
        let mut options = Options::new(address, NAME);
        options.get(NAME, "/", 1);
        options.connections = self.plan.connections;
        options.threads = self.plan.load_threads;
        options.duration = Some(duration);
        options.resume = match self.run.cell.scenario {
            Scenario::Full => 0.0,
            Scenario::Chain => 1.0,
        };
        options.versions = vec![version];
        options.groups = vec![self.plan.group];
        let suites = match (version, self.plan.key.is_rsa()) {
            (Version::Tls13, _) => "TLS_AES_128_GCM_SHA256",
            (Version::Tls12, true) => "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
            (Version::Tls12, false) => "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
        };
        let suite = suites.parse().map_err(|error| Error::Load(format!("{error}")))?;
        options.suites = vec![suite];
        options.trust = Trust::Roots(self.identity.roots());
        // The proxy closes; waiting for it leaves the waiting ports on its side.
        options.close = Close::Server;
        Ok(options)
    }

    /// The values of a sample, and what is wrong with them.
    fn judge(&self, report: &Report, seen: Handshakes, cpu: (u64, Option<f64>)) -> Measured {
        let (cpu_ns, kernel) = cpu;
        let completed = report.completed;
        let each = |amount: f64| (completed > 0).then(|| amount / completed as f64);
        let by_generator = report.handshakes;
        // The first connections have no ticket yet: they are full, and prove nothing either way.
        let first = by_generator.without_ticket;
        let by_generator = Side {
            full: by_generator.full.saturating_sub(first),
            resumed: by_generator.resumed,
            failed: 0,
        };
        let front = Side { full: seen.front.full.saturating_sub(first), ..seen.front };
        let handshakes = seen.front.handshakes() + seen.back.handshakes();
        let elapsed = report.elapsed_seconds;
        let latency = &report.latency.total;
        let values = [
            (value::PER_SECOND, Some(report.connections_per_second)),
            (value::SERVER_CPU, each(cpu_ns as f64 / 1e3)),
            (value::KERNEL, kernel),
            (value::SERVER_BUSY, (elapsed > 0.0).then(|| cpu_ns as f64 / 1e9 / elapsed)),
            (value::CLIENT_CPU, report.cpu.us_per_connection),
            (value::CLIENT_RESUMED, by_generator.reuse()),
            (value::FRONT_RESUMED, front.reuse()),
            (value::BACK_RESUMED, seen.back.reuse()),
            (value::HANDSHAKES, each(handshakes as f64)),
            (value::P50, Some(latency.p50_us / 1e3)),
            (value::P99, Some(latency.p99_us / 1e3)),
            (value::COMPLETED, Some(completed as f64)),
            (value::FAILED, Some(report.failed as f64)),
        ];
        let values: BTreeMap<String, f64> = values
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value.filter(|v| v.is_finite())?)))
            .collect();
        let counts = (completed, report.failed);
        let problem = problem(self.run.cell.scenario, counts, &first_failure(report), &values);
        Measured { values, problem }
    }
}

/// A run's time where connections take so long that few of them would follow another: only those have a
/// ticket to resume by.
fn long_enough(planned: Duration, median_us: f64) -> Duration {
    let median = Duration::try_from_secs_f64(median_us / 1e6).unwrap_or_default();
    let wanted = median.saturating_mul(ROUNDS);
    planned.max(wanted.min(planned * MOST_LONGER))
}

fn first_failure(report: &Report) -> String {
    report.failures.first().map_or_else(|| "none was made".to_owned(), |one| format!("{one:?}"))
}

/// Why a run does not show what its scenario is about, by the connections that succeeded and failed.
fn problem(
    scenario: Scenario,
    (completed, failed): (u64, u64),
    first_failure: &str,
    values: &BTreeMap<String, f64>,
) -> Option<String> {
    if completed == 0 {
        return Some(format!("no connection succeeded: {first_failure}"));
    }
    if failed > completed / 100 {
        return Some(format!("{failed} connections failed: {first_failure}"));
    }
    let share = |name: &str| values.get(name).copied();
    let shares = [value::CLIENT_RESUMED, value::FRONT_RESUMED, value::BACK_RESUMED];
    match scenario {
        Scenario::Full => {
            let resumed = shares.iter().filter_map(|name| share(name)).any(|share| share > 0.0);
            resumed.then(|| "some handshakes were resumed, which should all be full".to_owned())
        }
        Scenario::Chain => shares.iter().find_map(|name| {
            let Some(share) = share(name) else {
                return Some(
                    "no connection had a ticket to resume by: none followed another; hint: a longer \
                     --duration or fewer --connections"
                        .to_owned(),
                );
            };
            (share < LEAST_RESUMED).then(|| {
                let percent = share * 100.0;
                format!("only {percent:.1} % of handshakes were resumed ({name})")
            })
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(client: f64, front: f64, back: Option<f64>) -> BTreeMap<String, f64> {
        let mut values = BTreeMap::from([
            (value::CLIENT_RESUMED.to_owned(), client),
            (value::FRONT_RESUMED.to_owned(), front),
        ]);
        values.extend(back.map(|share| (value::BACK_RESUMED.to_owned(), share)));
        values
    }

    #[test]
    fn a_chain_is_resumed_on_all_sides_or_proves_nothing() {
        let of = |values| problem(Scenario::Chain, (100, 0), "", &values);
        assert_eq!(of(shares(1.0, 0.995, Some(1.0))), None);
        for wrong in
            [shares(0.9, 1.0, Some(1.0)), shares(1.0, 0.9, Some(1.0)), shares(1.0, 1.0, Some(0.0))]
        {
            assert!(of(wrong).unwrap().contains("were resumed"));
        }
        assert!(of(shares(1.0, 1.0, None)).unwrap().contains("no connection had a ticket"));
    }

    #[test]
    fn a_full_handshake_that_was_resumed_is_told() {
        let of = |values| problem(Scenario::Full, (100, 0), "", &values);
        assert_eq!(of(shares(0.0, 0.0, None)), None);
        assert!(of(shares(0.0, 0.01, None)).unwrap().contains("should all be full"));
    }

    #[test]
    fn failed_connections_are_told_with_the_first() {
        let of = |counts| problem(Scenario::Full, counts, "refused", &shares(0.0, 0.0, None));
        assert!(of((0, 0)).unwrap().contains("refused"));
        assert!(of((1000, 11)).unwrap().contains("11 connections failed: refused"));
        assert_eq!(of((1000, 10)), None);
    }

    #[test]
    fn a_run_lasts_until_connections_follow_each_other() {
        let seconds = Duration::from_secs;
        assert_eq!(long_enough(seconds(2), 10_000.0), seconds(2));
        assert_eq!(long_enough(seconds(2), 1_000_000.0), seconds(8));
        assert_eq!(long_enough(seconds(2), 1e9), seconds(20));
        assert_eq!(long_enough(seconds(2), f64::NAN), seconds(2));
    }
}
