//! Behind a full queue: the download fills it, and every mode still gets its answer.

use handshake::{Bench, Plan, label};
use lab_test::net::sleeping;
use lab_test::{Test, TestResult};
use record::Outcome;

use crate::common::{measure_on, name, sweep, text, with};

pub fn tests() -> Vec<Test> {
    vec![Test::inside("every_mode_gets_through_a_full_queue", full)]
}

const MODES: [&str; 3] = ["tcp+tls13", "quic", "sslmtcp-tls13"];

fn full() -> TestResult {
    let sweep = with(sweep(&MODES, "20ms", 1), "queue", &["none", "droptail", "codel"]);
    let plan = Plan::new(vec![sweep])?;
    let mut bench = Bench::new(sleeping(plan.seed))?;
    let samples = measure_on(&mut bench, &plan)?;
    // The queues were full: they dropped frames on their way to the client, and none on the way back.
    let stats = bench.link_stats().ok_or("no lab")??;
    assert!(stats.backward.link.dropped_in_all().frames > 0, "{stats:?}");
    assert_eq!(stats.forward.link.dropped_in_all().frames, 0, "{stats:?}");
    assert_eq!(samples.len(), 3 * MODES.len());
    for sample in &samples {
        assert_eq!(sample.outcome, Outcome::Completed, "{}", name(sample));
        assert_eq!(text(sample, label::VIEWS), label::AGREE, "{}", name(sample));
        let queue = sample.point.get("queue").map_or("none", String::as_str);
        assert_eq!(queue != "none", sample.command.contains("--queue"), "{}", name(sample));
    }
    for queue in ["droptail", "codel"] {
        let behind =
            |sample: &&record::Sample| sample.point.get("queue").is_some_and(|q| q == queue);
        assert_eq!(samples.iter().filter(behind).count(), MODES.len(), "{queue}");
    }
    Ok(())
}
