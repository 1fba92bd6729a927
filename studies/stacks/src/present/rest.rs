//! Instructions, records and memory.

use std::collections::BTreeSet;

use report::{Cell, Column, Inline, Row, Section, Table};
use tls_drivers::{Cipher, Version, Workload};

use super::{Findings, estimate, handshake_text, workload_text};
use crate::point::Tool;
use crate::sample::value;
use crate::summary::{Cell as Measured, Want};

/// Instructions and atomic operations per handshake, under callgrind.
pub(super) fn instructions(findings: &Findings) -> Option<Section> {
    let columns = vec![
        Column::new("Library"),
        Column::new("handshake"),
        Column::new("server").unit("thousand").bars(),
        Column::new("client").unit("thousand"),
        Column::new("atomics, server"),
        Column::new("atomics, client"),
    ];
    let mut table = Table::new("Instructions and atomic read-modify-write instructions", columns);
    let want = Want { tool: Tool::Callgrind, ..Want::TIMED };
    for name in findings.summary.measured() {
        for cell in findings.summary.all(want.of(name)) {
            let median = |what| cell.median(what).map(|median| median.value);
            let thousand = |what| Cell::known(median(what).map(|count| count / 1e3), 1);
            let point = &cell.point;
            let what =
                format!("{}, {}", workload_text(point.workload), handshake_text(point.suite));
            table.push(Row {
                cells: vec![
                    Cell::text(findings.summary.title(name)),
                    Cell::text(what),
                    thousand(value::SERVER_INSTRUCTIONS),
                    thousand(value::CLIENT_INSTRUCTIONS),
                    Cell::known(median(value::SERVER_ATOMICS), 0),
                    Cell::known(median(value::CLIENT_ATOMICS), 0),
                ],
                command: Some(cell.command.clone()),
            });
        }
    }
    let text = "Counted under callgrind on one thread: a figure that a busy machine cannot blur. \
                Libraries choose code by the processor that they see, and callgrind shows them one \
                without the newest instructions, so counts of cryptography are upper ends.";
    (!table.rows.is_empty()).then(|| {
        Section::new("stacks-instructions", "Instructions per handshake")
            .with(Inline::new().text(text))
            .with(table)
    })
}

/// Record encryption by record size and cipher.
pub(super) fn bulk(findings: &Findings) -> Option<Section> {
    let cells = findings.summary.all(Want::TIMED);
    let bulk: Vec<&Measured> =
        cells.filter(|cell| matches!(cell.point.workload, Workload::Bulk { .. })).collect();
    let kinds: BTreeSet<(Version, Cipher)> =
        bulk.iter().map(|cell| (cell.point.suite.version, cell.point.suite.cipher)).collect();
    let mut section = Section::new("stacks-bulk", "Records").with(Inline::new().text(
        "Payload that one core encrypts (the server's side) and decrypts (the client's), in memory.",
    ));
    for (version, cipher) in kinds {
        let own = |cell: &&&Measured| {
            (cell.point.suite.version, cell.point.suite.cipher) == (version, cipher)
        };
        section = section.with(bulk_table(
            findings,
            &bulk.iter().filter(own).copied().collect::<Vec<_>>(),
            version,
            cipher,
        ));
    }
    (!bulk.is_empty()).then_some(section)
}

fn bulk_table(findings: &Findings, cells: &[&Measured], version: Version, cipher: Cipher) -> Table {
    let size = |cell: &Measured| match cell.point.workload {
        Workload::Bulk { record } => record,
        _ => 0,
    };
    let sizes: BTreeSet<usize> = cells.iter().map(|cell| size(cell)).collect();
    let mut columns = vec![Column::new("Library")];
    for size in sizes.iter().rev() {
        columns.push(Column::new(format!("{size} bytes, encrypt")).unit("Gbit/s"));
        columns.push(Column::new(format!("{size} bytes, decrypt")).unit("Gbit/s"));
    }
    let mut table = Table::new(format!("Gbit/s of payload a core: {version}, {cipher}"), columns);
    for name in findings.summary.measured() {
        let own = |bytes: usize| {
            cells.iter().find(move |cell| cell.point.library == name && size(cell) == bytes)
        };
        let mut row = vec![Cell::text(findings.summary.title(name))];
        for size in sizes.iter().rev() {
            let cell = own(*size);
            row.push(estimate(cell.and_then(|cell| cell.median(value::SERVER_GBIT)), 2));
            row.push(estimate(cell.and_then(|cell| cell.median(value::CLIENT_GBIT)), 2));
        }
        if row.iter().skip(1).any(|cell| *cell != Cell::Empty) {
            let command = sizes.iter().find_map(|size| own(*size)).map(|cell| cell.command.clone());
            table.push(Row { cells: row, command });
        }
    }
    table
}

/// Memory of a connection.
pub(super) fn memory(findings: &Findings) -> Option<Section> {
    let columns = vec![
        Column::new("Library"),
        Column::new("handshake"),
        Column::new("idle, server").unit("bytes").bars(),
        Column::new("handshaking, server").unit("bytes"),
        Column::new("idle, client").unit("bytes"),
        Column::new("handshaking, client").unit("bytes"),
    ];
    let mut table = Table::new("Heap bytes of one connection", columns);
    for name in findings.summary.measured() {
        for cell in findings.summary.all(Want::TIMED.of(name)) {
            let bytes = |what| Cell::known(cell.median(what).map(|median| median.value), 0);
            if cell.median(value::SERVER_IDLE).is_none() {
                continue;
            }
            table.push(Row {
                cells: vec![
                    Cell::text(findings.summary.title(name)),
                    Cell::text(handshake_text(cell.point.suite)),
                    bytes(value::SERVER_IDLE),
                    bytes(value::SERVER_HANDSHAKING),
                    bytes(value::CLIENT_IDLE),
                    bytes(value::CLIENT_HANDSHAKING),
                ],
                command: Some(cell.command.clone()),
            });
        }
    }
    let text = "Idle: the handshake is over, 100 bytes went each way, and nothing moves. \
                Handshaking: the side has sent its first flight and waits.";
    (!table.rows.is_empty()).then(|| {
        Section::new("stacks-memory", "Memory of a connection")
            .with(Inline::new().text(text))
            .with(table)
    })
}
