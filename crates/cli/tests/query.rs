//! `wiretax observe query`: without its SQL engine it says how to have it; with it (`.ci/run` builds it
//! with the feature `query`) it answers.

use crate::support::{data, run, talk};

#[cfg(not(feature = "query"))]
#[test]
fn without_the_sql_engine_it_says_how_to_have_it() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), &["observe", "query", "records", "names"]);
    assert_eq!(output.status.code(), Some(3), "{}", talk(&output));
    assert!(talk(&output).contains("hint: build it with"), "{}", talk(&output));
    assert!(data(&output).is_empty());
}

#[cfg(feature = "query")]
#[test]
fn with_the_sql_engine_it_answers() {
    let folder = tempfile::tempdir().unwrap();
    let capture = crate::observe::capture("tls1.2.pcap");
    let output = run(folder.path(), &["observe", &capture, "--parquet", "records", "--json"]);
    assert!(output.status.success(), "{}", talk(&output));
    let connections = crate::observe::connections(&output).len();
    let count = "SELECT count(*) AS n FROM connections";
    let output = run(folder.path(), &["observe", "query", "records", count, "--json"]);
    assert!(output.status.success(), "{}", talk(&output));
    let row: serde_json::Value = serde_json::from_str(&data(&output)).unwrap();
    assert_eq!(row["n"], connections, "{row}");
    for question in ["names", "classes", "quantiles"] {
        let output = run(folder.path(), &["observe", "query", "records", question]);
        assert!(output.status.success() && !data(&output).is_empty(), "{}", talk(&output));
    }
    let output = run(folder.path(), &["observe", "query", "records", "clases"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(talk(&output).contains("there is no question `clases`"), "{}", talk(&output));
    assert!(talk(&output).contains("hint: write SQL, or one of "), "{}", talk(&output));
}
