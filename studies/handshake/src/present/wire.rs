//! Bytes, packets and CPU time.

use report::{Cell, Column, Inline, Note, Row as TableRow, Section, Table};

use super::{Findings, rtt_text, rtts};
use crate::summary::value;

/// Bytes, packets and CPU time of each mode, at the shortest RTT.
pub(super) fn section(findings: &Findings) -> Option<Section> {
    let rows = findings.main_rows();
    let shortest = rtts(rows.iter().copied()).first().copied()?;
    let columns = vec![
        Column::new("Mode"),
        Column::new("bytes up").bars(),
        Column::new("bytes down").bars(),
        Column::new("frames up"),
        Column::new("frames down"),
        Column::new("ClientHello").unit("bytes"),
        Column::new("client CPU").unit("ms").bars(),
        Column::new("server CPU").unit("ms").bars(),
    ];
    let caption = format!(
        "Until the first response byte: Ethernet bytes and frames each way at the client; CPU time \
         of each side over the whole connection; medians at an RTT of {}",
        rtt_text(shortest)
    );
    let mut table = Table::new(caption, columns);
    for row in rows {
        let Some(cell) = row.at_rtt(shortest) else { continue };
        let median = |name: &str, decimals| match cell.median(name) {
            Some(median) => Cell::number(median.value, decimals),
            None => Cell::Empty,
        };
        let cells = vec![
            Cell::text(row.key.mode.to_string()),
            median(value::UP_BYTES, 0),
            median(value::DOWN_BYTES, 0),
            median(value::UP_FRAMES, 0),
            median(value::DOWN_FRAMES, 0),
            median(value::HELLO_BYTES, 0),
            median(value::CLIENT_CPU, 2),
            median(value::SERVER_CPU, 2),
        ];
        table.push(TableRow::new(cells).command(cell.command.clone()));
    }
    let note = "CPU times are those of each side's thread: its system calls are in, packet \
                processing in interrupt context counts where it happens to run. QUIC's include the \
                runtime's own work.";
    (!table.rows.is_empty()).then(|| {
        Section::new("wire", "Bytes, packets and CPU time")
            .with(table)
            .with(Note::info(Inline::new().text(note)))
    })
}
