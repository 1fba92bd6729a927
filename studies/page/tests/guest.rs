//! Page loads in a guest: virtual times repeat. This program is its own guest, too.

use std::process::ExitCode;
use std::time::Duration;

use fault::Explain as _;
use lab_test::{Need, Test, TestResult, skip};
use page_study::Plan;
use record::Sample;
use study::{Clock, Plan as _, unattended};

fn main() -> ExitCode {
    guest::init_if_guest(page_study::workers);
    let repeats = Test::new("loads_in_virtual_time_repeat", repeats);
    lab_test::main(&[repeats.within(Duration::from_secs(300))])
}

fn measured() -> TestResult<Vec<Sample>> {
    let mut plan = Plan::built_in("smoke").map_err(|problem| problem.to_string())?;
    for sweep in &mut plan.sweeps {
        sweep.lists.insert("clock".to_owned(), vec!["virtual".to_owned()]);
        let protocols = ["http/1.1", "h2"].map(str::to_owned).to_vec();
        sweep.lists.insert("protocol".to_owned(), protocols);
    }
    assert_eq!(plan.clock(), Clock::Virtual);
    let folder = tempfile::tempdir()?;
    let samples = unattended("page", &plan.value(), folder.path(), |session| plan.measure(session));
    Ok(samples.map_err(|problem| problem.to_string())?)
}

fn repeats() -> TestResult {
    if let Err(error) = guest::Guest::find() {
        return skip(Need::Guest, error.in_one_text());
    }
    let (first, second) = (measured()?, measured()?);
    assert_eq!((first.len(), second.len()), (2, 2));
    for (one, other) in first.iter().zip(&second) {
        assert_eq!((&one.point, &one.outcome), (&other.point, &other.outcome));
        assert_eq!(one.values, other.values, "{}", one.cell());
        assert!(one.values["load_ms"] > 0.0, "{}", one.cell());
    }
    Ok(())
}
