//! Measurements in this process: the harness's own driver, and OpenSSL by the shim that all of its
//! family share.

use std::path::{Path, PathBuf};

use tls_drivers::host::measure;
use tls_drivers::{
    Cipher, Contexts, DriverError, Extent, Group, Identity, Job, Key, Locks, Outcome, Sessions,
    Suite, Version, Wire, Workload,
};

/// A driver on the OpenSSL of the workspace (see build.rs).
const OPENSSL: &str = env!("WIRETAX_TEST_OPENSSL");

fn identity(key: Key) -> Identity {
    let kind = match key {
        Key::Rsa2048 => tls::KeyType::Rsa2048,
        Key::Rsa4096 => tls::KeyType::Rsa4096,
        Key::EcdsaP256 => tls::KeyType::EcdsaP256,
    };
    let made = tls::Identity::generate(kind, 1, &["server.test"]).unwrap();
    Identity {
        chain: made.chain_pem().unwrap(),
        key: made.private_key_pem().unwrap().to_string(),
        roots: made.root_pem().unwrap(),
        name: "server.test".into(),
    }
}

fn null() -> PathBuf {
    let path = std::env::temp_dir().join(format!("wiretax-null-{}.so", std::process::id()));
    if !path.exists() {
        let partial = path.with_extension(format!("{:?}", std::thread::current().id()));
        std::fs::write(&partial, tls_drivers::NULL).unwrap();
        std::fs::rename(&partial, &path).unwrap();
    }
    path
}

fn openssl() -> PathBuf {
    PathBuf::from(OPENSSL)
}

fn suite(version: Version, key: Key, group: Group) -> Suite {
    Suite { version, key, group, cipher: Cipher::Aes128Gcm }
}

fn job(object: &Path, workload: Workload, wire: Wire, suite: Suite) -> Job {
    Job {
        server: object.to_path_buf(),
        client: object.to_path_buf(),
        workload,
        wire,
        suite,
        threads: 1,
        tickets: 1,
        sessions: Sessions::Tickets,
        contexts: Contexts::Shared,
        locks: Locks::Pthread,
        extent: Extent::Connections(20),
        identity: identity(suite.key),
    }
}

fn all_went_well(outcome: &Outcome, what: &str) {
    assert_eq!((outcome.failed, outcome.misreported), (0, 0), "{what}: {outcome:?}");
    assert!(outcome.done >= 20, "{what}: {outcome:?}");
}

/// Every suite that there is.
fn suites() -> Vec<Suite> {
    let mut suites = Vec::new();
    for version in [Version::Tls12, Version::Tls13] {
        for key in [Key::Rsa2048, Key::EcdsaP256] {
            for group in [Group::X25519, Group::Secp256r1, Group::X25519MlKem768] {
                suites.push(suite(version, key, group));
            }
        }
    }
    suites.retain(|suite| suite.exists());
    suites
}

#[test]
fn every_suite_in_memory_full_and_resumed() {
    for object in [null(), openssl()] {
        for suite in suites() {
            for workload in [Workload::Full, Workload::Resume] {
                let what = format!("{} {suite} {workload:?}", object.display());
                let outcome = measure(job(&object, workload, Wire::Memory, suite))
                    .unwrap_or_else(|error| panic!("{what}: {error}"));
                all_went_well(&outcome, &what);
                assert_eq!(outcome.done, 20, "{what}");
                let resumed = if workload == Workload::Resume { 20 } else { 0 };
                assert_eq!(outcome.resumed, resumed, "{what}");
                assert!(outcome.server.cpu_ns > 0 && outcome.client.cpu_ns > 0, "{what}");
            }
        }
    }
}

#[test]
fn over_loopback_with_shared_contexts_and_contexts_of_their_own() {
    for contexts in [Contexts::Shared, Contexts::PerThread] {
        for workload in [Workload::Full, Workload::Resume] {
            for object in [null(), openssl()] {
                let suite = suite(Version::Tls13, Key::EcdsaP256, Group::X25519);
                let job =
                    Job { threads: 2, contexts, ..job(&object, workload, Wire::Loopback, suite) };
                let what = format!("{} {contexts} {workload:?}", object.display());
                let outcome = measure(job).unwrap_or_else(|error| panic!("{what}: {error}"));
                all_went_well(&outcome, &what);
                let resumed = if workload == Workload::Resume { outcome.done } else { 0 };
                assert_eq!(outcome.resumed, resumed, "{what}");
            }
        }
    }
}

/// rustls, which is in this program.
fn rustls() -> PathBuf {
    PathBuf::from("built-in:rustls")
}

/// Resumption by session IDs, in TLS 1.2.
fn by_ids(server: &Path, client: &Path, sessions: Sessions, key: Key) -> Job {
    let suite = suite(Version::Tls12, key, Group::X25519);
    let job = job(server, Workload::Resume, Wire::Memory, suite);
    Job { client: client.to_path_buf(), sessions, threads: 2, ..job }
}

#[test]
fn sessions_are_resumed_by_their_ids_without_a_ticket() {
    let pairs = [
        (null(), null()),
        (openssl(), openssl()),
        (rustls(), rustls()),
        (openssl(), rustls()),
        (rustls(), openssl()),
    ];
    for (server, client) in &pairs {
        for sessions in [Sessions::Cache, Sessions::External] {
            for (wire, contexts, key) in [
                (Wire::Memory, Contexts::Shared, Key::EcdsaP256),
                (Wire::Memory, Contexts::PerThread, Key::Rsa2048),
                (Wire::Loopback, Contexts::Shared, Key::EcdsaP256),
                (Wire::Loopback, Contexts::PerThread, Key::EcdsaP256),
            ] {
                let what = format!("{} {} {sessions} {wire}", server.display(), client.display());
                let job = Job { wire, contexts, ..by_ids(server, client, sessions, key) };
                let outcome = measure(job).unwrap_or_else(|error| panic!("{what}: {error}"));
                all_went_well(&outcome, &what);
                // `done` are connections that the wire shows to have gone on without a ticket.
                assert_eq!(outcome.resumed, outcome.done, "{what}");
            }
        }
    }
}

#[test]
fn session_ids_are_for_resumption_in_tls_1_2() {
    let good = by_ids(&openssl(), &openssl(), Sessions::Cache, Key::EcdsaP256);
    let tls13 = Suite { version: Version::Tls13, ..good.suite };
    for wrong in [
        Job { suite: tls13, ..good.clone() },
        Job { workload: Workload::Full, ..good.clone() },
        Job { workload: Workload::Chain { proxies: 2 }, wire: Wire::Loopback, ..good.clone() },
    ] {
        let error = measure(wrong).unwrap_err();
        assert!(matches!(&error, DriverError::Unsupported { .. }), "{error}");
        assert!(error.to_string().contains("resumed handshakes of TLS 1.2"), "{error}");
    }
}

#[test]
fn a_chain_of_proxies_resumes_every_hop() {
    for version in [Version::Tls12, Version::Tls13] {
        let suite = suite(version, Key::Rsa2048, Group::X25519);
        let job = Job {
            threads: 2,
            ..job(&openssl(), Workload::Chain { proxies: 3 }, Wire::Loopback, suite)
        };
        let outcome = measure(job.clone()).unwrap();
        all_went_well(&outcome, "chain");
        // Each connection has the client's leg and one behind each proxy.
        assert_eq!((outcome.resumed, outcome.full_legs), (4 * outcome.done, 0), "{outcome:?}");
        let alone = Job { threads: 1, workload: Workload::Chain { proxies: 10 }, ..job };
        let outcome = measure(alone).unwrap();
        all_went_well(&outcome, "chain of ten");
        assert_eq!((outcome.resumed, outcome.full_legs), (11 * outcome.done, 0), "{outcome:?}");
    }
}

#[test]
fn bulk_moves_what_it_counts() {
    for cipher in [Cipher::Aes128Gcm, Cipher::Aes256Gcm, Cipher::ChaCha20Poly1305] {
        for version in [Version::Tls12, Version::Tls13] {
            let suite = Suite { version, key: Key::EcdsaP256, group: Group::X25519, cipher };
            for record in [1, 1460, 16_384, 40_000] {
                let job = job(&openssl(), Workload::Bulk { record }, Wire::Memory, suite);
                let outcome = measure(job).unwrap();
                assert_eq!((outcome.done, outcome.failed), (20, 0), "{outcome:?}");
                assert_eq!(outcome.bytes, 20 * record as u64);
            }
        }
    }
}

#[test]
fn a_stranger_s_certificate_is_refused() {
    let suite = suite(Version::Tls13, Key::EcdsaP256, Group::X25519);
    let good = job(&openssl(), Workload::Full, Wire::Memory, suite);
    let strange = Identity { roots: identity(Key::EcdsaP256).roots, ..good.identity.clone() };
    let misnamed = Identity { name: "other.test".into(), ..good.identity.clone() };
    for identity in [strange, misnamed] {
        for wire in [Wire::Memory, Wire::Loopback] {
            let outcome =
                measure(Job { identity: identity.clone(), wire, ..good.clone() }).unwrap();
            assert_eq!(outcome.done, 0, "{outcome:?}");
            let why = outcome.failure.unwrap();
            assert!(why.contains("certificate verify failed"), "{why}");
        }
    }
}

#[test]
fn what_is_no_driver_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("driver.so");
    std::fs::write(&file, "nothing").unwrap();
    let suite = suite(Version::Tls13, Key::EcdsaP256, Group::X25519);
    for path in [file.as_path(), Path::new("libm.so.6"), Path::new("/none/such.so")] {
        let error = measure(job(path, Workload::Full, Wire::Memory, suite)).unwrap_err();
        assert!(matches!(error, DriverError::NotADriver { .. }), "{error}");
    }
}
