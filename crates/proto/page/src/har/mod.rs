//! HAR 1.2 ("HTTP Archive"), as browsers save it: read as a page, and written of a load.

mod bytes;
mod graph;
mod left;
mod names;
mod view;
mod write;

use std::borrow::Cow;

use fault::{Explain, Fault};
use thiserror::Error;

use crate::error::PageError;
use crate::page::Page;

pub(crate) use graph::of_path as kind_of_path;
pub use left::LeftOut;
pub use write::{About, Stalled, write};

/// Most bytes of a HAR file, unpacked too: 256 MiB. Those with bodies in them are large.
pub const MAX_TEXT: usize = 256 << 20;

/// A HAR text that makes no page.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum HarError {
    /// More than [`MAX_TEXT`].
    #[error("the HAR file has {0} bytes")]
    TooLong(usize),
    /// It is no JSON, is nested too deeply, or has not what a HAR file must have; says where.
    #[error("the HAR file cannot be read: {0}")]
    Json(String),
    /// More entries than a page may have objects.
    #[error("the HAR file has more than {} entries", Page::MAX_OBJECTS)]
    TooManyEntries,
    /// A gzip or ZIP file that cannot be unpacked; says why.
    #[error("the HAR file cannot be unpacked: {0}")]
    Packed(String),
    /// No entry is an answered request by HTTP.
    #[error(
        "the HAR file has no request by http or https with an answer and a valid date ({0} others)"
    )]
    Nothing(usize),
    /// What its entries say makes no page.
    #[error("the HAR file makes no page: {0}")]
    Page(#[from] PageError),
}

impl Explain for HarError {
    fn fault(&self) -> Fault {
        Fault::Caller
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        let remedy = match self {
            HarError::TooLong(_) => "save it without content",
            HarError::Json(_) => "save it again as HAR 1.2 with the browser's developer tools",
            HarError::TooManyEntries => "save the load of one page",
            HarError::Packed(_) => "unpack it, and name the HAR file that was in it",
            HarError::Nothing(_) => "save it after the page was loaded from a server",
            HarError::Page(error) => return error.remedy(),
        };
        Some(remedy.into())
    }
}

/// A page read from a HAR file.
#[derive(Debug, Clone, PartialEq)]
pub struct Read {
    /// The page that the entries make.
    pub page: Page,
    /// Entries that are no objects of it.
    pub left_out: LeftOut,
    /// Objects whose URL was too long for a page, and is cut.
    pub shortened: usize,
    /// Hosts beyond those that a page may have: they are one host of the page.
    pub merged: usize,
}

impl Read {
    /// What the reader of the page should know of it, a sentence each; none if all of the file is in it.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let mut notes = self.left_out.notes();
        let most = Page::MAX_PATH;
        match self.shortened {
            0 => {}
            1 => notes.push(format!("1 URL of more than {most} characters was shortened")),
            count => {
                notes.push(format!("{count} URLs of more than {most} characters were shortened"))
            }
        }
        if self.merged > 0 {
            notes.push(format!(
                "the {} hosts with the fewest requests are loaded from one host: a page has at most {}",
                self.merged,
                Page::MAX_HOSTS
            ));
        }
        notes
    }
}

/// A HAR file's bytes as JSON: unpacked if they are a gzip or a ZIP file (Playwright's `.har.zip`), in UTF-8 or
/// UTF-16. What is no JSON by a single value is mended: `NaN` becomes `null`, half a character U+FFFD.
///
/// # Errors
/// It cannot be unpacked, or is longer than [`MAX_TEXT`].
pub fn text(bytes: &[u8]) -> Result<Cow<'_, str>, HarError> {
    bytes::text(bytes)
}

/// Whether a JSON text has a `log`, as a HAR file does. What comes behind it is not looked at.
#[must_use]
pub fn is_har(text: &str) -> bool {
    view::has_log(text)
}

/// Reads the page of a HAR file, by its [`text`].
///
/// Of several pages (`pageref`) it is the one that began first, with the entries that name no page. It ends at
/// `onLoad`, if the file says when that was: entries that began later are left out. An entry whose
/// date cannot be read is left out too, and a negative or impossible size or time is unknown.
///
/// What tells of what: a redirect of where it leads, else what Chromium notes as `_initiator` if that began
/// before, else by order of time and kind: a font by the last style sheet that was there before, what a script
/// asks for by the last script, everything else by the document. How much of it had come, and how long the
/// computation took, follow from the times. Sizes are those of transfer where they are given, else of
/// content; of what came from a cache, those of content. The names of hosts are those of the URLs,
/// with the port before it if it is not the usual one (`port-8080.ip-127-0-0-1`); `http` and `https` are not
/// told apart, and of two entries with one URL the second gets a query more. A URL that is too long is cut,
/// and its request has the bytes in its head.
///
/// # Errors
/// Says what is wrong with the text, or why it makes no page.
pub fn read(name: &str, text: &str) -> Result<Read, HarError> {
    if text.len() > MAX_TEXT {
        return Err(HarError::TooLong(text.len()));
    }
    graph::page(name, view::log(text)?)
}
