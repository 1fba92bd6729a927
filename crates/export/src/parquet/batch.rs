//! Rows gathered column by column, and written as one row group.

use std::io::Write;
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;

use super::SCHEMA_KEY;
use crate::columns::{Column, Kind, Table, Value};
use crate::row::SCHEMA;

/// The rows of a file to be.
#[derive(Debug)]
pub(super) struct Batch {
    columns: Vec<Values>,
    rows: usize,
    text_bytes: usize,
}

/// The values of a column. Which rows have one is told by `present`, 1 or 0 a row: Parquet's
/// definition levels.
#[derive(Debug)]
struct Values {
    column: Column,
    present: Vec<i16>,
    data: Data,
}

#[derive(Debug)]
enum Data {
    Bools(Vec<bool>),
    Integers(Vec<i64>),
    Floats(Vec<f64>),
    /// All texts one after the other, and where each ends.
    Texts(Vec<u8>, Vec<usize>),
}

impl Batch {
    pub(super) fn new<R: Table>() -> Self {
        let columns = R::COLUMNS.iter().map(|column| Values::new(*column)).collect();
        Batch { columns, rows: 0, text_bytes: 0 }
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    pub(super) fn text_bytes(&self) -> usize {
        self.text_bytes
    }

    pub(super) fn add<R: Table>(&mut self, row: &R) {
        let mut columns = self.columns.iter_mut();
        row.values(|value| {
            if let Some(column) = columns.next() {
                self.text_bytes += column.add(&value);
            }
        });
        self.rows += 1;
    }

    /// Writes all rows as a Parquet file of one row group.
    pub(super) fn write<W: Write + Send>(self, out: W) -> Result<W> {
        let schema = schema(&self.columns)?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(concat!("wiretax ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_key_value_metadata(Some(vec![KeyValue::new(
                SCHEMA_KEY.to_owned(),
                SCHEMA.to_string(),
            )]))
            .build();
        let mut file = SerializedFileWriter::new(out, schema, Arc::new(properties))?;
        let mut group = file.next_row_group()?;
        for values in self.columns {
            let missing = || ParquetError::General("fewer columns than fields".to_owned());
            let mut writer = group.next_column()?.ok_or_else(missing)?;
            values.write(&mut writer)?;
            writer.close()?;
        }
        group.close()?;
        file.into_inner()
    }
}

impl Values {
    fn new(column: Column) -> Self {
        let data = match column.kind {
            Kind::Bool => Data::Bools(Vec::new()),
            Kind::Integer => Data::Integers(Vec::new()),
            Kind::Float => Data::Floats(Vec::new()),
            Kind::Text => Data::Texts(Vec::new(), Vec::new()),
        };
        Values { column, present: Vec::new(), data }
    }

    /// Adds a value, and says how many bytes of text it had.
    fn add(&mut self, value: &Value<'_>) -> usize {
        let mut text_bytes = 0;
        let there = match (&mut self.data, value) {
            (Data::Bools(data), Value::Bool(value)) => {
                data.push(*value);
                true
            }
            (Data::Integers(data), Value::Integer(value)) => {
                data.push(*value);
                true
            }
            (Data::Floats(data), Value::Float(value)) => {
                data.push(*value);
                true
            }
            (Data::Texts(bytes, ends), Value::Text(value)) => {
                bytes.extend_from_slice(value.as_bytes());
                ends.push(bytes.len());
                text_bytes = value.len();
                true
            }
            // A field's kind and its values come from one trait: only null is left.
            _ => false,
        };
        if self.column.optional {
            self.present.push(there.into());
        }
        text_bytes
    }

    fn write(self, writer: &mut SerializedColumnWriter<'_>) -> Result<()> {
        let levels = self.column.optional.then_some(self.present.as_slice());
        match self.data {
            Data::Bools(data) => {
                writer.typed::<BoolType>().write_batch(&data, levels, None)?;
            }
            Data::Integers(data) => {
                writer.typed::<Int64Type>().write_batch(&data, levels, None)?;
            }
            Data::Floats(data) => {
                writer.typed::<DoubleType>().write_batch(&data, levels, None)?;
            }
            Data::Texts(bytes, ends) => {
                let bytes = ByteArray::from(bytes);
                let starts = std::iter::once(0).chain(ends.iter().copied());
                let texts: Vec<_> =
                    starts.zip(&ends).map(|(start, end)| bytes.slice(start, end - start)).collect();
                writer.typed::<ByteArrayType>().write_batch(&texts, levels, None)?;
            }
        }
        Ok(())
    }
}

fn schema(columns: &[Values]) -> Result<Arc<Type>> {
    let fields = columns.iter().map(|values| {
        let Column { name, kind, optional } = values.column;
        let (physical, logical) = match kind {
            Kind::Bool => (Physical::BOOLEAN, None),
            Kind::Integer => (Physical::INT64, None),
            Kind::Float => (Physical::DOUBLE, None),
            Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let repetition = if optional { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        let field = Type::primitive_type_builder(name, physical)
            .with_repetition(repetition)
            .with_logical_type(logical)
            .build()?;
        Ok(Arc::new(field))
    });
    let fields = fields.collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(Type::group_type_builder("schema").with_fields(fields).build()?))
}
