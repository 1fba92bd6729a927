//! `wiretax observe query`: SQL over records, and what a program built without its engine says.

#[cfg(not(feature = "query"))]
#[test]
fn without_the_sql_engine_it_says_how_to_have_it() {
    use crate::support::{data, run, talk};

    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), &["observe", "query", "records", "names"]);
    assert_eq!(output.status.code(), Some(3), "{}", talk(&output));
    assert!(talk(&output).contains("hint: build it with"), "{}", talk(&output));
    assert!(data(&output).is_empty());
}

/// CI builds and runs these (`.ci/run`), for DataFusion takes minutes.
#[cfg(feature = "query")]
mod with_the_sql_engine {
    use std::path::Path;
    use std::process::Stdio;

    use serde_json::Value;

    use crate::support::{data, run, talk, wiretax};

    /// A folder with the data set `records` of three captures, and the records that `--json` prints.
    fn records() -> (tempfile::TempDir, Vec<Value>) {
        let captures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../proto/tracker/tests/data");
        let folder = tempfile::tempdir().unwrap();
        let mut observe = vec!["observe".to_owned()];
        for name in ["tls1.2.pcap", "openssl-3.0-modes.pcap", "tls-early-alert.pcap"] {
            observe.push(captures.join(name).display().to_string());
        }
        observe.extend(["--json", "--parquet", "records"].map(str::to_owned));
        let observe: Vec<&str> = observe.iter().map(String::as_str).collect();
        let output = run(folder.path(), &observe);
        assert!(output.status.success(), "{}", talk(&output));
        let lines = data(&output);
        let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let records: Vec<Value> = lines.filter(|line| line["kind"] == "connection").collect();
        assert!(records.len() >= 3, "{records:?}");
        (folder, records)
    }

    /// The rows of an answer.
    fn ask(folder: &Path, question: &str) -> Vec<Value> {
        let output = run(folder, &["observe", "query", "records", question, "--json"]);
        assert!(output.status.success(), "{question}: {}", talk(&output));
        data(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn sql_counts_what_json_lists() {
        let (folder, records) = records();
        let rows = ask(
            folder.path(),
            "SELECT client_port, version, class FROM connections ORDER BY client_port",
        );
        let of = |record: &Value| {
            let text = |field: &str| record[field].as_str().map(str::to_owned);
            (record["client_port"].as_u64(), text("version"), text("class"))
        };
        let mut expected: Vec<_> = records.iter().map(of).collect();
        expected.sort();
        assert_eq!(rows.iter().map(of).collect::<Vec<_>>(), expected);
        let total = ask(folder.path(), "SELECT count(*) AS n FROM connections");
        assert_eq!(total[0]["n"], records.len());
    }

    #[test]
    fn every_question_of_the_list_is_answered() {
        let (folder, records) = records();
        let list = run(folder.path(), &["observe", "query", "records"]);
        assert!(list.status.success(), "{}", talk(&list));
        let list = data(&list);
        let names: Vec<&str> =
            list.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
        assert!(names.contains(&"names") && names.contains(&"quantiles"), "{list}");
        for name in names {
            let output = run(folder.path(), &["observe", "query", "records", name]);
            assert!(output.status.success(), "{name}: {}", talk(&output));
            assert!(data(&output).starts_with("+-"), "{name}: {}", data(&output));
        }
        let connections: u64 = ask(folder.path(), "names")
            .iter()
            .map(|row| row["connections"].as_u64().unwrap())
            .sum();
        let with_class = records.iter().filter(|record| !record["class"].is_null()).count();
        assert_eq!(connections, with_class as u64);
    }

    #[test]
    fn bad_questions_and_folders_are_one_error_of_the_caller() {
        let (folder, _) = records();
        for (records, question, said) in [
            ("records", "SELECT nothing FROM connections", "nothing"),
            ("records", "DROP TABLE connections", "error"),
            ("records", "naems", "there is no question `naems`"),
            ("elsewhere", "names", "elsewhere holds no data set"),
        ] {
            let output = run(folder.path(), &["observe", "query", records, question]);
            assert_eq!(output.status.code(), Some(2), "{question}: {}", talk(&output));
            assert!(talk(&output).contains(said), "{question}: {}", talk(&output));
            assert!(data(&output).is_empty(), "{question}: {}", data(&output));
        }
        // And no question has touched the records.
        assert!(!ask(folder.path(), "names").is_empty());
    }

    #[test]
    fn a_reader_that_goes_away_is_no_failure() {
        let (folder, _) = records();
        let many = "SELECT a.* FROM connections a, connections b, connections c, connections d";
        let mut child = wiretax(folder.path())
            .args(["observe", "query", "records", many, "--json"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", talk(&output));
        assert!(talk(&output).is_empty(), "{}", talk(&output));
    }
}
