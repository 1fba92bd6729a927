//! Findings from samples made up here: what is said, and what is not.

use std::collections::BTreeMap;

use linkmodel::Middlebox;
use record::{Outcome, Sample};

use super::*;
use crate::mode::Transport;
use crate::plan::Plan;
use crate::point::{Peer, Point, Visit};
use crate::summary::{label, summarise, value};
use study::Findings as _;

/// Samples of a plan in which every mode takes its textbook round trips and `compute_ms`.
fn samples(sweeps: &str, compute_ms: f64) -> Vec<Sample> {
    let plan = Plan::parse(&format!("[scale.quick]\nsweep = [{sweeps}]\n"), "quick").unwrap();
    let (cells, _) = plan.cells().unwrap();
    let mut samples = Vec::new();
    for cell in cells {
        for point in &cell.points {
            let sizes = crate::spec::Sizes {
                first_flight: if point.group.to_string().contains("mlkem") { 1_450 } else { 250 },
                server_flight: 1_300,
                client_datagrams: 2_400,
                segment: 1_448,
                syn_payload: 1_420,
                syn_data: 1_200,
            };
            let actual = fallen_back(point);
            let late_ms = if waits_for_timer(point) { 1_000.0 } else { 0.0 };
            let spec = crate::spec::round_trips(actual, &sizes);
            for repeat in 0..cell.repeat {
                let rtt_ms = cell.rtt.as_millis_f64();
                let noise = f64::from(repeat) * 0.001;
                let after = |n: u32| late_ms + f64::from(n) * rtt_ms + compute_ms + noise;
                samples.push(Sample {
                    study: "handshake".to_owned(),
                    point: point.fields(),
                    repeat,
                    seed: 1,
                    at_unix_ms: 0,
                    outcome: Outcome::Completed,
                    values: BTreeMap::from([
                        (value::READY.to_owned(), after(spec.ready)),
                        (value::RESPONSE.to_owned(), after(spec.response)),
                        (value::CONNECT.to_owned(), after(spec.response.min(1))),
                        (value::UP_BYTES.to_owned(), 900.0),
                        (value::DOWN_BYTES.to_owned(), 1_600.0),
                        (value::UP_FRAMES.to_owned(), 7.0),
                        (value::DOWN_FRAMES.to_owned(), 7.0),
                        (value::SPEC_READY.to_owned(), f64::from(spec.ready)),
                        (value::SPEC_RESPONSE.to_owned(), f64::from(spec.response)),
                        (value::HELLO_BYTES.to_owned(), sizes.first_flight as f64),
                        (value::CLIENT_CRYPTO.to_owned(), 0.8),
                        (value::SERVER_CRYPTO.to_owned(), 1.1),
                    ]),
                    labels: BTreeMap::from([(label::ACTUAL.to_owned(), actual.to_string())]),
                    attachments: Vec::new(),
                    command: point.command(1, repeat + 1),
                });
            }
        }
    }
    samples
}

/// What a point's connections are where a middlebox or an ordinary server stands in their way.
fn fallen_back(point: &Point) -> Mode {
    let hindered = point.middlebox != Middlebox::None || point.peer != Peer::Same;
    match point.mode.transport {
        _ if !hindered => point.mode,
        Transport::SslmTcp => point.mode.control().unwrap(),
        Transport::TcpFastOpen => Mode { transport: Transport::Tcp, ..point.mode },
        _ => point.mode,
    }
}

fn waits_for_timer(point: &Point) -> bool {
    let dropped = point.middlebox == Middlebox::DropSynData && point.visit == Visit::First;
    dropped && point.mode.loads_syn()
}

const MODES: &str = "{ name = 'modes', mode = ['all'], rtt = ['0.4ms', '50ms'], repeat = 5 }";

fn with_findings<T>(sweeps: &str, from: &str, look: impl FnOnce(&Findings) -> T) -> T {
    let summary = summarise(samples(sweeps, 2.0), 1).unwrap();
    look(&Findings::new(summary, from.parse().unwrap(), None, 1).unwrap())
}

fn answer(sweeps: &str, from: &str) -> Vec<String> {
    let plain = |line: &Inline| line.to_plain().replace('\u{a0}', " ");
    with_findings(sweeps, from, |findings| findings.answer().iter().map(plain).collect())
}

#[test]
fn the_headline_is_what_a_server_alone_can_do_on_a_first_visit() {
    let lines = answer(MODES, "tcp+tls12");
    assert_eq!(
        lines[0],
        "TLS 1.3 instead of TLS 1.2 (ECDHE) saves 50.0 ms of 202.0 ms (25 %) at an RTT of 50 ms, by \
         the server's configuration alone."
    );
    assert!(lines[1].starts_with("QUIC, 1-RTT saves 100.0 ms (50 %)"), "{lines:?}");
    assert!(lines[2].contains("QUIC, 0-RTT saves 150.0 ms (74 %)"), "{lines:?}");
    assert!(lines[2].contains("TCP + TLS 1.3 with early data saves them 100.0 ms"), "{lines:?}");
    assert!(lines[3].contains("both ends") && lines[3].contains("no advice for web"), "{lines:?}");
    assert!(!lines.concat().contains("without cookies"), "{lines:?}");
}

#[test]
fn who_runs_tls13_is_told_of_quic_and_who_runs_the_best_of_nothing() {
    let lines = answer(MODES, "tcp+tls13");
    assert!(
        lines[0].starts_with("QUIC, 1-RTT instead of TCP + TLS 1.3 saves 50.0 ms"),
        "{lines:?}"
    );
    let lines = answer(MODES, "quic-0rtt");
    assert_eq!(lines.len(), 1);
    assert!(lines[0].starts_with("No change that was measured"), "{lines:?}");
}

#[test]
fn without_data_for_a_saving_none_is_claimed() {
    let only = "{ name = 'a', mode = ['quic'], rtt = ['50ms'], repeat = 5 }";
    let lines = answer(only, "tcp+tls12");
    assert!(lines[0].contains("is not known"), "{lines:?}");
    with_findings(only, "tcp+tls12", |findings| {
        assert!(findings.key_figures().is_empty());
        // Too few round-trip times for anything but medians.
        let tables = findings.tables();
        assert!(
            tables.len() == 1 && tables[0].to_text(120).contains("need two RTTs"),
            "{tables:?}"
        );
        findings.sections().unwrap();
    });
}

#[test]
fn the_key_figures_are_today_and_three_changes() {
    with_findings(MODES, "tcp+tls12", |findings| {
        let figures = findings.key_figures();
        let values: Vec<_> = figures.iter().map(|figure| figure.value.as_str()).collect();
        assert_eq!(values, ["202.0", "−50.0", "−100.0", "−150.0"]);
    });
}

#[test]
fn what_is_printed_fits_120_columns_with_nothing_left_out_and_80_without_intervals() {
    with_findings(MODES, "tcp+tls12", |findings| {
        for table in findings.tables() {
            let wide = table.to_text(120);
            assert!(!wide.contains("too narrow"), "{wide}");
            let names = table.to_text(80);
            assert!(!names.contains("tcp+tls12…"), "{names}");
        }
        let fits = findings.tables().remove(0).to_text(80);
        assert!(fits.ends_with("(too narrow for: intervals)\n"), "{fits}");
        assert!(fits.contains("tfo-nocookie+tls12-resumed"), "{fits}");
    });
}

#[test]
fn a_group_that_outgrows_the_syn_is_said_to_cost_a_round_trip_over_fast_open_alone() {
    let sweeps = format!(
        "{MODES}, {{ name = 'group', mode = ['tcp+tls13', 'tfo+tls13'], rtt = ['0.4ms', '50ms'], \
         group = ['x25519mlkem768'], repeat = 5 }}"
    );
    with_findings(&sweeps, "tcp+tls12", |findings| {
        let sections = findings.sections().unwrap();
        let section = sections.iter().find(|section| section.id == "variations").unwrap();
        let list = section.blocks.iter().find_map(|block| match block {
            report::Block::List(lines) => Some(lines.clone()),
            _ => None,
        });
        let line = list.unwrap()[0].to_plain();
        assert_eq!(
            line,
            "Group x25519mlkem768 instead of x25519: 1 round trip more over tfo+tls13; no round \
             trip more over tcp+tls13; the ClientHello has 1450 bytes instead of 250 (tcp+tls13)."
        );
    });
}

#[test]
fn a_sweep_of_several_keys_shows_each_mode_once_in_the_main_tables() {
    let sweep = "{ name = 'cli', mode = ['tcp+tls12', 'tcp+tls13'], rtt = ['0.4ms', '50ms'], \
                 key = ['rsa-2048', 'ecdsa-p256'], repeat = 5 }";
    with_findings(sweep, "tcp+tls12", |findings| {
        let rows = findings.main_rows();
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[0].key.key, rows[1].key.key);
        let sections = findings.sections().unwrap();
        assert!(sections.iter().any(|section| section.id == "variations"));
    });
}

#[test]
fn the_main_rows_are_in_the_order_of_the_specification_with_quic_after_tcp() {
    with_findings(MODES, "tcp+tls12", |findings| {
        let rows = findings.main_rows();
        let names: Vec<_> = rows.iter().map(|row| row.key.mode.to_string()).collect();
        assert_eq!(names.len(), 32);
        assert_eq!((names[0].as_str(), names[7].as_str()), ("tcp", "tcp+tls13-0rtt"));
        assert_eq!((names[8].as_str(), names[9].as_str()), ("quic", "quic-0rtt"));
        assert_eq!(names[10], "tfo");
        let last: Vec<&str> = names[26..].iter().map(String::as_str).collect();
        assert_eq!(last[..2], ["usertcp+tls12-rsa", "usertcp+tls13"]);
        assert_eq!(last[3..], ["sslmtcp-paper", "sslmtcp-tls13", "sslmtcp-0rtt"]);
    });
}

#[test]
fn few_connections_are_warned_of() {
    with_findings(MODES, "tcp+tls12", |findings| {
        let cautions = findings.cautions();
        assert_eq!(cautions.len(), 1, "{cautions:?}");
        assert!(cautions[0].note.text.to_plain().contains("5 connections"), "{cautions:?}");
    });
}

#[test]
fn a_run_under_loss_alone_answers_with_its_tail_and_claims_no_saving() {
    let sweep = "{ name = 'loss', mode = ['tcp', 'tcp+tls12', 'quic', 'tfo+tls13-0rtt'], \
                 rtt = ['50ms'], loss = ['3%'], repeat = 20, concurrent = 20 }";
    let lines = answer(sweep, "tcp+tls12");
    assert_eq!(
        lines[0],
        "At a loss of 3 % each way and an RTT of 50 ms, nine connections in ten are answered within \
         202 ms by TCP + TLS 1.2 (ECDHE) and 102 ms by QUIC, 1-RTT."
    );
    assert!(lines[1].contains("is not known"), "{lines:?}");
}

/// The SSLmTCP paper's places, and its key.
const DOCUMENT: &str = "{ name = 'document', mode = ['usertcp+tls12-rsa', 'sslmtcp-paper'], \
                        rtt = ['0.4ms', '11.6ms', '85.5ms'], key = ['rsa-4096'], repeat = 5 }";

#[test]
fn without_the_baseline_sslmtcp_is_held_against_its_control() {
    let lines = answer(DOCUMENT, "tcp+tls12");
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].starts_with("sslmtcp-paper lets the client send 85.5 ms of "), "{lines:?}");
    assert!(lines[0].ends_with(" than usertcp+tls12-rsa at an RTT of 85.5 ms."), "{lines:?}");
}

fn text_of(section: &Section) -> String {
    let blocks = section.blocks.iter().map(|block| match block {
        report::Block::Paragraph(line) => line.to_plain(),
        report::Block::Table(table) => table.to_text(400),
        report::Block::List(lines) => lines.iter().map(Inline::to_plain).collect::<String>(),
        _ => String::new(),
    });
    blocks.collect::<Vec<_>>().join("\n").replace('\u{a0}', " ")
}

fn section<'a>(sections: &'a [Section], id: &str) -> &'a Section {
    sections.iter().find(|section| section.id == id).unwrap_or_else(|| panic!("no section {id}"))
}

#[test]
fn sslmtcp_saves_a_round_trip_from_its_control_and_the_model_finds_the_compute() {
    with_findings(DOCUMENT, "tcp+tls12", |findings| {
        let paper = &findings.embedded[0];
        assert_eq!(paper.key.mode.to_string(), "sslmtcp-paper");
        assert_eq!(paper.control.to_string(), "usertcp+tls12-rsa");
        for saved in &paper.saved {
            assert!((saved.ready_ms.value - saved.rtt_ms).abs() < 1e-9, "{saved:?}");
            assert!((saved.response_ms.value - saved.rtt_ms).abs() < 1e-9, "{saved:?}");
            let model = saved.rtt_ms / (3.0 * saved.rtt_ms + 2.0);
            assert!((saved.reduction.unwrap().value - model).abs() < 1e-3, "{saved:?}");
        }
        let model = paper.model.unwrap();
        assert!((model.c_ms - 2.0).abs() < 0.01 && model.round_trips == 3.0, "{model:?}");
    });
}

#[test]
fn the_published_points_stand_beside_ours_with_their_misfit() {
    with_findings(DOCUMENT, "tcp+tls12", |findings| {
        let sections = findings.sections().unwrap();
        let text = text_of(section(&sections, "model"));
        assert!(text.contains("needs a c between 11 and 52 ms"), "{text}");
        assert!(text.contains("its one absolute time leaves 70 ms"), "{text}");
        assert!(text.contains("The model fits these with c = 2.0 ms"), "{text}");
        let figures = study::figures(PUBLISHED).unwrap();
        let beside = study::beside(&figures, &findings.counterparts()).remove(0).to_text(400);
        for published in ["3.2", "14.0", "27.7"] {
            assert!(text.contains(published), "{published}: {text}");
        }
        for published in ["3.2", "14", "27.7", "326.6", "236.1"] {
            assert!(beside.contains(published), "{published}: {beside}");
        }
        assert!(!beside.contains("not measured"), "{beside}");
        // 85.5 / (3 x 85.5 + 2): what the published 27.7 % should be at our compute.
        assert!(text.contains("33.1"), "{text}");
    });
}

#[test]
fn c_is_held_against_the_libraries_and_the_pump() {
    with_findings(MODES, "tcp+tls12", |findings| {
        let sections = findings.sections().unwrap();
        let text = text_of(section(&sections, "sslmtcp"));
        assert!(text.contains("3 of 3 SSLmTCP rows take the round trips"), "{text}");
        // 2.0 ms less 0.8 and 1.1 ms is within 150 us.
        assert!(text.contains("in 3 of 3 c until the response"), "{text}");
        assert!(text.contains("not calibrated in this run"), "{text}");
        assert!(!text.contains("✗"), "{text}");
    });
}

#[test]
fn a_fallback_is_held_against_ordinary_tcp_and_tls() {
    let sweeps = "{ name = 'm', mode = ['tcp+tls13', 'tfo+tls13', 'usertcp+tls13', \
                  'sslmtcp-tls13'], rtt = ['20ms'], middlebox = ['drop-syn-data', \
                  'strip-syn-data'], visit = ['first', 'remembered'], repeat = 5 }, \
                  { name = 'p', mode = ['usertcp+tls13', 'sslmtcp-tls13'], rtt = ['20ms'], \
                  peer = ['plain'], repeat = 5 }";
    with_findings(sweeps, "tcp+tls12", |findings| {
        assert!(findings.summary.fell_back.is_empty());
        assert!(findings.main_rows().is_empty() && findings.embedded.is_empty());
        let sections = findings.sections().unwrap();
        let text = text_of(section(&sections, "fallback"));
        for said in [
            "SYN data dropped: sslmtcp-tls13 takes 1000.0 ms more than usertcp+tls13",
            "SYN data dropped, remembered: sslmtcp-tls13 takes 0.0 ms more",
            "SYN data stripped: sslmtcp-tls13 takes 0.0 ms more",
            "Plain server: sslmtcp-tls13 takes 0.0 ms more",
        ] {
            assert!(text.contains(said), "{said}: {text}");
        }
        assert!(findings.tables()[0].to_text(120).contains("tfo+tls13"));
        assert!(sections.iter().all(|section| section.id != "variations"));
    });
}
