//! Server push and hints over a link of 100 ms: what is asked for, what is pushed, what in vain.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use browser::{Bed, Before, Seen, ServerPush, Setting};
use lab_test::TestResult;
use lab_test::net::sleeping;
use linkmodel::Path;
use page::{Caching, HostId, Kind, Object, ObjectId, Outcome, Page, Share};
use units::{Bytes, Delay};
use web::Protocol;

/// What the server may push: the style sheet and the script of the document's own host.
const PUSHED: usize = 2;
const STYLE: usize = 1;

/// A document, and what it refers to in its middle, on its own host and on another.
fn page() -> TestResult<Page> {
    let hosts = vec!["www.page.test".to_owned(), "img.page.test".to_owned()];
    let fresh_for = Duration::from_secs(3600).into();
    let half = Share::new(0.5).ok_or("no share")?;
    let of = |host, path: &str, kind, bytes| {
        let object = Object::new(HostId(host), path, kind, Bytes(bytes));
        let caching = Caching::Stored { fresh_for, validator: true };
        Object { caching, ..object.found_by(ObjectId(0), half, Delay::ZERO) }
    };
    let objects = vec![
        Object::new(HostId(0), "/", Kind::Document, Bytes(20_000)),
        of(0, "/a.css", Kind::Style, 8_000),
        of(0, "/a.js", Kind::Script, 9_000),
        of(0, "/a.png", Kind::Image, 5_000),
        of(1, "/b.css", Kind::Style, 4_000),
    ];
    Ok(Page::new("push", hosts, objects)?)
}

/// A first visit and a repeated one on open connections.
fn visits(page: &Page, protocol: Protocol, server_push: ServerPush) -> TestResult<[Seen; 2]> {
    let setting = Setting { server_push, ..crate::setting(protocol) };
    let mut bed = Bed::new(sleeping(14), 1, page.hosts().len())?;
    let lane = bed.lanes().first_mut().ok_or("no lane")?;
    lane.serve(page, &setting)?;
    let rate = "5mbit/ip".parse::<units::Rate>().map_err(|error| error.to_string())?;
    lane.set_path(&Path::symmetric(Duration::from_millis(100).into()).with_rate(rate))?;
    let stop = Arc::new(AtomicBool::new(false));
    let seen = lane.visit(page, &setting, vec![Before::Forget, Before::Keep], stop)?.join()??;
    <[Seen; 2]>::try_from(seen).map_err(|seen| format!("{} loads", seen.len()).into())
}

/// Requests that the server saw.
fn asked(seen: &Seen) -> usize {
    seen.streams.iter().filter(|stream| !stream.pushed).count()
}

/// With push the requests are fewer by what is pushed; a repeated visit has it and cancels it.
pub fn what_is_pushed_is_not_asked_for() -> TestResult {
    let page = page()?;
    let all = page.objects().len();
    for protocol in [Protocol::Spdy3, Protocol::Spdy31, Protocol::Http2] {
        let [none, _] = visits(&page, protocol, ServerPush::None)?;
        assert_eq!((asked(&none), none.above_tls.pushed), (all, 0), "{protocol}");
        let [first, kept] = visits(&page, protocol, ServerPush::Push)?;
        assert!(first.loaded.is_complete(), "{protocol}: {:#?}", first.loaded.objects);
        assert_eq!(first.loaded.requests() as usize, all - PUSHED, "{protocol}");
        assert_eq!(asked(&first), all - PUSHED, "{protocol}");
        assert_eq!(first.loaded.bytes(), page.bytes(), "{protocol}");
        let pushed = first.loaded.pushed().count();
        assert_eq!((pushed, first.above_tls.pushed), (PUSHED, PUSHED as u64), "{protocol}");
        assert_eq!(first.above_tls.pushed_bytes, Bytes(17_000), "{protocol}");
        assert_eq!(first.pushed_in_vain(), Bytes(0), "{protocol}");
        let style = first.loaded.objects[STYLE];
        assert_eq!((style.requests, style.status), (0, Some(200)), "{protocol}");
        assert!(style.pushed <= style.reached, "{protocol}: {style:?}");

        assert!(kept.loaded.is_complete(), "{protocol}: {:#?}", kept.loaded.objects);
        assert_eq!((kept.loaded.requests(), kept.loaded.pushed().count()), (1, 0), "{protocol}");
        assert_eq!(kept.loaded.objects[STYLE].outcome, Outcome::Fresh, "{protocol}");
        assert_eq!(kept.loaded.bytes(), Bytes(20_000), "{protocol}");
        assert_eq!(kept.above_tls.pushed, PUSHED as u64, "{protocol}");
        // All of what the server gave away by then was for nothing.
        assert_eq!(kept.pushed_in_vain(), kept.above_tls.pushed_bytes, "{protocol}");
        assert!(kept.pushed_in_vain() > Bytes(0), "{protocol}");
    }
    Ok(())
}

/// By every protocol a hint lets the browser ask before it has read the document, and not once more.
pub fn what_is_hinted_is_asked_for_once() -> TestResult {
    let page = page()?;
    let all = page.objects().len();
    for protocol in Protocol::ALL.iter().copied() {
        let [first, kept] = visits(&page, protocol, ServerPush::Hint)?;
        assert!(first.loaded.is_complete(), "{protocol}: {:#?}", first.loaded.objects);
        assert_eq!((first.loaded.requests() as usize, asked(&first)), (all, all), "{protocol}");
        assert_eq!(first.above_tls.pushed, 0, "{protocol}");
        let hinted = first.loaded.objects.iter().filter(|object| object.hinted.is_some());
        assert_eq!(hinted.count(), PUSHED, "{protocol}");
        let style = first.loaded.objects[STYLE];
        assert_eq!(style.queued, style.hinted, "{protocol}");
        assert!(style.hinted <= style.reached, "{protocol}: {style:?}");
        // What the cache has is not asked for because of a hint either.
        assert_eq!(kept.loaded.requests(), 1, "{protocol}");
        assert_eq!(kept.loaded.objects[STYLE].hinted, None, "{protocol}");
    }
    Ok(())
}
