//! Records of a Parquet file.

use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};

use parquet::file::reader::FileReader;
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::record::Field;
use parquet::record::reader::RowIter;
use parquet::schema::types::Type;

use super::error::ReadError;
use super::record::Record;
use crate::parquet::SCHEMA_KEY;
use crate::row::SCHEMA;

/// The columns that are read.
const COLUMNS: [&str; 18] = [
    "run",
    "number",
    "client",
    "client_network",
    "sni",
    "transport",
    "version",
    "class",
    "psk_offered",
    "ticket_offered",
    "first_frame",
    "client_hello",
    "handshake",
    "tls_handshake",
    "hello_to_data",
    "round_trip",
    "tls_round_trips",
    "uncertain",
];

/// Reads the rows of a Parquet file, one after the other.
pub(super) struct Columns {
    path: PathBuf,
    rows: RowIter<'static>,
}

impl fmt::Debug for Columns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Columns").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Columns {
    pub(super) fn open(file: File, path: &Path) -> Result<Columns, ReadError> {
        let failed = ReadError::parquet(path);
        let reader = SerializedFileReader::new(file).map_err(&failed)?;
        let about = reader.metadata().file_metadata();
        let pairs = about.key_value_metadata().map(Vec::as_slice).unwrap_or_default();
        let schema = pairs.iter().find(|pair| pair.key == SCHEMA_KEY);
        let schema = schema.and_then(|pair| pair.value.as_deref()?.parse::<u32>().ok());
        let schema = schema.ok_or_else(|| ReadError::NotTable(path.to_owned()))?;
        if schema > SCHEMA {
            return Err(ReadError::Newer { path: path.to_owned(), schema });
        }
        let has = |name: &str| about.schema().get_fields().iter().any(|field| field.name() == name);
        if !(has("first_frame") && has("class")) {
            return Err(ReadError::NotTable(path.to_owned()));
        }
        let wanted = |field: &&std::sync::Arc<Type>| COLUMNS.contains(&field.name());
        let fields = about.schema().get_fields().iter().filter(wanted).cloned().collect();
        let wanted = Type::group_type_builder(about.schema().name()).with_fields(fields).build();
        let wanted = wanted.map_err(&failed)?;
        let rows = RowIter::from_file_into(Box::new(reader)).project(Some(wanted));
        Ok(Columns { path: path.to_owned(), rows: rows.map_err(&failed)? })
    }

    /// The next row.
    pub(super) fn next_record(&mut self) -> Result<Option<Record>, ReadError> {
        let Some(row) = self.rows.next() else { return Ok(None) };
        let row = row.map_err(ReadError::parquet(&self.path))?;
        let mut record = Record::default();
        for (column, field) in row.into_columns() {
            if set(&mut record, &column, field).is_none() {
                return Err(ReadError::Column { path: self.path.clone(), column });
            }
        }
        Ok(Some(record))
    }
}

/// Sets what a column is; `None` if it holds something else.
fn set(record: &mut Record, column: &str, field: Field) -> Option<()> {
    match column {
        "run" => record.run = text(field)?,
        "number" => record.number = number(&field)??,
        "client" => record.client = text(field)?,
        "client_network" => record.client_network = text(field)?,
        "sni" => record.sni = optional_text(field)?,
        "transport" => record.transport = text(field)?,
        "version" => record.version = optional_text(field)?,
        "class" => record.class = optional_text(field)?,
        "psk_offered" => record.psk_offered = truth(&field)?,
        "ticket_offered" => record.ticket_offered = truth(&field)?,
        "first_frame" => record.first_frame = number(&field)??,
        "client_hello" => record.client_hello = number(&field)?,
        "handshake" => record.handshake = number(&field)?,
        "tls_handshake" => record.tls_handshake = number(&field)?,
        "hello_to_data" => record.hello_to_data = number(&field)?,
        "round_trip" => record.round_trip = number(&field)?,
        "tls_round_trips" => {
            record.tls_round_trips = match field {
                Field::Null => None,
                Field::Double(value) => Some(value),
                _ => return None,
            }
        }
        "uncertain" => {
            let list = text(field)?;
            let reasons = list.split(',').filter(|reason| !reason.is_empty());
            record.uncertain = reasons.map(str::to_owned).collect();
        }
        _ => {}
    }
    Some(())
}

fn text(field: Field) -> Option<String> {
    optional_text(field)?
}

fn optional_text(field: Field) -> Option<Option<String>> {
    match field {
        Field::Null => Some(None),
        Field::Str(text) => Some(Some(text)),
        _ => None,
    }
}

fn truth(field: &Field) -> Option<Option<bool>> {
    match field {
        Field::Null => Some(None),
        Field::Bool(value) => Some(Some(*value)),
        _ => None,
    }
}

fn number(field: &Field) -> Option<Option<u64>> {
    match field {
        Field::Null => Some(None),
        Field::Long(value) => u64::try_from(*value).ok().map(Some),
        _ => None,
    }
}
