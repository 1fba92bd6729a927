//! The study measured in the lab: every load has its sample, a stop loses nothing, and what is resumed
//! repeats nothing.

use std::collections::BTreeMap;
use std::path::Path;

use lab_test::net::sleeping;
use lab_test::{Test, TestResult};
use page_study::{PageStudy, Summary, value};
use record::{AttachmentKind, Outcome, Run, Sample};
use serde_json::{Value, json};
use study::{End, Options, Study, unattended_until};

/// Measures a plan into a folder, or what a folder lacks.
fn measure(plan: &Value, folder: &Path, looks: Option<u32>) -> TestResult<End> {
    measure_keeping(plan, folder, looks, None)
}

/// The same, with a folder for captures.
fn measure_keeping(
    plan: &Value,
    folder: &Path,
    looks: Option<u32>,
    captures: Option<&Path>,
) -> TestResult<End> {
    let mut plan = PageStudy
        .recorded_plan(plan, &Default::default(), &Options::none())
        .map_err(|e| e.to_string())?;
    let end = unattended_until(
        "page",
        &plan.value(),
        folder,
        looks.map(study::Until::Looks),
        |session| {
            let session = session.keeping_captures(captures.map(Path::to_owned));
            plan.measure(&mut session.in_lab(sleeping(plan.seed())))
        },
    );
    Ok(end.map_err(|problem| problem.to_string())?)
}

fn plan(sweep: Value) -> Value {
    json!({ "seed": 5, "timeout": "60s", "pages": {}, "page_options": "", "sweeps": [sweep] })
}

/// Every point of every protocol has its sample, with a HAR file beside the first, and the findings have
/// all of them.
fn every_load_has_its_sample() -> TestResult {
    let folder = tempfile::tempdir()?;
    let results = folder.path().join("results");
    let sweep = json!({ "name": "x", "page": ["site-gmail"], "link": ["20ms@20mbit"],
        "protocol": ["http/1.1", "spdy/3.1", "h2", "h3"], "visit": ["first", "kept", "closed"], "repeat": 2 });
    assert_eq!(measure(&plan(sweep), &results, None)?, End::Complete);
    let run = Run::open(&results)?;
    assert_eq!(run.samples.len(), 4 * 3 * 2);
    for sample in &run.samples {
        assert_eq!(sample.outcome, Outcome::Completed, "{}", sample.key());
        let value = |name: &str| sample.values.get(name).copied().ok_or(format!("no {name}"));
        let first = sample.point["visit"] == "first";
        if first {
            // The page's bytes, exactly.
            assert_eq!(value(value::BODY)?, 51_460.0);
            assert!(value(value::DOWN)? > 51_460.0);
            assert_eq!(value(value::REQUESTS)?, 11.0);
        }
        if sample.point["visit"] == "kept" {
            assert_eq!(value(value::CONNECTIONS)?, 0.0);
        }
        assert!(value(value::FIRST_BYTE)? <= value(value::HALF)?);
        assert!(value(value::HALF)? <= value(value::NINETY)?);
        assert!(value(value::NINETY)? <= value(value::LOAD)?);
        let hars = sample.attachments.iter().filter(|a| a.kind == AttachmentKind::Har);
        assert_eq!(hars.count(), usize::from(sample.repeat == 0));
    }
    let summary = Summary::of(&run.samples);
    assert_eq!(summary.groups.len(), 3);
    assert!(
        summary.groups.iter().all(|g| g.rows.len() == 4 && g.rows.iter().all(|r| r.loads == 2))
    );
    let question = PageStudy.question(&Options::none()).map_err(|problem| problem.to_string())?;
    let found = question
        .findings(&mut run.samples.into_iter(), &run.manifest)
        .map_err(|p| p.to_string())?;
    let found = found.ok_or("no findings")?;
    let sections = found.sections().map_err(|problem| problem.to_string())?;
    assert!(sections.iter().any(|section| section.id == "page-waterfall"));
    for table in found.tables() {
        print!("{}", table.to_text(100));
    }
    Ok(())
}

/// The handshakes of the kernel's TCP and of QUIC: what a visit after another has early, and what each is held
/// against.
fn early_handshakes_are_counted_and_compared() -> TestResult {
    let folder = tempfile::tempdir()?;
    let results = folder.path().join("results");
    let sweep = json!({ "name": "x", "page": ["site-gmail"], "link": ["20ms@20mbit"],
        "handshake": ["kernel", "tfo", "0rtt", "tfo-0rtt", "tls12-rsa"],
        "protocol": ["h2", "h3"], "visit": ["first", "closed"], "repeat": 2 });
    assert_eq!(measure(&plan(sweep), &results, None)?, End::Complete);
    let run = Run::open(&results)?;
    // HTTP/3 has two of the five.
    assert_eq!(run.samples.len(), (5 + 2) * 2 * 2);
    for sample in &run.samples {
        assert_eq!(sample.outcome, Outcome::Completed, "{}", sample.key());
        let value = |name: &str| sample.values.get(name).copied().ok_or(format!("no {name}"));
        let handshake = sample.point.get("handshake").map_or("kernel", String::as_str);
        let closed = sample.point["visit"] == "closed";
        let connections = value(value::CONNECTIONS)?;
        let expected = |is: bool| if is && closed { connections } else { 0.0 };
        let has_early_data = handshake.ends_with("0rtt");
        assert_eq!(value(value::EARLY)?, expected(has_early_data), "{}", sample.key());
        let has_syn_data = handshake.starts_with("tfo");
        assert_eq!(value(value::SYN_DATA)?, expected(has_syn_data), "{}", sample.key());
    }
    let summary = Summary::of(&run.samples);
    for row in summary.groups.iter().flat_map(|group| &group.rows) {
        let label = row.label(false);
        let is_held = ["tfo", "0rtt"].iter().any(|name| label.contains(name));
        assert_eq!(row.loads, 2, "{label}");
        assert!(is_held || row.handshake_ratio.is_none(), "{label}");
    }
    Ok(())
}

/// What is stopped is resumed without a load made twice; every load keeps its HAR file where that is asked for.
fn a_stop_loses_nothing_and_what_follows_repeats_nothing() -> TestResult {
    let folder = tempfile::tempdir()?;
    let results = folder.path().join("results");
    let sweep = json!({ "name": "x", "page": ["site-gmail"], "link": ["5ms@50mbit"],
        "protocol": ["http/1.1", "h2"], "visit": ["first", "kept"], "repeat": 3 });
    let mut plan = plan(sweep);
    plan["keep_hars"] = json!(true);
    let end = measure(&plan, &results, Some(12))?;
    let before = Run::open(&results)?.samples;
    assert!(before.len() <= 12, "{}", before.len());
    assert!(end == End::Interrupted || before.len() == 12, "{end:?} with {}", before.len());
    assert_eq!(measure(&plan, &results, None)?, End::Complete);
    let run = Run::open(&results)?;
    let keys: std::collections::BTreeSet<String> = run.samples.iter().map(|s| s.key()).collect();
    assert_eq!((run.samples.len(), keys.len()), (12, 12));
    assert_eq!(run.samples[..before.len()], before[..]);
    for sample in &run.samples {
        let hars = sample.attachments.iter().filter(|a| a.kind == AttachmentKind::Har);
        let files: Vec<_> = hars.map(|har| results.join(&har.file)).collect();
        assert!(files.len() == 1 && files[0].is_file(), "{}: {files:?}", sample.key());
    }
    Ok(())
}

/// The counts of a sample that no clock has a part in.
const COUNTS: [&str; 4] = [value::REQUESTS, value::CONNECTIONS, value::RESUMED, value::BODY];

/// Samples by their keys, with their counts.
fn counts(samples: &[Sample]) -> BTreeMap<String, Vec<f64>> {
    let of = |sample: &Sample| {
        let counts = COUNTS.iter().filter_map(|name| sample.values.get(*name).copied());
        (sample.key(), counts.collect())
    };
    samples.iter().map(of).collect()
}

/// Loads that are under way at once differ in no count from those that have the machine to themselves:
/// names and connections, and so round trips, handshakes, requests, bytes.
fn lanes_do_not_touch_counts() -> TestResult {
    let folder = tempfile::tempdir()?;
    let measured = |name: &str, lanes: Option<u32>| -> TestResult<Vec<Sample>> {
        let mut sweep = json!({ "name": "x", "page": ["site-gmail"], "link": ["40ms@2mbit"],
            "protocol": ["http/1.1", "spdy/3.1", "h2", "h3"], "visit": ["first", "closed"], "repeat": 4 });
        if let (Some(lanes), Some(fields)) = (lanes, sweep.as_object_mut()) {
            fields.insert("lanes".to_owned(), json!(lanes));
        }
        let results = folder.path().join(name);
        assert_eq!(measure(&plan(sweep), &results, None)?, End::Complete);
        Ok(Run::open(&results)?.samples)
    };
    let (alone, together) = (measured("alone", Some(1))?, measured("together", None)?);
    assert_eq!(alone.len(), 4 * 2 * 4);
    assert!(alone.iter().chain(&together).all(|sample| sample.outcome == Outcome::Completed));
    assert_eq!(counts(&alone), counts(&together));
    for samples in [&alone, &together] {
        println!("{:?}", Summary::of(samples).passed);
    }
    Ok(())
}

/// Pages load over a bus; each load's command names the drive and the initial window.
fn a_bus_and_an_initial_window_are_measured() -> TestResult {
    let folder = tempfile::tempdir()?;
    let results = folder.path().join("results");
    let sweep = json!({ "name": "x", "page": ["site-gmail"], "link": ["bus:3"], "protocol": ["h2"],
        "visit": ["first"], "initial-window": ["3", "10"], "congestion": ["cubic", "reno"],
        "repeat": 1 });
    assert_eq!(measure(&plan(sweep), &results, None)?, End::Complete);
    let run = Run::open(&results)?;
    assert_eq!(run.samples.len(), 4);
    for sample in &run.samples {
        assert_eq!(sample.outcome, Outcome::Completed, "{}", sample.key());
        assert!(sample.command.contains("--link bus:3 "), "{}", sample.command);
        let named = sample.point.get("initial-window").map(String::as_str);
        assert!(matches!(named, None | Some("3")), "{named:?}");
        assert_eq!(named.is_some(), sample.command.contains("--initial-window 3"));
        let named = sample.point.get("congestion").map(String::as_str);
        assert!(matches!(named, None | Some("reno")), "{named:?}");
        assert_eq!(named.is_some(), sample.command.contains("--congestion reno"));
    }
    let summary = Summary::of(&run.samples);
    assert_eq!((summary.groups.len(), summary.groups[0].rows.len()), (1, 4));
    Ok(())
}

/// A file of the user's is the capacity of a link, and a sample's command knows it by its content.
fn a_trace_of_the_users_is_measured() -> TestResult {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("steady.down");
    // 12 Mbit/s.
    std::fs::write(&file, "1\n2\n3\n4\n")?;
    let results = folder.path().join("results");
    let link = format!("trace:{}@20ms", file.display());
    let sweep = json!({ "name": "x", "page": ["site-gmail"], "link": [link], "protocol": ["h2"],
        "visit": ["first"], "repeat": 1 });
    assert_eq!(measure(&plan(sweep), &results, None)?, End::Complete);
    let run = Run::open(&results)?;
    let [sample] = run.samples.as_slice() else { return Err("not one sample".into()) };
    assert_eq!(sample.outcome, Outcome::Completed);
    let named = sample.point.get("link").ok_or("no link")?;
    assert!(named.contains("steady.down#") && named.ends_with("@20ms"), "{named}");
    assert!(sample.command.contains(&format!("--link '{named}'")), "{}", sample.command);
    Ok(())
}

/// A load beside a download has what that carried counted apart.
fn cross_traffic_is_in_the_samples() -> TestResult {
    let folder = tempfile::tempdir()?;
    let results = folder.path().join("results");
    let sweep = json!({ "name": "x", "page": ["site-gmail"], "link": ["3g-1.37"], "protocol": ["h2"],
        "visit": ["first"], "queue": ["drop-tail", "codel"], "cross-traffic": ["bulk"], "repeat": 1 });
    assert_eq!(measure(&plan(sweep), &results, None)?, End::Complete);
    let run = Run::open(&results)?;
    assert_eq!(run.samples.len(), 2);
    for sample in &run.samples {
        assert_eq!(sample.outcome, Outcome::Completed, "{}", sample.key());
        let value = |name: &str| sample.values.get(name).copied().ok_or(format!("no {name}"));
        assert!(value(value::CROSS_DOWN)? > 0.0 && value(value::CROSS_UP)? > 0.0);
        assert_eq!(value(value::BODY)?, 51_460.0);
        println!("{:?}", sample.values);
    }
    Ok(())
}

/// What was read of a file that has its secrets in it.
fn chart_of(file: &Path) -> TestResult<sequence::Chart> {
    let mut source = capture::Source::open(file)?;
    let mut reader = sequence::Reader::new(sequence::Limits::default());
    while let Some(event) = source.next()? {
        match event {
            capture::Event::KeyLog(lines) => {
                reader.add_keys(lines);
            }
            capture::Event::Frame(frame) => {
                let link = tracker::LinkType::from_number(frame.link).ok_or("another link type")?;
                reader.handle_packet(frame.at, link, frame.bytes);
            }
            _ => {}
        }
    }
    Ok(reader.finish())
}

/// The first loads' captures are kept with their secrets, one of a browser's visits together, and the
/// report has their charts; no other load has one.
fn captures_of_first_loads_are_kept_and_charted() -> TestResult {
    let folder = tempfile::tempdir()?;
    let (results, captures) = (folder.path().join("results"), folder.path().join("captures"));
    std::fs::create_dir(&captures)?;
    let sweep = json!({ "name": "x", "page": ["site-gmail"], "link": ["20ms@20mbit"],
        "protocol": ["http/1.1", "spdy/3.1", "h2", "h3"], "visit": ["first", "closed"], "repeat": 2 });
    let end = measure_keeping(&plan(sweep), &results, None, Some(&captures))?;
    assert_eq!(end, End::Complete);
    let run = Run::open(&results)?;
    for sample in &run.samples {
        assert_eq!(sample.outcome, Outcome::Completed, "{}", sample.key());
        let (protocol, visit) = (sample.point["protocol"].as_str(), sample.point["visit"].as_str());
        let captured = sample.labels.get("capture");
        assert_eq!(captured.is_some(), sample.repeat == 0 && visit == "first", "{}", sample.key());
        let has_windows = matches!(protocol, "spdy/3.1" | "h2");
        let charted = sample.labels.contains_key("sequence");
        assert_eq!(charted, captured.is_some() && has_windows, "{}", sample.key());
        let Some(name) = captured else { continue };
        let chart = chart_of(&captures.join(name))?;
        assert_eq!(chart.unread, [], "{protocol}");
        assert_eq!(chart.connections.is_empty(), !has_windows, "{protocol}");
        if has_windows {
            // Those of both visits, each as long as the load says.
            let gaps: Vec<_> = chart.connections.iter().flat_map(|one| &one.gaps).collect();
            assert!(gaps.is_empty(), "{protocol}: {gaps:?}");
            let sent: u64 = chart.connections.iter().map(|one| one.server_sends.data_bytes).sum();
            let of = |visit: &str| -> f64 {
                let same = |other: &&Sample| {
                    other.point["protocol"] == protocol
                        && (other.point["visit"].as_str(), other.repeat) == (visit, 0)
                };
                let samples = run.samples.iter().filter(same);
                samples.filter_map(|other| other.values.get(value::BODY)).sum()
            };
            assert_eq!(sent as f64, of("first") + of("closed"), "{protocol}");
        }
    }
    let question = PageStudy.question(&Options::none()).map_err(|problem| problem.to_string())?;
    let found = question
        .findings(&mut run.samples.into_iter(), &run.manifest)
        .map_err(|p| p.to_string())?;
    let sections = found.ok_or("no findings")?.sections().map_err(|problem| problem.to_string())?;
    assert!(sections.iter().any(|section| section.id == "page-sequence"));
    Ok(())
}

/// A page that sends a megabyte when its document is there.
const POST: &str = r#"
name = "post"

[[object]]
host = "www.example"
path = "/"
kind = "document"
bytes = "5kB"

[[object]]
host = "www.example"
path = "/post"
kind = "fetch"
bytes = "100B"
found_by = 0
upload = "1MB"
"#;

/// Through a quarter of the bandwidth-delay product uploads stall, and through forty times as much they do not; below,
/// TCP and QUIC wait for their congestion window. The object's own times are in the load's HAR.
fn uploads_say_how_long_they_stalled() -> TestResult {
    let folder = tempfile::tempdir()?;
    let results = folder.path().join("results");
    let sweep = json!({ "name": "x", "page": ["post"], "link": ["40ms@50mbit"], "protocol": ["h2", "h3"],
        "stream-window": ["64KiB", "10MiB"], "visit": ["first"], "repeat": 1 });
    let mut plan = plan(sweep);
    plan["pages"] = json!({ "post": POST });
    assert_eq!(measure(&plan, &results, None)?, End::Complete);
    let run = Run::open(&results)?;
    assert_eq!(run.samples.len(), 4);
    for sample in &run.samples {
        assert_eq!(sample.outcome, Outcome::Completed, "{}", sample.key());
        let small = sample.point["stream-window"] == "64KiB";
        let stalled = sample.values.get(value::UPLOADS_STALLED).copied().ok_or("no such value")?;
        assert_eq!(stalled > 0.0, small, "{}: {stalled} ms", sample.key());
        let file = &sample.attachments.first().ok_or("no HAR file")?.file;
        let har: Value = serde_json::from_slice(&std::fs::read(results.join(file))?)?;
        let entries = har["log"]["entries"].as_array().ok_or("no entries")?;
        let own: Vec<_> = entries.iter().map(|entry| entry["_stalledOnWindow"].as_f64()).collect();
        assert!(
            matches!(own.as_slice(), [Some(get), Some(post)] if *get == 0.0 && (*post > 0.0) == small),
            "{own:?}"
        );
        // Below, TCP or QUIC begins with ten packets, and the link is idle until the first is acknowledged.
        let by_congestion = sample.values.get(value::UPLOADS_CONGESTION_WINDOW).copied();
        assert!(by_congestion.is_some_and(|ms| ms > 0.0), "{}: {by_congestion:?}", sample.key());
        let below = sample.values.get(value::UPLOADS_TCP_STALLED).copied();
        assert!(below >= by_congestion, "{}: {below:?}", sample.key());
        assert!(sample.values.contains_key(value::TCP_STALLED), "{}: the server's", sample.key());
        let own = entries.get(1).and_then(|post| post["_stalledOnTcp"].as_f64());
        // Both are rounded.
        let least = by_congestion.map(|ms| ms - 0.001);
        assert!(own >= least, "{}: {own:?}", sample.key());
        println!("{}: {by_congestion:?} of {below:?} ms, {own:?} in its HAR", sample.key());
    }
    Ok(())
}

fn main() -> std::process::ExitCode {
    lab_test::main(&[
        Test::inside(
            "captures_of_first_loads_are_kept_and_charted",
            captures_of_first_loads_are_kept_and_charted,
        ),
        Test::inside("every_load_has_its_sample", every_load_has_its_sample),
        Test::inside(
            "early_handshakes_are_counted_and_compared",
            early_handshakes_are_counted_and_compared,
        ),
        Test::inside("lanes_do_not_touch_counts", lanes_do_not_touch_counts),
        Test::inside(
            "a_bus_and_an_initial_window_are_measured",
            a_bus_and_an_initial_window_are_measured,
        ),
        Test::inside("a_trace_of_the_users_is_measured", a_trace_of_the_users_is_measured),
        Test::inside("cross_traffic_is_in_the_samples", cross_traffic_is_in_the_samples),
        Test::inside("uploads_say_how_long_they_stalled", uploads_say_how_long_they_stalled),
        Test::inside(
            "a_stop_loses_nothing_and_what_follows_repeats_nothing",
            a_stop_loses_nothing_and_what_follows_repeats_nothing,
        ),
    ])
}
