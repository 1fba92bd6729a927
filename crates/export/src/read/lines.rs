//! Records of JSON lines.

use std::io::{BufRead, Read};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::error::ReadError;
use super::record::Record;
use crate::columns::Table;
use crate::row::{Row, SCHEMA};

/// The longest line that is read, in bytes: names and lists of a hello are bounded far below.
const MAX_LINE: usize = 1 << 20;

/// What every line begins with.
#[derive(Deserialize)]
struct Head {
    kind: Option<String>,
    schema: Option<u32>,
}

/// Reads records from JSON lines, one after the other.
#[derive(Debug)]
pub(super) struct Lines<R> {
    input: R,
    path: PathBuf,
    line: u64,
    text: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(input: R, path: &Path) -> Lines<R> {
        Lines { input, path: path.to_owned(), line: 0, text: Vec::new() }
    }

    /// The next connection's record. A last line that was cut short is left out.
    pub(super) fn next_record(&mut self) -> Result<Option<Record>, ReadError> {
        loop {
            self.text.clear();
            self.line += 1;
            let mut bounded = self.input.by_ref().take(MAX_LINE as u64 + 1);
            let read = bounded.read_until(b'\n', &mut self.text);
            if read.map_err(ReadError::io(&self.path))? == 0 {
                return Ok(None);
            }
            let whole = self.text.ends_with(b"\n");
            if !whole && self.text.len() > MAX_LINE {
                let (path, line) = (self.path.clone(), self.line);
                return Err(ReadError::Long { path, line, limit: MAX_LINE });
            }
            if self.text.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            match self.record() {
                Err(ReadError::Line { .. }) if !whole => return Ok(None),
                Ok(None) => {}
                other => return other,
            }
        }
    }

    /// The record of the line; `None` if it is of another kind.
    fn record(&self) -> Result<Option<Record>, ReadError> {
        let wrong = |source| ReadError::Line { path: self.path.clone(), line: self.line, source };
        let head: Head = serde_json::from_slice(&self.text).map_err(wrong)?;
        let (Some(kind), Some(schema)) = (head.kind, head.schema) else {
            return Err(ReadError::Strange { path: self.path.clone(), line: self.line });
        };
        if schema > SCHEMA {
            return Err(ReadError::Newer { path: self.path.clone(), schema });
        }
        if kind != Row::ROW {
            return Ok(None);
        }
        serde_json::from_slice(&self.text).map(Some).map_err(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<Record>, ReadError> {
        let mut lines = Lines::new(text.as_bytes(), Path::new("records.json"));
        let mut records = Vec::new();
        while let Some(record) = lines.next_record()? {
            records.push(record);
        }
        Ok(records)
    }

    #[test]
    fn connections_are_read_and_endings_passed_over() {
        let text = r#"{"kind":"connection","schema":1,"run":"a","number":7,"sni":"x","uncertain":["mid_stream"],"first_frame":5}

{"kind":"ending","schema":1,"run":"a","number":7,"last_frame":9}
{"kind":"connection","schema":1,"number":8,"tls_round_trips":1.5,"of a newer program":[1]}
{"kind":"connection","schema":1,"num"#;
        let records = read(text).unwrap();
        assert_eq!(records.len(), 2, "{records:?}");
        let [first, second] = [&records[0], &records[1]];
        assert_eq!((first.number, first.sni.as_deref(), first.first_frame), (7, Some("x"), 5));
        assert_eq!(first.uncertain, ["mid_stream"]);
        assert_eq!((second.number, second.tls_round_trips), (8, Some(1.5)));
    }

    #[test]
    fn what_is_no_record_is_named_with_its_line() {
        for (text, said) in [
            ("{\"kind\":\"connection\",\"schema\":1}\n{\n", "records.json, line 2: "),
            ("{}\n", "line 1: this is not a record"),
            ("{\"study\":\"handshake\"}\n", "line 1: this is not a record"),
            ("{\"kind\":\"connection\",\"schema\":9}\n", "version 9"),
            ("{\"kind\":\"connection\",\"schema\":1,\"number\":\"x\"}\n", "line 1: invalid type"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(said), "{text}: {error}");
        }
        let long = format!("{{\"kind\":\"{}", "x".repeat(MAX_LINE));
        assert!(matches!(read(&long), Err(ReadError::Long { line: 1, .. })));
    }
}
