//! Answers over small data sets, worked out by hand.
#![allow(missing_docs)]

use std::path::Path;

use export::{DataSet, EndingRow, Options, Row};
use query::{Error, Format, QUESTIONS, run};

const MS: u64 = 1_000_000;
const HOUR: u64 = 3_600_000 * MS;
/// 2026-11-21T13:00:00Z.
const START: u64 = 1_795_266_000_000_000_000;

/// A handshake that ended: `version`, the class, ms that it took, at 20 ms of round trip.
fn handshake(number: u64, version: &str, class: &str, ms: u64) -> Row {
    Row {
        run: "r".to_owned(),
        number,
        client_network: "192.0.2.0/24".to_owned(),
        sni: Some("www.example".to_owned()),
        version: Some(version.to_owned()),
        version_number: Some(if version == "TLS 1.2" { 0x0303 } else { 0x0304 }),
        versions_offered: vec!["TLS 1.3".to_owned(), "TLS 1.2".to_owned()],
        cipher_suite: Some("TLS_AES_128_GCM_SHA256".to_owned()),
        class: Some(class.to_owned()),
        first_frame: START + number * HOUR / 4,
        tls_handshake: Some(ms * MS),
        hello_to_data: Some((ms + 100) * MS),
        think: Some(100 * MS),
        round_trip: Some(20 * MS),
        tls_round_trips: Some(ms as f64 / 20.0),
        ended: "open".to_owned(),
        bytes_up: 10,
        bytes_down: 100,
        ..Row::default()
    }
}

/// A handshake that failed before a version was known.
fn failed(number: u64) -> Row {
    Row {
        version: None,
        version_number: None,
        cipher_suite: None,
        tls_handshake: None,
        hello_to_data: None,
        think: None,
        tls_round_trips: None,
        ..handshake(number, "TLS 1.3", "failed", 0)
    }
}

/// Eight connections over two hours, with two endings.
fn rows() -> (Vec<Row>, Vec<EndingRow>) {
    let mut rows = vec![
        handshake(0, "TLS 1.2", "full", 40),
        handshake(1, "TLS 1.2", "full", 44),
        handshake(2, "TLS 1.2", "full", 57),
        handshake(3, "TLS 1.3", "full", 20),
        handshake(4, "TLS 1.3", "full", 29),
        handshake(5, "TLS 1.3", "full", 500),
        failed(6),
        Row {
            run: "r".to_owned(),
            number: 7,
            first_frame: START,
            ended: "fin".to_owned(),
            ..Row::default()
        },
    ];
    rows[5].uncertain = vec!["mid_stream".to_owned(), "ticket_or_data".to_owned()];
    rows[6].alert = Some("handshake_failure".to_owned());
    rows[6].alert_level = Some(2);
    rows[6].alert_from = Some("server".to_owned());
    rows[6].versions_offered = vec!["TLS 1.3 draft 23".to_owned()];
    rows[0].goes_on = true;
    // The second one is another run's.
    let ending = |run: &str, number| EndingRow {
        run: run.to_owned(),
        number,
        last_frame: START,
        bytes_up: 15,
        bytes_down: 150,
        ended: "reset".to_owned(),
        ..EndingRow::default()
    };
    (rows, vec![ending("r", 0), ending("other", 1)])
}

fn write(dir: &Path, rows: &[Row], endings: &[EndingRow]) {
    let mut data_set = DataSet::open(dir, Options { rows: 3, ..Options::default() }).unwrap();
    rows.iter().for_each(|row| data_set.connection(row).unwrap());
    endings.iter().for_each(|row| data_set.ending(row).unwrap());
    data_set.finish().unwrap();
}

fn ask(dir: &Path, question: &str, format: Format) -> Result<String, Error> {
    let mut out = Vec::new();
    run(dir, question, format, &mut out)?;
    Ok(String::from_utf8(out).unwrap())
}

#[test]
fn the_standard_questions() {
    let folder = tempfile::tempdir().unwrap();
    // A name that a path with wildcards, or a URL, would have to be told apart from.
    let dir = folder.path().join("a data [set] #1*%20");
    let (rows, endings) = rows();
    write(&dir, &rows, &endings);
    let third = 1.0 / 3.0;
    for (question, answer) in [
        (
            "distribution",
            format!("version,from_ms,handshakes,share\nTLS 1.2,40,2,{}\nTLS 1.2,50,1,{third}\nTLS 1.3,20,2,1.0\n", 2.0 / 3.0),
        ),
        (
            "hello_to_data",
            format!("version,from_ms,connections,share\nTLS 1.2,140,2,{}\nTLS 1.2,150,1,{third}\nTLS 1.3,120,2,1.0\n", 2.0 / 3.0),
        ),
        (
            "difference",
            "class,handshakes_1_2,handshakes_1_3,median_1_2_ms,median_1_3_ms,sooner_ms,sooner_round_trips\n\
             full,3,2,44.0,24.5,19.5,0.9750000000000001\n".to_owned(),
        ),
        (
            "classes",
            "version,class,connections,share\nTLS 1.2,full,3,1.0\nTLS 1.3,full,3,1.0\nnone,failed,1,1.0\n".to_owned(),
        ),
        (
            "versions_offered",
            format!("version,draft,hellos,share\nTLS 1.2,false,6,{0}\nTLS 1.3,false,6,{0}\nTLS 1.3 draft 23,true,1,{1}\n", 6.0 / 7.0, 1.0 / 7.0),
        ),
        (
            "uncertain",
            "reason,connections,share\nmid_stream,1,0.125\nticket_or_data,1,0.125\n".to_owned(),
        ),
        (
            "alerts",
            "alert,alert_level,alert_from,version,connections,failed\nhandshake_failure,2,server,none,1,1\n".to_owned(),
        ),
        (
            "endings",
            "class,ended,connections,bytes_up,bytes_down\nfailed,open,1,10,100\nfull,open,5,50,500\n\
             full,reset,1,15,150\nno TLS,fin,1,0,0\n".to_owned(),
        ),
        (
            "hours",
            "date,hour,version,handshakes,median_ms,p90_ms,median_round_trip_ms,resumed_share\n\
             2026-11-21,13,TLS 1.2,3,44.0,54.4,20.0,0.0\n2026-11-21,13,TLS 1.3,1,20.0,20.0,20.0,0.0\n\
             2026-11-21,14,TLS 1.3,1,29.0,29.0,20.0,0.0\n".to_owned(),
        ),
        (
            "networks",
            "client_network,connections,median_round_trip_ms,median_handshake_ms,tls_1_3_share\n192.0.2.0/24,7,20.0,42.0,0.5\n".to_owned(),
        ),
        (
            "names",
            "name,connections,handshakes,median_ms,median_round_trips\nwww.example,7,6,42.0,2.1\n".to_owned(),
        ),
        (
            "suites",
            "version,cipher_suite,group_name,connections,share\nTLS 1.2,TLS_AES_128_GCM_SHA256,not reported,3,1.0\n\
             TLS 1.3,TLS_AES_128_GCM_SHA256,not reported,3,1.0\n".to_owned(),
        ),
    ] {
        assert_eq!(ask(&dir, question, Format::Csv).unwrap(), answer, "{question}");
    }
    let quantiles = ask(&dir, "quantiles", Format::Json).unwrap();
    let first = quantiles.lines().next().unwrap();
    assert!(first.contains(r#""version":"TLS 1.2","class":"full","handshakes":3"#), "{first}");
    assert!(first.contains(r#""median_ms":44.0"#), "{first}");
}

#[test]
fn a_data_set_without_rows_has_answers_without_rows() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &[], &[]);
    for question in QUESTIONS {
        let answer = ask(dir.path(), question.name, Format::Csv).unwrap();
        assert_eq!(answer.lines().count(), 1, "{}: {answer}", question.name);
    }
}

#[test]
fn only_what_reads_is_answered() {
    let dir = tempfile::tempdir().unwrap();
    let (rows, endings) = rows();
    write(dir.path(), &rows, &endings);
    for sql in [
        "DROP TABLE connections",
        "CREATE TABLE x AS SELECT 1",
        "INSERT INTO endings SELECT * FROM endings",
        "COPY connections TO 'x.csv'",
        "SET datafusion.execution.target_partitions = 1",
        "SELECT nothing FROM connections",
        "SELECT count(*) FROM",
    ] {
        let answer = ask(dir.path(), sql, Format::Csv);
        assert!(matches!(answer, Err(Error::Query(_))), "{sql}: {answer:?}");
    }
    let none = dir.path().join("none");
    assert!(matches!(ask(&none, "classes", Format::Csv), Err(Error::NoDataSet(_))));
    assert!(matches!(ask(dir.path(), "clases", Format::Csv), Err(Error::NoQuestion(_))));
}

#[test]
fn texts_are_data_and_no_formulas() {
    let dir = tempfile::tempdir().unwrap();
    let sni = Some("\u{1b}]0;x\u{7}\"a,b\"".to_owned());
    write(dir.path(), &[Row { sni, ..handshake(0, "TLS 1.2", "full", 1) }], &[]);
    let sql = "SELECT sni, alert FROM connections";
    let json = ask(dir.path(), sql, Format::Json).unwrap();
    assert_eq!(json, "{\"sni\":\"\\u001b]0;x\\u0007\\\"a,b\\\"\",\"alert\":null}\n");
    let csv = ask(dir.path(), sql, Format::Csv).unwrap();
    assert_eq!(csv, "sni,alert\n\"\u{1b}]0;x\u{7}\"\"a,b\"\"\",\n");
    let formula = dir.path().join("formula");
    let sni = Some("=HYPERLINK(\"http://x\")".to_owned());
    write(&formula, &[Row { sni, ..handshake(0, "TLS 1.2", "full", 1) }], &[]);
    // Numbers stay what they are, and so do texts that begin no formula.
    let sql = "SELECT sni, -1 AS number, '+1' AS text, 'a=1' AS other, CAST(NULL AS VARCHAR) AS none \
               FROM connections";
    let csv = ask(&formula, sql, Format::Csv).unwrap();
    assert_eq!(csv, "sni,number,text,other,none\n\"'=HYPERLINK(\"\"http://x\"\")\",-1,'+1,a=1,\n");
}
