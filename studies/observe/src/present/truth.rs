//! How far records and logs agree, for a report.

use report::{Cell, Column, Inline, Note, Row, Section, Table};

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
    section.with(times(agreement)).with(round_trips(agreement))
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
