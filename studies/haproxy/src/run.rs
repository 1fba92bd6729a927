//! One run: a HAProxy of its own, loaded, asked and ended.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use fault::{Fault, Problem};
use haproxy::{Built, Config, Counted, Library, Process, Release, Role, Side, in_folder};
use load::{Close, Control, Options, Report};
use tls::{Identity, Trust, Version};

use crate::plan::{Run, WARM_UP};
use crate::point::Scenario;
use crate::quic;
use crate::sample::value;

/// The name in all certificates.
pub(crate) const NAME: &str = "proxy.test";
/// The first port; below those that the system gives to clients.
const PORT: u16 = 4430;
/// A run whose resumption is below this share proves nothing.
const LEAST_RESUMED: f64 = 0.99;

/// Connections that each of the generator's makes, one after the other, at least.
const ROUNDS: u32 = 8;
/// For that a run may last so many times as long as planned.
const MOST_LONGER: u32 = 10;

/// One run with all that it needs.
pub(crate) struct Bench<'a> {
    pub(crate) release: &'a Release,
    pub(crate) built: &'a Built,
    pub(crate) identity: &'a Identity,
    pub(crate) run: &'a Run,
}

/// What a run came to; a problem where it does not show what it should.
pub(crate) struct Measured {
    pub(crate) values: BTreeMap<String, f64>,
    pub(crate) problem: Option<String>,
}

impl Bench<'_> {
    /// What the run came to; `None` when the user stops it.
    pub(crate) fn run(&self, interrupted: &dyn Fn() -> bool) -> Result<Option<Measured>, Problem> {
        let role = self.run.point.role(self.built.quic);
        // The server behind a chain is a process of its own, so that its CPU time is not the proxies'.
        let origin = match role {
            Role::Answer | Role::AnswerQuic(_) => None,
            Role::Chain(proxies) => {
                let behind = PORT.saturating_add(u16::try_from(proxies).unwrap_or(u16::MAX));
                Some(self.start(Role::Answer, behind)?)
            }
        };
        let mut proxy = self.start(role, PORT)?;
        let logged = |proxy: &Process| {
            let logs = [Some(proxy), origin.as_ref()].into_iter().flatten();
            logs.filter_map(Process::failures)
                .map(|said| format!("; HAProxy: {said}"))
                .collect::<String>()
        };
        let measured = self.run.measured;
        let Some(warm_up) = self.load(measured / WARM_UP, interrupted)? else { return Ok(None) };
        if warm_up.completed == 0 {
            proxy.alive()?;
            let (why, logged) = (warm_up.first_failure, logged(&proxy));
            return Err(of_load(format!("no connection succeeded: {why}{logged}")));
        }
        let measured = long_enough(measured, warm_up.p50_us);
        let (before, cpu_before) = (proxy.counted()?, proxy.cpu()?);
        let Some(loaded) = self.load(measured, interrupted)? else { return Ok(None) };
        let (cpu, counted) = (proxy.cpu()?, proxy.counted()?);
        proxy.alive()?;
        let Measured { values, problem } =
            self.judge(&loaded, counted.since(before), cpu.since(cpu_before));
        let problem = problem.map(|problem| problem + &logged(&proxy));
        Ok(Some(Measured { values, problem }))
    }

    fn start(&self, role: Role, port: u16) -> Result<Process, haproxy::Error> {
        let point = &self.run.point;
        let config = in_folder(Config {
            release: self.release,
            folder: std::path::Path::new(""),
            role,
            threads: point.threads,
            version: point.version,
            group: self.run.point.group,
            name: NAME,
            port,
            connections: self.run.connections,
            kind: Library::kind_of(&point.library)?,
            resumed: point.scenario == Scenario::Chain,
            becomes: haproxy::identity_after(),
        });
        Process::start(self.built, point.locks, self.identity, &config)
    }

    fn load(
        &self,
        duration: Duration,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<Option<Loaded>, Problem> {
        if self.run.point.scenario == Scenario::Quic {
            let loaded = self.load_quic(duration, interrupted)?;
            return Ok((!interrupted()).then_some(loaded));
        }
        let options = self.options(duration)?;
        let control = Control::default();
        let report = load::run_with(&options, &control, |_| {
            if interrupted() {
                control.stop();
            }
        });
        let report = report.map_err(of_load)?;
        Ok((!interrupted()).then(|| Loaded::of(&report)))
    }

    fn load_quic(
        &self,
        duration: Duration,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<Loaded, Problem> {
        let target = quic::Target {
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, PORT)),
            name: NAME,
            roots: self.identity.roots(),
            group: self.run.point.group,
        };
        let extent = quic::Extent {
            connections: self.run.connections,
            threads: self.run.load_threads,
            duration,
        };
        quic::load(&target, extent, interrupted).map_err(of_load)
    }

    fn options(&self, duration: Duration) -> Result<Options, Problem> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, PORT));
        let version = self.run.point.version;
        let mut options = Options::new(address, NAME);
        options.get(NAME, "/", 1);
        options.connections = self.run.connections;
        options.threads = self.run.load_threads;
        options.duration = Some(duration);
        options.resume = match self.run.point.scenario {
            Scenario::Full | Scenario::Quic => 0.0,
            Scenario::Chain => 1.0,
        };
        options.versions = vec![version];
        options.groups = vec![self.run.point.group];
        let suites = match (version, self.run.point.key.is_rsa()) {
            (Version::Tls13, _) => "TLS_AES_128_GCM_SHA256",
            (Version::Tls12, true) => "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
            (Version::Tls12, false) => "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
        };
        let suite = suites.parse().map_err(|error: load::UnknownSuite| of_load(error))?;
        options.suites = vec![suite];
        options.trust = Trust::Roots(self.identity.roots());
        // The proxy closes; waiting for it leaves the waiting ports on its side.
        options.close = Close::Server;
        Ok(options)
    }

    /// The values of a sample, and what is wrong with them.
    fn judge(&self, loaded: &Loaded, seen: Counted, cpu: (u64, Option<f64>)) -> Measured {
        let (cpu_ns, kernel) = cpu;
        let completed = loaded.completed;
        let each = |amount: f64| (completed > 0).then(|| amount / completed as f64);
        // The first connections have no ticket yet: they are full, and prove nothing either way.
        let first = loaded.without_ticket;
        let by_generator =
            Side { full: loaded.full.saturating_sub(first), resumed: loaded.resumed, failed: 0 };
        let front = Side { full: seen.front.full.saturating_sub(first), ..seen.front };
        let handshakes = seen.front.handshakes() + seen.back.handshakes();
        // Its counters of TLS do not see QUIC.
        let sees_tls = self.run.point.scenario != Scenario::Quic;
        let elapsed = loaded.elapsed_seconds;
        let values = [
            (value::PER_SECOND, Some(loaded.per_second)),
            (value::SERVER_CPU, each(cpu_ns as f64 / 1e3)),
            (value::KERNEL, kernel),
            (value::SERVER_BUSY, (elapsed > 0.0).then(|| cpu_ns as f64 / 1e9 / elapsed)),
            (value::CLIENT_CPU, loaded.cpu_us),
            (value::CLIENT_RESUMED, by_generator.reuse()),
            (value::FRONT_RESUMED, front.reuse()),
            (value::BACK_RESUMED, seen.back.reuse()),
            (value::HANDSHAKES, each(handshakes as f64).filter(|_| sees_tls)),
            (value::ANSWERED, each(seen.answered as f64)),
            (value::P50, Some(loaded.p50_us / 1e3).filter(|ms| ms.is_finite())),
            (value::P99, Some(loaded.p99_us / 1e3).filter(|ms| ms.is_finite())),
            (value::COMPLETED, Some(completed as f64)),
            (value::FAILED, Some(loaded.failed as f64)),
        ];
        let values: BTreeMap<String, f64> = values
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value.filter(|v| v.is_finite())?)))
            .collect();
        let counts = (completed, loaded.failed);
        let Run { point, connections, .. } = self.run;
        let problem = problem(point.scenario, counts, &loaded.first_failure, &values)
            .or_else(|| counted_otherwise(completed, seen.answered, point.proxies, *connections));
        Measured { values, problem }
    }
}

/// What load came to, of whatever made it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Loaded {
    pub(crate) completed: u64,
    pub(crate) failed: u64,
    pub(crate) first_failure: String,
    /// Handshakes as the client sees them.
    pub(crate) full: u64,
    pub(crate) resumed: u64,
    /// Of those that were to be resumed, those without a ticket at hand.
    pub(crate) without_ticket: u64,
    pub(crate) per_second: f64,
    pub(crate) elapsed_seconds: f64,
    /// CPU time of the client a connection.
    pub(crate) cpu_us: Option<f64>,
    /// Not a number where it lies above the limit of time.
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
}

impl Loaded {
    fn of(report: &Report) -> Loaded {
        Loaded {
            completed: report.completed,
            failed: report.failed,
            first_failure: first_failure(report),
            full: report.handshakes.full,
            resumed: report.handshakes.resumed,
            without_ticket: report.handshakes.without_ticket,
            per_second: report.connections_per_second,
            elapsed_seconds: report.elapsed_seconds,
            cpu_us: report.cpu.us_per_connection,
            p50_us: report.latency.total.p50_us.unwrap_or(f64::NAN),
            p99_us: report.latency.total.p99_us.unwrap_or(f64::NAN),
        }
    }
}

fn of_load(why: impl std::fmt::Display) -> Problem {
    Problem::new(Fault::Measurement, format!("the load generator: {why}"))
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

/// Whether HAProxy's own count of responses is another than the client's, but for those under way at the
/// run's begin and end.
fn counted_otherwise(
    completed: u64,
    answered: u64,
    proxies: usize,
    connections: usize,
) -> Option<String> {
    let (proxies, connections) = (proxies as u64, connections as u64);
    let expected = completed.saturating_mul(proxies);
    let spare = 2 * connections.saturating_mul(proxies);
    (answered.abs_diff(expected) > spare).then(|| {
        format!(
            "HAProxy counted {answered} responses of {proxies} proxies, the load generator {completed}"
        )
    })
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
        Scenario::Full | Scenario::Quic => {
            let resumed = shares.iter().filter_map(|name| share(name)).any(|share| share > 0.0);
            resumed.then(|| "some handshakes were resumed, which should all be full".to_owned())
        }
        Scenario::Chain => shares.iter().find_map(|name| {
            let Some(share) = share(name) else {
                return Some(
                    "no connection had a ticket to resume by: none followed another; a longer \
                     --duration or fewer --connections may help"
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
    fn a_full_handshake_that_was_resumed_is_reported() {
        let of = |values| problem(Scenario::Full, (100, 0), "", &values);
        assert_eq!(of(shares(0.0, 0.0, None)), None);
        assert!(of(shares(0.0, 0.01, None)).unwrap().contains("should all be full"));
    }

    #[test]
    fn failed_connections_are_reported_with_the_first() {
        let of = |counts| problem(Scenario::Full, counts, "refused", &shares(0.0, 0.0, None));
        assert!(of((0, 0)).unwrap().contains("refused"));
        assert!(of((1000, 11)).unwrap().contains("11 connections failed: refused"));
        assert_eq!(of((1000, 10)), None);
    }

    #[test]
    fn a_rate_that_haproxy_did_not_count_is_no_rate() {
        assert_eq!(counted_otherwise(1000, 1064, 1, 32), None);
        assert_eq!(counted_otherwise(1000, 940, 1, 32), None);
        assert_eq!(counted_otherwise(100, 1000, 10, 32), None);
        for (answered, proxies) in [(1065, 1), (935, 1), (0, 1), (1000, 10)] {
            let why = counted_otherwise(1000, answered, proxies, 32).unwrap();
            assert!(why.contains(&format!("counted {answered} responses")), "{why}");
        }
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
