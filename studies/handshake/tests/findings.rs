//! What samples say, tried on samples made by hand: times that no machine would measure.

use std::collections::BTreeMap;

use handshake::{Findings, LabDelay, Summary, changes, label, summarise, value};
use record::{Outcome, Sample};
use report::{Report, render};
use stats::{Distribution, Holds};
use study::Findings as _;

const SEED: u64 = 1;

/// A connection: until ready `ready` and until the response `response` round trips, and compute.
fn sample(
    mode: &str,
    rtt_ms: f64,
    repeat: u32,
    (ready, response): (u32, u32),
    c_ms: f64,
) -> Sample {
    let axes = [
        ("sweep", "main".to_owned()),
        ("mode", mode.to_owned()),
        ("rtt", format!("{rtt_ms}ms")),
        ("loss", "0".to_owned()),
        ("key", "rsa-2048".to_owned()),
        ("group", "x25519".to_owned()),
        ("library", "openssl".to_owned()),
        ("chain", "1".to_owned()),
    ];
    // A small spread that leaves the median where it is.
    let c_ms = c_ms + [0.0, -0.01, 0.01][repeat as usize % 3];
    let values = [
        (value::READY, f64::from(ready) * rtt_ms + c_ms),
        (value::RESPONSE, f64::from(response) * rtt_ms + c_ms),
        (value::SPEC_READY, f64::from(ready)),
        (value::SPEC_RESPONSE, f64::from(response)),
        (value::UP_BYTES, 1000.0),
        (value::DOWN_BYTES, 2000.0),
    ];
    let own = |(name, value): (&str, f64)| (name.to_owned(), value);
    Sample {
        study: "handshake".to_owned(),
        point: axes.into_iter().map(|(axis, value)| (axis.to_owned(), value)).collect(),
        repeat,
        seed: SEED,
        at_unix_ms: 0,
        outcome: Outcome::Completed,
        values: values.into_iter().map(own).collect(),
        labels: BTreeMap::from([
            (label::VIEWS.to_owned(), label::AGREE.to_owned()),
            (label::ACTUAL.to_owned(), mode.to_owned()),
        ]),
        attachments: Vec::new(),
        command: format!("wiretax handshake --mode {mode}"),
    }
}

/// Three connections at each RTT.
fn mode(name: &str, rtts_ms: &[f64], counts: (u32, u32), c_ms: f64) -> Vec<Sample> {
    let repeats = |rtt: &f64| {
        let rtt = *rtt;
        (0..3).map(move |repeat| sample(name, rtt, repeat, counts, c_ms))
    };
    rtts_ms.iter().flat_map(repeats).collect()
}

const RTTS: [f64; 3] = [1.0, 20.0, 100.0];

/// Four modes; TLS 1.3 with early data saves most, HelloRetryRequest costs.
fn samples() -> Vec<Sample> {
    [
        mode("tcp+tls12", &RTTS, (3, 4), 2.0),
        mode("tcp+tls13", &RTTS, (2, 3), 1.5),
        mode("tcp+tls13-0rtt", &RTTS, (1, 2), 1.0),
        mode("tcp+tls13-hrr", &RTTS, (3, 4), 5.0),
        mode("tcp", &RTTS, (1, 2), 0.25),
    ]
    .concat()
}

fn summary(samples: Vec<Sample>) -> Summary {
    summarise(samples, SEED).unwrap()
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-6
}

/// The whole report, as a user gets it.
fn page(summary: &Summary, from: &str, clients: Option<&Distribution>) -> String {
    let findings =
        Findings::new(summary.clone(), from.parse().unwrap(), clients.cloned(), SEED).unwrap();
    let mut report = Report::new("test");
    report.answer = findings.answer();
    report.key_figures = findings.key_figures();
    report.sections = findings.sections().unwrap();
    let texts: Vec<String> = findings.tables().iter().map(|table| table.to_text(120)).collect();
    assert!(texts.iter().all(|text| !text.contains("NaN") && !text.contains("inf")), "{texts:?}");
    render(&report)
}

#[test]
fn the_fit_recovers_n_and_c() {
    let summary = summary(samples());
    assert_eq!(summary.samples, 5 * 9);
    for row in &summary.rows {
        let expected = match row.key.mode.to_string().as_str() {
            "tcp+tls12" => (3.0, 4.0, 2.0),
            "tcp+tls13" => (2.0, 3.0, 1.5),
            "tcp+tls13-0rtt" => (1.0, 2.0, 1.0),
            "tcp+tls13-hrr" => (3.0, 4.0, 5.0),
            _ => (1.0, 2.0, 0.25),
        };
        let (ready, response) = (row.ready.as_ref().unwrap(), row.response.as_ref().unwrap());
        assert!(close(ready.slope.value, expected.0), "{:?}", row.key);
        assert!(close(response.slope.value, expected.1), "{:?}", row.key);
        assert!(close(ready.intercept.value, expected.2), "{:?}", row.key);
        assert!(ready.slope.contains(expected.0) && ready.intercept.contains(expected.2));
        assert_eq!(row.holds, Some(Holds::Yes));
    }
}

#[test]
fn an_n_off_its_specification_shows() {
    let mut samples = mode("tcp+tls13", &RTTS, (2, 3), 1.0);
    for sample in &mut samples {
        // A hidden round trip: a delayed acknowledgment, say.
        *sample.values.get_mut(value::RESPONSE).unwrap() *= 1.02;
    }
    let summary = summary(samples);
    let (ready, response) = summary.rows[0].off_spec().unwrap();
    assert!(close(ready, 0.0) && close(response, 0.06));
    assert_eq!(summary.rows[0].holds, Some(Holds::No));
}

/// Two RTTs, five connections at each, and times that scatter by more than a round trip.
fn scattered() -> Vec<Sample> {
    let scatter = [0.0, 60.0, 5.0, 110.0, 20.0];
    let repeats =
        |rtt: f64| (0..5).map(move |repeat| sample("tcp+tls13", rtt, repeat, (2, 3), 1.0));
    let mut samples: Vec<Sample> = repeats(5.0).chain(repeats(50.0)).collect();
    for sample in &mut samples {
        for name in [value::READY, value::RESPONSE] {
            *sample.values.get_mut(name).unwrap() += scatter[sample.repeat as usize];
        }
    }
    samples
}

#[test]
fn an_interval_wider_than_a_round_trip_cannot_tell() {
    let summary = summary(scattered());
    let row = &summary.rows[0];
    let n = row.ready.as_ref().unwrap().slope;
    assert!(n.high - n.low > 1.0, "{n:?}");
    assert_eq!(row.holds, Some(Holds::CannotTell));
    let page = page(&summary, "tcp+tls12", None);
    assert!(page.contains("cannot tell") && page.contains("RTTs farther apart would tell"));
}

#[test]
fn c_is_printed_without_the_labs_own_delay_and_each_rtt_with_its_residual() {
    let mut samples = mode("tcp+tls13", &RTTS, (2, 3), 1.0);
    for sample in samples.iter_mut().filter(|sample| sample.point["rtt"] == "20ms") {
        *sample.values.get_mut(value::READY).unwrap() += 0.7;
    }
    let summary = summary(samples);
    let mut findings = Findings::new(summary, "tcp+tls12".parse().unwrap(), None, SEED).unwrap();
    let text = |findings: &Findings| findings.tables()[0].to_text(120);
    assert!(text(&findings).contains("the lab was not calibrated"), "{}", text(&findings));
    findings.lab_delay = Some(LabDelay { one_way_ms: 0.07, least_ms: 0.06, greatest_ms: 0.08 });
    // 1.00 ms less four ways of 70 us.
    assert!(text(&findings).contains("0.72 [0.67, 0.77]"), "{}", text(&findings));
    let sections = findings.sections().unwrap();
    let section = sections.iter().find(|section| section.id == "n-and-c").unwrap();
    let tables: Vec<String> = section
        .blocks
        .iter()
        .filter_map(|block| match block {
            report::Block::Table(table) => Some(table.to_text(400)),
            _ => None,
        })
        .collect();
    let [_, c, ready, _] = tables.as_slice() else { panic!("{tables:?}") };
    for part in ["1.00 [0.99, 1.01]", "0.28 [0.24, 0.32]", "0.72 [0.67, 0.77]"] {
        assert!(c.contains(part), "{part}: {c}");
    }
    // The line passes through two RTTs; the third has all that does not fit.
    assert!(ready.contains("Residuals") && ready.contains("0.70 [0.69, 0.71]"), "{ready}");
    let json = findings.json().unwrap();
    assert_eq!(json["handshake"]["lab_delay"]["one_way_ms"], 0.07);
    assert_eq!(json["handshake"]["rows"][0]["holds"], "yes");
}

#[test]
fn what_was_given_up_without_loss_is_in_the_median_and_what_failed_is_named() {
    let mut samples: Vec<Sample> =
        (0..5).map(|repeat| sample("tcp+tls13", 20.0, repeat, (2, 3), 1.0)).collect();
    for (at, sample) in samples.iter_mut().enumerate() {
        sample.values.insert(value::RESPONSE.to_owned(), 61.0 + at as f64);
    }
    let end = |sample: &mut Sample, outcome| {
        sample.values.clear();
        sample.labels.clear();
        sample.outcome = outcome;
    };
    end(&mut samples[0], Outcome::TimedOut { after_ms: 60_000.0 });
    end(&mut samples[1], Outcome::Failed { reason: "reset".to_owned() });
    let mut unread = sample("tcp+tls13", 20.0, 9, (2, 3), 1.0);
    unread.point.insert("rtt".to_owned(), "soon".to_owned());
    samples.push(unread);
    let findings = |samples: &[Sample]| {
        Findings::new(summary(samples.to_vec()), "tcp".parse().unwrap(), None, SEED).unwrap()
    };
    let said = findings(&samples);
    let cell = &said.summary.rows[0].cells[0];
    // Of 63, 64, 65 and one that took longer than a minute.
    let median = cell.median(value::RESPONSE).unwrap();
    assert_eq!((median.value, median.high), (64.5, 60_000.0));
    let notes: Vec<String> = said.cautions().iter().map(|one| one.note.text.to_plain()).collect();
    for part in ["1 given up at the time limit", "failed (1 reset)", "1 sample left out"] {
        assert!(notes.iter().any(|note| note.contains(part)), "{part}: {notes:?}");
    }
    for sample in &mut samples[2..4] {
        end(sample, Outcome::TimedOut { after_ms: 60_000.0 });
    }
    // Most of them were given up: the median is beyond the limit.
    assert!(findings(&samples).summary.rows[0].cells[0].median(value::RESPONSE).is_none());
}

#[test]
fn contradictions_are_left_out_and_counted() {
    let mut samples = samples();
    for sample in samples.iter_mut().filter(|s| s.point["mode"] == "tcp" && s.repeat == 0) {
        sample.labels.insert(label::VIEWS.to_owned(), "not in the capture".to_owned());
        sample.values.insert(value::RESPONSE.to_owned(), 1e9);
    }
    let summary = summary(samples);
    assert_eq!(summary.contradictions, BTreeMap::from([("not in the capture".to_owned(), 3)]));
    let plain = summary.rows.iter().find(|row| row.key.mode.to_string() == "tcp").unwrap();
    assert!(plain.cells.iter().all(|cell| cell.completed() == 2));
    // Two a cell say nothing about how sure their median is.
    assert!(plain.ready.is_none() && plain.holds.is_none());
    assert!(page(&summary, "tcp+tls12", None).contains("not in the capture"));
}

#[test]
fn a_fallback_counts_as_what_it_was() {
    let mut samples = mode("tfo+tls13", &RTTS, (1, 2), 1.0);
    samples.extend(mode("tcp+tls13", &RTTS, (2, 3), 1.0));
    let mut fallen = sample("tfo+tls13", 20.0, 3, (2, 3), 1.0);
    fallen.labels.insert(label::ACTUAL.to_owned(), "tcp+tls13".to_owned());
    samples.push(fallen);
    let summary = summary(samples);
    let fell_back = &summary.fell_back[0];
    assert_eq!((fell_back.0.intended.to_string(), fell_back.1), ("tfo+tls13".to_owned(), 1));
    let completed = |mode: &str| {
        let row = summary.rows.iter().find(|row| row.key.mode.to_string() == mode).unwrap();
        row.at_rtt(20.0).unwrap().completed()
    };
    assert_eq!((completed("tcp+tls13"), completed("tfo+tls13")), (4, 3));
}

#[test]
fn under_loss_a_fallback_stays_with_what_was_tried() {
    let mut tried = sample("tfo+tls13", 20.0, 0, (2, 3), 1000.0);
    tried.point.insert("loss".to_owned(), "10%".to_owned());
    tried.labels.insert(label::ACTUAL.to_owned(), "tcp+tls13".to_owned());
    let mut given_up = sample("tfo+tls13", 20.0, 1, (2, 3), 0.0);
    given_up.point.insert("loss".to_owned(), "10%".to_owned());
    given_up.outcome = Outcome::TimedOut { after_ms: 2000.0 };
    given_up.values.clear();
    given_up.labels.clear();
    let summary = summary(vec![tried, given_up]);
    assert_eq!(summary.rows.len(), 1);
    let row = &summary.rows[0];
    assert_eq!(row.key.mode.to_string(), "tfo+tls13");
    assert_eq!((row.cells.len(), row.lossy[0].completed()), (0, 1));
    assert_eq!(row.lossy[0].given_up_ms, [2000.0]);
    assert_eq!(summary.fell_back.len(), 1);
    assert!(page(&summary, "tcp+tls12", None).contains("tfo+tls13"));
}

#[test]
fn savings_have_their_sign_and_the_largest_comes_first() {
    let summary = summary(samples());
    let from = "tcp+tls12".parse().unwrap();
    let changes = changes(&summary, from, None, SEED).unwrap();
    let names: Vec<String> = changes.iter().map(|change| change.to.to_string()).collect();
    // A connection without security is no advice.
    assert_eq!(names, ["tcp+tls13-0rtt", "tcp+tls13", "tcp+tls13-hrr"]);
    let at_20 = |at: usize| changes[at].savings.iter().find(|s| s.rtt_ms == 20.0).unwrap();
    assert!(close(at_20(0).saved_ms.value, 41.0) && close(at_20(0).today_ms, 82.0));
    assert!(close(at_20(0).percent(), 50.0));
    assert!(close(at_20(2).saved_ms.value, -3.0) && at_20(2).saved_ms.high < 0.0);
    assert!(changes.iter().all(|change| change.savings.len() == 3 && change.weighed.is_none()));
}

#[test]
fn a_distribution_of_clients_weighs_the_savings() {
    let summary = summary(samples());
    // Three quarters near, a quarter far: a mean RTT of 20 ms, at none of the measured ones alone.
    let clients = Distribution::parse("10 3\n50 1\n").unwrap();
    let from = "tcp+tls12".parse().unwrap();
    let changes = changes(&summary, from, Some(&clients), SEED).unwrap();
    let weighed = changes[0].weighed.unwrap();
    assert!(close(weighed.today_ms, 4.0 * 20.0 + 2.0), "{weighed:?}");
    assert!(close(weighed.saved_ms, 2.0 * 20.0 + 1.0), "{weighed:?}");
    // At the median they are near, beyond three quarters far.
    let at: Vec<(f64, f64)> = weighed.at.iter().map(|at| (at.rtt_ms, at.saved_ms)).collect();
    assert!(close(at[0].1, 2.0 * 10.0 + 1.0) && close(at[0].0, 10.0), "{weighed:?}");
    assert!(close(at[1].1, 2.0 * 50.0 + 1.0) && close(at[2].0, 50.0), "{weighed:?}");
    let page = page(&summary, "tcp+tls12", Some(&clients));
    assert!(page.contains("your clients") && page.contains("What your clients save by changing"));
}

#[test]
fn what_observe_wrote_weighs_as_lines_do() {
    let observed = r#"{"format": "wiretax-client-round-trips", "version": 1, "connections": 4,
        "points": [{"ms": 10, "count": 3}, {"ms": 50, "count": 1}]}"#;
    let clients = handshake::Clients::parse(observed).unwrap();
    let summary = summary(samples());
    let from = "tcp+tls12".parse().unwrap();
    let changes = changes(&summary, from, Some(clients.weights()), SEED).unwrap();
    let weighed = changes[0].weighed.unwrap();
    assert!(close(weighed.saved_ms, 2.0 * 20.0 + 1.0), "{weighed:?}");
}

#[test]
fn the_report_holds_the_tables() {
    let page = page(&summary(samples()), "tcp+tls12", None);
    for text in
        ["tcp+tls13-0rtt", "tcp+tls13-hrr", "What to change", "<table", "ssl_early_data on;"]
    {
        assert!(page.contains(text), "{text}");
    }
}

#[test]
fn without_the_mode_run_today_there_are_no_savings() {
    let samples = mode("tcp+tls13", &RTTS, (2, 3), 1.0);
    let summary = summary(samples);
    let from = "tcp+tls12".parse().unwrap();
    assert!(changes(&summary, from, None, SEED).unwrap().is_empty());
    assert!(page(&summary, "tcp+tls12", None).contains("tcp+tls13"));
}

#[test]
fn a_single_rtt_gives_no_line() {
    let samples =
        [mode("tcp+tls12", &[20.0], (3, 4), 2.0), mode("tcp+tls13", &[20.0], (2, 3), 1.0)];
    let summary = summary(samples.concat());
    assert!(summary.rows.iter().all(|row| row.ready.is_none() && row.off_spec().is_none()));
    let clients = Distribution::from_values(&[5.0]).unwrap();
    let from = "tcp+tls12".parse().unwrap();
    let changes = changes(&summary, from, Some(&clients), SEED).unwrap();
    // Without a line nothing is known of other RTTs.
    assert!(changes[0].weighed.is_none() && changes[0].savings.len() == 1);
    page(&summary, "tcp+tls12", Some(&clients));
}

#[test]
fn failures_alone_make_a_report() {
    let failed = |repeat: u32, loss: &str| {
        let mut sample = sample("tcp+tls12", 20.0, repeat, (3, 4), 0.0);
        sample.point.insert("loss".to_owned(), loss.to_owned());
        sample.values.clear();
        sample.labels.clear();
        sample.outcome = match repeat {
            0 => Outcome::TimedOut { after_ms: 2000.0 },
            _ => Outcome::Failed { reason: "refused".to_owned() },
        };
        sample
    };
    let all = ["0", "10%"].iter().flat_map(|loss| (0..3).map(|repeat| failed(repeat, loss)));
    let summary = summary(all.collect());
    let row = &summary.rows[0];
    for cell in row.cells.iter().chain(&row.lossy) {
        assert_eq!((cell.completed(), cell.given_up_ms.len(), cell.failed["refused"]), (0, 1, 2));
    }
    assert!(row.ready.is_none() && row.spec.is_none());
    page(&summary, "tcp+tls12", None);
    // Nothing at all is a report too.
    page(&summarise([], SEED).unwrap(), "quic", None);
}

#[test]
fn samples_of_other_studies_are_passed_over() {
    let mut other = sample("tcp", 1.0, 0, (1, 2), 0.0);
    other.study = "link".to_owned();
    assert_eq!(summary(vec![other]).samples, 0);
}
