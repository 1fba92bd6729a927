//! Whether data in SYN and SYN+ACK survive a path: one machine of one's own answers, another asks it, by
//! port and by size, and beside it by TCP without such data.
//!
//! A **question** is the first bytes of a connection: a mark, how long it is in all, how many bytes are
//! wanted in the SYN+ACK, and filler. The **answer** is so many bytes of filler, then what the server saw
//! of the SYN. Nothing else is ever said, and a server answers nothing that is not a question.

mod ask;
mod merge;
mod question;
mod record;
mod serve;

pub use ask::{Survey, SurveyOptions};
pub use merge::{Group, merge};
pub use question::{LARGEST, LEAST};
pub use record::{Fate, RECORD_SCHEMA, Record, Way};
pub use serve::{SurveyServeOptions, serve_survey};
