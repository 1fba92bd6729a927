//! Answers on paper.

use std::io::Write;

use datafusion::arrow::csv;
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
            each(stream, |batch| writer.write(batch).map_err(Error::print)).await?;
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
    let text = table.to_string();
    let mut lines = String::with_capacity(text.len() + 1);
    // Host names come from strangers, who might send what a terminal obeys.
    for character in text.chars() {
        if character.is_control() && character != '\n' {
            lines.extend(character.escape_default());
        } else {
            lines.push(character);
        }
    }
    lines.push('\n');
    out.write_all(lines.as_bytes()).map_err(Error::Io)
}
