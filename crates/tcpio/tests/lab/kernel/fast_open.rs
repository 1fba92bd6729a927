//! Data on SYN and SYN-ACK between our stack and the kernel's, both ways (RFC 7413).

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream as KernelStream};
use std::os::fd::AsRawFd;

use lab::Node;
use linkmodel::Path;
use tcp::{ConnectOptions, IfRefused, ListenOptions, SynData, SynWithData};
use tcpio::TcpStream;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use lab_test::net::pattern::Pattern;
use lab_test::net::peers::{FAMILIES, Family, Meeting, PORT, limited};
use lab_test::net::segments::{Segment, Watch};
use lab_test::net::{WAIT, pair};
use lab_test::{Test, TestResult};

pub fn tests() -> Vec<Test> {
    vec![
        Test::new("the_kernels_fast_open_is_answered_in_the_syn_ack", answered_in_the_syn_ack),
        Test::new("a_flight_longer_than_the_syn_ack_follows_it", long_flight),
        Test::new("the_kernel_gets_a_cookie_and_uses_it", kernel_with_our_cookie),
        Test::new("a_cookie_that_is_not_ours_makes_a_syn_ordinary", stale_cookie),
        Test::new(
            "a_listener_that_admits_nothing_takes_the_data_after_the_handshake",
            not_admitted,
        ),
        Test::new("our_syn_with_data_is_taken_by_a_cookieless_server", cookieless_server),
        Test::new("our_syn_with_data_is_taken_by_a_server_with_cookies", server_with_cookies),
        Test::new("a_server_without_fast_open_gets_the_data_again", resent),
        Test::new("a_server_without_fast_open_gets_other_data_instead", withdrawn),
    ]
}

/// What the client sends first, and what it gets for it.
const REQUEST: usize = 1200;
const ANSWER: usize = 1000;

fn request() -> Vec<u8> {
    Pattern::new(1).take(REQUEST)
}

fn answer(len: usize) -> Vec<u8> {
    Pattern::new(2).take(len)
}

fn meeting() -> TestResult<Meeting> {
    Meeting::new(pair(&Path::symmetric("10ms".parse()?))?)
}

fn admit_all(_: &SynWithData<'_>) -> bool {
    true
}

fn admit_none(_: &SynWithData<'_>) -> bool {
    false
}

/// Serves one connection: reads the request, writes the answer, and lets the SYN-ACK go.
async fn serve(mut stream: TcpStream, len: usize) -> TestResult<tcp::Info> {
    let mut got = vec![0; REQUEST];
    limited("the request", stream.read_exact(&mut got)).await??;
    assert_eq!(got, request());
    stream.write_all(&answer(len)).await?;
    stream.answer();
    let info = stream.info();
    stream.shutdown().await?;
    limited("the client's end", stream.read(&mut [0])).await??;
    Ok(info.ok_or("the connection is unknown")?)
}

/// Connects by MSG_FASTOPEN with the request, and reads the answer and the end of it.
fn fast_open(client: &Node, to: SocketAddr, len: usize) -> TestResult {
    let got = client.run(move || {
        let address = socket2::SockAddr::from(to);
        let domain = socket2::Domain::for_address(to);
        let socket = socket2::Socket::new(domain, socket2::Type::STREAM, None)?;
        socket.set_read_timeout(Some(WAIT))?;
        socket.set_write_timeout(Some(WAIT))?;
        let data = request();
        let sent = socket.send_to_with_flags(&data, &address, libc::MSG_FASTOPEN)?;
        let mut stream = KernelStream::from(socket);
        stream.write_all(&data[sent..])?;
        let mut got = Vec::new();
        stream.read_to_end(&mut got)?;
        Ok::<_, io::Error>(got)
    })??;
    assert_eq!(got.len(), len);
    assert_eq!(got, answer(len));
    Ok(())
}

/// A connection by the kernel's Fast Open to a listener of ours; what passed the kernel's node.
fn kernel_to_ours(
    meeting: &Meeting,
    family: Family,
    options: ListenOptions,
    len: usize,
) -> TestResult<(tcp::Info, Vec<Segment>)> {
    seen_at(&meeting.kernel, meeting, family, options, len)
}

/// The same, with what passed the node `at`.
fn seen_at(
    at: &Node,
    meeting: &Meeting,
    family: Family,
    options: ListenOptions,
    len: usize,
) -> TestResult<(tcp::Info, Vec<Segment>)> {
    let listener = meeting.listen(family, PORT, options)?;
    let served = meeting.ours.spawn(move || async move {
        let stream = listener.accept().await?;
        serve(stream, len).await
    });
    let watch = Watch::at(at)?;
    fast_open(&meeting.kernel, meeting.our_socket(family, PORT)?, len)?;
    let info = served.join_within(WAIT)??;
    Ok((info, watch.segments()?))
}

fn syn_and_answer(segments: &[Segment]) -> TestResult<(&Segment, &Segment)> {
    let syn = segments.iter().find(|s| s.is_syn()).ok_or("no SYN")?;
    let syn_ack = segments.iter().find(|s| s.is_syn_ack()).ok_or("no SYN-ACK")?;
    Ok((syn, syn_ack))
}

/// Bytes that were sent twice in one direction.
fn sent_twice(segments: &[Segment], inbound: bool) -> usize {
    let mut seen = std::collections::HashSet::new();
    segments
        .iter()
        .filter(|s| s.inbound() == inbound && !s.payload.is_empty())
        .filter(|s| !seen.insert(s.sequence))
        .map(|s| s.payload.len())
        .sum()
}

fn answered_in_the_syn_ack() -> TestResult {
    let meeting = meeting()?;
    // 0x5: as a client, and without a cookie.
    meeting.kernel.sysctl("net.ipv4.tcp_fastopen", "0x5")?;
    for family in FAMILIES {
        let options = ListenOptions { admit: admit_all, ..ListenOptions::default() };
        let (info, segments) = kernel_to_ours(&meeting, family, options, ANSWER)?;
        let (syn, syn_ack) = syn_and_answer(&segments)?;
        assert_eq!(syn.payload, request());
        assert_eq!(syn_ack.payload, answer(ANSWER), "{family:?}");
        assert_eq!(syn_ack.acknowledgment, Some(syn.sequence.wrapping_add(1 + REQUEST as u32)));
        // Belief: the kernel takes data on a SYN-ACK if it sent data on its SYN: it acknowledges
        // them, and nobody sends a byte twice.
        let ack = segments.iter().find(|s| !s.inbound() && !s.flags.has(wire::tcp::Flags::SYN));
        let expected = syn_ack.sequence.wrapping_add(1 + ANSWER as u32);
        let acknowledged = ack.and_then(|s| s.acknowledgment).ok_or("no ACK")?;
        assert!(acknowledged.wrapping_sub(expected) <= 1, "acknowledged {acknowledged}");
        assert_eq!((sent_twice(&segments, true), sent_twice(&segments, false)), (0, 0));
        assert_eq!(info.syn_bytes, REQUEST);
        assert_eq!(info.syn_segment_len, syn.ip_len - ip_header(family));
    }
    Ok(())
}

fn ip_header(family: Family) -> usize {
    if family == Family::V4 { 20 } else { 40 }
}

// A flight longer than a segment goes on behind the SYN-ACK, without waiting for the client, as
// long as three times what it sent (RFC 9000 §8.1) lasts.
fn long_flight() -> TestResult {
    let meeting = meeting()?;
    meeting.kernel.sysctl("net.ipv4.tcp_fastopen", "0x5")?;
    for family in FAMILIES {
        let options = ListenOptions { admit: admit_all, ..ListenOptions::default() };
        let (_, segments) = seen_at(&meeting.ours, &meeting, family, options, 9000)?;
        let (syn, syn_ack) = syn_and_answer(&segments)?;
        assert!(syn_ack.payload.len() > 1300, "{}", syn_ack.payload.len());
        let unasked = before_the_client_speaks(&segments)?;
        assert!((2 * syn_ack.payload.len()..=3 * syn.ip_len).contains(&unasked), "{unasked}");
        assert_eq!((sent_twice(&segments, true), sent_twice(&segments, false)), (0, 0));
    }
    Ok(())
}

fn kernel_with_our_cookie() -> TestResult {
    let meeting = meeting()?;
    meeting.kernel.sysctl("net.ipv4.tcp_fastopen", "1")?;
    for family in FAMILIES {
        let options =
            || ListenOptions { admit: admit_all, cookies: true, ..ListenOptions::default() };
        let (_, first) = kernel_to_ours(&meeting, family, options(), ANSWER)?;
        let (syn, syn_ack) = syn_and_answer(&first)?;
        // RFC 7413 §3.1: the first asks, with an empty option and no data.
        assert_eq!((syn.cookie.as_deref(), syn.payload.len()), (Some(&[][..]), 0));
        let cookie = syn_ack.cookie.clone().ok_or("no cookie was given")?;
        assert!((4..=16).contains(&cookie.len()), "{cookie:x?}");
        let (_, second) = kernel_to_ours(&meeting, family, options(), ANSWER)?;
        let (syn, syn_ack) = syn_and_answer(&second)?;
        assert_eq!((syn.cookie.as_ref(), &syn.payload), (Some(&cookie), &request()));
        assert_eq!(syn_ack.payload, answer(ANSWER), "{family:?}");
    }
    Ok(())
}

// RFC 7413 §4.1.2: a valid cookie proves the client's address, so that three times what it sent is
// no limit; with one that is not ours the SYN is an ordinary one. Here the kernel has the cookie of
// a stack with another key: that of a server before its restart.
fn stale_cookie() -> TestResult {
    const LEN: usize = 9000;
    let meeting = meeting()?;
    meeting.kernel.sysctl("net.ipv4.tcp_fastopen", "1")?;
    let options = || ListenOptions { admit: admit_all, cookies: true, ..ListenOptions::default() };
    kernel_to_ours(&meeting, Family::V4, options(), LEN)?;
    let (_, segments) = seen_at(&meeting.ours, &meeting, Family::V4, options(), LEN)?;
    let (syn, _) = syn_and_answer(&segments)?;
    let unasked = before_the_client_speaks(&segments)?;
    assert!(unasked > 3 * syn.ip_len && unasked > LEN, "{unasked}");

    let Meeting { pair, stack, ours, kernel } = meeting;
    ours.spawn(move || async move { stack.shutdown().await }).join_within(WAIT)?;
    let mut restarted =
        lab_test::net::peers::stack_options(&ours, &kernel, tcp::Config::default())?;
    restarted.seed = Some([8; 32]);
    let stack = lab_test::net::peers::open_on(&ours, restarted)?;
    let meeting = Meeting { pair, stack, ours, kernel };
    let (_, segments) = kernel_to_ours(&meeting, Family::V4, options(), LEN)?;
    let (syn, syn_ack) = syn_and_answer(&segments)?;
    assert_eq!((syn.payload.as_slice(), syn_ack.payload.len()), (request().as_slice(), 0));
    assert_eq!(syn_ack.acknowledgment, Some(syn.sequence.wrapping_add(1)));
    // And a fresh one is given with it.
    let (stale, fresh) = (syn.cookie.as_ref(), syn_ack.cookie.as_ref());
    assert!(fresh.is_some_and(|cookie| !cookie.is_empty()) && fresh != stale);
    Ok(())
}

/// Bytes of IP packets that the server sent before it heard more than a SYN from the client, at
/// the server's node.
fn before_the_client_speaks(segments: &[Segment]) -> TestResult<usize> {
    let spoke = segments.iter().skip(1).position(Segment::inbound).ok_or("no ACK")? + 1;
    Ok(segments[1..spoke].iter().map(|s| s.ip_len).sum())
}

fn not_admitted() -> TestResult {
    let meeting = meeting()?;
    meeting.kernel.sysctl("net.ipv4.tcp_fastopen", "0x5")?;
    for family in FAMILIES {
        let options = ListenOptions { admit: admit_none, ..ListenOptions::default() };
        let (info, segments) = kernel_to_ours(&meeting, family, options, ANSWER)?;
        let (syn, syn_ack) = syn_and_answer(&segments)?;
        assert_eq!(syn.payload, request());
        assert_eq!(syn_ack.acknowledgment, Some(syn.sequence.wrapping_add(1)));
        assert!(syn_ack.payload.is_empty());
        assert_eq!(info.syn_bytes, 0);
    }
    Ok(())
}

/// What our client tells of a connection.
struct Reported {
    info: tcp::Info,
}

/// Connects from our stack with `data` on the SYN; reads the kernel's answer.
fn ours_to_kernel(
    meeting: &Meeting,
    family: Family,
    queue: Option<libc::c_int>,
    options: ConnectOptions,
    after_refusal: Option<Vec<u8>>,
    expected: Vec<u8>,
) -> TestResult<(Reported, Vec<Segment>)> {
    let (listener, address) = meeting.kernel_listen(family)?;
    if let Some(queue) = queue {
        // SAFETY: the value is live and of the stated size.
        let set = unsafe {
            libc::setsockopt(
                listener.as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_FASTOPEN,
                (&raw const queue).cast(),
                4,
            )
        };
        if set != 0 {
            return Err(io::Error::last_os_error().into());
        }
    }
    let served = meeting.kernel.spawn(move || async move {
        let (mut stream, _) = limited("the connection", listener.accept()).await??;
        let mut got = vec![0; expected.len()];
        limited("the request", stream.read_exact(&mut got)).await??;
        assert!(got == expected, "the kernel read something else");
        stream.write_all(&answer(ANSWER)).await?;
        // The client ends first: what else it sent would be read here.
        let more = limited("the client's end", stream.read(&mut [0; 16])).await??;
        assert_eq!(more, 0, "bytes behind the request");
        TestResult::Ok(())
    });
    let watch = Watch::at(&meeting.kernel)?;
    let stack = meeting.stack.clone();
    let reported = meeting.ours.spawn(move || async move {
        let mut stream = stack.connect(address, options)?;
        let info = limited("the SYN-ACK", stream.connected()).await??;
        if info.syn_data == SynData::Refused
            && let Some(other) = after_refusal
        {
            stream.write_all(&other).await?;
        }
        let mut got = vec![0; ANSWER];
        limited("the answer", stream.read_exact(&mut got)).await??;
        assert_eq!(got, answer(ANSWER));
        stream.shutdown().await?;
        limited("the server's end", stream.read(&mut [0; 16])).await??;
        TestResult::Ok(Reported { info })
    });
    let reported = reported.join_within(WAIT)?;
    served.join_within(WAIT)??;
    Ok((reported?, watch.segments()?))
}

fn with_data(if_refused: IfRefused) -> ConnectOptions {
    ConnectOptions { syn_data: request(), if_refused, ..ConnectOptions::default() }
}

fn cookieless_server() -> TestResult {
    let meeting = meeting()?;
    // 0x602: as a server, for every listener, without a cookie.
    meeting.kernel.sysctl("net.ipv4.tcp_fastopen", "0x602")?;
    for family in FAMILIES {
        for if_refused in [IfRefused::Resend, IfRefused::Withdraw] {
            let (reported, segments) =
                ours_to_kernel(&meeting, family, None, with_data(if_refused), None, request())?;
            assert_eq!(reported.info.syn_data, SynData::Accepted, "{family:?}");
            let (syn, syn_ack) = syn_and_answer(&segments)?;
            assert_eq!(syn.payload, request());
            // Belief: the kernel never sends data on a SYN-ACK.
            assert!(syn_ack.payload.is_empty());
            assert_eq!((sent_twice(&segments, true), sent_twice(&segments, false)), (0, 0));
        }
    }
    Ok(())
}

fn server_with_cookies() -> TestResult {
    let meeting = meeting()?;
    meeting.kernel.sysctl("net.ipv4.tcp_fastopen", "2")?;
    for family in FAMILIES {
        let options = || ConnectOptions { fast_open_cookie: true, ..with_data(IfRefused::Resend) };
        // The first has no cookie: it asks for one. Whether its data go along or not, the server
        // reads them once.
        let (first, segments) =
            ours_to_kernel(&meeting, family, Some(16), options(), None, request())?;
        let (syn, syn_ack) = syn_and_answer(&segments)?;
        assert_eq!(syn.cookie.as_deref(), Some(&[][..]), "{family:?}");
        assert!(syn_ack.cookie.as_ref().is_some_and(|cookie| cookie.len() >= 4));
        assert_ne!(first.info.syn_data, SynData::Accepted);
        let (second, segments) =
            ours_to_kernel(&meeting, family, Some(16), options(), None, request())?;
        let (syn, _) = syn_and_answer(&segments)?;
        assert!(syn.cookie.as_ref().is_some_and(|cookie| cookie.len() >= 4));
        assert_eq!(second.info.syn_data, SynData::Accepted, "{family:?}");
        assert_eq!(sent_twice(&segments, true), 0);
    }
    Ok(())
}

fn resent() -> TestResult {
    let meeting = meeting()?;
    meeting.kernel.sysctl("net.ipv4.tcp_fastopen", "0")?;
    for family in FAMILIES {
        let options = with_data(IfRefused::Resend);
        let (reported, segments) =
            ours_to_kernel(&meeting, family, None, options, None, request())?;
        assert_eq!(reported.info.syn_data, SynData::Refused, "{family:?}");
        let (syn, syn_ack) = syn_and_answer(&segments)?;
        // Belief: without Fast Open the kernel acknowledges the SYN alone (RFC 7413 §4.2.2).
        assert_eq!(syn_ack.acknowledgment, Some(syn.sequence.wrapping_add(1)));
    }
    Ok(())
}

fn withdrawn() -> TestResult {
    let meeting = meeting()?;
    meeting.kernel.sysctl("net.ipv4.tcp_fastopen", "0")?;
    for family in FAMILIES {
        // Shorter than what was withdrawn, so that nothing of that could hide behind it.
        let other = Pattern::new(3).take(700);
        let options = with_data(IfRefused::Withdraw);
        let (reported, _) =
            ours_to_kernel(&meeting, family, None, options, Some(other.clone()), other)?;
        assert_eq!(reported.info.syn_data, SynData::Refused, "{family:?}");
    }
    Ok(())
}
