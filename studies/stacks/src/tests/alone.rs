//! Results of one question alone have the text that answers it, and no other.

use study::Findings as _;

use super::*;

fn texts(sweep: &str) -> Vec<(String, String)> {
    let folder = tempfile::tempdir().unwrap();
    let plan = Plan::parse(&format!("[scale.x]\nsweep = [{{ {sweep} }}]\n"), "x").unwrap();
    let (ended, summary) =
        measured_by(&plan, &folder.path().join("r"), &Play::new(&THREE), &mut Audience::default());
    assert!(ended.good > 0 && ended.failed == 0);
    Findings::new(summary, 1e5, 1).markdown().unwrap()
}

#[test]
fn light_locks_stand_beside_the_bars_of_light_locks() {
    let texts = texts(
        r#"name = "cli", library = ["openssl-1.1.1w", "openssl-3.0.2"], client = ["reference"], workload = ["full", "chain:10"], wire = ["loopback"], key = ["rsa-2048"], threads = [1, 2], locks = ["pthread", "light"], ms = 50, repeat = 9"#,
    );
    let [(name, text)] = &texts[..] else { panic!("{texts:?}") };
    assert_eq!(name, "stacks-light-claims");
    let rows: Vec<&str> = text.lines().filter(|line| line.contains(", light, ")).collect();
    assert_eq!(rows.len(), 5, "{text}");
    assert!(!text.contains(", pthread, 64"), "{text}");
    // 36 locks cost it 3.6 % with the C library's, on two threads.
    let own = rows.iter().find(|row| row.contains("resume-chain: OpenSSL 1.1.1w")).unwrap();
    assert!(own.contains("× 1.0") && own.contains("of its own rate"), "{own}");
    let old = rows.iter().find(|row| row.contains("resume-chain: OpenSSL 3.0.14")).unwrap();
    assert!(old.contains("not in these results"), "3.0.20 was not measured: {old}");
}

#[test]
fn clients_stand_beside_the_load_generator_by_threads() {
    let texts = texts(
        r#"name = "client", library = ["openssl-1.1.1w", "openssl-3.0.2"], workload = ["full"], threads = [1, 2], ms = 50, repeat = 9"#,
    );
    let [(name, text)] = &texts[..] else { panic!("{texts:?}") };
    assert_eq!(name, "stacks-client-claims");
    let [row] = text.lines().filter(|line| line.contains("load generator")).collect::<Vec<_>>()[..]
    else {
        panic!("{text}")
    };
    for said in ["openssl 1.1.1w ", "openssl 3.0.2 ", " with 1, ", " with 2 (× "] {
        assert!(row.contains(said), "`{said}` is missing: {row}");
    }
}
