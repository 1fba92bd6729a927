//! What server push and hints save, by protocol, and what is pushed in vain.

use browser::ServerPush;
use report::{Cell, Column, Inline, Table};
use stats::Estimate;
use stats::claims::{Better, Comparisons, MARGIN, Scale};

use crate::row::Row;
use crate::sample::value;
use crate::summary::Group;

/// What the table is called.
pub(crate) const TITLE: &str = "Server push and hints";

/// The row without them that one with them is set against.
fn without<'a>(group: &'a Group, row: &Row) -> Option<&'a Row> {
    group.rows.iter().find(|other| {
        other.server_push == ServerPush::None
            && (other.protocol, other.tls, other.handshake)
                == (row.protocol, row.tls, row.handshake)
            && (other.windows, other.stream_window, other.tcp_window)
                == (row.windows, row.stream_window, row.tcp_window)
            && (other.initial_window, other.congestion) == (row.initial_window, row.congestion)
    })
}

/// Rows with push or hints, each with what it is set against.
fn rows(group: &Group) -> impl Iterator<Item = (&Row, Option<&Row>)> {
    let with = group.rows.iter().filter(|row| row.server_push != ServerPush::None);
    with.map(|row| (row, without(group, row)))
}

/// What they change, where they certainly change something.
pub(crate) fn answer(group: &Group) -> Vec<Inline> {
    let plain = group.is_plain();
    let compared: Vec<(&Row, &Row)> =
        rows(group).filter_map(|(row, other)| Some((row, other?))).collect();
    let mut comparisons = Comparisons::new(Better::Less, MARGIN);
    for (row, other) in &compared {
        comparisons.push(row.pairs_with(other).map(|(theirs, ours)| (ours, theirs)));
    }
    let judged = compared.into_iter().zip(comparisons.verdicts());
    let certain = judged.filter_map(|((row, _), one)| {
        one.winner()
            .and(one.estimate)
            .filter(|_| one.scale == Scale::Ratio)
            .map(|ratio| (row, ratio))
    });
    let said = certain.map(|(row, Estimate { value, low, high, .. })| {
        let (less, from, to) = match value < 1.0 {
            true => ("less", 1.0 - high, 1.0 - low),
            false => ("more", low - 1.0, high - 1.0),
        };
        Inline::new().text(format!(
            "{}: {} takes {:.0} % [{:.0}, {:.0}] {less} time than without.",
            group.title(),
            row.label(plain),
            (value - 1.0).abs() * 100.0,
            from * 100.0,
            to * 100.0,
        ))
    });
    said.collect()
}

/// The table; none of results without push and hints.
pub(crate) fn table<'a>(groups: impl Iterator<Item = &'a Group>) -> Option<Table> {
    let columns = vec![
        Column::new("Page, link, visit"),
        Column::new("Protocol"),
        Column::new("load").unit("s"),
        Column::new("of none"),
        Column::new("req."),
        Column::new("of none's"),
        Column::new("pushed"),
        Column::new("pushed").unit("kB"),
        Column::new("in vain").unit("kB"),
        Column::new("down").unit("kB"),
    ];
    let mut table = Table::new(TITLE, columns);
    for group in groups {
        for (row, other) in rows(group) {
            let cells = cells(group, row, other);
            table.push(report::Row::new(cells).command(&row.command));
        }
    }
    (!table.rows.is_empty()).then_some(table)
}

fn cells(group: &Group, row: &Row, other: Option<&Row>) -> Vec<Cell> {
    let none = || Cell::text("");
    let number = |row: Option<&Row>, name: &str, scale: f64, decimals| {
        let median = row.and_then(|row| row.median(name));
        median.map_or_else(none, |value| Cell::number(value / scale, decimals))
    };
    let estimate = |estimate: Option<Estimate>, scale: f64| {
        estimate.map_or_else(none, |e| {
            Cell::estimate(e.value / scale, e.low / scale, e.high / scale, 2)
        })
    };
    let own = Some(row);
    vec![
        Cell::text(group.title()),
        Cell::text(row.label(group.is_plain())),
        estimate(row.load_ms, 1e3),
        estimate(other.and_then(|other| row.ratio_to(other)), 1.0),
        number(own, value::REQUESTS, 1.0, 0),
        number(other, value::REQUESTS, 1.0, 0),
        number(own, value::PUSHED, 1.0, 0),
        number(own, value::PUSHED_BYTES, 1e3, 1),
        number(own, value::IN_VAIN, 1e3, 1),
        number(own, value::DOWN, 1e3, 0),
    ]
}

#[cfg(test)]
mod tests {
    use record::Sample;

    use super::*;
    use crate::summary::Summary;
    use crate::summary::tests::sample;

    /// So many loads each: with push a tenth less time and two requests fewer.
    fn samples(loads: u32) -> Vec<Sample> {
        let of = |form: &str, repeat, load_ms: f64, requests| {
            let mut sample = sample("h2", "first", repeat, load_ms);
            if form != "none" {
                sample.point.insert("server-push".to_owned(), form.to_owned());
            }
            sample.values.insert(value::REQUESTS.to_owned(), requests);
            if form == "push" {
                sample.values.insert(value::PUSHED.to_owned(), 2.0);
                sample.values.insert(value::PUSHED_BYTES.to_owned(), 30_000.0);
                sample.values.insert(value::IN_VAIN.to_owned(), 7_000.0);
            }
            sample
        };
        let turn = |repeat| {
            let base = 1000.0 + f64::from(repeat);
            let hint = base + if repeat % 2 == 0 { 1.0 } else { -1.0 };
            [
                of("none", repeat, base, 10.0),
                of("hint", repeat, hint, 10.0),
                of("push", repeat, base * 0.9, 8.0),
            ]
        };
        (0..loads).flat_map(turn).collect()
    }

    #[test]
    fn each_form_is_set_against_none_of_the_same_protocol() {
        let summary = Summary::of(&samples(8));
        let table = table(summary.groups.iter()).unwrap();
        assert!(table.rows.iter().all(|row| row.cells.len() == table.columns.len()));
        let texts: Vec<String> = table.rows.iter().map(|row| format!("{:?}", row.cells)).collect();
        let [hint, push] = texts.as_slice() else { panic!("{texts:?}") };
        assert!(hint.contains("h2, hints") && push.contains("h2, push"), "{texts:?}");
        assert!(push.contains("0.90") && push.contains("7.0"), "{push}");
        let said: Vec<String> = answer(&summary.groups[0]).iter().map(Inline::to_plain).collect();
        let [said] = said.as_slice() else { panic!("{said:?}") };
        assert!(said.contains("h2, push takes 10 % [10, 10] less time"), "{said}");
        // Of a few loads the table has the ratio, and the answer nothing.
        let summary = Summary::of(&samples(2));
        assert!(super::table(summary.groups.iter()).is_some());
        assert!(answer(&summary.groups[0]).is_empty());
    }

    #[test]
    fn results_without_them_have_no_such_table() {
        let summary = Summary::of(&[sample("h2", "first", 0, 100.0)]);
        assert!(table(summary.groups.iter()).is_none());
        assert!(answer(&summary.groups[0]).is_empty());
    }
}
