//! When TCP and QUIC stall, the server's and an uploading client's, and what the kernel says of it.

use std::sync::Arc;
use std::time::Duration;

use browser::{Bed, Before, Carrier, Seen, Setting, Tcp};
use lab_test::TestResult;
use lab_test::net::sleeping;
use linkmodel::Path;
use page::{HostId, Kind, Object, Page};
use units::{Bytes, CountedBytes, Rate};
use web::{Embedding, Protocol, TcpLimit, TcpStall};

use crate::{RTT, setting};

/// Buffers that hold less than a round trip of the tests' links would carry.
const SMALL: Option<usize> = Some(32 * 1024);
/// Bytes that take sixteen of them, and QUIC or TCP seven round trips from its initial window on.
const LARGE: Bytes = Bytes(1_000_000);
/// Bytes that take two seconds over a slow link.
const SLOW: Bytes = Bytes(500_000);

/// The time stalled by the receive window, the congestion window and the send buffer.
type Times = [Duration; 3];

/// One load of a page.
fn load(page: &Page, path: &Path, setting: &Setting) -> TestResult<Seen> {
    let mut bed = Bed::new(sleeping(16), 1, 1)?;
    let lane = bed.lanes().first_mut().ok_or("no lane")?;
    lane.serve(page, setting)?;
    lane.set_path(path)?;
    let seen = lane.visit(page, setting, vec![Before::Forget], Arc::default())?.join()??;
    let seen = seen.into_iter().next().ok_or("no load")?;
    assert!(seen.loaded.is_complete(), "{:?}", seen.loaded.objects);
    Ok(seen)
}

/// The times of stalls in their order.
fn times(stalls: &[TcpStall]) -> Times {
    let is_ordered = |pair: &[TcpStall]| pair[0].to <= pair[1].from;
    assert!(stalls.iter().all(|stall| stall.from < stall.to), "{stalls:?}");
    assert!(stalls.windows(2).all(is_ordered), "{stalls:?}");
    let by = [TcpLimit::ReceiveWindow, TcpLimit::CongestionWindow, TcpLimit::SendBuffer];
    by.map(|limit| {
        let own = stalls.iter().filter(|stall| stall.limit == limit);
        own.map(|stall| stall.to.saturating_since(stall.from)).sum()
    })
}

/// A document over a link: what was seen, and for how long the server stalled.
fn loaded(bytes: Bytes, path: &Path, setting: &Setting) -> TestResult<(Seen, Times)> {
    let object = Object::new(HostId(0), "/", Kind::Document, bytes);
    let page = Page::new("large", vec!["www.page.test".to_owned()], vec![object])?;
    let seen = load(&page, path, setting)?;
    // One connection that says something.
    let [one] = seen.tcp_stalls.as_deref().unwrap_or_default() else {
        return Err(format!("{}: {:?}", setting.protocol, seen.tcp_stalls).into());
    };
    let times = times(&one.stalls);
    println!("{} of {bytes}: {times:?} of {:?}", setting.protocol, seen.load_time());
    // Nothing was uploaded.
    assert!(seen.uploads.is_empty(), "{:?}", seen.uploads);
    Ok((seen, times))
}

/// The same of a request's body, and the client.
fn uploaded(bytes: Bytes, path: &Path, setting: &Setting) -> TestResult<(Seen, Times)> {
    let mut object = Object::new(HostId(0), "/", Kind::Document, Bytes(1000));
    object.upload = Some(bytes);
    let page = Page::new("upload", vec!["www.page.test".to_owned()], vec![object])?;
    let seen = load(&page, path, setting)?;
    let [one] = seen.uploads.as_slice() else { return Err("not one upload".into()) };
    let stalls = one.tcp_stalls.as_deref().ok_or("nobody watched the upload")?;
    let times = times(stalls);
    println!("{}, {bytes} up: {times:?} of {:?}", setting.protocol, seen.load_time());
    let end = seen.begin + seen.load_time().duration();
    let is_within = |stall: &TcpStall| seen.begin <= stall.from && stall.to <= end;
    assert!(stalls.iter().all(is_within), "{stalls:?}");
    Ok((seen, times))
}

fn idle() -> Path {
    Path::symmetric(RTT.into())
}

fn slow() -> TestResult<Path> {
    let rate = Rate::new(2_000_000, CountedBytes::Ethernet).ok_or("no rate")?;
    Ok(idle().with_rate(rate))
}

/// Whether most of a load was no stall.
fn assert_busy(seen: &Seen, times: Times) {
    let stalled: Duration = times.iter().sum();
    assert!(stalled * 4 < seen.load_time().duration(), "{times:?} of {:?}", seen.load_time());
}

fn kernel() -> Setting {
    Setting { tcp: Tcp { buffer: SMALL }, ..setting(Protocol::Http1) }
}

fn quic() -> Setting {
    setting(Protocol::Http3)
}

fn ours() -> Setting {
    Setting { carrier: Carrier::UserTcp(Embedding::None), ..setting(Protocol::Http2) }
}

/// A megabyte through buffers of 64 KB stands still in most of its sixteen round trips or more, and the kernel says so
/// too; where the link is slow the same buffers keep it busy.
pub fn tcp_stalls_by_buffers_where_the_link_would_carry_more() -> TestResult {
    let (seen, [receive, _, send]) = loaded(LARGE, &idle(), &kernel())?;
    let kernel_says = seen.connections.first().and_then(|one| one.tcp).ok_or("no TCP_INFO")?;
    println!("the kernel: {kernel_says:?}");
    assert!(receive + send >= 10 * RTT, "{receive:?} + {send:?}");
    let limited = kernel_says.receive_window_limited + kernel_says.send_buffer_limited;
    assert!(limited >= 10 * RTT, "{kernel_says:?}");
    let (seen, times) = loaded(LARGE, &slow()?, &kernel())?;
    assert_busy(&seen, times);
    Ok(())
}

/// A megabyte is sent in seven round trips from QUIC's initial window on: its congestion window alone holds it back in
/// most of them, where the link would carry it at once, and hardly where the link is slow.
pub fn quic_stalls_by_its_congestion_window() -> TestResult {
    let (_, [receive, congestion, send]) = loaded(LARGE, &idle(), &quic())?;
    assert!(congestion >= 3 * RTT, "{congestion:?}");
    assert_eq!([receive, send], [Duration::ZERO; 2]);
    let (seen, times) = loaded(SLOW, &slow()?, &quic())?;
    assert_busy(&seen, times);
    Ok(())
}

/// The same of our TCP, whose peer's window may hold it back too.
pub fn our_tcp_says_what_holds_it_back() -> TestResult {
    let (_, [receive, congestion, _]) = loaded(LARGE, &idle(), &ours())?;
    assert!(congestion >= 2 * RTT, "{congestion:?}");
    assert!(congestion + receive >= 3 * RTT, "{congestion:?} + {receive:?}");
    let (seen, times) = loaded(SLOW, &slow()?, &ours())?;
    assert_busy(&seen, times);
    Ok(())
}

/// Where the client is who sends, it is the client that is watched, and the queue to the server.
pub fn uploads_say_what_tcp_and_quic_waited_for() -> TestResult {
    let (_, [receive, _, send]) = uploaded(LARGE, &idle(), &kernel())?;
    assert!(receive + send >= 10 * RTT, "{receive:?} + {send:?}");
    let (_, [receive, congestion, send]) = uploaded(LARGE, &idle(), &quic())?;
    assert!(congestion >= 3 * RTT, "{congestion:?}");
    assert_eq!([receive, send], [Duration::ZERO; 2]);
    let (_, [_, congestion, _]) = uploaded(LARGE, &idle(), &ours())?;
    assert!(congestion >= 2 * RTT, "{congestion:?}");
    for setting in [kernel(), quic(), ours()] {
        let (seen, times) = uploaded(SLOW, &slow()?, &setting)?;
        assert_busy(&seen, times);
    }
    Ok(())
}
