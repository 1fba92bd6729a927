//! The beginnings of capture files, by which a data set knows them again.

use std::path::Path;

use capture::{Event, Source};
use export::Beginning;

/// The beginning of a capture file; `None` of a pipe, which can be read only once, and of a file that is no
/// capture.
#[must_use]
pub fn beginning(file: &Path) -> Option<Beginning> {
    if !std::fs::metadata(file).is_ok_and(|about| about.is_file()) {
        return None;
    }
    let name = file.file_name().unwrap_or(file.as_os_str());
    let mut beginning = Beginning::new(name.to_string_lossy());
    let mut source = Source::open(file).ok()?;
    // What is behind a damaged frame is reported when it is read.
    while let Ok(Some(event)) = source.next() {
        if let Event::Frame(frame) = event
            && !beginning.add(frame.at.as_nanos(), frame.original_len as u64, frame.bytes)
        {
            break;
        }
    }
    Some(beginning)
}
