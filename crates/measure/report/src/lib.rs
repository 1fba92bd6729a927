//! A report: one HTML file that opens offline, with the answer first and the evidence after it.
//!
//! A study fills a [`Report`] with [`Section`]s of [`Block`]s; [`render`] makes the HTML of it,
//! [`Report::write_to`] puts that in a file (whole or not at all), and [`Report::to_text`] and
//! [`Table::to_text`] print the same on a terminal.
//!
//! - Nothing is fetched: style, script and the plotting library (plotly.js, out of the `plotly`
//!   crate) are in the file, and a content security policy in it forbids the browser every load.
//! - Every [`Plot`] has a sentence that says what it shows, one that says what that means for the reader, and a
//!   table of its values. All are derived or demanded when the plot is made, so a screen reader is never left
//!   with a picture, and nobody with figures alone. A [`KeyFigure`] says what it means, too, and a [`Caution`]
//!   whether the answer would change.
//! - The same input gives the same bytes: there is no clock, no random identifier and no hash order.
//! - Every text is data: it is escaped for HTML, for the plotting library's markup and for the
//!   terminal, since server names and host names come from strangers.
#![forbid(unsafe_code)]

mod caution;
mod clean;
mod flame;
mod html;
mod ids;
mod inline;
mod markdown;
mod model;
mod number;
mod plot;
mod table;
mod text;
mod write;

pub use caution::{Caution, Effect};
pub use flame::{Flame, FlameFrame};
pub use html::render;
pub use inline::{Inline, Span};
pub use markdown::plain_markdown;
pub use model::{Block, Card, Code, Fact, KeyFigure, Note, NoteKind, Report, Section};
pub use number::decimals;
pub use plot::{
    Axis, Bar, Bin, Chart, Distribution, Interval, Mark, Origin, Plot, PlotError, Point, Scale,
    Series, Uncertainty,
};
pub use table::{Cell, Column, Row, Status, Table};
pub use write::WriteError;

/// The size that an empty report may have at most, in bytes: nearly all of it is plotly.js 3.0, packed
/// (4.65 MB unpacked). A test holds it.
pub const SIZE_BUDGET: usize = 2_000_000;
