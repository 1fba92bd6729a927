//! Tickets beside session IDs: what is measured, shown and said.

use tls_drivers::Sessions;

use super::*;

const LIBRARIES: &str = r#"library = ["openssl-1.1.1w", "openssl-3.0.2", "boringssl"]"#;
const WAYS: &str =
    r#"workload = ["resume"], version = ["tls1.2"], sessions = ["tickets", "cache", "external"]"#;

/// Timed with one thread and two, and counted.
fn swept(play: &Play) -> Findings {
    let folder = tempfile::tempdir().unwrap();
    let sweeps = format!(
        r#"{{ name = "a", {LIBRARIES}, {WAYS}, threads = ["1", "2"], ms = 50, repeat = 9 }},
           {{ name = "b", {LIBRARIES}, {WAYS}, locks = ["count"], connections = 20, repeat = 1 }}"#
    );
    let plan = Plan::parse(&format!("[scale.x]\nsweep = [{sweeps}]\n"), "x").unwrap();
    assert_eq!(Plan::recorded(&plan.value()).unwrap(), plan);
    let mut audience = Audience::default();
    let (ended, summary) = measured_by(&plan, &folder.path().join("r"), play, &mut audience);
    assert_eq!(audience.warnings, Vec::<String>::new());
    assert_eq!(ended.end, End::Complete);
    Findings::new(summary, 1e5, 1)
}

#[test]
fn tickets_stand_beside_session_ids_by_threads() {
    let play = Play::new(&THREE);
    let findings = swept(&play);
    let of = |way| play.runs.borrow().iter().filter(|job| job.sessions == way).count();
    // Of three libraries nine slices with one thread and two, and a count.
    for way in Sessions::ALL {
        assert_eq!(of(*way), 3 * (2 * 9 + 1), "{way}");
    }
    let text = text_of(&findings);
    for said in [
        "What sessions are resumed by",
        "Resumed connections per second, by threads",
        "Locks on the server's side of a resumed handshake",
        // The store outside is dearer by half, and takes two locks more than 741 + 1 + 2.
        "Resumption by session IDs, an external store instead of tickets makes 34 % fewer",
        "2 threads); a handshake takes ",
        "IDs, cache",
    ] {
        assert!(text.replace('\n', " ").contains(said), "`{said}` is missing:\n{text}");
    }
    let texts = findings.markdown().unwrap();
    // The table of all libraries needs full handshakes.
    assert!(texts.iter().all(|(name, _)| name != "stacks" && name != "stacks-claims"));
    let text = &texts.iter().find(|(name, _)| name == "stacks-sessions").unwrap().1;
    assert!(text.contains("by threads: tickets beside session IDs:\n\n| Library |"), "{text}");
    let tables = findings.tables();
    let rates = tables.iter().find(|table| table.caption.contains("by threads: tickets beside"));
    assert_eq!(rates.unwrap().rows.len(), 6);
    let others = tables.iter().any(|table| table.caption.contains("the other points"));
    assert!(!others, "each point is in one table");
    let locks = tables.iter().find(|table| table.caption.contains("of a resumed handshake"));
    let locks = locks.unwrap().to_text(200);
    assert!(
        locks.contains("744.0") && locks.contains("747.0") && locks.contains("746.0"),
        "{locks}"
    );
}

#[test]
fn a_library_without_session_ids_says_so_and_fails_nothing() {
    let mut parts = THREE;
    parts[0].1.fault = Fault::NoIds;
    let findings = swept(&Play::new(&parts));
    let text = text_of(&findings);
    assert!(text.contains("not supported"), "{text}");
    let functions = findings.tables();
    let functions = functions.iter().find(|table| table.caption.starts_with("By function. [t]"));
    let row = functions
        .unwrap()
        .rows
        .iter()
        .find(|row| format!("{:?}", row.cells.first()).contains("openssl 1.1.1w"));
    let row = format!("{:?}", row.unwrap().cells);
    // TLS 1.2 and resumption by tickets were shown; session IDs refused.
    assert_eq!((row.matches("no [t]").count(), row.matches("yes [t]").count()), (2, 2), "{row}");
}

#[test]
fn without_session_ids_nothing_is_said_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let play = Play::new(&THREE);
    let (_, summary) = measured(&folder.path().join("r"), &play, "smoke", &mut Audience::default());
    let text = text_of(&Findings::new(summary, 1e5, 1));
    assert!(!text.contains("What sessions are resumed by"), "{text}");
}
