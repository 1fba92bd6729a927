//! What leaves of a connection's record: flat rows, as JSON lines and as Parquet.
//!
//! [`Flattener`] makes a [`Row`] of an [`tracker::Connection`] and an [`EndingRow`] of an
//! [`tracker::Ending`]; [`Anonymiser::hide`] hides addresses and names before. [`JsonLines`] writes them
//! a line each, [`DataSet`] as Parquet files partitioned by the hour. [`Records`] reads both back. The
//! files under `queries/` ask the standard questions of such a data set, in SQL.
//!
//! # Schema
//! The fields of [`Row`] and [`EndingRow`] are the schema: the same names in JSON and in Parquet.
//! Its version is [`SCHEMA`]: in each line of JSON as `schema`, in each Parquet file as
//! [`SCHEMA_KEY`] in the file's metadata. A new column leaves the version as it is; one that goes or
//! changes its meaning raises it.
//!
//! Times are nanoseconds since the Unix epoch, by the capture's clock; durations are nanoseconds. In
//! JSON a list is an array, in Parquet one text with commas between the entries: a comma or a percent
//! sign inside of an entry is written `%2C` or `%25`. What is not known is `null`.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

mod address;
mod anonymise;
mod captures;
mod columns;
mod error;
mod flatten;
mod json;
mod parquet;
mod read;
mod row;

pub use self::parquet::{DataSet, Options, SCHEMA_KEY, Written};
pub use address::{Network, Prefixes};
pub use anonymise::{Addresses, Anonymiser, Key, Names};
pub use captures::Beginning;
pub use columns::{Column, Kind, Table, Value};
pub use error::Error;
pub use flatten::Flattener;
pub use json::{JsonLines, Reader, WholeLines};
pub use read::{RangeError, ReadError, Record, Records, TimeRange, check_data_set, holds_records};
pub use row::{EndingRow, Row, SCHEMA};
