//! A page's objects as a server answers for them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::header::{ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_ORIGIN, LINK, ORIGIN};
use http::{HeaderName, HeaderValue};
use page::content::Content;
use page::{Ahead, Caching, Kind, Object, Page, Policy};
use web::{Answer, Promise, RequestHead, Site};

use crate::setting::ServerPush;

/// What a server has at a host and path.
#[derive(Debug, Clone)]
struct Resource {
    bytes: u64,
    /// What its body begins with; the rest means nothing.
    start: Bytes,
    content_type: &'static str,
    caching: Caching,
    etag: HeaderValue,
    /// Whether every origin may read it. Browsers ask; our own loader does not.
    shared: bool,
    /// Fields `link` of its response (RFC 8288).
    links: Vec<(HeaderName, HeaderValue)>,
    /// What is pushed with it.
    promises: Vec<Promise>,
}

impl Resource {
    fn of(number: usize, object: &Object) -> Option<Resource> {
        Some(Resource {
            bytes: object.body.count(),
            start: Bytes::new(),
            content_type: content_type(object.kind),
            caching: object.caching,
            etag: HeaderValue::from_str(&format!("\"{number}\"")).ok()?,
            shared: false,
            links: Vec::new(),
            promises: Vec::new(),
        })
    }

    /// The same, which says what will be needed with it.
    fn with_ahead(mut self, page: &Page, form: ServerPush) -> Resource {
        let (policy, ahead) = (Policy::chromium(), Ahead::default().of(page, page.root()));
        let ahead = ahead.into_iter().filter_map(|id| page.object(id));
        match form {
            ServerPush::None => {}
            ServerPush::Hint => {
                let link = |object: &Object| HeaderValue::from_str(&page::preload(object)).ok();
                self.links = ahead.filter_map(|object| Some((LINK, link(object)?))).collect();
            }
            ServerPush::Push => {
                let promise = |object: &Object| Promise {
                    path: object.path.clone(),
                    urgency: policy.treatment(object).urgency.value(),
                };
                self.promises = ahead.map(promise).collect();
            }
        }
        self
    }
}

/// Answers for every host of a page, whichever was put in last. Clones are the same site.
#[derive(Debug, Clone, Default)]
pub struct PageSite(Arc<Mutex<HashMap<String, Resource>>>);

impl PageSite {
    /// Answers for this page from now on, and for no other. Bodies have the page's lengths, and mean
    /// nothing. With the document it says what will be needed, in this form.
    pub fn serve(&self, page: &Page, form: ServerPush) {
        let root = page.root().index();
        let resources = page.objects().iter().enumerate().filter_map(|(number, object)| {
            let url = format!("{}{}", page.host(object.host)?, object.path);
            let resource = Resource::of(number, object)?;
            let is_root = number == root;
            Some((url, if is_root { resource.with_ahead(page, form) } else { resource }))
        });
        self.put(resources.collect());
    }

    /// The same with bodies from which a browser finds the page's objects.
    pub fn serve_content(&self, page: &Page, content: &Content) {
        let served = content.urls.iter().zip(&content.bodies).zip(page.objects());
        let resources = served.enumerate().filter_map(|(number, ((url, body), object))| {
            let mut resource = Resource::of(number, object)?;
            resource.start = Bytes::from(body.start.clone());
            resource.shared = true;
            if object.kind == Kind::Image {
                resource.content_type = "image/gif";
            }
            Some((host_and_path(url)?, resource))
        });
        self.put(resources.collect());
    }

    fn put(&self, resources: HashMap<String, Resource>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = resources;
    }
}

/// `www.page.test/a` of `https://www.page.test:10000/a`.
fn host_and_path(url: &str) -> Option<String> {
    let (authority, path) = url.split_once("//")?.1.split_once('/')?;
    let host = authority.split(':').next()?;
    Some(format!("{host}/{path}"))
}

impl Site for PageSite {
    fn answer(&self, request: &RequestHead<'_>) -> Answer {
        let host = request.authority().split(':').next().unwrap_or_default();
        let url = format!("{host}{}", request.path());
        let resources = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(resource) = resources.get(&url) else { return Answer::not_found() };
        let mut answer = Answer::new(resource.bytes);
        answer.content_type = Some(HeaderValue::from_static(resource.content_type));
        answer.start = resource.start.clone();
        answer.headers = resource.links.clone();
        answer.promises = resource.promises.clone();
        // Fetch §3.2: fonts and what scripts read.
        if let Some(origin) = request.headers().get(ORIGIN).filter(|_| resource.shared) {
            answer.headers.extend([
                (ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone()),
                (ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true")),
            ]);
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_are_found_by_host_and_path() {
        let found = host_and_path("https://www.page.test:10000/a/b?c=//d");
        assert_eq!(found.as_deref(), Some("www.page.test/a/b?c=//d"));
        assert_eq!(host_and_path("http://page.test/").as_deref(), Some("page.test/"));
        assert_eq!(host_and_path("data:,x"), None);
    }
}
