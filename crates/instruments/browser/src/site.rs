//! A page's objects as a server answers for them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use http::HeaderValue;
use page::{Caching, Kind, Page};
use web::{Answer, RequestHead, Site};

/// What a server has at a host and path.
#[derive(Debug, Clone)]
struct Resource {
    bytes: u64,
    kind: Kind,
    caching: Caching,
    etag: HeaderValue,
}

/// Answers for every host of a page, whichever was put in last. Clones are the same site.
#[derive(Debug, Clone, Default)]
pub struct PageSite(Arc<Mutex<HashMap<String, Resource>>>);

impl PageSite {
    /// Answers for this page from now on, and for no other.
    pub fn serve(&self, page: &Page) {
        let resources = page.objects().iter().enumerate().filter_map(|(number, object)| {
            let url = format!("{}{}", page.host(object.host)?, object.path);
            let etag = HeaderValue::from_str(&format!("\"{number}\"")).ok()?;
            let (bytes, kind, caching) = (object.body.count(), object.kind, object.caching);
            Some((url, Resource { bytes, kind, caching, etag }))
        });
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = resources.collect();
    }
}

impl Site for PageSite {
    fn answer(&self, request: &RequestHead<'_>) -> Answer {
        let host = request.authority().split(':').next().unwrap_or_default();
        let url = format!("{host}{}", request.path());
        let resources = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(resource) = resources.get(&url) else { return Answer::not_found() };
        let mut answer = Answer::new(resource.bytes);
        answer.content_type = Some(HeaderValue::from_static(content_type(resource.kind)));
        answer.cache_control = HeaderValue::from_str(&resource.caching.cache_control()).ok();
        if matches!(resource.caching, Caching::Stored { validator: true, .. }) {
            answer.etag = Some(resource.etag.clone());
        }
        answer
    }
}

const fn content_type(kind: Kind) -> &'static str {
    match kind {
        Kind::Document => "text/html",
        Kind::Style => "text/css",
        Kind::Script => "text/javascript",
        Kind::Image => "image/jpeg",
        Kind::Font => "font/woff2",
        Kind::Fetch => "application/json",
        Kind::Other => "application/octet-stream",
    }
}
