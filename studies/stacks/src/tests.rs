//! The study on scripted hosts: what is measured, said and kept when libraries do well, and when
//! they crash, hang, misreport or print rubbish.

use std::collections::BTreeMap;
use std::path::Path;

use record::Run;
use study::{End, Findings as _};
use tls_drivers::{Job, Wire, Workload};

use crate::{Findings, Plan, summarise};

mod alone;
mod play;
mod profile;
mod sessions;
mod slices;

use self::play::*;

#[test]
fn a_whole_run_says_what_the_script_holds() {
    let folder = tempfile::tempdir().unwrap();
    let (play, mut audience) = (Play::new(&THREE), Audience::default());
    let (ended, summary) = measured(&folder.path().join("r"), &play, "default", &mut audience);
    assert_eq!((ended.end, ended.failed), (End::Complete, 0));
    assert_eq!(audience.warnings, Vec::<String>::new());
    let findings = Findings::new(summary.clone(), 20_000.0, 1);
    let text = text_of(&findings);
    for said in [
        "Server CPU-seconds per million full handshakes",
        "boringssl 1 is cheapest: 201, at least 33 % less than openssl 1.1.1w.",
        "openssl 1.1.1w instead of openssl 3.0.2",
        "An ECDSA P-256 key instead of RSA-2048",
        "takes 744 on the server for a full handshake",
        "as the trial",
        "Estimated, and no bound",
        "an estimate, and no bound; HAProxy 2025 measured 21 thousand with 64 cores",
        "No scaling curve",
        "until 2030 [1]",
        "[1] https://example.org/policy",
        "in its own words",
        "cannot be read, so no joules",
        "The harness itself costs",
        "Heap bytes of one connection",
        "Gbit/s of payload a core",
        "What a connection costs over loopback TCP",
        "load generator",
        "code is compiled: go: 200. Java",
        "futexes of the runtime",
        "java is not here",
    ] {
        assert!(text.contains(said), "`{said}` is missing:\n{text}");
    }
    assert!(!findings.tables().is_empty());
    let estimates = findings.contention();
    let old = estimates.iter().find(|one| one.library == "openssl-3.0.2" && one.workload == "full");
    let old = old.unwrap();
    // 741 to read, 1 to write, 2 mutexes.
    assert!((old.estimate.locks_us - 74.3).abs() < 1e-9, "{old:?}");
    assert!((old.estimate.cores.unwrap() - 702.0 / 74.3).abs() < 0.2, "{old:?}");
    let (_, need) = &findings.needs()[0];
    assert!((need.cores - 6.0).abs() < 0.1, "20,000 a second at 300 us: {need:?}");
}

#[test]
fn libraries_take_turns_and_every_row_has_its_command() {
    let folder = tempfile::tempdir().unwrap();
    let play = Play::new(&THREE);
    measured(&folder.path().join("r"), &play, "quick", &mut Audience::default());
    let servers: Vec<String> = play
        .runs
        .borrow()
        .iter()
        .take(4 * 11)
        .map(|job| job.server.file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    let mut orders = std::collections::BTreeSet::new();
    for round in servers.chunks(4) {
        orders.insert(round.to_vec());
        let mut all = round.to_vec();
        all.sort();
        assert_eq!(all, ["boringssl", "null", "openssl-1.1.1w", "openssl-3.0.2"], "each has one");
    }
    assert!(orders.len() > 3, "the order is drawn anew in each round: {orders:?}");
    let again = Play::new(&THREE);
    measured(&folder.path().join("again"), &again, "quick", &mut Audience::default());
    assert_eq!(*again.runs.borrow(), *play.runs.borrow(), "the seed decides");
    let run = Run::open(folder.path().join("r")).unwrap();
    assert!(run.samples.iter().all(|sample| sample.command.starts_with("wiretax ")));
    let chain = |job: &&Job| matches!(job.workload, Workload::Chain { .. });
    let runs = play.runs.borrow();
    let mut chains = runs.iter().filter(chain);
    assert!(chains.all(|job| job.wire == Wire::Loopback && job.client.ends_with("boringssl.so")));
}

#[test]
fn a_runtime_stands_beside_the_libraries_with_its_client_named() {
    let folder = tempfile::tempdir().unwrap();
    let play = Play::new(&THREE);
    let (_, summary) =
        measured(&folder.path().join("r"), &play, "default", &mut Audience::default());
    let go: Vec<_> = summary.cells.iter().filter(|cell| cell.point.library == "go").collect();
    assert!(go.iter().all(|cell| cell.is_good() && cell.point.wire == Wire::Loopback));
    assert!(go.iter().all(|cell| cell.median(crate::value::WARM_UP).unwrap().value == 200.0));
    let clients: std::collections::BTreeSet<_> =
        go.iter().map(|cell| cell.point.client.as_str()).collect();
    assert_eq!(clients.into_iter().collect::<Vec<_>>(), ["go", "load"]);
    let drivers = summary.cells.iter().filter(|cell| cell.point.library == "boringssl");
    assert!(drivers.clone().all(|cell| cell.median(crate::value::WARM_UP).is_none()));
    let java = summary.about("java").unwrap();
    assert_eq!(java.absent.as_deref(), Some("java is not here"));
    let run = Run::open(folder.path().join("r")).unwrap();
    let again = run.samples.iter().find(|sample| sample.command.contains("--client load"));
    assert!(again.unwrap().command.contains("--libraries go "));
}

#[test]
fn what_was_interrupted_goes_on_where_it_ended() {
    let folder = tempfile::tempdir().unwrap();
    let (at, whole) = (folder.path().join("r"), folder.path().join("whole"));
    let play = Play::new(&THREE);
    let mut impatient = Audience { stop_after: Some(5), ..Audience::default() };
    let (ended, _) = measured(&at, &play, "quick", &mut impatient);
    assert_eq!((ended.end, ended.good), (End::Interrupted, 5));
    let (ended, resumed) = measured(&at, &play, "quick", &mut Audience::default());
    assert_eq!(ended.end, End::Complete);
    let calls = play.calls.get();
    let (_, once) = measured(&whole, &Play::new(&THREE), "quick", &mut Audience::default());
    assert_eq!(resumed.samples, once.samples, "nothing twice, nothing missing");
    assert_eq!(calls as usize, once.samples as usize - once.libraries.len() - 1);
    let (ended, _) = measured(&at, &play, "quick", &mut Audience::default());
    assert_eq!((ended.good, play.calls.get()), (0, calls), "nothing is left to measure");
}

#[test]
fn a_wish_to_stop_while_lock_costs_are_measured_is_seen() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("r");
    let mut audience = Audience::default();
    let stopped = Some(std::rc::Rc::clone(&audience.stopped));
    let play = Play { stops_at_locks: stopped, ..Play::new(&THREE) };
    let (ended, summary) = measured(&at, &play, "quick", &mut audience);
    assert_eq!(ended.end, End::Interrupted);
    assert!(summary.machine.is_none(), "what was cut off is no sample");
    assert_eq!(audience.warnings, Vec::<String>::new());
    let (ended, summary) = measured(&at, &Play::new(&THREE), "quick", &mut Audience::default());
    assert_eq!(ended.end, End::Complete);
    assert!(summary.machine.is_some());
}

#[test]
fn a_library_that_breaks_is_named_and_the_others_go_on() {
    for (fault, word, reason) in [
        (Fault::Crashes, "crashed: signal 11", "crashed"),
        (Fault::Hangs, "hung: no answer within", "hung"),
        (Fault::Rubbish, "gave an invalid answer", "rubbish"),
        (Fault::Misreports, "misreported resumption", "misreported"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let mut parts = THREE;
        parts[1].1.fault = fault;
        let mut audience = Audience::default();
        let (ended, summary) =
            measured(&folder.path().join("r"), &Play::new(&parts), "quick", &mut audience);
        assert_eq!(ended.end, End::Complete);
        let named = |text: &String| text.contains("openssl-3.0.2") && text.contains(word);
        assert!(audience.warnings.iter().any(named), "{word}: {:?}", audience.warnings);
        assert!(audience.warnings.iter().all(|text| !text.contains('\u{1b}')));
        assert!(!summary.measured().contains(&"openssl-3.0.2"), "{word}");
        assert!(summary.measured().contains(&"boringssl"), "{word}");
        let failed = summary.cells.iter().filter(|cell| cell.failed.contains_key(reason)).count();
        assert!(failed > 0, "{reason}");
        // Three broken hosts in a row are enough; what misreports does not break its host.
        assert!(fault == Fault::Misreports || failed <= 3, "{word}: {failed}");
        let findings = Findings::new(summary.clone(), 1e5, 1);
        assert!(text_of(&findings).contains("openssl 3.0.2: "), "the reader is told");
    }
}

#[test]
fn resumption_counts_only_where_the_wire_shows_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut parts = THREE;
    parts[0].1.fault = Fault::NeverResumes;
    let (_, summary) =
        measured(&folder.path().join("r"), &Play::new(&parts), "quick", &mut Audience::default());
    let resumed = summary.cells.iter().filter(|cell| {
        cell.point.library == "openssl-1.1.1w" && cell.point.workload == Workload::Resume
    });
    let mut resumed = resumed.peekable();
    assert!(resumed.peek().is_some());
    assert!(resumed.all(|cell| !cell.is_good() && cell.failed.contains_key("not as asked")));
}

#[test]
fn what_a_library_cannot_do_is_no_failure_and_is_tried_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut parts = THREE;
    parts[0].1.fault = Fault::No13;
    let mut audience = Audience::default();
    let (_, summary) =
        measured(&folder.path().join("r"), &Play::new(&parts), "quick", &mut audience);
    assert_eq!(audience.warnings, Vec::<String>::new());
    let counts = summary.cells.iter().filter_map(|cell| cell.failed.get("unsupported"));
    assert!(counts.clone().count() > 0 && counts.clone().all(|(count, _)| *count == 1));
    let findings = Findings::new(summary.clone(), 1e5, 1);
    let cautions = findings.cautions();
    assert!(cautions.iter().all(|one| !one.note.text.to_plain().contains("unsupported")));
    assert!(text_of(&findings).contains("no [t]"), "the table by function shows it");
}

#[test]
fn without_callgrind_the_rest_is_measured() {
    let folder = tempfile::tempdir().unwrap();
    let play = Play { callgrind: false, ..Play::new(&THREE) };
    let mut audience = Audience::default();
    let (ended, summary) = measured(&folder.path().join("r"), &play, "default", &mut audience);
    assert_eq!(audience.warnings, ["there is no valgrind"], "said once");
    assert_eq!((ended.end, ended.failed), (End::Complete, 0));
    assert!(summary.cells.iter().all(|cell| cell.point.tool == crate::Tool::Host));
}

#[test]
fn nothing_measured_says_nothing_wrong() {
    let summary = summarise([]);
    let findings = Findings::new(summary.clone(), 1e5, 1);
    assert!(
        summary.is_empty() && findings.empty().is_some() && findings.sections().unwrap().is_empty()
    );
    assert!(findings.answer()[0].to_plain().contains("not known"));
}

/// Samples of rates by threads, on a machine of so many cores.
fn rates(cores: f64, law: crate::scaling::Law, counts: &[usize]) -> Vec<record::Sample> {
    let sample = |point: BTreeMap<String, String>, repeat, values| record::Sample {
        study: crate::STUDY.to_owned(),
        point,
        repeat,
        seed: 1,
        at_unix_ms: 0,
        outcome: record::Outcome::Completed,
        values,
        labels: BTreeMap::new(),
        attachments: Vec::new(),
        command: "wiretax stacks".to_owned(),
    };
    let mut all = vec![sample(
        BTreeMap::from([("machine".to_owned(), "this".to_owned())]),
        0,
        BTreeMap::from([("cores".to_owned(), cores)]),
    )];
    for threads in counts {
        for repeat in 0..3 {
            let point =
                crate::Point { threads: *threads, ..crate::point::tests::point("openssl-3.0.2") };
            let rate = law.at(*threads as f64) * (1.0 + f64::from(repeat) * 1e-3);
            let values = BTreeMap::from([(crate::value::RATE.to_owned(), rate)]);
            all.push(sample(point.fields(), repeat, values));
        }
    }
    all
}

#[test]
fn a_curve_is_drawn_only_of_core_counts_that_the_machine_has() {
    let law = crate::scaling::Law { lambda: 1000.0, sigma: 0.05, kappa: 0.001 };
    let counts = [1, 2, 4, 8, 12, 16, 32, 64];
    let text = |cores: f64| {
        let summary = summarise(rates(cores, law, &counts));
        let findings = Findings::new(summary.clone(), 1e5, 1);
        let sections = findings.sections().unwrap();
        let mut report = report::Report::new("t");
        report.sections = sections;
        report.to_text(200)
    };
    let fitted = text(16.0);
    assert!(fitted.contains("Fitted: the Universal Scalability Law"), "{fitted}");
    assert!(fitted.contains("32 cores (predicted)"), "{fitted}");
    assert!(fitted.contains("Points with more threads than cores"), "{fitted}");
    // Five counts up to 12 cores: no curve.
    let not = text(12.0);
    assert!(!not.contains("Fitted"), "{not}");
}

#[test]
fn every_number_in_the_summary_is_there_for_programs_too() {
    let folder = tempfile::tempdir().unwrap();
    let (_, summary) =
        measured(&folder.path().join("r"), &Play::new(&THREE), "quick", &mut Audience::default());
    let value = serde_json::to_value(&summary).unwrap();
    let cell = &value["cells"][0];
    assert!(cell["medians"]["server_cpu_us"]["low"].is_number(), "{cell:#}");
    assert_eq!(cell["point"]["library"], "openssl-1.1.1w");
    assert_eq!(value["libraries"][0]["facts"][0]["what"], "lts");
    assert_eq!(value["machine"]["contended"]["mutex_ns"], 50.0);
}

/// The terminal's tables of a sweep.
fn printed(sweep: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let plan = Plan::parse(&format!("[scale.x]\nsweep = [{sweep}]\n"), "x").unwrap();
    let mut audience = Audience::default();
    let (_, summary) =
        measured_by(&plan, &folder.path().join("r"), &Play::new(&THREE), &mut audience);
    assert!(!summary.is_empty());
    let tables = Findings::new(summary, 1e5, 1).tables();
    tables.iter().map(|table| table.to_text(400)).collect()
}

#[test]
fn a_sweep_prints_whatever_it_measured() {
    let both =
        r#"name = "cli", library = ["openssl-1.1.1w", "openssl-3.0.2"], ms = 100, repeat = 3"#;
    for (axes, words) in [
        (
            r#"workload = "full", key = "rsa-2048""#,
            &["RSA-2048", "openssl 1.1.1w", "× openssl 1.1.1w", "1.4"][..],
        ),
        (
            r#"workload = "resume", version = "tls1.2""#,
            &["resumed handshakes, TLS 1.2", "memory, 1 thread "],
        ),
        (r#"workload = "full", threads = 2"#, &["2 threads "]),
        (r#"workload = "full", contexts = "per-thread", threads = 2"#, &["a context per thread"]),
        (r#"workload = "full", locks = "light""#, &["light locks"]),
        (r#"workload = "chain:3""#, &["chain of 3 proxies, resumed", "loopback"]),
        (r#"workload = "bulk:1024""#, &["records of 1024 bytes", "Gbit/s"]),
        (r#"workload = "footprint:9""#, &["9 connections held", "20000"]),
        (r#"workload = "full", locks = "count", group = "secp256r1""#, &["P-256", "741"]),
    ] {
        let text = printed(&format!("{{ {both}, {axes} }}"));
        assert!(words.iter().all(|word| text.contains(word)), "{axes}: {words:?}\n{text}");
    }
    let counted = r#"{ name = "cli", library = ["boringssl"], workload = "full", tool = "callgrind", connections = 5, repeat = 1 }"#;
    let text = printed(counted);
    assert!(text.contains("under callgrind") && text.contains("600000"), "{text}");
}

#[test]
fn what_a_table_shows_is_not_printed_twice() {
    let text = printed(
        r#"{ name = "cli", library = ["boringssl"], workload = ["full", "resume"], ms = 100, repeat = 3 }"#,
    );
    assert!(!text.contains("the other points"), "{text}");
}

#[test]
fn published_figures_have_ours_beside_them() {
    use study::Counterpart;
    let folder = tempfile::tempdir().unwrap();
    let (_, summary) =
        measured(&folder.path().join("r"), &Play::new(&THREE), "default", &mut Audience::default());
    let counterparts = Findings::new(summary, 1e5, 1).counterparts();
    let of = |key: &str| &counterparts.iter().find(|(other, _)| other == key).unwrap().1;
    let Counterpart::Ours { difference, .. } = of("full/OpenSSL 3.0.2, pthread, 64 threads") else {
        panic!("it was measured");
    };
    assert!(difference.contains("× 1.1.1w: 0.44 published"), "{difference}");
    let trial = of("TLS 1.3 with ECDSA P-256/openssl-3.0.2");
    let value = 744.0;
    let same = Counterpart::Ours { value, interval: None, difference: String::new() };
    assert_eq!(trial, &same);
    let light = of("resume-chain/OpenSSL 1.1.1w, light, 64 threads");
    assert!(
        matches!(light, Counterpart::NotMeasured { command } if command.contains("pthread,light"))
    );
}

#[test]
fn earlier_names_are_read() {
    let mut sample = rates(2.0, crate::scaling::Law { lambda: 1.0, sigma: 0.0, kappa: 0.0 }, &[1])
        .pop()
        .unwrap();
    sample.values.insert("lied_connections".to_owned(), 0.0);
    let mut failed = sample.clone();
    (failed.repeat, failed.outcome) = (7, record::Outcome::Failed { reason: "lied".to_owned() });
    let summary = summarise([sample, failed]);
    assert!(summary.cells[0].median(crate::value::MISREPORTED).is_some());
    assert!(summary.cells[0].failed.contains_key("misreported"));
}

/// The committed results read as they did, their plan too.
#[test]
fn committed_results_read() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/results/stacks"));
    let run = Run::open(folder).unwrap();
    let plan = Plan::recorded(&run.manifest.plan["stacks"]).unwrap();
    assert_eq!(plan.budget, None);
    assert_eq!(Plan::recorded(&plan.value()).unwrap(), plan);
    let samples = run.samples.len();
    let points: Vec<_> = run.samples.iter().map(|sample| sample.point.clone()).collect();
    let of_points = points.iter().filter(|fields| fields.contains_key("workload"));
    for fields in of_points {
        assert_eq!(&crate::Point::of_fields(fields).unwrap().fields(), fields);
    }
    let summary = summarise(run.samples);
    assert_eq!(summary.samples, samples as u64);
    assert!(summary.libraries.len() > 20 && summary.measured().len() > 20);
}
