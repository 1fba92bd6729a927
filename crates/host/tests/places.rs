//! Jobs done by threads and by processes: this program is its own host.

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fault::{Explain, Fault, Problem};
use host::{
    Host, HostError, KeptHost, LONGEST_FRAME, Launch, Message, Outlet, Place, Registry, Worker,
};
use serde::{Deserialize, Serialize};

const LONG: Duration = Duration::from_secs(60);

/// Does what it is told, the worst included.
struct Obeys;

#[derive(Debug, Clone, Serialize, Deserialize)]
enum Order {
    /// Streams this many samples, an attachment and an event, and counts them.
    Stream(u32),
    Refuse,
    Panic,
    Abort,
    Exit(i32),
    /// Writes these bytes to standard output, as a library might, and exits with 0.
    Print(Vec<u8>),
    /// Sends samples without end, each of this many bytes.
    Flood(usize),
    /// Waits until it is stopped.
    Hang,
    /// Gives a sample, waits until it is stopped, and gives two more.
    Finish,
    /// Leaves a process behind that holds the output open, says its number, and exits.
    Leave,
    /// Answers, and does not end.
    Linger,
    /// Says what its environment has.
    Environment,
    /// Counts how often this process was asked to.
    Count,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Answer {
    done: u32,
    said: String,
}

impl Worker for Obeys {
    const KIND: &'static str = "obey";
    type Job = Order;
    type Answer = Answer;

    fn work(&self, order: Order, outlet: &mut Outlet<'_>) -> Result<Answer, Problem> {
        let gone = Problem::from;
        let (mut done, mut said) = (0, String::new());
        match order {
            Order::Stream(count) => {
                outlet.event("beginning").map_err(gone)?;
                for number in 0..count {
                    outlet.sample(&number).map_err(gone)?;
                }
                outlet.attachment("trace.bin", vec![7; 100_000]).map_err(gone)?;
                assert!(outlet.attachment("../trace", Vec::new()).is_err());
                done = count;
            }
            Order::Refuse => {
                let problem = Problem::new(Fault::Machine, "I would rather not");
                return Err(problem.with_remedy("ask another"));
            }
            Order::Panic => panic!("out of cheese"),
            Order::Abort => {
                eprintln!("my last\x1b words");
                std::process::abort();
            }
            Order::Exit(status) => std::process::exit(status),
            Order::Print(bytes) => {
                let mut out = std::io::stdout();
                out.write_all(&bytes).and_then(|()| out.flush()).expect("it is read");
                std::process::exit(0);
            }
            Order::Flood(bytes) => loop {
                outlet.sample(&"x".repeat(bytes)).map_err(gone)?;
                SENT.fetch_add(1, Ordering::SeqCst);
            },
            Order::Hang => {
                while !outlet.stopped() {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
            Order::Finish => {
                outlet.sample(&"begun").map_err(gone)?;
                while !outlet.stopped() {
                    std::thread::sleep(Duration::from_millis(1));
                }
                outlet.sample(&"stopped").map_err(gone)?;
                outlet.sample(&"finished").map_err(gone)?;
            }
            Order::Leave => {
                let child = std::process::Command::new("sleep").arg("300").spawn();
                outlet.sample(&child.expect("it starts").id()).map_err(gone)?;
                std::process::exit(7);
            }
            Order::Linger => {
                std::thread::spawn(|| ()).join().expect("it ends");
                LINGERS.store(1, Ordering::SeqCst);
            }
            Order::Count => done = COUNTED.fetch_add(1, Ordering::SeqCst) as u32 + 1,
            Order::Environment => {
                said = std::env::vars().map(|(name, value)| format!("{name}={value};")).collect();
            }
        }
        Ok(Answer { done, said })
    }
}

static SENT: AtomicUsize = AtomicUsize::new(0);
static LINGERS: AtomicUsize = AtomicUsize::new(0);
static COUNTED: AtomicUsize = AtomicUsize::new(0);

type Case = (&'static str, fn());

const CASES: [Case; 16] = [
    ("messages_come_in_order_and_then_the_answer", streams),
    ("a_refusal_is_reported", refuses),
    ("a_panic_takes_only_the_host", panics),
    ("a_crash_is_reported_with_its_signal_and_last_words", crashes),
    ("rubbish_on_the_output_is_reported", rubbish),
    ("a_host_that_hangs_is_ended", hangs),
    ("a_wish_to_stop_ends_the_host", stops),
    ("a_thread_that_is_asked_to_end_may_finish", finishes),
    ("a_flood_waits_for_who_takes_it", floods),
    ("a_process_left_behind_is_ended", leaves),
    ("a_host_that_does_not_end_is_ended", lingers),
    ("a_kept_host_does_one_job_after_another", keeps),
    ("a_kept_host_that_breaks_is_reported_and_asked_no_more", breaks),
    ("only_what_was_given_is_in_the_environment", environment),
    ("a_job_of_an_unknown_kind_is_refused", unknown),
    ("a_program_that_is_not_there_is_reported", missing),
];

fn registry() -> Registry {
    Registry::new().with(Obeys)
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == "serve") {
        let served = host::serve_stdio(&registry());
        while LINGERS.load(Ordering::SeqCst) == 1 {
            std::thread::park();
        }
        return if served.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    if arguments.iter().any(|argument| argument == "--list") {
        CASES.iter().for_each(|(name, _)| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    let wanted = arguments.iter().find(|argument| !argument.starts_with('-'));
    for (name, case) in CASES {
        if wanted.is_none_or(|wanted| name.contains(wanted.as_str())) {
            case();
            println!("test {name} ... ok");
        }
    }
    ExitCode::SUCCESS
}

fn launch() -> Launch {
    Launch {
        program: std::env::current_exe().expect("a path"),
        arguments: vec!["serve".into()],
        environment: vec![("GREETING".into(), "good day".into())],
    }
}

fn process() -> Host {
    Host::new(Place::Process(launch()))
}

fn both() -> [Host; 2] {
    [Host::new(Place::Thread(registry())), process()]
}

fn order(host: &Host, order: Order, limit: Duration) -> Result<Answer, HostError> {
    host.run::<Obeys>("it", &order, limit, |_| ())
}

fn streams() {
    for host in both() {
        let mut messages = Vec::new();
        let answer = host.run::<Obeys>("it", &Order::Stream(500), LONG, |m| messages.push(m));
        assert_eq!(answer.expect("an answer").done, 500);
        assert_eq!(messages.len(), 502);
        assert_eq!(messages[0], Message::Event("beginning".to_owned()));
        for (number, message) in messages[1..501].iter().enumerate() {
            assert_eq!(*message, Message::Sample(number.into()));
        }
        let Message::Attachment(attachment) = &messages[501] else { panic!("{:?}", messages[501]) };
        assert_eq!((attachment.name.as_str(), attachment.bytes.len()), ("trace.bin", 100_000));
    }
}

fn refuses() {
    for host in both() {
        let error = order(&host, Order::Refuse, LONG).expect_err("it refuses");
        assert!(matches!(&error, HostError::Failed { .. }), "{error}");
        assert_eq!(error.to_string(), "it: I would rather not");
        assert_eq!(
            (error.fault(), error.remedy().as_deref()),
            (Fault::Machine, Some("ask another"))
        );
    }
}

fn panics() {
    let [thread, process] = both();
    let error = order(&thread, Order::Panic, LONG).expect_err("it panics");
    assert!(error.to_string().contains("it panicked: out of cheese"), "{error}");
    let error = order(&process, Order::Panic, LONG).expect_err("it panics");
    assert!(
        matches!(&error, HostError::Crashed { how, .. } if how == "exit status 101"),
        "{error}"
    );
    assert!(error.to_string().contains("out of cheese"), "{error}");
}

fn crashes() {
    let error = order(&process(), Order::Abort, LONG).expect_err("it dies");
    let text = "it: its host crashed (signal 6); it last wrote: my last\u{fffd} words";
    assert_eq!(error.to_string(), text);
    let error = order(&process(), Order::Exit(3), LONG).expect_err("it ends");
    assert_eq!(error.to_string(), "it: its host crashed (exit status 3)");
    let error = order(&process(), Order::Exit(0), LONG).expect_err("it ends");
    assert!(
        matches!(&error, HostError::Rubbish { what, .. } if what.contains("without an answer"))
    );
}

fn rubbish() {
    let frame = |length: u32, kind: u8, payload: &[u8]| {
        [&length.to_le_bytes()[..], &[kind], payload].concat()
    };
    for bytes in [
        b"hello, world\n".to_vec(),
        b"x".to_vec(),
        frame(LONGEST_FRAME + 1, b'D', b""),
        frame(10, b'D', b"1"),
        frame(1, b'D', b"{"),
        frame(2, b'D', b"{}"),
        frame(1, b'?', b"x"),
        frame(3, b'A', &[9, b'a', b'b']),
        frame(4, b'A', &[3, b'.', b'.', b'/']),
        frame(2, b'J', b"{}"),
        [frame(4, b'D', b"null"), frame(4, b'D', b"null")].concat(),
    ] {
        let error = order(&process(), Order::Print(bytes.clone()), LONG).expect_err("rubbish");
        assert!(matches!(&error, HostError::Rubbish { .. }), "{bytes:?}: {error}");
        assert!(!error.to_string().chars().any(char::is_control), "{error:?}");
    }
}

fn hangs() {
    for host in both() {
        let limit = Duration::from_millis(200);
        let error = order(&host, Order::Hang, limit).expect_err("it never answers");
        assert!(matches!(&error, HostError::Hung { limit: had, .. } if *had == limit), "{error}");
    }
}

fn stops() {
    for host in both() {
        let error =
            order(&host.stopping_when(|| true), Order::Hang, LONG).expect_err("it is ended");
        assert!(matches!(&error, HostError::Stopped { .. }), "{error}");
    }
}

/// A thread that is asked to end may finish what it is at, if it is given the time.
fn finishes() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let host = Host::new(Place::Thread(registry())).granting(LONG);
    let host = host.stopping_when(move || count.load(Ordering::SeqCst) > 0);
    let mut given = Vec::new();
    let ended = host.run::<Obeys>("it", &Order::Finish, LONG, |message| {
        asked.store(1, Ordering::SeqCst);
        given.push(message);
    });
    assert!(matches!(ended, Err(HostError::Stopped { .. })), "{ended:?}");
    assert_eq!(given, ["begun", "stopped", "finished"].map(|step| Message::Sample(step.into())));
}

/// What is not taken is not sent: at most a few messages are ahead of who takes them.
fn floods() {
    let taken = Arc::new(AtomicUsize::new(0));
    let (count, seen) = (Arc::clone(&taken), Arc::clone(&taken));
    let host = Host::new(Place::Thread(registry()));
    let host = host.stopping_when(move || seen.load(Ordering::SeqCst) >= 50);
    let ended = host.run::<Obeys>("it", &Order::Flood(1000), LONG, move |_| {
        let taken = count.fetch_add(1, Ordering::SeqCst) + 1;
        assert!(SENT.load(Ordering::SeqCst) <= taken + 3);
    });
    assert!(matches!(ended, Err(HostError::Stopped { .. })), "{ended:?}");
    assert_eq!(taken.load(Ordering::SeqCst), 50);
    // A process is held by its pipe: what waits here is one frame.
    let seen = Arc::clone(&taken);
    let host = process().stopping_when(move || seen.load(Ordering::SeqCst) >= 150);
    let before = resident();
    let ended = host.run::<Obeys>("it", &Order::Flood(1 << 20), LONG, |_| {
        taken.fetch_add(1, Ordering::SeqCst);
    });
    assert!(matches!(ended, Err(HostError::Stopped { .. })), "{ended:?}");
    // 100 frames of 1 MiB came; a handful of copies at once is what may be held.
    let grown = resident().saturating_sub(before);
    assert!(grown < 25 << 20, "{grown} bytes");
}

/// The most memory that this process has had, in bytes.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("/proc");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a line");
    line.split_whitespace().next().and_then(|kib| kib.parse::<usize>().ok()).expect("KiB") << 10
}

fn leaves() {
    let mut left = None;
    let ended = process().run::<Obeys>("it", &Order::Leave, LONG, |message| left = Some(message));
    let error = ended.expect_err("it exits");
    assert!(error.to_string().contains("exit status 7"), "{error}");
    let Some(Message::Sample(pid)) = left else { panic!("{left:?}") };
    let stat = format!("/proc/{pid}/stat");
    // It dies when it is next scheduled, and whoever adopted it may not wait for it at once.
    for _ in 0..1000 {
        let stat = std::fs::read_to_string(&stat).unwrap_or_default();
        if stat.is_empty() || stat.contains(") Z ") {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("process {pid} still runs");
}

fn lingers() {
    let error = order(&process(), Order::Linger, Duration::from_millis(500)).expect_err("it stays");
    assert!(matches!(error, HostError::Hung { .. }), "{error}");
}

fn ask(host: &mut KeptHost, order: Order) -> Result<Answer, HostError> {
    host.run_until::<Obeys>("it", &order, LONG, &|| false, |_| ())
}

fn keeps() {
    let mut host = KeptHost::start(&launch()).expect("it starts");
    for count in 1..=3 {
        assert_eq!(ask(&mut host, Order::Count).expect("an answer").done, count);
    }
    let error = ask(&mut host, Order::Refuse).expect_err("it refuses");
    assert!(matches!(&error, HostError::Failed { .. }) && host.is_usable(), "{error}");
    assert_eq!(ask(&mut host, Order::Count).expect("an answer").done, 4, "the same process");
    // One that is asked once is a process of its own each time.
    for _ in 0..2 {
        assert_eq!(order(&process(), Order::Count, LONG).expect("an answer").done, 1);
    }
}

fn breaks() {
    type Shape = fn(&HostError) -> bool;
    let cases: [(Order, Shape); 4] = [
        (
            Order::Abort,
            |error| matches!(error, HostError::Crashed { how, .. } if how == "signal 6"),
        ),
        (Order::Exit(0), |error| matches!(error, HostError::Rubbish { .. })),
        (Order::Print(b"hello, world\n".to_vec()), |error| {
            matches!(error, HostError::Rubbish { .. })
        }),
        (Order::Leave, |error| matches!(error, HostError::Crashed { .. })),
    ];
    for (order, is_expected) in cases {
        let mut host = KeptHost::start(&launch()).expect("it starts");
        assert_eq!(ask(&mut host, Order::Count).expect("an answer").done, 1);
        let error = ask(&mut host, order).expect_err("it breaks");
        assert!(is_expected(&error), "{error}");
        assert!(!host.is_usable());
        ask(&mut host, Order::Count).expect_err("nobody is there");
    }
    let mut host = KeptHost::start(&launch()).expect("it starts");
    let limit = Duration::from_millis(200);
    let late = host.run_until::<Obeys>("it", &Order::Hang, limit, &|| false, |_| ());
    assert!(matches!(late, Err(HostError::Hung { .. })) && !host.is_usable());
}

fn environment() {
    let answer = order(&process(), Order::Environment, LONG).expect("an answer");
    assert_eq!(answer.said, "GREETING=good day;");
}

struct Stranger;

impl Worker for Stranger {
    const KIND: &'static str = "strange";
    type Job = ();
    type Answer = ();

    fn work(&self, (): (), _: &mut Outlet<'_>) -> Result<(), Problem> {
        Ok(())
    }
}

fn unknown() {
    for host in both() {
        let error = host.run::<Stranger>("it", &(), LONG, |_| ()).expect_err("nobody does it");
        assert!(error.to_string().contains("kind `strange`"), "{error}");
    }
}

fn missing() {
    let launch = Launch {
        program: "/no/such/program".into(),
        arguments: Vec::new(),
        environment: Vec::new(),
    };
    let error = order(&Host::new(Place::Process(launch)), Order::Refuse, LONG).expect_err("none");
    assert!(matches!(error, HostError::Start(_)), "{error}");
}
