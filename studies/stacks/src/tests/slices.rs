//! Slices: their rounds, what disturbs them, and what becomes of those that fail.

use tls_drivers::Extent;

use super::*;
use crate::{Ended, Summary};

/// What a sweep comes to with these parts.
fn swept(sweep: &str, play: &Play, audience: &mut Audience) -> (Ended, Summary) {
    let folder = tempfile::tempdir().unwrap();
    let plan = Plan::parse(&format!("[scale.x]\nsweep = [{sweep}]\n"), "x").unwrap();
    measured_by(&plan, &folder.path().join("r"), play, audience)
}

fn parts_with(fault: Fault) -> [(&'static str, Part); 4] {
    let mut parts = THREE;
    parts[0].1.fault = fault;
    parts
}

#[test]
fn slices_are_short_many_flagged_and_none_discarded() {
    let sweep =
        r#"{ name = "cli", library = ["openssl-1.1.1w", "openssl-3.0.2"], workload = "full" }"#;
    let play = Play::new(&THREE);
    let (ended, summary) = swept(sweep, &play, &mut Audience::default());
    assert_eq!((ended.good, ended.failed, play.slices.get()), (80, 0, 80));
    assert!(play.runs.borrow().iter().all(|job| job.extent == Extent::Milliseconds(50)));
    assert!(summary.cells.iter().all(|cell| cell.slices == 40));
    let sum = |of: fn(&crate::Measured) -> u32| summary.cells.iter().map(of).sum::<u32>();
    // The hypervisor takes time in every fifth, another program a tenth of every fourth.
    assert_eq!((sum(|cell| cell.stolen), sum(|cell| cell.pushed_off)), (16, 20));
    let text = text_of(&Findings::new(summary, 1e5, 1));
    for said in [
        "of 80 slices the hypervisor took time from the machine in 16, and other programs more than 5 %",
        "the threads' time in 20",
        "the 95 % intervals of these medians are ±0.",
    ] {
        assert!(text.replace('\n', " ").contains(said), "`{said}` is missing:\n{text}");
    }
}

#[test]
fn libraries_that_cannot_be_told_apart_are_named() {
    let mut parts = THREE;
    parts[1].1.cpu_us = 300.0;
    let names = r#"library = ["openssl-1.1.1w", "openssl-3.0.2", "boringssl"]"#;
    let sweep = format!(r#"{{ name = "cli", {names}, workload = "full" }}"#);
    let (_, summary) = swept(&sweep, &Play::new(&parts), &mut Audience::default());
    let tables = Findings::new(summary, 1e5, 1).tables();
    let found = tables.iter().find(|table| table.caption.contains("cannot be told apart"));
    let text = found.unwrap().to_text(200);
    assert!(
        text.contains("openssl 3.0.2 1.00 [") && text.contains("openssl 1.1.1w 1.00 ["),
        "{text}"
    );
    assert!(!text.contains("boringssl"), "{text}");
}

#[test]
fn of_libraries_that_cannot_be_told_apart_none_is_called_cheapest() {
    let mut parts = THREE;
    parts[1].1.cpu_us = 300.0;
    let names = r#"library = ["openssl-1.1.1w", "openssl-3.0.2"]"#;
    let sweep = format!(r#"{{ name = "cli", {names}, workload = "full" }}"#);
    let (_, summary) = swept(&sweep, &Play::new(&parts), &mut Audience::default());
    let text = text_of(&Findings::new(summary, 1e5, 1));
    assert!(!text.contains("is cheapest"), "{text}");
}

#[test]
fn a_chain_counts_as_resumed_only_if_every_leg_was() {
    let sweep =
        r#"{ name = "cli", library = ["openssl-1.1.1w"], workload = "chain:3", repeat = 3 }"#;
    let good = Play::new(&THREE);
    let (_, summary) = swept(sweep, &good, &mut Audience::default());
    let share =
        |summary: &Summary| summary.cells[0].median(crate::value::RESUMED).map(|it| it.value);
    assert_eq!(share(&summary), Some(1.0));
    let play = Play::new(&parts_with(Fault::ResumesInFront));
    let mut audience = Audience::default();
    let (ended, summary) = swept(sweep, &play, &mut audience);
    assert_eq!((ended.good, ended.failed, share(&summary)), (0, 3, None));
    let (count, why) = &summary.cells[0].failed["not as asked"];
    assert!(*count == 3 && why.ends_with("legs resumed"), "{why}");
}

#[test]
fn a_slice_that_fails_does_not_end_its_point() {
    let sweep = r#"{ name = "cli", library = ["openssl-1.1.1w"], workload = "full", repeat = 9 }"#;
    let play = Play::new(&parts_with(Fault::Stumbles));
    let mut audience = Audience::default();
    let (ended, summary) = swept(sweep, &play, &mut audience);
    assert_eq!((ended.good, ended.failed), (6, 3));
    let cell = &summary.cells[0];
    assert_eq!((cell.slices, cell.left_out, cell.failed["connections failed"].0), (6, 0, 3));
    assert_eq!(audience.warnings.len(), 1, "{:?}", audience.warnings);
}

#[test]
fn what_fails_again_and_again_is_left_alone_and_that_is_reported() {
    let sweep =
        r#"{ name = "cli", library = ["openssl-1.1.1w"], workload = "resume", repeat = 9 }"#;
    let play = Play::new(&parts_with(Fault::NeverResumes));
    let mut audience = Audience::default();
    let (ended, summary) = swept(sweep, &play, &mut audience);
    assert_eq!((ended.good, ended.failed, play.calls.get()), (0, 3, 3));
    assert_eq!(summary.cells[0].left_out, 6);
    let said = "3 slices in a row failed; the other 6 are left out";
    assert!(audience.warnings.iter().any(|text| text.ends_with(said)), "{:?}", audience.warnings);
    let cautions = Findings::new(summary, 1e5, 1).cautions();
    let cautions: Vec<String> = cautions.iter().map(|one| one.note.text.to_plain()).collect();
    assert!(cautions.iter().any(|text| text.contains("; 6 more were left out")), "{cautions:?}");
}

#[test]
fn a_machine_on_which_locks_cannot_be_timed_says_why() {
    let play = Play { lonely: true, ..Play::new(&THREE) };
    let sweep = r#"{ name = "cli", library = ["openssl-1.1.1w"], workload = "full", repeat = 6 }"#;
    let mut audience = Audience::default();
    let (_, summary) = swept(sweep, &play, &mut audience);
    let why = "two processors are needed and this process may use 1";
    assert!(audience.warnings[0].ends_with(why), "{:?}", audience.warnings);
    assert_eq!(summary.machine.as_ref().unwrap().not_contended.as_deref(), Some(why));
    assert!(text_of(&Findings::new(summary, 1e5, 1)).replace('\n', " ").contains(why));
}

#[test]
fn a_runtimes_client_is_named_in_the_readme() {
    let folder = tempfile::tempdir().unwrap();
    let (_, summary) =
        measured(&folder.path().join("r"), &Play::new(&THREE), "default", &mut Audience::default());
    let (_, text) = Findings::new(summary, 1e5, 1).markdown().unwrap().remove(0);
    let line =
        |name: &str| text.lines().find(|line| line.starts_with(&format!("| {name}"))).unwrap();
    assert!(line("go").contains(" us (`wiretax load`) |"), "{text}");
    assert!(!line("boringssl").contains("wiretax load"), "{text}");
    // 744 locks; and HAProxy 2025's 21,000 a second beside them.
    assert!(line("openssl 3.0.2").contains("| 744 |"), "{text}");
    assert!(line("openssl 3.0.2").ends_with("| 13 thousand/s | 21 thousand/s |"), "{text}");
    assert!(line("openssl 3.0.2").contains("2.33 [2.3"), "{text}");
    assert!(!text.contains("at most"), "{text}");
}
