//! Made-up connections, and answers that can be compared.

use std::path::Path;

use datafusion::arrow::array::{Array, Float64Array};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::arrow::util::display::array_value_to_string;
use export::{DataSet, EndingRow, Options, Row};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;

/// 2026-11-21T09:00:00Z.
const START: u64 = 1_795_251_600_000_000_000;
const HOUR: u64 = 3_600_000_000_000;
/// Hours over which the connections are spread.
const HOURS: u64 = 5;

/// A data set of `count` connections over five hours, in parts of 2000, the same for one seed.
pub fn make(dir: &Path, seed: u64, count: u64) -> Vec<Row> {
    let mut random = Pcg64::seed_from_u64(seed);
    let options = Options { rows: 2_000, ..Options::default() };
    let mut data_set = DataSet::open(dir, options).expect("a folder of our own");
    let mut all = Vec::new();
    for number in 0..count {
        let row = connection(&mut random, number, START + number * (HOURS * HOUR / count));
        data_set.connection(&row).expect("a file of our own");
        if row.goes_on {
            data_set.ending(&ending(&mut random, &row)).expect("a file of our own");
        }
        all.push(row);
    }
    data_set.finish().expect("files of our own");
    all
}

/// A connection of one of two populations: Wi-Fi about 25 ms away, cellular about 55 ms.
fn connection(random: &mut Pcg64, number: u64, at: u64) -> Row {
    let round_trip = if random.random_bool(0.6) { 25_000_000 } else { 55_000_000 };
    let round_trip = round_trip + random.random_range(0..8_000_000_u64);
    let network = random.random_range(0..80_u8);
    let row = Row {
        run: "seeded".to_owned(),
        number,
        client: format!("10.0.{network}.{}", random.random_range(1..255_u8)),
        client_network: format!("10.0.{network}.0/24"),
        server: "192.0.2.1".to_owned(),
        server_port: 443,
        transport: "tcp".to_owned(),
        first_frame: at,
        last_frame: at + 4 * round_trip,
        round_trip: Some(round_trip),
        ended: if random.random_bool(0.9) { "fin" } else { "reset" }.to_owned(),
        goes_on: random.random_bool(0.5),
        bytes_up: random.random_range(1_000..5_000),
        bytes_down: random.random_range(1_000..5_000_000),
        ..Row::default()
    };
    // A few speak something else.
    if random.random_bool(0.02) { row } else { with_tls(random, row, round_trip) }
}

fn with_tls(random: &mut Pcg64, mut row: Row, round_trip: u64) -> Row {
    let (version, number, trips) = match random.random_range(0..10_u8) {
        0..3 => ("TLS 1.2", 0x0303, 2),
        3 => ("TLS 1.3 draft 23", 0x7f17, 1),
        _ => ("TLS 1.3", 0x0304, 1),
    };
    let mut offered = vec!["TLS 1.2".to_owned()];
    if number != 0x0303 {
        offered.insert(0, version.to_owned());
    }
    row.versions_offered = offered;
    row.sni = (!random.random_bool(0.1)).then(|| {
        format!("www-{}.example", random.random_range(0..6_u8) * random.random_range(0..6_u8))
    });
    if random.random_bool(0.05) {
        row.class = Some("failed".to_owned());
        row.version = random.random_bool(0.5).then(|| version.to_owned());
        row.version_number = row.version.is_some().then_some(number);
        row.alert = Some(["handshake_failure", "encrypted"][random.random_range(0..2)].to_owned());
        row.alert_from = Some("client".to_owned());
        return row;
    }
    let (class, trips) = match random.random_range(0..10_u8) {
        0..3 => ("resumed", 1),
        3 if number == 0x0304 => ("hello_retry", 2),
        _ => ("full", trips),
    };
    let took = trips * round_trip + random.random_range(500_000..5_000_000_u64);
    let think = if random.random_bool(0.7) { 0 } else { random.random_range(0..200_000_000) };
    row.class = Some(class.to_owned());
    row.version = Some(version.to_owned());
    row.version_number = Some(number);
    row.cipher_suite = Some(["TLS_AES_128_GCM_SHA256", "0x1306"][random.random_range(0..2)].into());
    row.group_name = (number != 0x0303).then(|| "x25519".to_owned());
    row.tls_handshake = Some(took);
    row.think = Some(think);
    row.hello_to_data = Some(took + think);
    row.tls_round_trips = Some(took as f64 / round_trip as f64);
    if random.random_bool(0.03) {
        row.uncertain = vec!["ticket_or_data".to_owned()];
    }
    if random.random_bool(0.01) {
        row.uncertain.push("client_finished".to_owned());
    }
    row
}

fn ending(random: &mut Pcg64, row: &Row) -> EndingRow {
    EndingRow {
        run: row.run.clone(),
        number: row.number,
        last_frame: row.last_frame + random.random_range(0..HOUR),
        bytes_up: row.bytes_up + random.random_range(0..10_000),
        bytes_down: row.bytes_down + random.random_range(0..10_000_000),
        ended: if random.random_bool(0.8) { "fin" } else { "open" }.to_owned(),
        ..EndingRow::default()
    }
}

/// A value of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    Null,
    Float(f64),
    Other(String),
}

impl Cell {
    /// Whether both say the same: floating-point numbers to nine digits, for sums in another order
    /// are rounded elsewhere.
    pub fn agrees(&self, other: &Cell) -> bool {
        match (self, other) {
            (Cell::Float(a), Cell::Float(b)) => (a - b).abs() <= 1e-9 * a.abs().max(b.abs()),
            _ => self == other,
        }
    }
}

/// The rows of an answer.
pub fn cells(batches: &[RecordBatch]) -> Vec<Vec<Cell>> {
    let rows = |batch: &RecordBatch| {
        let row = |at| batch.columns().iter().map(|column| cell(column, at)).collect();
        (0..batch.num_rows()).map(row).collect::<Vec<_>>()
    };
    batches.iter().flat_map(rows).collect()
}

fn cell(column: &dyn Array, at: usize) -> Cell {
    if column.is_null(at) {
        return Cell::Null;
    }
    match column.as_any().downcast_ref::<Float64Array>() {
        Some(floats) => Cell::Float(floats.value(at)),
        None => Cell::Other(array_value_to_string(column, at).expect("a value of a plain type")),
    }
}
