//! Waiting, in the lab's time.

use std::time::{Duration, Instant};

use crate::Error;

/// How often is looked.
const LOOK: Duration = Duration::from_millis(10);

/// Waits until something is there.
pub(crate) fn until<T>(
    what: &str,
    limit: Duration,
    mut look: impl FnMut() -> Result<Option<T>, Error>,
) -> Result<T, Error> {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(found) = look()? {
            return Ok(found);
        }
        if Instant::now() >= deadline {
            return Err(vain(what, limit));
        }
        std::thread::sleep(LOOK);
    }
}

pub(crate) fn vain(what: &str, limit: Duration) -> Error {
    Error::Vain { what: what.to_owned(), seconds: limit.as_secs(), last: Vec::new() }
}
