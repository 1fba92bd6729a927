//! Slow readers, idle connections and peers that are gone.

use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lab::{Capture, CaptureOptions, Direction, Node};
use linkmodel::Path;
use tcp::KeepAlive;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use units::Probability;

use lab_test::net::pattern::{check, check_end, send};
use lab_test::net::peers::{Family, Meeting, OPENERS, Opener, PORT, limited};
use lab_test::net::segments::{Segment, parse};
use lab_test::net::{WAIT, direct, pair};
use lab_test::{Test, TestResult, until};

pub fn tests() -> Vec<Test> {
    vec![
        Test::new("a_kernel_reader_that_stops_gets_every_byte_later", slow_kernel),
        Test::new("a_reader_of_ours_that_stops_gets_every_byte_later", slow_ours),
        Test::new("keep_alive_keeps_an_idle_connection", keep_alive),
        Test::new("keep_alive_ends_a_connection_whose_peer_is_gone", gone),
        Test::new("the_kernels_keep_alive_is_answered", kernels_keep_alive),
    ]
}

/// Counts the segments at a node for which a predicate holds.
fn count(
    node: &Node,
    wanted: impl Fn(&Segment) -> bool + Send + 'static,
) -> TestResult<(Capture, Arc<AtomicUsize>)> {
    let counter = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&counter);
    let capture = node.capture_with(&CaptureOptions::default(), move |frame| {
        if parse(frame.bytes, frame.direction).is_some_and(|s| wanted(&s)) {
            counted.fetch_add(1, Ordering::Relaxed);
        }
    })?;
    Ok((capture, counter))
}

fn reached(counter: &AtomicUsize, number: usize, what: &str) -> TestResult {
    until(what, WAIT, || Ok((counter.load(Ordering::Relaxed) >= number).then_some(())))
}

/// More than both sides buffer together.
const LEN: usize = 16_000_000;

/// Whether a segment closes the window. A SYN's window is never zero, a RST's means nothing.
fn closes(segment: &Segment) -> bool {
    use wire::tcp::Flags;
    segment.window == 0 && !segment.flags.has(Flags::RST) && !segment.flags.has(Flags::SYN)
}

// RFC 9293 §3.8.6.1: we probe the closed window, and go on when it opens. The kernel's reader starts
// only when its window has been closed and we have probed it.
fn slow_kernel() -> TestResult {
    let meeting = Meeting::new(direct()?)?;
    let (capture, closed) = count(&meeting.kernel, |s| !s.inbound() && closes(s))?;
    let (go, wait) = tokio::sync::oneshot::channel::<()>();
    let both = meeting.meet(
        (Family::V6, Opener::Kernel, PORT),
        |mut stream| async move {
            send(&mut stream, 1, LEN).await?;
            Ok(stream.shutdown().await?)
        },
        |mut stream| async move {
            wait.await?;
            check(&mut stream, 1, LEN).await?;
            Ok(check_end(&mut stream).await?)
        },
    )?;
    // Each probe draws another answer that says that the window is still closed.
    reached(&closed, 3, "closed windows")?;
    go.send(()).map_err(|()| "the reader is gone")?;
    both.join()?;
    drop(capture);
    Ok(())
}

fn slow_ours() -> TestResult {
    let meeting = Meeting::new(direct()?)?;
    let (capture, closed) = count(&meeting.kernel, |s| s.inbound() && closes(s))?;
    let (go, wait) = tokio::sync::oneshot::channel::<()>();
    let both = meeting.meet(
        (Family::V4, Opener::Ours, PORT),
        |mut stream| async move {
            wait.await?;
            check(&mut stream, 1, LEN).await?;
            Ok(check_end(&mut stream).await?)
        },
        |mut stream| async move {
            send(&mut stream, 1, LEN).await?;
            Ok(stream.shutdown().await?)
        },
    )?;
    reached(&closed, 2, "closed windows")?;
    go.send(()).map_err(|()| "the reader is gone")?;
    both.join()?;
    drop(capture);
    Ok(())
}

fn watchful() -> tcp::Config {
    tcp::Config {
        keep_alive: Some(KeepAlive {
            idle: Duration::from_millis(100),
            interval: Duration::from_millis(50),
            probes: 4,
        }),
        ..tcp::Config::default()
    }
}

// RFC 9293 §3.8.4: a probe has the number of a byte that was acknowledged already, and the kernel
// answers it.
fn keep_alive() -> TestResult {
    let meeting = Meeting::with(direct()?, watchful())?;
    // The kernel answers such a segment only once in half a second; ours come faster here.
    meeting.kernel.sysctl("net.ipv4.tcp_invalid_ratelimit", "0")?;
    let bare = |s: &Segment| s.inbound() && s.payload.len() <= 1 && s.flags.0 & 7 == 0;
    let (capture, probes) = count(&meeting.kernel, bare)?;
    let (go, wait) = tokio::sync::oneshot::channel::<()>();
    let (go_too, wait_too) = tokio::sync::oneshot::channel::<()>();
    let both = meeting.meet(
        (Family::V4, Opener::Kernel, PORT),
        |mut stream| async move {
            wait.await?;
            Ok(stream.write_all(b"still here").await?)
        },
        |mut stream| async move {
            wait_too.await?;
            let mut word = [0; 10];
            limited("the word", stream.read_exact(&mut word)).await??;
            assert_eq!(&word, b"still here");
            Ok(())
        },
    )?;
    // Longer than it would live without answers: 100 + 4 x 50 ms are over after 3 probes and more.
    reached(&probes, 8, "probes")?;
    go.send(()).map_err(|()| "our side is gone")?;
    go_too.send(()).map_err(|()| "the kernel's side is gone")?;
    both.join()?;
    drop(capture);
    Ok(())
}

fn gone() -> TestResult {
    let path = Path::symmetric("1ms".parse()?);
    let meeting = Meeting::with(pair(&path)?, watchful())?;
    for opener in OPENERS {
        meeting.pair.link.set_path(&path)?;
        let (cut, reported) = std::sync::mpsc::channel();
        let (done, ended) = tokio::sync::oneshot::channel::<()>();
        let both = meeting.meet(
            (Family::V4, opener, PORT),
            move |mut stream| async move {
                limited("the word", stream.read_exact(&mut [0; 4])).await??;
                cut.send(())?;
                let error = limited("the end", stream.read(&mut [0])).await?.unwrap_err();
                let _ = done.send(());
                Ok(error.kind())
            },
            |mut stream| async move {
                stream.write_all(b"word").await?;
                // Kept open, but nobody hears of it any more.
                let _ = ended.await;
                Ok(stream)
            },
        )?;
        reported.recv_timeout(WAIT)?;
        meeting.pair.link.set_path(&path.clone().with_loss(Probability::ONE))?;
        let (kind, _stream) = both.join()?;
        assert_eq!(kind, ErrorKind::TimedOut, "{opener:?}");
    }
    Ok(())
}

fn kernels_keep_alive() -> TestResult {
    let meeting = Meeting::new(direct()?)?;
    meeting.kernel.sysctl("net.ipv4.tcp_keepalive_probes", "1")?;
    let bare = |s: &Segment| {
        s.direction == Direction::Inbound && s.payload.is_empty() && s.flags.0 & 7 == 0
    };
    let (capture, answers) = count(&meeting.kernel, bare)?;
    let (go, wait) = tokio::sync::oneshot::channel::<()>();
    let both = meeting.meet(
        (Family::V6, Opener::Ours, PORT),
        |mut stream| async move {
            let mut word = [0; 10];
            limited("the word", stream.read_exact(&mut word)).await??;
            Ok(())
        },
        |mut stream| async move {
            // The shortest that the kernel knows: a second, then each second.
            let keep_alive = socket2::TcpKeepalive::new()
                .with_time(Duration::from_secs(1))
                .with_interval(Duration::from_secs(1));
            socket2::SockRef::from(&stream).set_tcp_keepalive(&keep_alive)?;
            wait.await?;
            Ok(stream.write_all(b"still here").await?)
        },
    )?;
    // One ACK ends the handshake; two answer probes, the second of which comes only if the first
    // was answered.
    reached(&answers, 3, "answers")?;
    go.send(()).map_err(|()| "the kernel's side is gone")?;
    both.join()?;
    drop(capture);
    Ok(())
}
