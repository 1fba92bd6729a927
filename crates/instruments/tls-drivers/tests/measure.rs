//! Measurements in this process: the harness's own driver, and OpenSSL by the shim that all of its
//! family share.

use std::path::{Path, PathBuf};

use tls_drivers::host::measure;
use tls_drivers::{
    Cipher, Contexts, DriverError, Extent, Group, Identity, Job, Key, Locks, Outcome, Suite,
    Version, Wire, Workload,
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
