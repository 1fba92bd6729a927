//! The first connections, one by one.

use export::Row;
use report::{Cell, Column, Table};

/// Each connection in a line.
pub(crate) fn connections(rows: &[Row]) -> Table {
    let columns = vec![
        Column::new("Client"),
        Column::new("Server"),
        Column::new("Version"),
        Column::new("Suite"),
        Column::new("Class"),
        Column::new("handshake").unit("ms"),
        Column::new("think").unit("ms"),
        Column::new("RTT").unit("ms"),
        Column::new("round trips"),
        Column::new("Remarks"),
    ];
    let mut table = Table::new("Connections with TLS", columns);
    for row in rows {
        let ms = |nanos: Option<u64>| match nanos {
            Some(nanos) => Cell::number(nanos as f64 / 1e6, 3),
            None => Cell::text("-"),
        };
        let text =
            |text: &Option<String>| Cell::text(text.clone().unwrap_or_else(|| "-".to_owned()));
        let server = match &row.sni {
            Some(name) => format!("{name}:{}", row.server_port),
            None => format!("{}:{}", row.server, row.server_port),
        };
        table.push(report::Row::new(vec![
            Cell::text(format!("{}:{}", row.client, row.client_port)),
            Cell::text(server),
            text(&row.version),
            text(&row.cipher_suite),
            text(&row.class),
            ms(row.tls_handshake),
            ms(row.think),
            ms(row.round_trip),
            row.tls_round_trips.map_or_else(|| Cell::text("-"), |n| Cell::number(n, 2)),
            Cell::text(remarks(row)),
        ]));
    }
    table
}

fn remarks(row: &Row) -> String {
    let mut remarks = Vec::new();
    if row.transport == "quic" {
        remarks.push("QUIC".to_owned());
    }
    if let (Some(alert), Some(from)) = (&row.alert, &row.alert_from) {
        remarks.push(format!("alert of the {from}: {alert}"));
    }
    if let Some(early) = row.early_data.as_deref().filter(|early| *early != "not_offered") {
        remarks.push(format!("early data {early}"));
    }
    if row.ended == "reset" {
        remarks.push("reset".to_owned());
    }
    if !row.uncertain.is_empty() {
        remarks.push(format!("uncertain: {}", row.uncertain.join(", ")));
    }
    remarks.join("; ")
}
