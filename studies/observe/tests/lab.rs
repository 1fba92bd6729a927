//! Records of connections in the lab beside what both ends logged. Entering the lab wants a process
//! without threads, so this is a program of its own. What cannot run here says SKIPPED and why.

use std::process::ExitCode;

use lab::LabOptions;
use observe::truth::{self, Plan, Visit};

type TestResult = Result<(), Box<dyn std::error::Error>>;
/// One test: its name, and what it does.
type Test = (&'static str, fn() -> TestResult);

/// A lab whose pump sleeps rather than spins, since several run at once.
fn options(seed: u64) -> LabOptions {
    let pump = pump::Options { timing: pump::Timing::Block, ..pump::Options::default() };
    LabOptions { seed, backend: lab::Backend::Veth, pump, node_cpu: None }
}

/// Every connection has a record with the class that was made, in doubt for no reason over TCP, and
/// the round-trip times are those of the links.
fn records_agree_with_the_logs() -> TestResult {
    let mut plan = Plan::one_of_each(options(71));
    for (visit, count) in &mut plan.visits {
        // Enough for modes.
        if matches!(visit, Visit::Tls12 | Visit::Tls13) {
            *count = 8;
        }
    }
    let captures = std::env::temp_dir().join(format!("observe-study-{}", std::process::id()));
    std::fs::create_dir_all(&captures)?;
    plan.captures = Some(captures.clone());
    let truth = truth::run(&plan, &mut |_, done, total| assert!(done <= total), &|| false)?;
    let kept: Vec<bool> = ["wifi", "cellular"]
        .iter()
        .map(|name| captures.join(format!("{name}.pcapng")).is_file())
        .collect();
    std::fs::remove_dir_all(&captures)?;
    let agreement = &truth.agreement;
    println!("{}", serde_json::to_string_pretty(agreement)?);
    assert_eq!(kept, [true, true]);
    assert_eq!(agreement.made, plan.each() * 2);
    assert!(agreement.unplanned.is_empty(), "{:?}", agreement.unplanned);
    assert!(agreement.misclassified.is_empty(), "{:?}", agreement.misclassified);
    // Every record of a connection that a server logged has the class that the generator knows. A
    // server's log lacks one of some hundred connections, whose record is then a stranger.
    assert_eq!(agreement.classified, agreement.recorded, "{agreement:?}");
    assert_eq!(agreement.recorded, agreement.logged, "{agreement:?}");
    assert!(agreement.strangers <= 2, "{agreement:?}");
    assert!(agreement.recorded + agreement.strangers >= agreement.made, "{agreement:?}");
    assert!(agreement.uncertain.is_empty(), "{:?}", agreement.uncertain);
    for (at, round_trip) in agreement.round_trips.iter().enumerate() {
        // Never below the link's, and nearest to its own: jitter and load only add.
        let median = round_trip.median_ms.unwrap();
        assert!(median >= round_trip.known_ms, "{round_trip:?}");
        let other = agreement.round_trips[1 - at].known_ms;
        assert!((median - round_trip.known_ms).abs() < (median - other).abs(), "{round_trip:?}");
    }
    let (findings, again) = truth::again(&truth.samples, plan.digest.clone())?.unwrap();
    assert_eq!(&again, agreement);
    assert_eq!(findings.handshakes, truth.findings.handshakes);
    assert_eq!(findings.difference.all.handshakes, truth.findings.difference.all.handshakes);
    // What came first in the logs cannot have come later on the wire.
    for time in agreement.times.iter().take(4) {
        assert!(time.count > 0, "{time:?}");
    }
    assert!(!truth.stopped && truth.findings.handshakes as usize == agreement.made);
    Ok(())
}

/// A stop ends it with what was made by then.
fn a_stop_leaves_what_was_made() -> TestResult {
    let plan = Plan { concurrent: 4, ..Plan::one_of_each(options(72)) };
    let asked = std::cell::Cell::new(0);
    let stop = || {
        asked.set(asked.get() + 1);
        asked.get() > 1
    };
    let truth = truth::run(&plan, &mut |_, _, _| {}, &stop)?;
    assert!(truth.stopped);
    let agreement = &truth.agreement;
    assert_eq!(agreement.made, 8);
    assert_eq!(agreement.recorded + agreement.strangers, 8, "{agreement:?}");
    Ok(())
}

fn main() -> ExitCode {
    let tests: [Test; 2] = [
        ("records_agree_with_the_logs", records_agree_with_the_logs),
        ("a_stop_leaves_what_was_made", a_stop_leaves_what_was_made),
    ];
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let filters: Vec<_> = arguments.iter().filter(|a| !a.starts_with('-')).collect();
    let chosen = tests.iter().filter(|(name, _)| {
        filters.is_empty() || filters.iter().any(|filter| name.contains(filter.as_str()))
    });
    if arguments.iter().any(|argument| argument == "--list") {
        chosen.for_each(|(name, _)| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    // Nothing is printed before: the program is run a second time, inside.
    if let Err(error) = lab::enter(&lab::EnterOptions::new()) {
        chosen.for_each(|(name, _)| {
            println!("test {name} ... SKIPPED: the lab cannot be entered: {error}");
        });
        return ExitCode::SUCCESS;
    }
    let mut failed = 0;
    for (name, test) in chosen {
        let result = std::panic::catch_unwind(test)
            .unwrap_or_else(|_| Err("it panicked; the message stands above".into()));
        match result {
            Ok(()) => println!("test {name} ... ok"),
            Err(error) => {
                failed += 1;
                println!("test {name} ... FAILED\n{error}");
            }
        }
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
