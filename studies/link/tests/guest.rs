//! The study in a guest. This program is its own guest, too.

use std::process::ExitCode;
use std::time::Duration;

use fault::Explain as _;
use lab_test::{Need, Test, TestResult, skip};
use link_study::LinkStudy;
use serde_json::json;
use study::{Options, Study as _, unattended};

fn main() -> ExitCode {
    guest::init_if_guest(link_study::workers);
    let knee = Test::inside("a_slow_gateway_gives_way_at_its_rate", knee);
    lab_test::main(&[knee.within(Duration::from_secs(400))])
}

/// The throughput of a path whose gateway passes on 20 Mbit/s is found within half a percent of the rate divided by
/// a frame's bits.
fn knee() -> TestResult {
    if let Err(error) = guest::Guest::find() {
        return skip(Need::Guest, error.in_one_text());
    }
    let sweep = json!({ "name": "x", "backend": ["guest"], "protocol": ["plain"],
        "gateway": ["20mbit"], "load": ["throughput"], "repeat": 1 });
    let plan = json!({ "seed": 1, "trial": "200ms", "sweeps": [sweep] });
    let mut plan = LinkStudy
        .recorded_plan(&plan, &Default::default(), &Options::none())
        .map_err(|p| p.to_string())?;
    let folder = tempfile::tempdir()?;
    let samples = unattended("link", &plan.value(), folder.path(), |session| plan.measure(session));
    let samples = samples.map_err(|problem| problem.to_string())?;
    let found = samples.first().map(|sample| sample.values["virtual_throughput_pps"]);
    let computed = 20e6 / (8.0 * 1000.0);
    assert!(found.is_some_and(|found| (found / computed - 1.0).abs() <= 0.005), "{found:?}");
    Ok(())
}
