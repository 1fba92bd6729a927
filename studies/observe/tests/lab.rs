//! Records of connections in the lab beside what both ends logged.

use lab_test::net::sleeping;
use lab_test::{Test, TestResult};
use observe::truth::{self, Plan, Visit};

/// Every connection has a record with the class that was made, in doubt for no reason over TCP, and
/// the round-trip times are those of the links.
fn records_agree_with_the_logs() -> TestResult {
    let mut plan = Plan::one_of_each(sleeping(71));
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
    let plan = Plan { concurrent: 4, ..Plan::one_of_each(sleeping(72)) };
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

fn main() -> std::process::ExitCode {
    lab_test::main(&[
        Test::inside("records_agree_with_the_logs", records_agree_with_the_logs),
        Test::inside("a_stop_leaves_what_was_made", a_stop_leaves_what_was_made),
    ])
}
