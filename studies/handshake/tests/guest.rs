//! The study in a guest: virtual times repeat. This program is its own guest, too.

use std::process::ExitCode;
use std::time::Duration;

use fault::Explain as _;
use handshake::{Bench, Plan, summarise, value};
use lab_test::{Need, Test, TestResult, skip};
use record::Sample;
use study::{Clock, unattended};

fn main() -> ExitCode {
    guest::init_if_guest(handshake::workers);
    let repeats = Test::new("round_trips_in_virtual_time_repeat", repeats);
    lab_test::main(&[repeats.within(Duration::from_secs(300))])
}

fn plan() -> TestResult<Plan> {
    let mut sweep = Plan::single_sweep("virtual");
    let list = |words: &str| words.split(',').map(str::to_owned).collect::<Vec<String>>();
    for (axis, words) in [
        ("clock", "virtual"),
        ("mode", "tcp,tfo+tls13-resumed,tcp+tls12,quic,sslmtcp-tls13"),
        ("rtt", "1ms,200ms"),
    ] {
        sweep.lists.insert(axis.to_owned(), list(words));
    }
    sweep.numbers.insert("repeat".to_owned(), 3);
    Ok(Plan::new(vec![sweep])?)
}

fn measured() -> TestResult<Vec<Sample>> {
    let plan = plan()?;
    assert_eq!(plan.clock(), Clock::Virtual);
    let folder = tempfile::tempdir()?;
    let samples = unattended("handshake", &plan.value(), folder.path(), |session| {
        Bench::in_guests(lab::LabOptions::default(), plan.seed)?.run(&plan, session)
    });
    let mut samples = samples.map_err(|problem| problem.to_string())?;
    // Guests work side by side: whose sample comes first is the machine's.
    samples.sort_by(|one, other| (&one.point, one.repeat).cmp(&(&other.point, other.repeat)));
    Ok(samples)
}

/// Two runs are the same to the nanosecond, and every n is the specification's.
fn repeats() -> TestResult {
    if let Err(error) = guest::Guest::find() {
        return skip(Need::Guest, error.in_one_text());
    }
    let (first, second) = (measured()?, measured()?);
    assert_eq!((first.len(), second.len()), (30, 30));
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
    for (one, other) in first.iter().zip(&second) {
        assert_eq!((&one.point, &one.outcome), (&other.point, &other.outcome));
        assert_eq!(one.point["clock"], "virtual");
        // The time of day is ours, and not the guest's.
        assert!(one.at_unix_ms.abs_diff(now.as_millis() as u64) < 600_000);
        assert_eq!(one.values, other.values, "{}", one.cell());
        assert!(one.values[value::RESPONSE] > 0.0, "{}", one.cell());
    }
    let (first, second) = (summarise(first, 1)?, summarise(second, 1)?);
    assert_eq!(first.rows.len(), 5);
    for (one, other) in first.rows.iter().zip(&second.rows) {
        let n = |row: &handshake::Row| row.response.as_ref().map(|fit| fit.slope.value);
        let a = n(one).ok_or("no fit")?;
        assert_eq!(Some(a), n(other), "{}", one.key.mode);
        let spec = f64::from(one.spec.ok_or("no specification")?.response);
        assert!((a - spec).abs() < 0.02, "{}: n is {a}, not {spec}", one.key.mode);
    }
    Ok(())
}
