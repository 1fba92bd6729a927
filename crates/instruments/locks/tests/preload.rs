//! The objects as they are used: preloaded into programs.

use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicI32, Ordering::SeqCst};

use locks::{Cost, CostError, Counter, Counts, Kind, Object, Operation, Side, contended_cost};

/// Compiles a C source of `tests/` (or a text) into `dir`.
fn compile(dir: &Path, name: &str, source: &Path, flags: &[&str]) -> PathBuf {
    let output = dir.join(name);
    let mut command = Command::new("cc");
    command.args(["-O2", "-Wall", "-Wextra", "-Werror", "-pthread", "-o"]);
    command.arg(&output).arg(source).args(flags);
    assert!(command.status().unwrap().success(), "{command:?}");
    output
}

fn in_tests(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

/// This program again, for one of its ignored tests.
fn again(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--ignored", "--nocapture", "--test-threads=1"]);
    command
}

fn succeed(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{text}\n{errors}", output.status);
    text
}

#[test]
fn every_interleaving_of_the_light_locks_keeps_their_promises() {
    let dir = tempfile::tempdir().unwrap();
    // It jumps between stacks, which a fortified longjmp takes for a mistake.
    let flags = ["-U_FORTIFY_SOURCE", "-Wno-clobbered"];
    let model = compile(dir.path(), "model", &in_tests("model.c"), &flags);
    let said = succeed(&mut Command::new(model));
    let runs: Vec<(&str, u64)> = said
        .lines()
        .filter_map(|line| line.strip_suffix(" runs")?.split_once(": "))
        .map(|(name, runs)| (name, runs.parse().unwrap()))
        .collect();
    assert!(runs.len() >= 24, "{said}");
    assert!(runs.iter().all(|&(_, runs)| runs > 50), "{said}");
}

#[test]
fn locks_keep_their_promises_with_and_without_the_objects() {
    let dir = tempfile::tempdir().unwrap();
    let stress = compile(dir.path(), "stress", &in_tests("stress.c"), &[]);
    for object in [None, Some(Object::Light), Some(Object::Count)] {
        let mut command = Command::new(&stress);
        command.arg("4000");
        if let Some(object) = object {
            object.preload(dir.path(), &mut command).unwrap();
        }
        assert_eq!(succeed(&mut command), "all held\n", "{object:?}");
    }
}

#[test]
fn ordinary_programs_run_under_the_objects() {
    let dir = tempfile::tempdir().unwrap();
    let python = "import threading, concurrent.futures as f, queue\n\
        q = queue.Queue(5)\n\
        t = threading.Thread(target=lambda: [q.put(i) for i in range(500)]); t.start()\n\
        s = sum(q.get() for _ in range(500)); t.join()\n\
        print(s + sum(f.ThreadPoolExecutor(8).map(lambda x: x * x, range(2000))))";
    let xz = "head -c 6000000 /dev/zero | xz -0 -T2 --block-size=1MiB | xz -dc -T2 | wc -c";
    let programs: [(&[&str], &str); 4] = [
        (&["python3", "-c", python], "2664791750"),
        (&["sh", "-c", xz], "6000000"),
        (&["openssl", "dgst", "-sha256", "/dev/null"], "e3b0c44298fc1c14"),
        (&["git", "--version"], "git version"),
    ];
    for object in [Object::Light, Object::Count] {
        for (line, expected) in programs {
            if Command::new(line[0]).arg("--version").output().is_err() {
                let need = lab_test::Need::of_program(line[0]);
                lab_test::skipped(need, &format!("{} is not installed", line[0]));
                continue;
            }
            let mut command = Command::new(line[0]);
            command.args(&line[1..]);
            object.preload(dir.path(), &mut command).unwrap();
            let said = succeed(&mut command);
            assert!(said.contains(expected), "{object:?} {line:?}: {said}");
        }
    }
}

/// A library with wrappers as TLS libraries have them.
const LIBRARY: &str = r#"
#include <pthread.h>
static pthread_rwlock_t store = PTHREAD_RWLOCK_INITIALIZER;
static pthread_mutex_t cache = PTHREAD_MUTEX_INITIALIZER;
static pthread_spinlock_t spin;
#define APART __attribute__((noinline, noclone))
APART int CRYPTO_THREAD_read_lock(pthread_rwlock_t *l) {
    int r = pthread_rwlock_rdlock(l); __asm__ volatile(""); return r; }
APART int CRYPTO_THREAD_write_lock(pthread_rwlock_t *l) {
    int r = pthread_rwlock_wrlock(l); __asm__ volatile(""); return r; }
static APART void find_method(void) {
    CRYPTO_THREAD_read_lock(&store); __asm__ volatile(""); pthread_rwlock_unlock(&store); }
static APART void add_method(void) {
    CRYPTO_THREAD_write_lock(&store); __asm__ volatile(""); pthread_rwlock_unlock(&store); }
static APART void look_up(void) {
    pthread_mutex_lock(&cache);
    if (pthread_mutex_trylock(&cache) == 0) pthread_mutex_unlock(&cache);
    pthread_mutex_unlock(&cache); }
void step(void) {
    for (int i = 0; i < 5; i++) find_method();
    add_method();
    look_up(); look_up();
    pthread_spin_init(&spin, 0); pthread_spin_lock(&spin); pthread_spin_unlock(&spin);
}
void hold(void) { pthread_mutex_lock(&cache); __asm__ volatile(""); }
void let_go(void) { pthread_mutex_unlock(&cache); }
"#;

#[test]
fn locks_are_counted_with_their_sites() {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("library.c");
    std::fs::write(&source, LIBRARY).unwrap();
    let library = compile(dir.path(), "library.so", &source, &["-shared", "-fPIC"]);
    let mut command = again("child_counts");
    command.env("LOCKS_TEST_LIBRARY", library);
    Object::Count.preload(dir.path(), &mut command).unwrap();
    succeed(&mut command);
}

fn function(library: *mut libc::c_void, name: &str) -> extern "C" fn() {
    let name = CString::new(name).unwrap();
    // SAFETY: the library is the one above, where these take and return nothing.
    unsafe {
        let found = libc::dlsym(library, name.as_ptr());
        assert!(!found.is_null());
        std::mem::transmute::<*mut libc::c_void, extern "C" fn()>(found)
    }
}

#[test]
#[ignore = "run by locks_are_counted_with_their_sites, with the object preloaded"]
fn child_counts() {
    assert_eq!(locks::preloaded(), Some(Object::Count));
    let path = CString::new(std::env::var("LOCKS_TEST_LIBRARY").unwrap()).unwrap();
    // SAFETY: the library above has no constructors.
    let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    assert!(!library.is_null());
    let step = function(library, "step");
    let counter = Counter::find().unwrap();

    step();
    assert_eq!(counter.sums(Side::Server), Counts::default(), "not asked for");
    counter.side(Side::Server);
    step();
    counter.side(Side::Client);
    step();
    step();
    counter.side(Side::None);
    step();
    let server = counter.read(Side::Server);
    assert_eq!((server.read, server.write, server.mutex, server.spin), (5, 1, 2, 1));
    assert_eq!((server.contended, server.wait_ns, server.lost_sites), (0, 0, 0));
    let sites: Vec<_> =
        server.sites.iter().map(|site| (site.symbol.as_str(), site.kind, site.count)).collect();
    let expected = [
        ("find_method", Kind::Read, 5),
        ("look_up", Kind::Mutex, 2),
        ("add_method", Kind::Write, 1),
        ("step", Kind::Spin, 1),
    ];
    assert_eq!(sites, expected);
    assert!(server.sites.iter().all(|site| site.object == "library.so"), "{server:?}");
    let client = counter.read(Side::Client);
    assert_eq!((client.total(), client.sites[0].count), (18, 10));

    // Threads that have ended count, and their blocks are used again.
    for _ in 0..3 {
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    counter.side(Side::Server);
                    step();
                });
            }
        });
    }
    let all = counter.read(Side::Server);
    let threads = all.since(&server);
    assert_eq!((threads.read, threads.write, threads.mutex, threads.spin), (60, 12, 24, 12));
    assert_eq!(threads.sites[0].count, 60);

    // One that waits is told from those that do not.
    let (hold, let_go) = (function(library, "hold"), function(library, "let_go"));
    let thread = AtomicI32::new(0);
    hold();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            counter.side(Side::Client);
            // SAFETY: takes nothing and cannot fail.
            thread.store(unsafe { libc::gettid() }, SeqCst);
            hold();
            let_go();
        });
        // After it has said who it is, it sleeps nowhere but at the lock.
        while thread.load(SeqCst) == 0 || !sleeps(thread.load(SeqCst)) {
            std::thread::yield_now();
        }
        let_go();
    });
    let client = counter.read(Side::Client).since(&client);
    assert_eq!((client.mutex, client.contended, client.total()), (1, 1, 1));
    assert!(client.wait_ns > 0);
    assert_eq!(client.sites[0].symbol, "hold");
}

/// Whether a thread of this process sleeps (proc_pid_stat(5)).
fn sleeps(thread: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat")).unwrap();
    stat.rsplit(')').next().unwrap().starts_with(" S")
}

#[test]
fn the_cost_of_a_lock_is_measured_in_a_process_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    for (operation, object) in [
        (Operation::Read, None),
        (Operation::Write, Some(Object::Light)),
        (Operation::FetchAdd, None),
    ] {
        let cost = match contended_cost(operation, object, again("child_cost"), dir.path()) {
            Ok(cost) => cost,
            // On busy or single processors that is the right answer.
            Err(CostError::Process { message, .. }) if message.contains("processors") => {
                eprintln!("not measured: {message}");
                continue;
            }
            Err(error) => panic!("{operation:?} {object:?}: {error}"),
        };
        for estimate in [cost.uncontended, cost.contended] {
            assert!(estimate.low > 0.0 && estimate.low <= estimate.high, "{cost:?}");
        }
        assert!(cost.rounds >= 21);
    }
    let refused =
        contended_cost(Operation::Read, Some(Object::Light), again("child_lies"), dir.path());
    assert!(matches!(refused, Err(CostError::NotPreloaded { .. })), "{refused:?}");
}

#[test]
#[ignore = "run by the_cost_of_a_lock_is_measured_in_a_process_of_its_own"]
fn child_cost() {
    let name = std::env::args().next_back().unwrap();
    let operation = Operation::named(&name).unwrap();
    match locks::cost::measure(operation) {
        // The harness has written the beginning of the line.
        Ok(cost) => println!("\n{}", serde_json::to_string(&cost).unwrap()),
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(1); // not by a panic, whose backtrace would push the reason out
        }
    }
}

#[test]
#[ignore = "run by the_cost_of_a_lock_is_measured_in_a_process_of_its_own"]
fn child_lies() {
    let estimate = stats::Estimate { value: 1.0, low: 1.0, high: 1.0, confidence: 0.95 };
    let cost = Cost {
        operation: Operation::Read,
        object: None,
        uncontended: estimate,
        handed_over: estimate,
        contended: estimate,
        rounds: 30,
        left_out: 0,
    };
    println!("\n{}", serde_json::to_string(&cost).unwrap());
}
