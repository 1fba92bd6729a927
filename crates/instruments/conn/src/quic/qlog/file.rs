//! A file of records: JSON text sequences (RFC 7464, draft-ietf-quic-qlog-main-schema §11.2).

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::trace::Vantage;

/// Begins each record (RFC 7464 §2.2).
const RECORD_SEPARATOR: u8 = 0x1e;
/// Bytes that are held before they are written: a write takes time from what is measured.
const HELD: usize = 1 << 20;
/// Files of one connection identifier at most; more are the same file.
const SAME: u32 = 1000;

/// Writes records one after the other. A file that cannot be written ends, and the connection goes on.
pub(super) struct Records<W: Write = Box<dyn Write + Send>>(Option<BufWriter<W>>);

impl Records {
    /// Begins the file of a connection by its first Destination Connection ID.
    pub(super) fn create(folder: &Path, group: &str, vantage: Vantage) -> io::Result<Records> {
        let names = (1..=SAME).map(|number| name(group, vantage, number));
        let mut last = io::ErrorKind::AlreadyExists.into();
        for name in names {
            // A study that is resumed keeps what it has.
            match File::create_new(folder.join(name)) {
                Ok(file) => return Ok(Records::new(Box::new(file), group, vantage)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = error,
                Err(error) => return Err(error),
            }
        }
        Err(last)
    }
}

fn name(group: &str, vantage: Vantage, number: u32) -> PathBuf {
    match number {
        1 => format!("{group}_{}.sqlog", vantage.name()).into(),
        number => format!("{group}_{}-{number}.sqlog", vantage.name()).into(),
    }
}

impl<W: Write> Records<W> {
    /// Begins a file of the connection `group`.
    pub(super) fn new(to: W, group: &str, vantage: Vantage) -> Records<W> {
        let mut records = Records(Some(BufWriter::with_capacity(HELD, to)));
        records.put(&header(group, vantage));
        records
    }

    /// Adds a record.
    pub(super) fn put(&mut self, record: &Value) {
        let Some(to) = &mut self.0 else { return };
        let mut text = vec![RECORD_SEPARATOR];
        let written = serde_json::to_writer(&mut text, record).map_err(io::Error::from);
        text.push(b'\n');
        if let Err(error) = written.and_then(|()| to.write_all(&text)) {
            tracing::warn!(%error, "a qlog file ends here");
            self.0 = None;
        }
    }

    /// Writes what is held.
    pub(super) fn flush(&mut self) {
        if let Some(Err(error)) = self.0.as_mut().map(Write::flush) {
            tracing::warn!(%error, "a qlog file ends here");
            self.0 = None;
        }
    }
}

/// The first record: QlogFileSeq (main schema §5).
fn header(group: &str, vantage: Vantage) -> Value {
    json!({
        "file_schema": "urn:ietf:params:qlog:file:sequential",
        "serialization_format": "application/qlog+json-seq",
        "title": format!("QUIC connection {group}, {}", vantage.name()),
        "trace": {
            "common_fields": {
                "group_id": group,
                "time_format": "relative_to_epoch",
                "reference_time": { "clock_type": "monotonic", "epoch": "unknown" },
            },
            "event_schemas": ["urn:ietf:params:qlog:events:quic-12"],
            "vantage_point": { "name": "wiretax", "type": vantage.name() },
        },
    })
}
