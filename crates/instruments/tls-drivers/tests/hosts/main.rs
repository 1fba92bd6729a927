//! Hosts in processes of their own: this program is its own host. Drivers that crash, hang or print
//! rubbish are compiled on the spot. With `--drivers` it tries the drivers that are built (see `matrix`).

mod ech;
mod matrix;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use lab_test::{Test, TestResult};
use tls_drivers::{HostError, Sessions, Supervisor, SupervisorOptions};

/// Where the interface's header is.
const INCLUDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../drivers/include");

type Case = fn(&Supervisor, &Path);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == "stacks-host") {
        let answered = host::serve_stdio(&tls_drivers::host::workers());
        return if answered.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    if let Some(at) = arguments.iter().position(|argument| argument == "--drivers") {
        let (supervisor, _folder) = supervisor();
        return matrix::matrix(&supervisor, arguments.get(at + 1..).unwrap_or_default());
    }
    if let Some(at) = arguments.iter().position(|argument| argument == "--ech") {
        let (supervisor, _folder) = supervisor();
        let built = matrix::built(arguments.get(at + 1..).unwrap_or_default());
        let failures = ech::all(&supervisor, &built);
        println!("{} drivers, {failures} failures", built.len());
        return if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    lab_test::main(&[
        Test::new("a_driver_describes_itself", || with(describes)),
        Test::new("a_crash_takes_only_the_host", || with(crashes)),
        Test::new("a_driver_that_hangs_is_ended", || with(hangs)),
        Test::new("rubbish_on_its_output_is_reported", || with(rubbish)),
        Test::new("a_process_left_behind_is_ended", || with(leaves_a_process)),
        Test::new("a_wish_to_stop_ends_the_host", || with(stops)),
        Test::new("misreported_resumption_is_counted", || with(misreports)),
        Test::new("a_driver_without_session_ids_is_not_asked", || with(without_session_ids)),
        Test::new("a_store_of_sessions_forgets_the_oldest", || with(store)),
        Test::new("a_session_that_has_no_id_is_no_sample", || with(ignores_session_ids)),
        Test::new("a_host_that_stays_makes_its_contexts_once", || with(keeps)),
        Test::new("a_crash_with_ech_takes_only_the_host", || with(ech::crashes)),
        Test::new("a_driver_that_only_says_that_it_has_ech_is_found_out", || with(ech::pretends)),
        Test::new("a_client_that_goes_on_after_a_rejection_is_found_out", || with(ech::goes_on)),
        Test::new("another_interface_is_refused", || with(other_interface)),
        Test::new("connections_weigh_something", || with(weights)),
    ])
}

fn supervisor() -> (Supervisor, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let supervisor = Supervisor::new(SupervisorOptions {
        program: std::env::current_exe().expect("a path"),
        arguments: vec!["stacks-host".into()],
    });
    (supervisor.expect("objects are written"), folder)
}

fn with(case: Case) -> TestResult {
    let (supervisor, folder) = supervisor();
    case(&supervisor, folder.path());
    Ok(())
}

/// A shared object out of a few lines of C.
fn object(folder: &Path, name: &str, text: &str) -> PathBuf {
    let (source, object) = (folder.join(format!("{name}.c")), folder.join(format!("{name}.so")));
    std::fs::write(&source, text).expect("a file is written");
    let status = Command::new("cc")
        .args(["-shared", "-fPIC", "-I", INCLUDE, "-o"])
        .arg(&object)
        .arg(&source)
        .status();
    assert!(status.expect("cc runs").success());
    object
}

fn describes(supervisor: &Supervisor, folder: &Path) {
    let path = folder.join("null.so");
    std::fs::write(&path, tls_drivers::NULL).expect("a file is written");
    let described = supervisor.describe(&path).expect("it answers");
    assert_eq!((described.library.as_str(), described.version.as_str()), ("null", "null 1"));
}

fn crashes(supervisor: &Supervisor, folder: &Path) {
    let text = "#include <stdio.h>\n#include <stdlib.h>\n\
                void *wiretax_driver(void) { fputs(\"last words\\n\", stderr); abort(); }";
    let error = supervisor.describe(&object(folder, "crashes", text)).expect_err("it dies");
    let reported = error.to_string();
    assert!(matches!(error, HostError::Crashed { .. }), "{reported}");
    assert!(
        reported.contains("crashes: ")
            && reported.contains("signal 6")
            && reported.contains("last words"),
        "{reported}"
    );
}

fn hangs(supervisor: &Supervisor, folder: &Path) {
    let text = "#include <unistd.h>\nvoid *wiretax_driver(void) { for (;;) pause(); }";
    let path = object(folder, "hangs", text);
    let job = job(&path);
    let error = supervisor.run(&job, Duration::from_millis(300)).expect_err("it never answers");
    assert!(matches!(error, HostError::Hung { .. }), "{error}");
    assert!(error.to_string().contains("hangs: "), "{error}");
}

fn rubbish(supervisor: &Supervisor, folder: &Path) {
    let text = "#include <stdio.h>\n#include <unistd.h>\n\
                void *wiretax_driver(void) { puts(\"{{{\\033[2J\"); fflush(stdout); _exit(0); }";
    let error = supervisor.describe(&object(folder, "rubbish", text)).expect_err("no answer");
    let reported = error.to_string();
    assert!(matches!(error, HostError::Rubbish { .. }), "{reported}");
    assert!(reported.contains("rubbish: ") && !reported.contains('\u{1b}'), "{reported}");
}

fn leaves_a_process(supervisor: &Supervisor, folder: &Path) {
    let reported = folder.join("left");
    let text = format!(
        "#include <stdio.h>\n#include <unistd.h>\n\
         void *wiretax_driver(void) {{ int pid = fork(); if (pid == 0) for (;;) pause();\n\
         FILE *file = fopen(\"{}\", \"w\"); fprintf(file, \"%d\", pid); fclose(file); _exit(7); }}",
        reported.display()
    );
    // It holds the host's output open, so that nothing but its end lets this return.
    let error = supervisor.describe(&object(folder, "forks", &text)).expect_err("no answer");
    assert!(error.to_string().contains("forks: its host crashed (exit status 7"), "{error}");
    let pid = std::fs::read_to_string(reported).expect("it started a process");
    // It dies when it is next scheduled, and whoever adopted it may not wait for it at once.
    let runs = || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        !stat.is_empty() && !stat.contains(") Z ")
    };
    for _ in 0..1000 {
        if !runs() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("process {pid} still runs");
}

fn stops(supervisor: &Supervisor, folder: &Path) {
    let text = "#include <unistd.h>\nvoid *wiretax_driver(void) { for (;;) pause(); }";
    let job = job(&object(folder, "waits", text));
    let supervisor = supervisor.clone().stopping_when(|| true);
    let error = supervisor.run(&job, Duration::from_secs(600)).expect_err("it is ended");
    assert!(matches!(error, HostError::Stopped { .. }), "{error}");
}

/// The harness's own driver, which says of every connection that it was resumed.
fn misreports(supervisor: &Supervisor, folder: &Path) {
    let drivers = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../drivers");
    let text = format!(
        "#include \"{drivers}/shim/null.c\"\n\
         static int lie(wt_conn *conn, struct wt_facts *reported) {{\n\
         int done = facts(conn, reported); reported->resumed = 1; return done; }}\n\
         const struct wt_driver *wiretax_driver(void) {{\n\
         static struct wt_driver lying; lying = driver; lying.facts = lie; return &lying; }}"
    );
    let object = object(folder, "lies", &text);
    let job = tls_drivers::Job { extent: tls_drivers::Extent::Connections(5), ..job(&object) };
    let reply = supervisor.run(&job, Duration::from_secs(60)).expect("it answers");
    let tls_drivers::Reply::Done(outcome) = reply else { panic!("{reply:?}") };
    assert!(outcome.misreported >= 5 && outcome.resumed == 0, "{outcome:?}");
}

/// A driver from before session IDs: nothing says that it has them, and it would die if it were asked.
fn without_session_ids(supervisor: &Supervisor, folder: &Path) {
    let drivers = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../drivers");
    let text = format!(
        "#include <stdlib.h>\n#include \"{drivers}/shim/null.c\"\n\
         static uint64_t few(void) {{ return WT_TLS_1_2 | WT_TLS_1_3; }}\n\
         static int never(const struct wt_config *config, wt_context **out) {{\n\
         (void)config; (void)out; abort(); }}\n\
         const struct wt_driver *wiretax_driver(void) {{\n\
         static struct wt_driver old; old = driver; old.functions = few; old.context_new = never;\n\
         return &old; }}"
    );
    let object = object(folder, "old", &text);
    let null = folder.join("null.so");
    std::fs::write(&null, tls_drivers::NULL).expect("a file is written");
    for sessions in [Sessions::Cache, Sessions::External] {
        let job = by_ids(&object, sessions);
        let client = tls_drivers::Job { server: null.clone(), ..job.clone() };
        for (job, said) in [(job, sessions.text()), (client, "client has no session IDs")] {
            let reply = supervisor.run(&job, Duration::from_secs(60)).expect("it answers");
            let tls_drivers::Reply::Unsupported(why) = reply else { panic!("{reply:?}") };
            assert!(why.starts_with("null: its driver") && why.ends_with(said), "{why}");
        }
    }
}

/// The store that shims in C keep (`wiretax_store.h`): more sessions than it holds, renewed, removed and
/// looked for.
fn store(_: &Supervisor, folder: &Path) {
    let text = r#"
        #undef NDEBUG
        #include <assert.h>
        #include "wiretax_store.h"
        static unsigned char id[32], found[WT_STORE_BYTES];
        /* IDs of 256 chains only, so that chains are long. */
        static void name(unsigned n) {
            memset(id, 7, sizeof id);
            id[3] = (unsigned char)n;
            memcpy(id + 8, &n, sizeof n);
        }
        static size_t get(struct wt_store *store, unsigned n) {
            name(n);
            memset(found, 0, sizeof found);
            return wt_store_get(store, id, 32, found);
        }
        static int put(struct wt_store *store, unsigned n, unsigned char byte, size_t len) {
            unsigned char bytes[WT_STORE_BYTES + 1];
            memset(bytes, byte, sizeof bytes);
            name(n);
            return wt_store_put(store, id, 32, bytes, len);
        }
        int main(void) {
            struct wt_store *store = wt_store_new();
            assert(store != NULL && get(store, 0) == 0);
            for (unsigned n = 0; n < WT_SESSIONS_HELD + 2; n++) {
                assert(put(store, n, (unsigned char)n, 1 + n % 300) == 1);
            }
            /* The first two gave way. */
            assert(get(store, 0) == 0 && get(store, 1) == 0);
            assert(get(store, 2) == 3 && found[2] == 2 && found[3] == 0);
            assert(get(store, WT_SESSIONS_HELD + 1) == 1 + (WT_SESSIONS_HELD + 1) % 300);
            /* The same ID again is the same session, renewed; it is the newest then. */
            assert(put(store, 4, 99, 5) == 1 && get(store, 4) == 5 && found[4] == 99);
            name(5);
            wt_store_remove(store, id, 32);
            wt_store_remove(store, id, 32);
            assert(get(store, 5) == 0 && get(store, 6) == 7);
            /* What it has no room for, and no ID at all. */
            assert(put(store, 9, 1, WT_STORE_BYTES + 1) == 0 && put(store, 9, 1, 0) == 0);
            assert(get(store, 9) == 10 && wt_store_put(store, id, 33, id, 1) == 0);
            assert(wt_store_put(store, id, 0, id, 1) == 0 && wt_store_get(store, id, 0, found) == 0);
            for (unsigned n = 0; n < 3 * WT_SESSIONS_HELD; n++) {
                assert(put(store, n, 1, 1) == 1);
            }
            wt_store_free(store);
            return 0;
        }"#;
    let (source, program) = (folder.join("store.c"), folder.join("store"));
    std::fs::write(&source, text).expect("a file is written");
    let mut cc = Command::new("cc");
    cc.args(["-O1", "-Wall", "-Wextra", "-Werror", "-I", INCLUDE, "-o"]).arg(&program).arg(&source);
    assert!(cc.arg("-lpthread").status().expect("cc runs").success());
    let output = Command::new(&program).output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The harness's own driver, which says that it knows session IDs and does as if nobody had asked.
fn ignores_session_ids(supervisor: &Supervisor, folder: &Path) {
    let drivers = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../drivers");
    let text = format!(
        "#include \"{drivers}/shim/null.c\"\n\
         static int deaf(const struct wt_config *config, wt_context **out) {{\n\
         struct wt_config other = *config; other.sessions = WT_SESSIONS_TICKETS;\n\
         return context_new(&other, out); }}\n\
         const struct wt_driver *wiretax_driver(void) {{\n\
         static struct wt_driver changed; changed = driver; changed.context_new = deaf;\n\
         return &changed; }}"
    );
    let job = by_ids(&object(folder, "deaf", &text), Sessions::External);
    let reply = supervisor.run(&job, Duration::from_secs(60)).expect("it answers");
    let tls_drivers::Reply::Done(outcome) = reply else { panic!("{reply:?}") };
    assert_eq!(outcome.done, 0, "{outcome:?}");
    let why = outcome.failure.expect("it says why");
    assert!(why.contains("no session ID where a session ID without a ticket"), "{why}");
}

fn by_ids(object: &Path, sessions: Sessions) -> tls_drivers::Job {
    let job = job(object);
    let suite = tls_drivers::Suite { version: tls_drivers::Version::Tls12, ..job.suite };
    tls_drivers::Job { sessions, suite, workload: tls_drivers::Workload::Resume, ..job }
}

/// The harness's own driver, which makes two contexts and no more: one for each side.
fn keeps(supervisor: &Supervisor, folder: &Path) {
    let drivers = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../drivers");
    let text = format!(
        "#include <stdlib.h>\n#include \"{drivers}/shim/null.c\"\n\
         static int made;\n\
         static int twice(const struct wt_config *config, wt_context **out) {{\n\
         if (++made > 2) abort(); return context_new(config, out); }}\n\
         const struct wt_driver *wiretax_driver(void) {{\n\
         static struct wt_driver few; few = driver; few.context_new = twice; return &few; }}"
    );
    let long = Duration::from_secs(60);
    let first = job(&object(folder, "few", &text));
    let mut kept = supervisor.keep(&first).expect("it starts");
    for connections in [5, 7, 5] {
        let job = tls_drivers::Job {
            extent: tls_drivers::Extent::Connections(connections),
            ..first.clone()
        };
        let reply = kept.run_until(&job, long, &|| false).expect("it answers");
        let tls_drivers::Reply::Done(outcome) = reply else { panic!("{reply:?}") };
        assert_eq!((outcome.done, outcome.failed), (connections, 0), "{outcome:?}");
        assert!(outcome.waited_ns.is_some_and(|waited| waited <= outcome.wall_ns), "{outcome:?}");
    }
    assert!(kept.is_usable());
    // Another job takes contexts of its own.
    let other = tls_drivers::Job { tickets: 2, ..first };
    let error = kept.run_until(&other, long, &|| false).expect_err("it aborts");
    assert!(error.to_string().contains("few: its host crashed (signal 6)"), "{error}");
    assert!(!kept.is_usable());
}

fn other_interface(supervisor: &Supervisor, folder: &Path) {
    let text = "static const unsigned table[64] = {77, 256};\n\
                const void *wiretax_driver(void) { return table; }";
    let error = supervisor.describe(&object(folder, "newer", text)).expect_err("it is refused");
    assert!(error.to_string().contains("version 77 of the interface"), "{error}");
}

/// In a process of its own: the heap is everybody's.
fn weights(supervisor: &Supervisor, _: &Path) {
    let object = env!("WIRETAX_TEST_OPENSSL");
    let made = tls::Identity::generate(tls::KeyType::EcdsaP256, 1, &["server.test"]);
    let made = made.expect("an identity");
    let identity = tls_drivers::Identity {
        chain: made.chain_pem().expect("PEM"),
        key: made.private_key_pem().expect("PEM").to_string(),
        roots: made.root_pem().expect("PEM"),
        name: "server.test".into(),
    };
    let workload = tls_drivers::Workload::Footprint { connections: 50 };
    let job = tls_drivers::Job { workload, identity, ..job(Path::new(object)) };
    let reply = supervisor.run(&job, Duration::from_secs(60)).expect("it answers");
    let tls_drivers::Reply::Done(outcome) = reply else { panic!("{reply:?}") };
    for side in [outcome.server, outcome.client] {
        let footprint = side.footprint.expect("it was weighed");
        // A connection has buffers of records of 16 KiB at least.
        assert!(footprint.idle_bytes > 16 << 10, "{footprint:?}");
        assert!(footprint.handshaking_bytes > 1 << 10, "{footprint:?}");
    }
}

fn job(path: &Path) -> tls_drivers::Job {
    use tls_drivers::{
        Cipher, Contexts, Extent, Group, Identity, Job, Key, Locks, Suite, Version, Wire, Workload,
    };
    let text = String::new;
    Job {
        server: path.to_path_buf(),
        client: path.to_path_buf(),
        workload: Workload::Full,
        wire: Wire::Memory,
        suite: Suite {
            version: Version::Tls13,
            key: Key::EcdsaP256,
            group: Group::X25519,
            cipher: Cipher::Aes128Gcm,
        },
        threads: 1,
        tickets: 1,
        sessions: Sessions::Tickets,
        contexts: Contexts::Shared,
        locks: Locks::Pthread,
        extent: Extent::Connections(1),
        identity: Identity { chain: text(), key: text(), roots: text(), name: text() },
    }
}
