//! Under loss: every attempt ends, and none is lost from the count.

use std::collections::BTreeMap;

use handshake::{Bench, Plan, label, summarise};
use record::Outcome;

use crate::common::{delay, intended, measure, measure_on, name, sweep, text, with};
use lab_test::net::sleeping;
use lab_test::{Test, TestResult};

pub fn tests() -> Vec<Test> {
    vec![
        Test::inside("under_loss_every_attempt_ends_and_counts", all_end),
        Test::inside("the_same_seed_gives_the_same_fates", same_fates),
    ]
}

const CONNECTIONS: u32 = 40;

fn all_end() -> TestResult {
    under_loss("10ms", &["tcp+tls13", "tfo+tls13", "quic", "quic-0rtt"])?;
    under_loss("10ms", &["usertcp+tls13", "sslmtcp-paper", "sslmtcp-tls13", "sslmtcp-0rtt"])?;
    // Where the retransmission timers are longer than a connection, too.
    under_loss("100ms", &["quic"])
}

fn under_loss(rtt: &str, modes: &[&str]) -> TestResult {
    let mut sweep = with(sweep(modes, rtt, CONNECTIONS), "loss", &["10%"]);
    sweep.numbers.insert("concurrent".to_owned(), CONNECTIONS.into());
    let mut plan = Plan::new(vec![sweep])?;
    (plan.seed, plan.timeout) = (41, delay("2s"));
    let samples = measure(&plan)?;
    assert_eq!(samples.len(), modes.len() * CONNECTIONS as usize);
    let mut left_out = Vec::new();
    for sample in &samples {
        match &sample.outcome {
            Outcome::Completed if text(sample, label::VIEWS) != label::AGREE => {
                left_out.push(format!("{}: {}", name(sample), text(sample, label::VIEWS)));
            }
            Outcome::Completed => {}
            Outcome::TimedOut { after_ms } => assert_eq!(*after_ms, 2_000.0, "{}", name(sample)),
            Outcome::Failed { reason } => assert!(!reason.is_empty(), "{}", name(sample)),
        }
    }
    // What the path did to a connection is no reason to leave it out: that would cut off the tail.
    assert!(left_out.is_empty(), "seed {}: {left_out:#?}", plan.seed);

    let fell_back = samples.iter().filter(|s| !["", intended(s)].contains(&text(s, label::ACTUAL)));
    let fell_back = fell_back.count() as u64;
    let summary = summarise(samples, 1)?;
    assert_eq!(summary.samples, modes.len() as u64 * u64::from(CONNECTIONS));
    assert_eq!(summary.fell_back.iter().map(|(_, count)| count).sum::<u64>(), fell_back);
    let mut counts = BTreeMap::new();
    for row in &summary.rows {
        assert!(row.cells.is_empty() && row.lossy.len() == 1);
        let cell = &row.lossy[0];
        let failed = cell.failed.values().sum::<u64>() as usize;
        counts.insert(row.key.mode.to_string(), cell.completed() + cell.given_up_ms.len() + failed);
    }
    // A SYN that was lost is sent again without data: still an attempt at Fast Open, and its slowest.
    let all = modes.iter().map(|mode| ((*mode).to_owned(), CONNECTIONS as usize));
    assert_eq!(counts, all.collect());
    Ok(())
}

/// The fate of a link's nth frame depends on the seed and on n, and which frame is the nth on the
/// kernel's timing. What holds is asserted: one plain TCP connection's client sends nothing but SYNs until
/// one comes through and is answered, so that with the same seed as many are lost, and the connection ends
/// alike.
fn same_fates() -> TestResult {
    let fates = |seed: u64| -> TestResult<_> {
        let mut plan = Plan::new(vec![with(sweep(&["tcp"], "10ms", 1), "loss", &["50%"])])?;
        (plan.seed, plan.timeout) = (seed, delay("1200ms"));
        let mut bench = Bench::new(sleeping(seed))?;
        let samples = measure_on(&mut bench, &plan)?;
        let timed_out = samples[0].outcome != Outcome::Completed;
        let lost = bench.link_stats().ok_or("no lab")??.forward.link.dropped.loss.frames;
        Ok((timed_out, timed_out.then_some(lost)))
    };
    for seed in [51, 52] {
        assert_eq!(fates(seed)?, fates(seed)?, "seed {seed}");
    }
    Ok(())
}
