//! Jobs in a guest: this program is its own guest, too.

use std::net::UdpSocket;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use fault::{Explain, Fault, Problem};
use guest::Guest;
use host::{Host, HostError, Launch, Message, Outlet, Place, Registry, Worker};
use lab_test::{Need, Test, TestResult, skip};
use serde::{Deserialize, Serialize};

/// Real time that a guest may take, on a busy machine too.
const LONG: Duration = Duration::from_secs(100);

fn main() -> ExitCode {
    guest::init_if_guest(|| Registry::new().with(Obeys));
    let within = Duration::from_secs(200);
    lab_test::main(&[
        Test::new("a_job_is_done_and_what_it_gives_comes", gives).within(within),
        Test::new("a_job_says_why_it_cannot", refuses).within(within),
        Test::new("a_panic_is_a_crash_with_its_words", panics).within(within),
        Test::new("a_hung_job_is_ended_and_leaves_nothing", hangs).within(within),
        Test::new("a_lab_in_a_guest_takes_the_same_virtual_times_again", repeats).within(within),
        Test::new("modules_are_loaded_and_programs_run", has_modules).within(within),
    ])
}

/// Does what it is told.
struct Obeys;

#[derive(Debug, Clone, Serialize, Deserialize)]
enum Order {
    /// Gives so many samples and an attachment of so many bytes.
    Give(u32, usize),
    Refuse,
    Panic,
    Hang,
    /// Sends so many datagrams over a link of the lab, one after the other, and says how long each took to
    /// come back, in nanoseconds.
    Echo(u32),
    /// Runs a program and says what it printed.
    Run(Vec<String>),
}

impl Worker for Obeys {
    const KIND: &'static str = "obey";
    type Job = Order;
    type Answer = Vec<String>;

    fn work(&self, order: Order, outlet: &mut Outlet<'_>) -> Result<Vec<String>, Problem> {
        match order {
            Order::Give(samples, bytes) => {
                outlet.event("beginning")?;
                for number in 0..samples {
                    outlet.sample(&number)?;
                }
                outlet.attachment("much.bin", vec![7; bytes])?;
                Ok(vec![format!("{:?}", lab::entered())])
            }
            Order::Refuse => {
                Err(Problem::new(Fault::Peer, "I would rather not").with_remedy("ask another"))
            }
            Order::Panic => panic!("out of cheese"),
            Order::Hang => loop {
                std::thread::sleep(Duration::from_secs(3600));
            },
            Order::Echo(count) => echo(count),
            Order::Run(words) => run(&words),
        }
    }
}

/// Times of datagrams there and back over a link of 20 ms.
fn echo(count: u32) -> Result<Vec<String>, Problem> {
    let io = |error: std::io::Error| Problem::of(Fault::Measurement, error);
    let mut lab = lab::Lab::new(lab::LabOptions::default())?;
    let (client, server) = (lab.add_node("client")?, lab.add_node("server")?);
    lab.connect(&client, &server, &linkmodel::Path::symmetric("20ms".parse()?))?;
    let bind = |node: &lab::Node| -> Result<UdpSocket, Problem> {
        let address = node.addr4()?;
        node.run(move || UdpSocket::bind((address, 0)))?.map_err(io)
    };
    let (ours, theirs) = (bind(&client)?, bind(&server)?);
    let to = theirs.local_addr().map_err(io)?;
    std::thread::spawn(move || {
        let mut bytes = [0; 100];
        while let Ok((count, from)) = theirs.recv_from(&mut bytes) {
            let _ = theirs.send_to(&bytes[..count], from);
        }
    });
    let mut times = Vec::new();
    for _ in 0..count {
        let began = Instant::now();
        ours.send_to(&[1; 60], to).map_err(io)?;
        ours.recv(&mut [0; 100]).map_err(io)?;
        times.push(began.elapsed().as_nanos().to_string());
    }
    Ok(times)
}

fn run(words: &[String]) -> Result<Vec<String>, Problem> {
    let (program, arguments) = words.split_first().expect("a program");
    let output = std::process::Command::new(program).args(arguments).output();
    let output = output.map_err(|error| Problem::of(Fault::Machine, error))?;
    let [out, err] =
        [output.stdout, output.stderr].map(|b| String::from_utf8_lossy(&b).into_owned());
    Ok(vec![output.status.to_string(), out, err])
}

/// A guest of this machine, or a skip.
fn guest() -> TestResult<Guest> {
    Guest::find().or_else(|error| skip(Need::Guest, error.in_one_text()))
}

fn asked(launch: Launch, order: &Order) -> (Result<Vec<String>, HostError>, Vec<Message>) {
    let mut messages = Vec::new();
    let host = Host::new(Place::Process(launch));
    let answer = host.run::<Obeys>("a guest", order, LONG, |message| messages.push(message));
    (answer, messages)
}

fn gives() -> TestResult {
    let launch = guest()?.launch()?;
    let (answer, messages) = asked(launch, &Order::Give(300, 200_000));
    assert!(answer?[0].contains("user_namespace: false"));
    assert!(matches!(&messages[0], Message::Event(text) if text == "beginning"));
    let samples = messages.iter().filter(|message| matches!(message, Message::Sample(_))).count();
    assert_eq!((samples, messages.len()), (300, 302));
    let Some(Message::Attachment(file)) = messages.last() else { panic!("no attachment") };
    assert!(file.bytes.len() == 200_000 && file.bytes.iter().all(|byte| *byte == 7));
    Ok(())
}

fn refuses() -> TestResult {
    let (answer, _) = asked(guest()?.launch()?, &Order::Refuse);
    let Err(HostError::Failed { problem, .. }) = answer else { panic!("{answer:?}") };
    assert_eq!((problem.fault(), problem.remedy()), (Fault::Peer, Some("ask another")));
    Ok(())
}

fn panics() -> TestResult {
    let (answer, _) = asked(guest()?.launch()?, &Order::Panic);
    let Err(HostError::Crashed { last_words, .. }) = answer else { panic!("{answer:?}") };
    assert!(last_words.contains("out of cheese"), "{last_words}");
    Ok(())
}

fn hangs() -> TestResult {
    let launch = guest()?.launch()?;
    let host = Host::new(Place::Process(launch));
    let soon = Duration::from_secs(8);
    let answer = host.run::<Obeys>("a guest", &Order::Hang, soon, |_| {});
    assert!(matches!(answer, Err(HostError::Hung { .. })), "{answer:?}");
    // Whoever is a child of this process would be QEMU.
    let children = std::fs::read_to_string("/proc/thread-self/children")?;
    assert_eq!(children.trim(), "");
    Ok(())
}

fn repeats() -> TestResult {
    let order = Order::Echo(20);
    let launch = guest()?.launch()?;
    let (first, second) = (asked(launch.clone(), &order).0?, asked(launch, &order).0?);
    assert_eq!(first, second);
    for time in &first {
        let micros = time.parse::<u64>()? / 1000;
        // By virtual time: 20 ms, and some instructions.
        assert!((20_000..21_000).contains(&micros), "{first:?}");
    }
    Ok(())
}

fn has_modules() -> TestResult {
    let guest = guest()?.with_programs(&["ip"])?.with_modules(guest::LINK_MODULES);
    let words = |text: &str| text.split(' ').map(str::to_owned).collect();
    let order = Order::Run(words("ip link add link lo name m0 type macsec encrypt on"));
    let (answer, _) = asked(guest.launch()?, &order);
    let answer = answer?;
    // A device cannot be on the loopback interface: the kernel knows the kind, and says so.
    assert!(!answer[2].contains("Unknown device type"), "{answer:?}");
    let (answer, _) = asked(guest.launch()?, &Order::Run(words("ip -o link show")));
    assert!(answer?[1].contains("lo: <LOOPBACK,UP"));
    Ok(())
}
