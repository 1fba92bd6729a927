//! A data set's tables.

use std::path::Path;

use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::prelude::{ParquetReadOptions, SessionContext};
use export::{EndingRow, Kind, Row, Table};
use url::Url;

use crate::error::Error;

/// Makes the data set in `dir` known to `context`, as the tables `connections` and `endings`.
///
/// # Errors
/// [`Error::Query`] if the folder cannot be listed.
pub async fn register(context: &SessionContext, dir: &Path) -> Result<(), Error> {
    table::<Row>(context, dir).await?;
    table::<EndingRow>(context, dir).await
}

async fn table<R: Table>(context: &SessionContext, dir: &Path) -> Result<(), Error> {
    // Given rather than read from a file: there may be none, or one that an older program wrote with
    // fewer columns.
    let schema = schema::<R>();
    let partitions = ["date", "hour"].map(|name| (name.to_owned(), DataType::Utf8));
    let options =
        ParquetReadOptions::default().schema(&schema).table_partition_cols(partitions.into());
    // As a URL, for a path would be searched for wildcards; an absolute one, for the executors of a
    // cluster may run elsewhere.
    let folder = std::path::absolute(dir.join(R::NAME)).map_err(Error::Io)?;
    let url = Url::from_directory_path(folder).map_err(|()| Error::NoDataSet(dir.to_owned()))?;
    context.register_parquet(R::NAME, url.as_str(), options).await.map_err(Error::query)
}

fn schema<R: Table>() -> Schema {
    let fields = R::COLUMNS.iter().map(|column| {
        let kind = match column.kind {
            Kind::Bool => DataType::Boolean,
            Kind::Integer => DataType::Int64,
            Kind::Float => DataType::Float64,
            Kind::Text => DataType::Utf8,
        };
        // An older file may lack any column.
        Field::new(column.name, kind, true)
    });
    Schema::new(fields.collect::<Vec<_>>())
}
