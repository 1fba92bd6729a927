//! Data sets written and read back by the Parquet library's own reader.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use export::{
    Beginning, DataSet, EndingRow, Error, JsonLines, Options, ReadError, Reader, Record, Records,
    Row, SCHEMA_KEY, Table, TimeRange, Value, Written,
};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;

const HOUR: u64 = 3_600_000_000_000;
/// 2026-11-21T13:00:00Z.
const START: u64 = 1_795_266_000_000_000_000;

/// A row whose every field follows from its number; now and then one is missing.
fn row(number: u64, at: u64) -> Row {
    let sometimes = |every: u64| number.is_multiple_of(every);
    Row {
        run: "seeded".to_owned(),
        number,
        client: format!("192.0.2.{}", number % 251),
        client_port: (number % 60_000) as u16,
        client_network: "192.0.2.0/24".to_owned(),
        sni: sometimes(2).then(|| format!("host-{}.example", number % 7)),
        alpn_offered: vec!["h2".to_owned(), "a,b%".to_owned()],
        version: Some("TLS 1.3".to_owned()),
        version_number: (!sometimes(3)).then_some(0x0304),
        versions_offered: Vec::new(),
        psk_offered: sometimes(5).then_some(sometimes(10)),
        first_frame: at,
        last_frame: u64::MAX,
        tls_handshake: sometimes(4).then_some(number * 1_000),
        tls_round_trips: sometimes(4).then_some(number as f64 / 7.0),
        ended: "fin".to_owned(),
        goes_on: sometimes(2),
        ..Row::default()
    }
}

fn ending(number: u64, at: u64) -> EndingRow {
    EndingRow { run: "seeded".to_owned(), number, last_frame: at, ..EndingRow::default() }
}

/// All files under `dir`, by their paths in it, sorted.
fn files(dir: &Path) -> Vec<String> {
    fn walk(dir: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { walk(&path, found) } else { found.push(path) }
        }
    }
    let mut found = Vec::new();
    walk(dir, &mut found);
    let name = |path: PathBuf| path.strip_prefix(dir).unwrap().to_str().unwrap().to_owned();
    let mut found: Vec<String> = found.into_iter().map(name).collect();
    found.sort();
    found
}

/// What a value is in Parquet.
fn field(value: &Value<'_>) -> Field {
    match value {
        Value::Null => Field::Null,
        Value::Bool(value) => Field::Bool(*value),
        Value::Integer(value) => Field::Long(*value),
        Value::Float(value) => Field::Double(*value),
        Value::Text(value) => Field::Str(value.to_string()),
    }
}

/// The rows of a file, each field with its column's name.
fn read(path: &Path) -> Vec<Vec<(String, Field)>> {
    let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    let metadata = reader.metadata();
    assert_eq!(metadata.num_row_groups(), 1);
    let pairs = metadata.file_metadata().key_value_metadata().unwrap();
    let schema = pairs.iter().find(|pair| pair.key == SCHEMA_KEY).unwrap();
    assert_eq!(schema.value.as_deref(), Some("1"));
    reader.get_row_iter(None).unwrap().map(|row| row.unwrap().into_columns()).collect()
}

fn expected<R: Table>(rows: &[R]) -> Vec<Vec<(String, Field)>> {
    let fields = |row: &R| {
        let mut names = R::COLUMNS.iter().map(|column| column.name.to_owned());
        let mut fields = Vec::new();
        row.values(|value| fields.push((names.next().unwrap(), field(&value))));
        assert_eq!(names.next(), None);
        fields
    };
    rows.iter().map(fields).collect()
}

#[test]
fn what_is_read_is_what_was_written() {
    let dir = tempfile::tempdir().unwrap();
    let connections: Vec<Row> = (0..1_000).map(|number| row(number, START + number)).collect();
    let endings: Vec<EndingRow> = (0..10).map(|number| ending(number, START + HOUR)).collect();
    let mut data_set = DataSet::open(dir.path(), Options::default()).unwrap();
    connections.iter().for_each(|row| data_set.connection(row).unwrap());
    endings.iter().for_each(|row| data_set.ending(row).unwrap());
    let written = data_set.finish().unwrap();
    assert_eq!(written, Written { files: 2, connections: 1_000, endings: 10 });
    let names = [
        ".lock",
        "connections/date=2026-11-21/hour=13/part-0000.parquet",
        "endings/date=2026-11-21/hour=14/part-0000.parquet",
    ];
    assert_eq!(files(dir.path()), names);
    assert_eq!(read(&dir.path().join(names[1])), expected(&connections));
    assert_eq!(read(&dir.path().join(names[2])), expected(&endings));
    // A value of each kind, by hand: what `expected` says is not only what the writer says.
    let read = read(&dir.path().join(names[1]));
    let of =
        |row: usize, name: &str| &read[row].iter().find(|(column, _)| column == name).unwrap().1;
    assert_eq!(of(4, "sni"), &Field::Str("host-4.example".to_owned()));
    assert_eq!(of(5, "sni"), &Field::Null);
    assert_eq!(of(4, "version_number"), &Field::Long(0x0304));
    assert_eq!(of(8, "tls_round_trips"), &Field::Double(8.0 / 7.0));
    assert_eq!(of(5, "psk_offered"), &Field::Bool(false));
    assert_eq!(of(4, "alpn_offered"), &Field::Str("h2,a%2Cb%25".to_owned()));
    assert_eq!(of(4, "versions_offered"), &Field::Str(String::new()));
    assert_eq!(of(4, "last_frame"), &Field::Long(i64::MAX));
}

#[test]
fn files_are_bounded_and_late_rows_open_a_new_part() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { rows: 100, hours: 2, ..Options::default() };
    let mut data_set = DataSet::open(dir.path(), options).unwrap();
    let mut number = 0;
    let mut add = |data_set: &mut DataSet, hour: u64, rows: u64| {
        for _ in 0..rows {
            data_set.connection(&row(number, START + hour * HOUR + number)).unwrap();
            number += 1;
        }
    };
    add(&mut data_set, 0, 250);
    add(&mut data_set, 1, 10);
    // The third hour closes the first one; a late row opens it again and closes the second.
    add(&mut data_set, 2, 10);
    add(&mut data_set, 0, 1);
    let before_the_end = files(dir.path());
    let written = data_set.finish().unwrap();
    assert_eq!(written, Written { files: 6, connections: 271, endings: 0 });
    let folder = |hour: u32, part: u32| {
        format!("connections/date=2026-11-21/hour={hour}/part-{part:04}.parquet")
    };
    let early = [folder(13, 0), folder(13, 1), folder(13, 2), folder(14, 0)];
    assert_eq!(before_the_end[1..], early);
    let parts = [(13, 0, 100), (13, 1, 100), (13, 2, 50), (13, 3, 1), (14, 0, 10), (15, 0, 10)];
    let names: Vec<_> = parts.iter().map(|(hour, part, _)| folder(*hour, *part)).collect();
    assert_eq!(files(dir.path())[1..], names);
    for ((.., rows), name) in parts.iter().zip(&names) {
        assert_eq!(read(&dir.path().join(name)).len(), *rows, "{name}");
    }
}

#[test]
fn much_text_closes_a_file_early() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { text_bytes: 10_000, ..Options::default() };
    let mut data_set = DataSet::open(dir.path(), options).unwrap();
    for number in 0..10 {
        let sni = Some("x".repeat(4_000));
        data_set.connection(&Row { sni, ..row(number, START) }).unwrap();
    }
    assert_eq!(data_set.finish().unwrap().files, 4);
}

#[test]
fn a_later_run_adds_to_an_earlier_one_and_removes_what_it_left_half_done() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("connections/date=2026-11-21/hour=13");
    for run in 0..2 {
        let mut data_set = DataSet::open(dir.path(), Options::default()).unwrap();
        assert!(!folder.join(".part-0009.parquet.0123456789abcdef.partial").exists());
        data_set.connection(&row(run, START)).unwrap();
        data_set.flush().unwrap();
        // Dropped, not finished: what was flushed stays, what was not is lost.
        data_set.connection(&row(9, START)).unwrap();
        fs::write(folder.join(".part-0009.parquet.0123456789abcdef.partial"), b"PAR1").unwrap();
        fs::write(folder.join("notes.txt"), b"another's").unwrap();
    }
    drop(DataSet::open(dir.path(), Options::default()).unwrap());
    let names = ["notes.txt", "part-0000.parquet", "part-0001.parquet"];
    assert_eq!(files(&folder), names);
    assert_eq!(read(&folder.join(names[1])), expected(&[row(0, START)]));
    assert_eq!(read(&folder.join(names[2])), expected(&[row(1, START)]));
}

#[test]
fn a_part_with_the_highest_number_is_not_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("connections/date=2026-11-21/hour=13");
    let highest = folder.join(format!("part-{}.parquet", u64::MAX));
    fs::create_dir_all(&folder).unwrap();
    fs::write(&highest, b"another's").unwrap();
    let mut data_set = DataSet::open(dir.path(), Options::default()).unwrap();
    data_set.connection(&row(0, START)).unwrap();
    let error = data_set.flush().unwrap_err();
    assert!(matches!(&error, Error::NoNumber(at) if *at == folder), "{error}");
    assert_eq!(fs::read(&highest).unwrap(), b"another's");
    assert_eq!(files(&folder), [format!("part-{}.parquet", u64::MAX)]);
}

#[test]
fn one_process_writes_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let first = DataSet::open(dir.path(), Options::default()).unwrap();
    let second = DataSet::open(dir.path(), Options::default());
    assert!(matches!(second, Err(Error::Busy(busy)) if busy == dir.path()));
    drop(first);
    assert!(DataSet::open(dir.path(), Options::default()).is_ok());
}

/// Writes rows without an end, in the process that the next test kills; nothing by itself.
#[test]
fn endless_writer() {
    let Ok(dir) = std::env::var("ROWS_ENDLESS_WRITER") else { return };
    let options = Options { rows: 500, ..Options::default() };
    let mut data_set = DataSet::open(Path::new(&dir), options).unwrap();
    for number in 0.. {
        data_set.connection(&row(number, START)).unwrap();
    }
}

#[test]
fn a_killed_run_leaves_whole_files_only() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("connections/date=2026-11-21/hour=13");
    let mut writer = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "data_set::endless_writer", "--nocapture"])
        .env("ROWS_ENDLESS_WRITER", dir.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    while !folder.join("part-0004.parquet").exists() {
        assert_eq!(writer.try_wait().unwrap(), None, "the writer gave up");
        std::thread::yield_now();
    }
    writer.kill().unwrap();
    writer.wait().unwrap();
    let whole = |name: &String| name.ends_with(".parquet") && !name.starts_with('.');
    let left: Vec<_> = files(&folder).into_iter().filter(whole).collect();
    assert!(left.len() >= 5);
    for (part, name) in (0_u64..).zip(&left) {
        let rows: Vec<_> = (part * 500..(part + 1) * 500).map(|n| row(n, START)).collect();
        assert_eq!(read(&folder.join(name)), expected(&rows), "{name}");
    }
    drop(DataSet::open(dir.path(), Options::default()).unwrap());
    assert_eq!(files(&folder), left);
}

fn read_back(path: &Path, range: &str) -> Result<Vec<Record>, ReadError> {
    Records::open(&[path], range.parse().unwrap())?.collect()
}

#[test]
fn records_are_read_back_from_parquet_and_from_json_alike() {
    let dir = tempfile::tempdir().unwrap();
    let (folder, file) = (dir.path().join("set"), dir.path().join("rows.json"));
    let mut data_set = DataSet::open(&folder, Options { rows: 70, ..Options::default() }).unwrap();
    let mut lines = JsonLines::new(fs::File::create(&file).unwrap());
    for number in 0..300 {
        let row = Row {
            uncertain: if number % 2 == 0 {
                vec!["mid_stream".to_owned(), "bytes_missing".to_owned()]
            } else {
                Vec::new()
            },
            class: (number % 7 != 0).then(|| "full".to_owned()),
            // A minute each: five hours.
            ..row(number, START + number * HOUR / 60)
        };
        data_set.connection(&row).unwrap();
        assert_eq!(lines.write(&row).unwrap(), Reader::There);
        let ending = ending(number, START + HOUR);
        data_set.ending(&ending).unwrap();
        assert_eq!(lines.write(&ending).unwrap(), Reader::There);
    }
    data_set.finish().unwrap();
    assert_eq!(lines.flush().unwrap(), Reader::There);

    let from_parquet = read_back(&folder, "..").unwrap();
    assert_eq!(from_parquet, read_back(&file, "..").unwrap());
    let numbers: Vec<u64> = from_parquet.iter().map(|record| record.number).collect();
    assert_eq!(numbers, (0..300).collect::<Vec<_>>());
    let ten = &from_parquet[10];
    assert_eq!((ten.run.as_str(), ten.client.as_str()), ("seeded", "192.0.2.10"));
    assert_eq!(
        (ten.sni.as_deref(), ten.version.as_deref()),
        (Some("host-3.example"), Some("TLS 1.3"))
    );
    assert_eq!((ten.psk_offered, ten.first_frame), (Some(true), START + HOUR / 6));
    assert_eq!(ten.uncertain, ["mid_stream", "bytes_missing"]);
    assert_eq!((from_parquet[12].tls_handshake, ten.tls_handshake), (Some(12_000), None));

    // Of two ways to say the same hour and a half.
    let part = read_back(&folder, "2026-11-21T14:30..2026-11-21T16:00Z").unwrap();
    assert_eq!(part, from_parquet[90..180]);
    assert_eq!(part, read_back(&file, "2026-11-21T15:30+01..2026-11-21T16:00").unwrap());
    // A file of the data set, and its folder of connections, are records too.
    let hour = "connections/date=2026-11-21/hour=14";
    assert_eq!(read_back(&folder.join(hour), "..").unwrap(), from_parquet[60..120]);
    let first = folder.join(hour).join("part-0000.parquet");
    assert_eq!(read_back(&first, "..").unwrap().len(), 60);
    assert!(export::holds_records(&folder) && export::holds_records(&file));
    assert!(!export::holds_records(dir.path().join("nowhere").as_path()));
}

#[test]
fn files_that_hold_no_records_are_named_with_what_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let mut data_set = DataSet::open(&at("set"), Options::default()).unwrap();
    data_set.connection(&row(1, START)).unwrap();
    data_set.ending(&ending(1, START)).unwrap();
    data_set.finish().unwrap();
    let part = "date=2026-11-21/hour=13/part-0000.parquet";
    let whole = fs::read(at("set/connections").join(part)).unwrap();
    fs::write(at("cut.parquet"), &whole[..whole.len() / 2]).unwrap();
    fs::write(at("text"), "Dear Sir or Madam").unwrap();
    fs::write(at("trace.pcap"), [0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0]).unwrap();
    fs::write(at("trace.pcapng"), [0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0]).unwrap();
    fs::write(at("rows.json.gz"), [0x1f, 0x8b, 8, 0]).unwrap();
    fs::create_dir(at("empty")).unwrap();
    let endings = at("set/endings").join(part).display().to_string();
    for (name, said) in [
        ("nowhere", "No such file"),
        ("text", "holds no records"),
        ("trace.pcap", "is a capture"),
        ("trace.pcapng", "is a capture"),
        ("rows.json.gz", "is compressed"),
        ("empty", "holds no records"),
        ("cut.parquet", "cut.parquet: "),
        (endings.as_str(), "is not a table of"),
    ] {
        let path = dir.path().join(name);
        let error = read_back(&path, "..").unwrap_err().to_string();
        assert!(error.contains(said) && error.contains(name), "{name}: {error}");
    }
    // An error ends it.
    let mut records = Records::open(&[at("text"), at("set")], TimeRange::ALL).unwrap();
    assert!(records.next().unwrap().is_err() && records.next().is_none());
}

/// A capture of so many frames.
fn capture(file: &str, frames: std::ops::Range<u64>) -> Beginning {
    let mut beginning = Beginning::new(file);
    for frame in frames {
        beginning.add(frame, 60, &frame.to_be_bytes());
    }
    beginning
}

/// Writes a data set's row of captures; the error's text.
fn keep(dir: &Path, captures: &[Beginning], again: bool) -> Result<(), String> {
    let mut set = DataSet::open(dir, Options::default()).unwrap();
    set.begin(captures, again).map_err(|error| error.to_string())?;
    set.connection(&row(1, START)).unwrap();
    set.finish().map(drop).map_err(|error| error.to_string())
}

#[test]
fn a_capture_that_was_read_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    keep(dir, &[capture("a.pcap", 0..100)], false).unwrap();
    let same = "the records of a.pcap are in this folder already";
    assert_eq!(keep(dir, &[capture("a.pcap", 0..100)], false), Err(same.to_owned()));
    let copy = "the records of b.pcap are in this folder already: it begins as a.pcap";
    let both = [capture("c.pcap", 7..100), capture("b.pcap", 0..50)];
    assert_eq!(keep(dir, &both, false), Err(copy.to_owned()));
    // One of both was refused: the other was not read.
    keep(dir, &[capture("c.pcap", 7..100)], false).unwrap();
    keep(dir, &both, true).unwrap();
    // A capture grows, and is read when it had three frames.
    keep(dir, &[capture("grows.pcap", 1000..1003)], false).unwrap();
    assert!(keep(dir, &[capture("grows.pcap", 1000..2000)], false).is_err());
    // Others begin otherwise; one without a frame is none.
    keep(dir, &[capture("d.pcap", 1001..1003), capture("empty.pcap", 0..0)], false).unwrap();
    keep(dir, &[capture("empty.pcap", 0..0)], false).unwrap();
    // Twice at once.
    let twice = [capture("e.pcap", 50..60), capture("f.pcap", 50..60)];
    assert!(keep(dir, &twice, false).unwrap_err().ends_with("it begins as e.pcap"));
    // A list that is damaged is no obstacle.
    fs::write(dir.join(".captures"), b"\xff\n{\n").unwrap();
    keep(dir, &twice[..1], false).unwrap();
    assert!(keep(dir, &twice[..1], false).is_err());
}

#[test]
fn a_run_without_rows_leaves_no_capture_behind() {
    let folder = tempfile::tempdir().unwrap();
    let a = [capture("a.pcap", 0..100)];
    let mut set = DataSet::open(folder.path(), Options::default()).unwrap();
    set.begin(&a, false).unwrap();
    set.finish().unwrap();
    keep(folder.path(), &a, false).unwrap();
}
