//! SQL over a data set that [`export::DataSet`] wrote: DataFusion in process.
//!
//! [`run`] answers one of the [`QUESTIONS`], or any other query over the tables `connections` and
//! `endings`. Their columns are the fields of [`export::Row`] and [`export::EndingRow`], and `date` and
//! `hour`, by which the files are partitioned: a condition on these reads only the files that it
//! needs. The same SQL runs on a cluster of Ballista once [`register`] has told it the tables.
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

mod error;
mod print;
mod questions;
mod tables;

use std::io::{self, Write};
use std::path::Path;
use std::str::FromStr;

use datafusion::execution::context::SQLOptions;
use datafusion::prelude::{DataFrame, SessionContext};

pub use error::Error;
pub use questions::{QUESTIONS, Question};
pub use tables::register;

/// Bytes of stack for planning: plans are trees, and walked by recursion.
const STACK: usize = 16 << 20;

/// How answers are printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Format {
    /// A table for people. All rows are held in memory.
    #[default]
    Table,
    /// A JSON object a line.
    Json,
    /// Comma-separated values with a header (RFC 4180); no text is a spreadsheet's formula.
    Csv,
}

impl FromStr for Format {
    type Err = Error;

    /// From `table`, `json` or `csv`.
    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "table" => Ok(Format::Table),
            "json" => Ok(Format::Json),
            "csv" => Ok(Format::Csv),
            other => Err(Error::Format(other.to_owned())),
        }
    }
}

/// Answers `question`, the name of a [`Question`] or SQL, from the data set in `dir`, and prints the
/// answer. Texts are printed as they are: `out` must keep what steers a terminal from it. A closed pipe ends it quietly. Takes all processors; must not be called from an
/// asynchronous task.
///
/// # Errors
/// [`Error::NoDataSet`], [`Error::Rows`], [`Error::NoQuestion`] and [`Error::Query`] are the caller's; the others the
/// system's.
pub fn run(
    dir: &Path,
    question: &str,
    format: Format,
    out: &mut (dyn Write + Send),
) -> Result<(), Error> {
    let sql = questions::sql(question)?;
    if !dir.join("connections").is_dir() {
        return Err(Error::NoDataSet(dir.to_owned()));
    }
    export::check_data_set(dir).map_err(Error::Rows)?;
    let answer = move || {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .thread_stack_size(STACK)
            .enable_all()
            .build()
            .map_err(Error::Io)?;
        runtime.block_on(async {
            let context = SessionContext::new();
            register(&context, dir).await?;
            print::print(plan(&context, sql).await?, format, out).await
        })
    };
    let result = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK);
        let thread = thread.spawn_scoped(scope, answer).map_err(Error::Io)?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    match result {
        Err(Error::Io(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// The plan for a query that only reads.
///
/// # Errors
/// [`Error::Query`]: the query is wrong, or does more than to read.
pub async fn plan(context: &SessionContext, sql: &str) -> Result<DataFrame, Error> {
    let reading = SQLOptions::new().with_allow_ddl(false).with_allow_dml(false);
    let reading = reading.with_allow_statements(false);
    context.sql_with_options(sql, reading).await.map_err(Error::query)
}
