//! Clients and servers of several libraries, as tables.

use report::{Cell, Column, Row, Table};
use tls::ech::{Case, Visit};

use super::EchArgs;
use super::count::{Counts, Visited, title};
use super::show::after;

/// What went over the wire between each client and each server.
pub fn bytes(counts: &Counts) -> Table {
    let mut columns = vec![Column::new("Client"), Column::new("Server")];
    let titles = ["no ECH", "GREASE", "accepted", "old key, retry", "dropped, retry"];
    columns.extend(titles.map(|title| Column::new(title).unit("bytes")));
    let caption =
        "Bytes of a whole visit, from the client + from the server; a chain of one certificate";
    let mut table = Table::new(caption, columns);
    let mut rows: Vec<(&str, Option<&str>)> = Vec::new();
    for visit in &counts.visits {
        let pair = (visit.library.as_str(), visit.server.as_deref());
        if !rows.contains(&pair) {
            rows.push(pair);
        }
    }
    for (client, server) in rows {
        let of = |case: Case| {
            counts.visits.iter().find(|visit| {
                (visit.library.as_str(), visit.server.as_deref(), visit.case)
                    == (client, server, case)
            })
        };
        let mut cells = vec![Cell::text(client), Cell::text(server.unwrap_or_default())];
        cells.extend(Case::ALL.iter().map(|case| match of(*case) {
            Some(Visited { counts, .. }) => {
                Cell::text(format!("{} + {}", counts.client_bytes, counts.server_bytes))
            }
            None => Cell::text("fails"),
        }));
        table.push(Row::new(cells));
    }
    table
}

/// What a visit takes but for bytes: the same of most pairs.
fn outcome(visit: &Visit) -> [usize; 5] {
    let Visit { connections, flights, tcp_round_trips, quic_round_trips, hidden, .. } = visit;
    [*connections, *flights, *tcp_round_trips, *quic_round_trips, usize::from(*hidden)]
}

/// Connections and round trips by case, and in how many pairs it was so.
pub fn round_trips(counts: &Counts, args: &EchArgs) -> Table {
    let mut columns: Vec<Column> =
        ["Visit", "pairs", "connections", "flights", "round trips, TCP", "QUIC", "name hidden"]
            .map(Column::new)
            .into();
    columns.extend(args.rtt.iter().map(|rtt| Column::new(format!("TCP at {rtt}")).unit("ms")));
    let caption = "Until the client may send its request, without computing time";
    let mut table = Table::new(caption, columns);
    for case in Case::ALL {
        let visits = counts.visits.iter().filter(|visit| visit.case == *case);
        let mut seen: Vec<([usize; 5], u64)> = Vec::new();
        for visit in visits {
            let outcome = outcome(&visit.counts);
            match seen.iter_mut().find(|(known, _)| *known == outcome) {
                Some((_, pairs)) => *pairs += 1,
                None => seen.push((outcome, 1)),
            }
        }
        for ([connections, flights, tcp, quic, hidden], pairs) in seen {
            let count = |value: usize| Cell::count(value as u64);
            let mut cells = vec![
                Cell::text(title(*case)),
                Cell::count(pairs),
                count(connections),
                count(flights),
                count(tcp),
                count(quic),
                Cell::text(if hidden == 1 { "yes" } else { "no" }),
            ];
            cells.extend(args.rtt.iter().map(|rtt| Cell::number(after(tcp, rtt), 1)));
            table.push(Row::new(cells));
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visit(server: &str, case: Case, connections: usize) -> Visited {
        let counts = Visit {
            connections,
            flights: 3 * connections,
            client_bytes: 100 * connections,
            server_bytes: 50,
            tcp_round_trips: 2 * connections,
            quic_round_trips: connections,
            hidden: case == Case::Accepted,
        };
        Visited { library: "a".to_owned(), server: Some(server.to_owned()), case, counts }
    }

    #[test]
    fn pairs_that_came_to_the_same_are_one_row() {
        let visits = vec![
            visit("b", Case::Plain, 1),
            visit("b", Case::Dropped, 2),
            visit("c", Case::Plain, 1),
            visit("c", Case::Dropped, 1),
        ];
        let counts = Counts { config_bytes: 0, hellos: Vec::new(), visits };
        let bytes = bytes(&counts).to_text(200);
        assert!(bytes.contains("100 + 50") && bytes.contains("200 + 50"), "{bytes}");
        // The cases that are not there.
        assert_eq!(bytes.matches("fails").count(), 6, "{bytes}");
        let args = crate::ech::args::tests::args(&[]);
        let table = round_trips(&counts, &args);
        assert_eq!(table.rows.len(), 3, "{}", table.to_text(200));
    }
}
