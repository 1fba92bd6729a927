//! When the server's TCP stalls, and what the kernel says of it.

use std::sync::Arc;
use std::time::Duration;

use browser::{Bed, Before, Seen, Setting, Tcp};
use lab_test::TestResult;
use lab_test::net::sleeping;
use linkmodel::Path;
use page::{HostId, Kind, Object, Page};
use units::{Bytes, CountedBytes, Rate};
use web::{Protocol, TcpLimit};

use crate::{RTT, setting};

/// A document of a megabyte over a link: what was seen, and the time stalled by each limit.
fn loaded(path: &Path, buffer: Option<usize>) -> TestResult<(Seen, [Duration; 3])> {
    let object = Object::new(HostId(0), "/", Kind::Document, Bytes(1_000_000));
    let page = Page::new("large", vec!["www.page.test".to_owned()], vec![object])?;
    let setting = Setting { tcp: Tcp { buffer }, ..setting(Protocol::Http1) };
    let mut bed = Bed::new(sleeping(16), 1, 1)?;
    let lane = bed.lanes().first_mut().ok_or("no lane")?;
    lane.serve(&page, &setting)?;
    lane.set_path(path)?;
    let seen = lane.visit(&page, &setting, vec![Before::Forget], Arc::default())?.join()??;
    let seen = seen.into_iter().next().ok_or("no load")?;
    let stalls: Vec<_> = seen.tcp_stalls.iter().flatten().flat_map(|one| &one.stalls).collect();
    let is_ordered = |pair: &[&web::TcpStall]| pair[0].to <= pair[1].from;
    assert!(stalls.windows(2).all(is_ordered), "{stalls:?}");
    let by = [TcpLimit::ReceiveWindow, TcpLimit::CongestionWindow, TcpLimit::SendBuffer];
    let times = by.map(|limit| {
        let own = stalls.iter().filter(|stall| stall.limit == limit);
        own.map(|stall| stall.to.saturating_since(stall.from)).sum()
    });
    Ok((seen, times))
}

/// A megabyte through buffers of 64 KB stands still in most of its sixteen round trips or more, and the kernel says so
/// too; where the link is slow the same buffers keep it busy.
pub fn tcp_stalls_by_buffers_where_the_link_would_carry_more() -> TestResult {
    let small = Some(32 * 1024);
    let (seen, [receive, _, send]) = loaded(&Path::symmetric(RTT.into()), small)?;
    let kernel = seen.connections.first().and_then(|one| one.tcp).ok_or("no TCP_INFO")?;
    println!("{receive:?} and {send:?}; the kernel: {kernel:?}");
    assert!(receive + send >= 10 * RTT, "{receive:?} + {send:?}");
    assert!(kernel.receive_window_limited + kernel.send_buffer_limited >= 10 * RTT, "{kernel:?}");
    let rate = Rate::new(2_000_000, CountedBytes::Ethernet).ok_or("no rate")?;
    let slow = Path::symmetric(RTT.into()).with_rate(rate);
    let (seen, times) = loaded(&slow, small)?;
    let stalled: Duration = times.iter().sum();
    println!("{times:?} of {:?}", seen.load_time());
    assert!(stalled * 4 < seen.load_time().duration(), "{times:?} of {:?}", seen.load_time());
    Ok(())
}
