//! `wiretax observe query` in a program that was built without its SQL engine.

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
