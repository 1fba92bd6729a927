//! Chains, as text and as JSON.

use fault::one_line;
use report::{Cell, Column, Row, Table};
use serde_json::{Value, json};
use tls::chain::ChainFault;
use units::counted;

use super::cost::Way;
use super::source::Source;
use super::{ChainArgs, SCHEMA};
use crate::output::terminal_width;

/// Everything, for people.
pub fn text(sources: &[Source], ways: &[Vec<Way>], args: &ChainArgs) -> String {
    let mut text = String::new();
    for source in sources {
        text += &certificates(source);
        text += "\n";
    }
    text += &costs(sources, ways, args).to_text(terminal_width());
    text + "\n"
}

fn certificates(source: &Source) -> String {
    let bytes = source.chain.lengths().bytes();
    let count = source.chain.certificates().len();
    let count = counted(count, "certificate");
    let mut text = format!("{}: {count}, {bytes} bytes\n", one_line(&source.name));
    let columns = vec![
        Column::new("#"),
        Column::new("for"),
        Column::new("key"),
        Column::new("signed by"),
        Column::new("until"),
        Column::new("bytes"),
    ];
    let mut table = Table::new("", columns);
    for (number, one) in source.chain.certificates().iter().enumerate() {
        table.push(Row::new(vec![
            Cell::text(format!("{}", number + 1)),
            Cell::text(&one.subject),
            Cell::text(&one.key),
            Cell::text(format!("{}, {}", one.issuer, one.signed_by)),
            Cell::text(&one.not_after),
            Cell::count(one.bytes as u64),
        ]));
    }
    text += &table.to_text(terminal_width());
    for verdict in &source.verdicts {
        let says = match &verdict.refused {
            None => "verifies".to_owned(),
            Some(why) => format!("does NOT verify: {why}"),
        };
        text += &format!("  {:8} {}\n", verdict.library, one_line(&says));
    }
    text
}

fn costs(sources: &[Source], ways: &[Vec<Way>], args: &ChainArgs) -> Table {
    let mut columns = vec![
        Column::new("Chain"),
        Column::new("carried by"),
        Column::new("compression"),
        Column::new("Certificate").unit("bytes"),
        Column::new("flight").unit("bytes"),
        Column::new("first limit").unit("bytes"),
        Column::new("round trips"),
    ];
    if args.measure {
        columns.push(Column::new("counted"));
        columns.push(Column::new("flight counted").unit("bytes"));
    }
    for rtt in &args.rtt {
        columns.push(Column::new(format!("at {rtt}")).unit("ms"));
    }
    let caption = "Until the client may send its request, without computing time";
    let mut table = Table::new(caption, columns);
    for (source, ways) in sources.iter().zip(ways) {
        for way in ways {
            table.push(Row::new(cells(source, way, args)));
        }
    }
    table
}

fn cells(source: &Source, way: &Way, args: &ChainArgs) -> Vec<Cell> {
    let count = |value: usize| Cell::count(value as u64);
    let mut cells = vec![
        Cell::text(&source.name),
        Cell::text(way.carrier),
        Cell::text(way.compression.map_or("none", tls::Compression::name)),
        count(way.certificate_bytes),
        count(way.flight_bytes),
        count(way.limit_bytes),
        match way.least_round_trips {
            least if least < way.round_trips => {
                Cell::text(format!("{least} or {}", way.round_trips))
            }
            _ => count(way.round_trips),
        },
    ];
    if args.measure {
        let measured = way.measured.as_ref();
        let undisturbed = measured.filter(|one| one.retransmitted == 0);
        cells.push(undisturbed.map_or(Cell::Empty, |one| Cell::count(one.round_trips.into())));
        let bytes = measured.and_then(|one| one.flight_bytes);
        cells.push(bytes.map_or(Cell::Empty, Cell::count));
    }
    for rtt in &args.rtt {
        #[allow(clippy::cast_precision_loss)]
        let ms = rtt.duration().as_secs_f64() * 1e3 * way.round_trips as f64;
        cells.push(Cell::number(ms, 1));
    }
    cells
}

fn fault(fault: &ChainFault) -> Value {
    json!({ "what": fault.to_string(), "remedy": fault.remedy() })
}

/// Everything, for programs.
pub fn json(
    sources: &[Source],
    ways: &[Vec<Way>],
    advice: &[Vec<String>],
    args: &ChainArgs,
) -> Value {
    let chains: Vec<Value> = sources
        .iter()
        .zip(ways)
        .zip(advice)
        .map(|((source, ways), advice)| {
            json!({
                "name": source.name,
                "bytes": source.chain.lengths().bytes(),
                "signature_bytes": source.chain.leaf_key().signature,
                "certificates": source.chain.certificates(),
                "verdicts": source.verdicts,
                "oddities": source.oddities,
                "faults": source.faults.iter().map(fault).collect::<Vec<_>>(),
                "finding": source.finding,
                "ways": ways,
                "advice": advice,
            })
        })
        .collect();
    json!({
        "schema": SCHEMA,
        "initial_window": args.initial_window,
        "segment_bytes": args.mss,
        "group": args.group,
        "rtt_ms": args.rtt.iter().map(|rtt| rtt.duration().as_secs_f64() * 1e3).collect::<Vec<_>>(),
        "chains": chains,
    })
}
