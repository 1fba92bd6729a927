//! Answers on paper.

use std::io::Write;

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::csv;
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::json::WriterBuilder;
use datafusion::arrow::json::writer::LineDelimited;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::arrow::util::pretty::pretty_format_batches_with_schema;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::prelude::DataFrame;
use futures_util::StreamExt;

use crate::Format;
use crate::error::Error;

/// Answers a plan and prints what it gives.
pub(crate) async fn print(
    plan: DataFrame,
    format: Format,
    out: &mut (dyn Write + Send),
) -> Result<(), Error> {
    let stream = plan.execute_stream().await.map_err(Error::query)?;
    match format {
        Format::Table => table(stream, out).await?,
        Format::Json => {
            let builder = WriterBuilder::new().with_explicit_nulls(true);
            let mut writer = builder.build::<_, LineDelimited>(&mut *out);
            each(stream, |batch| writer.write(batch).map_err(Error::print)).await?;
            writer.finish().map_err(Error::print)?;
        }
        Format::Csv => {
            // The writer has its header from the first batch: an answer without rows has one too.
            let empty = RecordBatch::new_empty(stream.schema());
            let mut writer = csv::WriterBuilder::new().with_header(true).build(&mut *out);
            writer.write(&empty).map_err(Error::print)?;
            each(stream, |batch| {
                let batch = as_cells(batch).map_err(Error::print)?;
                writer.write(&batch).map_err(Error::print)
            })
            .await?;
        }
    }
    out.flush().map_err(Error::Io)
}

async fn each(
    mut stream: SendableRecordBatchStream,
    mut take: impl FnMut(&RecordBatch) -> Result<(), Error>,
) -> Result<(), Error> {
    while let Some(batch) = stream.next().await {
        take(&batch.map_err(Error::query)?)?;
    }
    Ok(())
}

/// The rows with texts as a spreadsheet's cells.
fn as_cells(batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let (mut fields, mut columns) = (Vec::new(), Vec::<ArrayRef>::new());
    for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
        if is_text(field.data_type()) {
            let texts = cast(column, &DataType::Utf8)?;
            let texts = texts.as_string::<i32>().iter().map(|text| text.map(fault::cell));
            columns.push(Arc::new(texts.collect::<StringArray>()));
            fields.push(Arc::new(Field::new(field.name(), DataType::Utf8, true)));
        } else {
            columns.push(Arc::clone(column));
            fields.push(Arc::clone(field));
        }
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
}

fn is_text(kind: &DataType) -> bool {
    match kind {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Dictionary(_, value) => is_text(value),
        _ => false,
    }
}

async fn table(
    stream: SendableRecordBatchStream,
    out: &mut (dyn Write + Send),
) -> Result<(), Error> {
    let schema = stream.schema();
    let mut batches = Vec::new();
    each(stream, |batch| {
        batches.push(batch.clone());
        Ok(())
    })
    .await?;
    let table = pretty_format_batches_with_schema(schema, &batches).map_err(Error::print)?;
    writeln!(out, "{table}").map_err(Error::Io)
}
