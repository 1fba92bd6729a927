//! The study measured in the lab: every trial has its sample, bytes on the wire are those of the formats, a stop loses
//! nothing, and what is resumed repeats nothing.

use std::collections::BTreeSet;
use std::path::Path;

use lab_test::net::sleeping;
use lab_test::{Test, TestResult};
use link_study::LinkStudy;
use record::{Outcome, Run};
use serde_json::{Value, json};
use study::{End, Options, Study, unattended_until};

/// Measures a plan into a folder, or what a folder lacks.
fn measure(plan: &Value, folder: &Path, looks: Option<u32>) -> TestResult<End> {
    let mut plan = LinkStudy
        .recorded_plan(plan, &Default::default(), &Options::none())
        .map_err(|e| e.to_string())?;
    let end = unattended_until(
        "link",
        &plan.value(),
        folder,
        looks.map(study::Until::Looks),
        |session| plan.measure(&mut session.in_lab(sleeping(plan.seed()))),
    );
    Ok(end.map_err(|problem| problem.to_string())?)
}

fn plan(sweep: Value) -> Value {
    json!({ "seed": 5, "trial": "100ms", "sweeps": [sweep] })
}

/// Every protocol carries the paper's frames, and they are as long on each link as the formats say.
fn every_protocol_has_its_bytes() -> TestResult {
    let folder = tempfile::tempdir()?;
    let results = folder.path().join("results");
    let protocols =
        ["plain", "macsec", "esp", "esp:aes-cbc-128-sha1", "l2tp-esp", "wireguard", "macsec-vxlan"];
    let sweep = json!({ "name": "x", "protocol": protocols, "frame": ["1000", "128"],
        "load": ["1000pps"], "repeat": 1 });
    assert_eq!(measure(&plan(sweep), &results, None)?, End::Complete);
    let run = Run::open(&results)?;
    assert_eq!(run.samples.len(), protocols.len() * 2);
    for sample in &run.samples {
        assert_eq!(sample.outcome, Outcome::Completed, "{}", sample.key());
        let value = |name: &str| sample.values.get(name).copied().ok_or(format!("no {name}"));
        assert_eq!(value("sent")?, 100.0, "{}", sample.key());
        assert_eq!(value("received")?, 100.0, "{}: {:?}", sample.key(), sample.labels);
        assert_eq!(value("access_bytes")?, value("computed_access_bytes")?, "{}", sample.key());
        assert_eq!(value("core_bytes")?, value("computed_core_bytes")?, "{}", sample.key());
    }
    let core = |protocol: &str| {
        let own = run
            .samples
            .iter()
            .find(|sample| sample.point["protocol"] == protocol && sample.point["frame"] == "1000");
        own.and_then(|sample| sample.values.get("core_bytes").copied())
    };
    // The paper's Table 1.
    assert_eq!(core("plain"), Some(1022.0));
    assert_eq!(core("macsec"), Some(1054.0));
    assert_eq!(core("esp:aes-cbc-128-sha1"), Some(1084.0));
    let question = LinkStudy.question(&Options::none()).map_err(|problem| problem.to_string())?;
    let found = question
        .findings(&mut run.samples.into_iter(), &run.manifest)
        .map_err(|p| p.to_string())?;
    for table in found.ok_or("no findings")?.tables() {
        print!("{}", table.to_text(120));
    }
    Ok(())
}

/// Tunnels over IPv6, in PPPoE and behind a NAT, and jumbo frames: bytes are those of the formats.
fn networks_under_tunnels() -> TestResult {
    let folder = tempfile::tempdir()?;
    let results = folder.path().join("results");
    let sweep = json!({ "name": "x", "protocol": ["plain", "esp", "l2tp-esp", "wireguard", "macsec-vxlan"],
        "outer": ["ipv4", "ipv6"], "pppoe": ["no", "yes"], "nat-t": ["no", "yes"],
        "frame": ["1000", "9014"], "load": ["1000pps"], "repeat": 1 });
    assert_eq!(measure(&plan(sweep), &results, None)?, End::Complete);
    let run = Run::open(&results)?;
    // By frame: plain with PPPoE and without; ESP and L2TP over eight networks; the others over four.
    assert_eq!(run.samples.len(), 2 * (2 + 2 * 8 + 2 * 4));
    for sample in &run.samples {
        assert_eq!(sample.outcome, Outcome::Completed, "{}", sample.key());
        assert_eq!(sample.values["received"], 100.0, "{}: {:?}", sample.key(), sample.labels);
        assert_eq!(sample.values["access_bytes"], sample.values["computed_access_bytes"]);
        assert_eq!(sample.values["core_bytes"], sample.values["computed_core_bytes"]);
    }
    Ok(())
}

/// A path of any length carries frames, protected end to end or on every hop, both ways.
fn hops_and_ways() -> TestResult {
    let folder = tempfile::tempdir()?;
    let results = folder.path().join("results");
    let sweep = json!({ "name": "x", "protocol": ["plain", "macsec"], "network": ["direct"],
        "reach": ["end-to-end", "every-hop"], "hops": ["1", "3", "8"], "ways": ["both"],
        "load": ["1000pps"], "repeat": 1 });
    assert_eq!(measure(&plan(sweep), &results, None)?, End::Complete);
    let run = Run::open(&results)?;
    // Plain frames have one way to be plain.
    assert_eq!(run.samples.len(), 3 * 3);
    for sample in &run.samples {
        assert_eq!(sample.outcome, Outcome::Completed, "{}", sample.key());
        assert_eq!(sample.values["received"], 200.0, "{}", sample.key());
        assert_eq!(sample.values["access_bytes"], sample.values["computed_access_bytes"]);
    }
    Ok(())
}

/// What a slow gateway has no room for is lost, and counted.
fn a_slow_gateway_loses() -> TestResult {
    let folder = tempfile::tempdir()?;
    let results = folder.path().join("results");
    let sweep = json!({ "name": "x", "protocol": ["esp:aes-cbc-128-sha1"], "gateway": ["8mbit"],
        "load": ["4mbit", "16mbit"], "repeat": 1 });
    let plan = json!({ "seed": 5, "trial": "500ms", "sweeps": [sweep] });
    assert_eq!(measure(&plan, &results, None)?, End::Complete);
    let run = Run::open(&results)?;
    let lost = |load: &str| {
        let own = run.samples.iter().find(|sample| sample.point["load"] == load);
        own.map(|sample| sample.values["lost_share"]).ok_or("no sample")
    };
    assert_eq!(lost("4mbit")?, 0.0);
    // Half, less what waits in the end.
    let half = lost("16mbit")?;
    assert!((0.3..0.55).contains(&half), "{half}");
    Ok(())
}

/// Stopped half way and resumed, each trial is measured once.
fn what_is_resumed_repeats_nothing() -> TestResult {
    let folder = tempfile::tempdir()?;
    let results = folder.path().join("results");
    let sweep =
        json!({ "name": "x", "protocol": ["plain", "macsec"], "load": ["1000pps"], "repeat": 3 });
    let plan = plan(sweep);
    assert_eq!(measure(&plan, &results, Some(12))?, End::Interrupted);
    let before = Run::open(&results)?.samples.len();
    assert!(before < 6, "{before}");
    assert_eq!(measure(&plan, &results, None)?, End::Complete);
    let run = Run::open(&results)?;
    let keys: BTreeSet<String> = run.samples.iter().map(record::Sample::key).collect();
    assert_eq!((run.samples.len(), keys.len()), (6, 6));
    Ok(())
}

fn main() -> std::process::ExitCode {
    lab_test::main(&[
        Test::inside("every_protocol_has_its_bytes", every_protocol_has_its_bytes),
        Test::inside("networks_under_tunnels", networks_under_tunnels),
        Test::inside("hops_and_ways", hops_and_ways),
        Test::inside("a_slow_gateway_loses", a_slow_gateway_loses),
        Test::inside("what_is_resumed_repeats_nothing", what_is_resumed_repeats_nothing),
    ])
}
