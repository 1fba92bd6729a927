//! Rows and files of rows.

mod data_set;
mod flatten;
mod links;
