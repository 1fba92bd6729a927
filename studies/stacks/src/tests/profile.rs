//! Where instructions go: from a host's graph into samples, and out of them into tables and the report.

use study::Findings as _;
use tls_drivers::hosts::{Call, Function, Graph, SERVER_TURNS};

use super::*;

/// A server that signs, takes so many locks, and copies for both.
pub(super) fn where_to(locks: u64) -> Graph {
    let locks = locks as f64 * 100.0;
    let function = |symbol: &str, instructions| Function {
        object: "driver.so".to_owned(),
        symbol: symbol.to_owned(),
        instructions,
    };
    Graph {
        functions: vec![
            function(SERVER_TURNS, 0.0),
            function("SSL_accept", 10_000.0),
            function("bn_mul_mont", 75_000.0),
            function("CRYPTO_THREAD_read_lock", locks),
            function("memcpy", 15_000.0),
        ],
        calls: vec![
            Call { caller: 0, callee: 1, instructions: 100_000.0 + locks },
            Call { caller: 1, callee: 2, instructions: 80_000.0 },
            Call { caller: 1, callee: 3, instructions: locks },
            Call { caller: 1, callee: 4, instructions: 10_000.0 },
            Call { caller: 2, callee: 4, instructions: 5_000.0 },
        ],
    }
}

fn found() -> Findings {
    let folder = tempfile::tempdir().unwrap();
    let sweep = r#"{ name = "instructions", library = ["openssl-1.1.1w", "openssl-3.0.2"], workload = ["full", "resume"], key = "rsa-2048", tool = "callgrind", connections = 5, repeat = 1 }"#;
    let plan = Plan::parse(&format!("[scale.x]\nsweep = [{sweep}]\n"), "x").unwrap();
    let play = Play::new(&THREE);
    let (ended, summary) =
        measured_by(&plan, &folder.path().join("r"), &play, &mut Audience::default());
    assert_eq!((ended.good, ended.failed), (4, 0));
    Findings::new(summary, 1e5, 1)
}

#[test]
fn instructions_are_kept_by_purpose_and_function() {
    let findings = found();
    let cell = &findings.summary.cells[0];
    let median = |name: &str| cell.median(name).unwrap().value;
    assert_eq!(median(crate::value::SERVER_PUBLIC_KEY), 75_000.0 + 5_000.0);
    assert_eq!(median(crate::value::SERVER_LOCKS), 3_600.0);
    assert_eq!(median(crate::value::SERVER_RECORDS), 10_000.0 + 10_000.0);
    let profile = cell.profile().unwrap();
    assert_eq!(profile.top[0].0, "bn_mul_mont");
    assert_eq!(profile.flame.len(), 6, "{:?}", profile.flame);
}

#[test]
fn results_of_counts_alone_answer_where_the_instructions_go() {
    let lines: Vec<String> = found().answer().iter().map(report::Inline::to_plain).collect();
    // 80,000 of 103,600 are for the signature, 20,000 for records and what copies for them.
    let expected = "openssl 1.1.1w spends 77 % on public key and 19 % on records and parsing of the server's \
                    instructions (full handshakes, TLS 1.3, RSA-2048; 104 thousand per connection).";
    assert_eq!((lines.len(), lines[0].as_str()), (2, expected));
}

#[test]
fn where_the_time_goes_is_printed_drawn_and_written() {
    let findings = found();
    let tables: String = findings.tables().iter().map(|table| table.to_text(400)).collect();
    for said in ["by purpose", "77.2", "bn_mul_mont", "CRYPTO_THREAD_read_lock", "96", "under 3"] {
        assert!(tables.contains(said), "`{said}` is missing:\n{tables}");
    }
    let sections = findings.sections().unwrap();
    let section = sections.iter().find(|section| section.id == "stacks-profile").unwrap();
    let flames = section.blocks.iter().filter_map(|block| match block {
        report::Block::Flame(flame) => Some(flame),
        _ => None,
    });
    let flames: Vec<_> = flames.collect();
    assert_eq!(flames.len(), 2, "one a library");
    assert!(flames[0].open && !flames[1].open);
    assert!(flames.iter().all(|flame| flame.title.contains("full") && flame.frames.len() == 6));
    let markdown = findings.markdown().unwrap();
    let names: Vec<&str> = markdown.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["stacks-profile", "stacks-profile-claims"], "nothing was timed");
    assert!(markdown[1].1.contains("80 % of the CPU's time"), "{}", markdown[1].1);
    assert!(markdown[0].1.contains("80 % (OpenSSL 1.1.1w)"), "{}", markdown[0].1);
}
