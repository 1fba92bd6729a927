//! ECH's costs, as text and as JSON.

use conn::names::Names;
use fault::one_line;
use report::{Cell, Column, Row, Table};
use serde_json::{Value, json};
use tls::ech::{Case, ClientLibrary};
use units::Delay;

use super::count::{Counts, Hello, Size, Visited, title};
use super::{EchArgs, SCHEMA, pairs};
use crate::output::terminal_width;

/// Everything, for people: what it comes to, then the tables.
pub fn text(counts: &Counts, names: Option<&Names>, args: &EchArgs) -> String {
    let mut text: String = args.rtt.iter().map(|rtt| answer(counts, names, args, rtt)).collect();
    if let Some((names, host)) = names.zip(args.host.as_deref()) {
        text += &format!("\n{}", record(names, host));
    }
    let tables = if args.library.is_empty() {
        vec![hellos(counts), visits(counts, args)]
    } else {
        vec![pairs::round_trips(counts, args), hellos(counts), pairs::bytes(counts)]
    };
    for table in tables {
        text += &format!("\n{}", table.to_text(terminal_width()));
    }
    text
}

fn hellos(counts: &Counts) -> Table {
    let mut columns =
        vec![Column::new("Client"), Column::new("key share"), Column::new("name").unit("letters")];
    // Of none of the libraries of drivers they are known.
    let quic = counts.hellos.iter().any(|hello| hello.plain.datagrams.is_some());
    for what in ["no ECH", "GREASE", "ECH"] {
        columns.push(Column::new(what).unit("bytes"));
        columns.push(Column::new("segments"));
        if quic {
            columns.push(Column::new("QUIC datagrams"));
        }
    }
    let mut table = Table::new("The ClientHello", columns);
    for hello in &counts.hellos {
        let mut cells = vec![
            Cell::text(hello.library.as_str()),
            Cell::text(share(hello)),
            Cell::count(hello.name.len() as u64),
        ];
        for Size { bytes, segments, datagrams } in [hello.plain, hello.placeholder, hello.ech] {
            cells.push(Cell::count(bytes as u64));
            cells.push(Cell::count(segments as u64));
            if quic {
                cells.push(datagrams.map_or(Cell::Empty, |count| Cell::count(count as u64)));
            }
        }
        table.push(Row::new(cells));
    }
    table
}

/// The first group, which has a share; behind the hybrid one X25519's is sent too.
fn share(hello: &Hello) -> &'static str {
    hello.groups.first().map_or("none", |group| group.name())
}

fn visits(counts: &Counts, args: &EchArgs) -> Table {
    let mut columns = vec![
        Column::new("Client"),
        Column::new("Visit"),
        Column::new("connections"),
        Column::new("flights"),
        Column::new("from the client").unit("bytes"),
        Column::new("from the server").unit("bytes"),
        Column::new("round trips, TCP"),
        Column::new("QUIC"),
        Column::new("name hidden"),
    ];
    for rtt in &args.rtt {
        columns.push(Column::new(format!("TCP at {rtt}")).unit("ms"));
    }
    let caption =
        "Until the client may send its request, without computing time; a chain of one certificate";
    let mut table = Table::new(caption, columns);
    for Visited { library, case, counts: visit, .. } in &counts.visits {
        let count = |value: usize| Cell::count(value as u64);
        let mut cells = vec![
            Cell::text(library.as_str()),
            Cell::text(title(*case)),
            count(visit.connections),
            count(visit.flights),
            count(visit.client_bytes),
            count(visit.server_bytes),
            count(visit.tcp_round_trips),
            count(visit.quic_round_trips),
            Cell::text(if visit.hidden { "yes" } else { "no" }),
        ];
        let at = |rtt: &Delay| Cell::number(after(visit.tcp_round_trips, rtt), 1);
        cells.extend(args.rtt.iter().map(at));
        table.push(Row::new(cells));
    }
    table
}

/// The time of this many round trips, in milliseconds.
pub fn after(round_trips: usize, rtt: &Delay) -> f64 {
    #[allow(clippy::cast_precision_loss)]
    let count = round_trips as f64;
    rtt.duration().as_secs_f64() * 1e3 * count
}

fn record(names: &Names, host: &str) -> String {
    let ms = |time: Option<f64>| time.map_or("no answer".to_owned(), |ms| format!("{ms:.1} ms"));
    let mut text = format!(
        "DNS for {} at {}: A {}, AAAA {}, HTTPS {}\n",
        one_line(host),
        names.server,
        ms(names.a_ms),
        ms(names.aaaa_ms),
        ms(names.https_ms)
    );
    text += &match (names.ech(), names.https.first()) {
        (Some(ech), _) => format!(
            "  its HTTPS record has ECH: {} bytes, public name {}\n",
            ech.bytes,
            one_line(&ech.public_names.join(", "))
        ),
        (None, Some(first)) if first.priority == 0 => {
            format!("  its HTTPS record says: ask for {}\n", one_line(&first.target))
        }
        (None, Some(_)) => "  its HTTPS record has no ECH\n".to_owned(),
        (None, None) if names.truncated && names.https_ms.is_none() => {
            "  its HTTPS record does not fit a datagram, and no answer came over TCP\n".to_owned()
        }
        (None, None) => "  it has no HTTPS record\n".to_owned(),
    };
    if names.truncated && names.https_ms.is_some() {
        text += "  the answer for HTTPS did not fit a datagram and was asked for again over TCP\n";
    }
    if let Some(wait) = names.wait_ms() {
        text += &format!("  a client that waits for the record connects {wait:.1} ms later\n");
    }
    text
}

/// What a retry takes more, in round trips over TCP and QUIC, by rustls.
pub fn retry(counts: &Counts) -> (usize, usize) {
    let of = |case: Case| {
        let mut visits = counts.visits.iter();
        let rustls = ClientLibrary::Rustls.name();
        visits.find(|visit: &&Visited| visit.case == case && visit.library == rustls)
    };
    match (of(Case::NewKey), of(Case::Accepted)) {
        (Some(Visited { counts: again, .. }), Some(Visited { counts: once, .. })) => (
            again.tcp_round_trips.saturating_sub(once.tcp_round_trips),
            again.quic_round_trips.saturating_sub(once.quic_round_trips),
        ),
        _ => (0, 0),
    }
}

/// What ECH costs a new connection on average at this round-trip time, milliseconds over TCP and QUIC.
fn costs(counts: &Counts, names: Option<&Names>, args: &EchArgs, rtt: &Delay) -> (f64, f64) {
    let wait = names.and_then(Names::wait_ms).unwrap_or(0.0);
    let (tcp, quic) = retry(counts);
    let share = args.retries.value();
    (wait + share * after(tcp, rtt), wait + share * after(quic, rtt))
}

fn answer(counts: &Counts, names: Option<&Names>, args: &EchArgs, rtt: &Delay) -> String {
    let (tcp, quic) = retry(counts);
    let (over_tcp, over_quic) = costs(counts, names, args, rtt);
    let wait = match names.map(Names::wait_ms) {
        Some(Some(wait)) => format!("{wait:.1} ms for the record"),
        Some(None) => "the record, which did not come,".to_owned(),
        None => "the record's wait (give HOST to measure it)".to_owned(),
    };
    format!(
        "At {rtt}: ECH that is accepted adds no round trip; a retry adds {:.0} ms over TCP, {:.0} ms over QUIC. With {} % of retries a \
         new connection waits {wait} and {:.1} ms (TCP) or {:.1} ms (QUIC) more on average{}\n",
        after(tcp, rtt),
        after(quic, rtt),
        args.retries.value() * 100.0,
        args.retries.value() * after(tcp, rtt),
        args.retries.value() * after(quic, rtt),
        match names.and_then(Names::wait_ms) {
            Some(_) => format!(": {over_tcp:.1} or {over_quic:.1} ms in all."),
            None => ".".to_owned(),
        }
    )
}

/// Everything, for programs.
pub fn json(counts: &Counts, names: Option<&Names>, args: &EchArgs) -> Value {
    let (tcp, quic) = retry(counts);
    let costs: Vec<Value> = args
        .rtt
        .iter()
        .map(|rtt| {
            let (over_tcp, over_quic) = costs(counts, names, args, rtt);
            json!({
                "rtt_ms": rtt.duration().as_secs_f64() * 1e3,
                "retry_tcp_ms": after(tcp, rtt),
                "retry_quic_ms": after(quic, rtt),
                "mean_tcp_ms": over_tcp,
                "mean_quic_ms": over_quic,
            })
        })
        .collect();
    json!({
        "schema": SCHEMA,
        "segment_bytes": args.mss,
        "public_name": args.public_name,
        "config_bytes": counts.config_bytes,
        "retries": args.retries.value(),
        "hellos": counts.hellos,
        "visits": counts.visits,
        "dns": names,
        "wait_ms": names.and_then(Names::wait_ms),
        "costs": costs,
    })
}
