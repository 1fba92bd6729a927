//! The `date` header field (RFC 9110 §6.6.1), made once per second.

use std::cell::RefCell;
use std::time::{SystemTime, UNIX_EPOCH};

use http::HeaderValue;

thread_local! {
    static LAST: RefCell<Option<(u64, HeaderValue)>> = const { RefCell::new(None) };
}

/// The value now.
pub(super) fn now() -> Option<HeaderValue> {
    let now = SystemTime::now();
    let second = now.duration_since(UNIX_EPOCH).ok()?.as_secs();
    LAST.with_borrow_mut(|last| {
        if last.as_ref().is_none_or(|(made, _)| *made != second) {
            let value = HeaderValue::try_from(httpdate::fmt_http_date(now)).ok()?;
            *last = Some((second, value));
        }
        last.as_ref().map(|(_, value)| value.clone())
    })
}
