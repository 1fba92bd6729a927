//! How connections begin and end between our stack and the kernel's.

use std::io::ErrorKind;
use std::time::Duration;

use linkmodel::Path;
use tcp::{ConnectOptions, ListenOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use lab_test::net::pattern::{check, check_end, send};
use lab_test::net::peers::{FAMILIES, Family, Meeting, OPENERS, PORT, limited};
use lab_test::net::segments::Watch;
use lab_test::net::{WAIT, pair};
use lab_test::{Test, TestResult};

pub fn tests() -> Vec<Test> {
    vec![
        Test::new("either_side_connects_and_either_ends_first", either),
        Test::new("a_stream_that_is_half_closed_still_carries_the_other_way", half_closed),
        Test::new("both_open_at_the_same_time", simultaneous_open),
        Test::new("where_nobody_listens_a_connection_is_refused", refused),
        Test::new("an_abort_resets_the_peer", aborted),
        Test::new("many_connections_at_once", many),
    ]
}

fn meeting(rtt: &str) -> TestResult<Meeting> {
    Meeting::new(pair(&Path::symmetric(rtt.parse()?))?)
}

/// A word each way; then one side ends and the other sees it, and ends too.
fn either() -> TestResult {
    let meeting = meeting("1ms")?;
    let mut port = PORT;
    for family in FAMILIES {
        for opener in OPENERS {
            for we_end_first in [true, false] {
                port += 1;
                let both = meeting.meet(
                    (family, opener, port),
                    move |mut stream| async move {
                        stream.write_all(b"ours").await?;
                        let mut word = [0; 7];
                        limited("their word", stream.read_exact(&mut word)).await??;
                        assert_eq!(&word, b"kernels");
                        if we_end_first {
                            stream.shutdown().await?;
                        }
                        limited("their end", check_end(&mut stream)).await??;
                        stream.shutdown().await?;
                        Ok(())
                    },
                    move |mut stream| async move {
                        stream.write_all(b"kernels").await?;
                        let mut word = [0; 4];
                        limited("our word", stream.read_exact(&mut word)).await??;
                        assert_eq!(&word, b"ours");
                        if !we_end_first {
                            stream.shutdown().await?;
                        }
                        limited("our end", check_end(&mut stream)).await??;
                        Ok(())
                    },
                )?;
                both.join().map_err(|e| format!("{family:?}, {opener:?}: {e}"))?;
            }
        }
    }
    Ok(())
}

fn half_closed() -> TestResult {
    const LEN: usize = 300_000;
    let meeting = meeting("1ms")?;
    for (number, opener) in OPENERS.into_iter().enumerate() {
        let both = meeting.meet(
            (Family::V4, opener, PORT + number as u16),
            |mut stream| async move {
                stream.shutdown().await?;
                check(&mut stream, 1, LEN).await?;
                Ok(check_end(&mut stream).await?)
            },
            |mut stream| async move {
                // The kernel speaks only once it has heard that we have ended.
                check_end(&mut stream).await?;
                send(&mut stream, 1, LEN).await?;
                Ok(stream.shutdown().await?)
            },
        )?;
        both.join()?;
    }
    Ok(())
}

// RFC 9293 §3.5, figure 7: two SYNs that cross make one connection.
fn simultaneous_open() -> TestResult {
    let meeting = meeting("600ms")?;
    let watch = Watch::at(&meeting.kernel)?;
    let (kernel_ip, our_ip) = (meeting.kernel_ip(Family::V4)?, meeting.our_ip(Family::V4)?);
    // The kernel's port is reserved before our SYN leaves, and its own SYN leaves before ours
    // arrives, which takes 300 ms.
    let socket = meeting.kernel.run(move || {
        let socket = tokio::net::TcpSocket::new_v4()?;
        socket.bind((kernel_ip, 0).into())?;
        Ok::<_, std::io::Error>(socket)
    })??;
    let to = socket.local_addr()?;
    let stack = meeting.stack.clone();
    let ours = meeting.ours.spawn(move || async move {
        TestResult::Ok(stack.connect(to, ConnectOptions::default())?)
    });
    let mut stream = ours.join_within(WAIT)??;
    let from = (our_ip, stream.local_addr().port());
    let kernels = meeting.kernel.spawn(move || async move {
        let mut stream = limited("the kernel's connect", socket.connect(from.into())).await??;
        send(&mut stream, 1, 5000).await?;
        check(&mut stream, 2, 5000).await?;
        TestResult::Ok(stream.shutdown().await?)
    });
    let ours = meeting.ours.spawn(move || async move {
        limited("our connect", stream.connected()).await??;
        send(&mut stream, 2, 5000).await?;
        check(&mut stream, 1, 5000).await?;
        stream.shutdown().await?;
        TestResult::Ok(check_end(&mut stream).await?)
    });
    ours.join_within(WAIT)??;
    kernels.join_within(WAIT)??;
    let segments = watch.segments()?;
    let syn = |inbound| segments.iter().any(|s| s.is_syn() && s.inbound() == inbound);
    assert!(syn(true) && syn(false), "they did not cross: {segments:#?}");
    Ok(())
}

fn refused() -> TestResult {
    let meeting = meeting("1ms")?;
    for family in FAMILIES {
        let to = meeting.our_socket(family, 9)?;
        let connecting = meeting.kernel.spawn(move || tokio::net::TcpStream::connect(to));
        let error = connecting.join_within(WAIT)?.map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused, "{family:?}: {error}");

        let to = (meeting.kernel_ip(family)?, 9).into();
        let stack = meeting.stack.clone();
        let connecting = meeting.ours.spawn(move || async move {
            let stream = stack.connect(to, ConnectOptions::default())?;
            stream.connected().await.map(drop)
        });
        let error = connecting.join_within(WAIT)?.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused, "{family:?}: {error}");
    }
    Ok(())
}

fn aborted() -> TestResult {
    let meeting = meeting("1ms")?;
    for (number, opener) in OPENERS.into_iter().enumerate() {
        // We abort.
        let both = meeting.meet(
            (Family::V4, opener, PORT + 2 * number as u16),
            |mut stream| async move {
                limited("a word", stream.read_exact(&mut [0; 4])).await??;
                stream.abort();
                Ok(())
            },
            |mut stream| async move {
                stream.write_all(b"word").await?;
                Ok(limited("the reset", stream.read(&mut [0; 4])).await?.unwrap_err().kind())
            },
        )?;
        assert_eq!(both.join()?.1, ErrorKind::ConnectionReset, "{opener:?}");
        // The kernel does.
        let both = meeting.meet(
            (Family::V6, opener, PORT + 1 + 2 * number as u16),
            |mut stream| async move {
                stream.write_all(b"word").await?;
                Ok(limited("the reset", stream.read(&mut [0; 4])).await?.unwrap_err().kind())
            },
            |mut stream| async move {
                limited("a word", stream.read_exact(&mut [0; 4])).await??;
                socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO))?;
                Ok(())
            },
        )?;
        assert_eq!(both.join()?.0, ErrorKind::ConnectionReset, "{opener:?}");
    }
    Ok(())
}

/// A hundred connections of either kind at the same time on one port each.
fn many() -> TestResult {
    const COUNT: u64 = 100;
    const LEN: usize = 20_000;
    let meeting = meeting("2ms")?;
    let listener = meeting.listen(Family::V4, PORT, ListenOptions::default())?;
    let to = meeting.our_socket(Family::V4, PORT)?;
    let ours = meeting.ours.spawn(move || async move {
        let mut echoes = tokio::task::JoinSet::new();
        for _ in 0..COUNT {
            let mut stream = listener.accept().await?;
            echoes.spawn(async move {
                let mut data = Vec::new();
                stream.read_to_end(&mut data).await?;
                stream.write_all(&data).await?;
                stream.shutdown().await
            });
        }
        while let Some(echo) = echoes.join_next().await {
            echo??;
        }
        TestResult::Ok(())
    });
    let kernel = meeting.kernel.spawn(move || async move {
        let mut clients = tokio::task::JoinSet::new();
        for number in 0..COUNT {
            clients.spawn(async move {
                let mut stream = tokio::net::TcpStream::connect(to).await?;
                send(&mut stream, number, LEN).await?;
                stream.shutdown().await?;
                check(&mut stream, number, LEN).await?;
                check_end(&mut stream).await
            });
        }
        while let Some(client) = clients.join_next().await {
            client??;
        }
        TestResult::Ok(())
    });
    kernel.join_within(WAIT)??;
    ours.join_within(WAIT)?
}
