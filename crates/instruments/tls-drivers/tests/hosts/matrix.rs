//! Every driver that is built (or given by its path) through every handshake, against itself and
//! against another: `cargo test -p tls-drivers --test hosts -- --drivers [NAME|PATH ...]`. The first named is
//! the other one, or OpenSSL 3.5.5. `--ech` in place of `--drivers` tries ECH alone.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use tls_drivers::{
    Catalog, Cipher, Contexts, Extent, Folders, Group, Identity, Job, Key, Locks, Outcome, Reply,
    Sessions, Suite, Supervisor, Version, Wire, Workload,
};

const LIMIT: Duration = Duration::from_secs(60);
const OTHER: &str = "openssl-3.5.5";

/// The drivers of these names that are built, or of all.
pub fn built(names: &[String]) -> Vec<(String, PathBuf)> {
    let drivers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../drivers");
    let folders = Folders::find(Some(&drivers)).expect("the checkout has drivers");
    let catalog = Catalog::read(&folders).expect("they can be read");
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let names = if names.is_empty() { vec![OTHER, "all"] } else { names };
    let chosen = catalog.select(&names).unwrap_or_else(|error| panic!("{error}"));
    chosen
        .iter()
        .filter_map(|driver| Some((driver.name.clone(), driver.object()?.to_path_buf())))
        .collect()
}

/// Runs the matrix; says of each cell what came of it.
pub fn matrix(supervisor: &Supervisor, names: &[String]) -> ExitCode {
    let built = built(names);
    let Some((_, other)) = built.first() else {
        println!("no driver is built: make drivers");
        return ExitCode::FAILURE;
    };
    let mut failures = 0;
    for (name, object) in &built {
        match supervisor.describe(object) {
            Ok(described) => println!(
                "{name}: {} [{}] {}",
                described.version, described.build_flags, described.cpu_features
            ),
            Err(error) => {
                println!("{error}");
                failures += 1;
                continue;
            }
        }
        for pair in [[object, object], [object, other], [other, object]] {
            failures += cells(supervisor, name, pair);
        }
        failures += refusals(supervisor, name, object, other);
        locks_of(supervisor, name, object, other);
        sessions_of(supervisor, name, object);
    }
    failures += super::ech::all(supervisor, &built);
    println!("{} drivers, {failures} failures", built.len());
    if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn cells(supervisor: &Supervisor, name: &str, [server, client]: [&PathBuf; 2]) -> u32 {
    let mut failures = 0;
    let mut line = String::new();
    for version in Version::ALL {
        for key in Key::ALL {
            for group in Group::ALL {
                let suite = Suite {
                    version: *version,
                    key: *key,
                    group: *group,
                    cipher: Cipher::Aes128Gcm,
                };
                if !suite.exists() {
                    continue;
                }
                for workload in [Workload::Full, Workload::Resume] {
                    let job = job(server, client, workload, suite);
                    let (mark, why) = verdict(supervisor, &job);
                    line.push(mark);
                    if let Some(why) = why {
                        println!("  {suite} {workload:?}: {why}");
                        failures += u32::from(mark == '!');
                    }
                }
            }
            line.push(' ');
        }
    }
    for version in Version::ALL {
        let suite = Suite {
            version: *version,
            key: Key::EcdsaP256,
            group: Group::X25519,
            cipher: Cipher::Aes128Gcm,
        };
        let job = job(server, client, Workload::Bulk { record: 16_384 }, suite);
        let (mark, why) = verdict(supervisor, &job);
        line.push(mark);
        if let Some(why) = why {
            println!("  {suite} bulk: {why}");
            failures += u32::from(mark == '!');
        }
    }
    line.push(' ');
    for sessions in [Sessions::Cache, Sessions::External] {
        for key in Key::ALL {
            let (version, group) = (Version::Tls12, Group::X25519);
            let suite = Suite { version, key: *key, group, cipher: Cipher::Aes128Gcm };
            let job = Job { sessions, ..job(server, client, Workload::Resume, suite) };
            let (mark, why) = verdict(supervisor, &job);
            line.push(mark);
            if let Some(why) = why {
                println!("  {suite} {sessions}: {why}");
                failures += u32::from(mark == '!');
            }
        }
    }
    let role = if server == client {
        "alone"
    } else if line.is_empty() {
        ""
    } else {
        "with the other"
    };
    println!("{name:>20} {role:>15}: {line}");
    failures
}

/// Prints what the server side takes in locks a full handshake, to be held against other counts.
fn locks_of(supervisor: &Supervisor, name: &str, object: &Path, other: &Path) {
    for (version, key) in [(Version::Tls13, Key::EcdsaP256), (Version::Tls12, Key::Rsa2048)] {
        let suite = Suite { version, key, group: Group::X25519, cipher: Cipher::Aes128Gcm };
        let extent = Extent::Connections(80);
        let job = Job { locks: Locks::Count, extent, ..job(object, other, Workload::Full, suite) };
        let Ok(Reply::Done(outcome)) = supervisor.run(&job, LIMIT) else { continue };
        let Some(locks) = &outcome.server.locks else { continue };
        let each = |count: u64| count as f64 / outcome.done as f64;
        println!(
            "{name:>20} {version} {key}: {:.1} read, {:.1} write, {:.1} mutexes per handshake",
            each(locks.read),
            each(locks.write),
            each(locks.mutex)
        );
        for site in locks.sites.iter().take(4) {
            println!("{:>30.1} {:?} {}", each(site.count), site.kind, site.symbol);
        }
    }
}

/// Prints what resuming by tickets, by the library's cache and by a store outside it comes to: the server's
/// locks, and connections per second with one thread and two. `wiretax stacks --sessions` measures it
/// properly.
fn sessions_of(supervisor: &Supervisor, name: &str, object: &Path) {
    let (version, key) = (Version::Tls12, Key::EcdsaP256);
    let suite = Suite { version, key, group: Group::X25519, cipher: Cipher::Aes128Gcm };
    for sessions in Sessions::ALL {
        let resumed = Job { sessions: *sessions, ..job(object, object, Workload::Resume, suite) };
        let counted =
            Job { locks: Locks::Count, extent: Extent::Connections(80), ..resumed.clone() };
        let Ok(Reply::Done(outcome)) = supervisor.run(&counted, LIMIT) else { continue };
        let locks = outcome.server.locks.as_ref();
        let locks = locks.map_or(0.0, |it| (it.read + it.write + it.mutex) as f64);
        let mut line = format!("{:.1} locks", locks / outcome.done as f64);
        for threads in [1, 2] {
            let timed = Job { threads, extent: Extent::Milliseconds(1000), ..resumed.clone() };
            let Ok(Reply::Done(outcome)) = supervisor.run(&timed, LIMIT) else { continue };
            let per_s = outcome.done as f64 * 1e9 / outcome.wall_ns as f64;
            let server_us = outcome.server.cpu_ns as f64 / 1e3 / outcome.done as f64;
            line += &format!("; {threads} threads {per_s:.0}/s, server {server_us:.1} µs");
        }
        println!("{name:>20} resumed by {}: {line}", sessions.text());
    }
}

/// `.` well, `-` unsupported, `!` failed.
fn verdict(supervisor: &Supervisor, job: &Job) -> (char, Option<String>) {
    match supervisor.run(job, LIMIT) {
        Ok(Reply::Done(outcome)) if well(job, &outcome) => ('.', None),
        Ok(Reply::Done(outcome)) => {
            let Outcome { done, failed, resumed, misreported, failure, .. } = *outcome;
            let what = format!(
                "{done} done, {resumed} resumed, {failed} failed, {misreported} misreported: {failure:?}"
            );
            ('!', Some(what))
        }
        Ok(Reply::Unsupported(what)) => ('-', Some(format!("unsupported: {what}"))),
        Ok(Reply::Failed(what)) => ('!', Some(what)),
        Err(error) => ('!', Some(error.to_string())),
    }
}

fn well(job: &Job, outcome: &Outcome) -> bool {
    let resumed = if job.workload == Workload::Resume { outcome.done } else { 0 };
    outcome.done >= 6 && (outcome.failed, outcome.misreported, outcome.resumed) == (0, 0, resumed)
}

fn refusals(supervisor: &Supervisor, name: &str, object: &Path, other: &Path) -> u32 {
    let suite = Suite {
        version: Version::Tls12,
        key: Key::EcdsaP256,
        group: Group::Secp256r1,
        cipher: Cipher::Aes128Gcm,
    };
    let good = job(other, object, Workload::Full, suite);
    let strange = Identity { roots: identity(Key::EcdsaP256).roots, ..good.identity.clone() };
    let misnamed = Identity { name: "other.test".into(), ..good.identity.clone() };
    let mut failures = 0;
    for (what, identity) in [("a stranger's certificate", strange), ("another name", misnamed)] {
        match supervisor.run(&Job { identity, ..good.clone() }, LIMIT) {
            Ok(Reply::Done(outcome)) if outcome.done == 0 && outcome.failed > 0 => {}
            reply => {
                println!("{name:>20} does not refuse {what}: {reply:?}");
                failures += 1;
            }
        }
    }
    failures
}

fn job(server: &Path, client: &Path, workload: Workload, suite: Suite) -> Job {
    Job {
        server: server.to_path_buf(),
        client: client.to_path_buf(),
        workload,
        wire: Wire::Memory,
        suite,
        threads: 1,
        tickets: 1,
        sessions: Sessions::Tickets,
        contexts: Contexts::Shared,
        locks: Locks::Pthread,
        extent: Extent::Connections(6),
        identity: identity(suite.key),
    }
}

/// An identity, the same for every job: keys of RSA take long.
fn identity(key: Key) -> Identity {
    use std::sync::Mutex;
    static MADE: Mutex<Vec<(Key, Identity)>> = Mutex::new(Vec::new());
    let mut made = MADE.lock().expect("nobody panics here");
    // The second of a kind is a stranger's.
    if let Some((_, identity)) = made.iter().find(|(of, _)| *of == key)
        && key != Key::EcdsaP256
    {
        return identity.clone();
    }
    let kind = match key {
        Key::Rsa2048 => tls::KeyType::Rsa2048,
        Key::Rsa4096 => tls::KeyType::Rsa4096,
        Key::EcdsaP256 => tls::KeyType::EcdsaP256,
    };
    let fresh = tls::Identity::generate(kind, 1, &["server.test"]).expect("an identity");
    let identity = Identity {
        chain: fresh.chain_pem().expect("PEM"),
        key: fresh.private_key_pem().expect("PEM").to_string(),
        roots: fresh.root_pem().expect("PEM"),
        name: "server.test".into(),
    };
    made.push((key, identity.clone()));
    identity
}
