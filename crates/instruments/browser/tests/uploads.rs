//! How long requests' bodies stall on the server's windows, by every protocol that has some.

use std::sync::Arc;

use browser::{Bed, Before, Seen, Setting};
use lab_test::TestResult;
use lab_test::net::sleeping;
use linkmodel::Path;
use page::{HostId, Kind, Object, ObjectId, Page};
use units::Bytes;
use web::{Protocol, Settings, Stalled};

use crate::{RTT, setting};

const KB: u32 = 1 << 10;
const UPLOAD: Bytes = Bytes(1_000_000);

/// Uploads through windows of so many bytes, a round trip away. Twice: the first time SPDY and HTTP/2 begin with 64 KB,
/// whatever the server announces.
fn uploaded(protocol: Protocol, window: u32) -> TestResult<Seen> {
    let mut object = Object::new(HostId(0), "/", Kind::Document, Bytes(1000));
    object.upload = Some(UPLOAD);
    let page = Page::new("upload", vec!["www.page.test".to_owned()], vec![object])?;
    let settings = Settings::default().with_windows(window);
    let setting = Setting { settings, ..setting(protocol) };
    let mut bed = Bed::new(sleeping(15), 1, 1)?;
    let lane = bed.lanes().first_mut().ok_or("no lane")?;
    lane.serve(&page, &setting)?;
    lane.set_path(&Path::symmetric(RTT.into()))?;
    let visits = vec![Before::Forget, Before::Keep];
    let seen = lane.visit(&page, &setting, visits, Arc::default())?.join()??;
    for seen in &seen {
        let whole = seen.loaded.objects.first().map(|object| object.uploaded);
        assert_eq!(whole, Some(UPLOAD), "{protocol}: {:?}", seen.loaded.objects);
        let objects: Vec<ObjectId> = seen.uploads.iter().map(|upload| upload.object).collect();
        assert_eq!(objects, [ObjectId(0)], "{protocol}");
    }
    Ok(seen.into_iter().nth(1).ok_or("no second load")?)
}

/// A window of 64 KB lets so much go in a round trip, of the megabyte's fifteen: in most of them it was shut. One of
/// 10 MB never is, and TCP's alone is none.
pub fn uploads_stall_by_windows_that_are_too_small_alone() -> TestResult {
    for protocol in Protocol::ALL.iter().copied() {
        let seen = uploaded(protocol, 10_000 * KB)?;
        assert_eq!(seen.uploads[0].stalled, Stalled::default(), "{protocol}");
        if protocol.is_multiplexed() {
            let seen = uploaded(protocol, 64 * KB)?;
            let stalled = &seen.uploads[0].stalled;
            println!("{protocol}: {} times, {:?}", stalled.count, stalled.time);
            assert!(stalled.count >= 5, "{protocol}: {stalled:?}");
            let is_ordered = |pair: &[web::Stall]| pair[0].to <= pair[1].from;
            assert!(stalled.intervals.iter().all(|stall| stall.from < stall.to), "{stalled:?}");
            assert!(stalled.intervals.windows(2).all(is_ordered), "{protocol}: {stalled:?}");
        }
    }
    Ok(())
}
