//! How far records and logs agree, for a report.

use report::{Cell, Column, Inline, Note, Row, Section, Table};

use crate::findings::percent;
use crate::truth::Agreement;

pub(crate) fn section(agreement: &Agreement) -> Section {
    let text = format!(
        "Connections with known ground truth were made in the lab: {} in all, captured at the server. {} have \
         a record, {} of these the class that was made.",
        agreement.made, agreement.recorded, agreement.classified
    );
    let mut section = Section::new("truth", "Whether it is true").with(Inline::new().text(text));
    let wrong = agreement.misclassified.iter().map(|wrong| {
        format!("{} was recorded as {} (client {})", wrong.scenario, wrong.class, wrong.client)
    });
    let doubts =
        agreement.uncertain.iter().map(|(name, count)| format!("in doubt: {name}, {count}"));
    let all = wrong.chain(agreement.unplanned.iter().cloned()).chain(doubts);
    for line in all.take(20) {
        section = section.with(Note::info(line));
    }
    section = section.with(times(agreement)).with(round_trips(agreement));
    if agreement.hosts.len() > 1 {
        section = section.with(hosts(agreement));
    }
    if !agreement.crossed.is_empty() {
        let text = "A session that began at one name of a server and is resumed at another: the client must know \
                    that the certificate has both (RFC 8446 \u{a7}4.6.1), a server of TLS 1.2 must refuse (RFC 6066 \u{a7}3). \
                    Beside it the same clients' full handshakes.";
        section = section.with(Inline::new().text(text)).with(crossed(agreement));
    }
    if agreement.series.could_cross > 0 {
        section = section.with(series(agreement));
    }
    if !agreement.pauses.is_empty() {
        section = section.with(pauses(agreement));
    }
    if agreement.fallbacks.is_empty() { section } else { section.with(fallbacks(agreement)) }
}

fn hosts(agreement: &Agreement) -> Table {
    let columns = vec![Column::new("Name"), Column::new("made"), Column::new("recorded")];
    let mut table = Table::new("Connections by the name that clients asked for", columns);
    for row in &agreement.hosts {
        table.push(Row::new(vec![
            Cell::text(row.host.clone()),
            Cell::count(row.made as u64),
            Cell::count(row.recorded as u64),
        ]));
    }
    table
}

fn crossed(agreement: &Agreement) -> Table {
    let columns = vec![
        Column::new("Clients"),
        Column::new("visit"),
        Column::new("made"),
        Column::new("resumed"),
        Column::new("server sent").unit("bytes"),
        Column::new("full").unit("bytes"),
        Column::new("to data").unit("ms"),
        Column::new("full").unit("ms"),
    ];
    let caption = "Sessions of another name (medians; server sent: until the client's Finished)";
    let mut table = Table::new(caption, columns);
    let number = |value: Option<f64>, decimals| {
        value.map_or(Cell::Empty, |value| Cell::number(value, decimals))
    };
    for row in &agreement.crossed {
        table.push(Row::new(vec![
            Cell::text(row.population.clone()),
            Cell::text(row.visit.clone()),
            Cell::count(row.count as u64),
            Cell::count(row.resumed as u64),
            number(row.flight_bytes, 0),
            number(row.full_flight_bytes, 0),
            number(row.to_data_ms, 1),
            number(row.full_to_data_ms, 1),
        ]));
    }
    table
}

fn fallbacks(agreement: &Agreement) -> Table {
    let columns = vec![
        Column::new("Clients"),
        Column::new("box"),
        Column::new("connections"),
        Column::new("lost").unit("ms"),
        Column::new("lost").unit("RTT"),
    ];
    let caption = "Boxes that reject a hello: time from the first hello to the second (medians)";
    let mut table = Table::new(caption, columns);
    for row in &agreement.fallbacks {
        table.push(Row::new(vec![
            Cell::text(row.population.clone()),
            Cell::text(row.visit.clone()),
            Cell::count(row.count as u64),
            Cell::number(row.lost_ms, 0),
            Cell::number(row.round_trips, 1),
        ]));
    }
    table
}

fn series(agreement: &Agreement) -> Table {
    let series = agreement.series;
    let columns = vec![
        Column::new("Full handshakes over TCP"),
        Column::new("at a name new to a client with a session of another"),
        Column::new("share").unit("%"),
    ];
    let caption =
        "Clients that made several connections: what sessions for all names would have spared";
    let mut table = Table::new(caption, columns);
    let share = percent(series.could_cross as u64, series.full as u64);
    table.push(Row::new(vec![
        Cell::count(series.full as u64),
        Cell::count(series.could_cross as u64),
        Cell::number(share, 1),
    ]));
    table
}

fn pauses(agreement: &Agreement) -> Table {
    let columns = vec![
        Column::new("Think times"),
        Column::new("connections"),
        Column::new("median put in").unit("ms"),
        Column::new("found").unit("ms"),
        Column::new("furthest off").unit("ms"),
    ];
    let caption = "Think times between connections of one client, put in and found";
    let mut table = Table::new(caption, columns);
    for row in &agreement.pauses {
        table.push(Row::new(vec![
            Cell::text(row.pause.clone()),
            Cell::count(row.count as u64),
            Cell::number(row.put_in_ms, 1),
            Cell::number(row.found_ms, 1),
            Cell::number(row.worst_ms, 1),
        ]));
    }
    table
}

fn times(agreement: &Agreement) -> Table {
    let columns = vec![
        Column::new("Step"),
        Column::new("connections"),
        Column::new("median").unit("\u{b5}s"),
        Column::new("worst").unit("\u{b5}s"),
        Column::new("record later"),
    ];
    let caption = "How much later a log has a step than the record: a thread has to wake up first";
    let mut table = Table::new(caption, columns);
    for time in &agreement.times {
        table.push(Row::new(vec![
            Cell::text(time.step),
            Cell::count(time.count as u64),
            Cell::number(time.median_us, 0),
            Cell::number(time.worst_us, 0),
            Cell::count(time.record_later as u64),
        ]));
    }
    table
}

fn round_trips(agreement: &Agreement) -> Table {
    let columns = vec![
        Column::new("Population"),
        Column::new("put in").unit("ms"),
        Column::new("median found").unit("ms"),
        Column::new("nearest mode").unit("ms"),
    ];
    let caption = "Round-trip times put in (without jitter, which only adds) and found";
    let mut table = Table::new(caption, columns);
    for own in &agreement.round_trips {
        let number = |value: Option<f64>| value.map_or(Cell::Empty, |ms| Cell::number(ms, 1));
        table.push(Row::new(vec![
            Cell::text(own.population.clone()),
            Cell::number(own.known_ms, 1),
            number(own.median_ms),
            number(own.mode_ms),
        ]));
    }
    table
}
