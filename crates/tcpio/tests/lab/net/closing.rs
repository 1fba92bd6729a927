//! How connections and stacks end.

use std::io::ErrorKind;
use std::sync::mpsc::channel;
use std::time::Duration;

use tcpio::{DeviceOptions, StackOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use lab_test::net::WAIT;
use lab_test::net::pattern::Pattern;
use lab_test::net::sides::*;
use lab_test::{Test, TestResult};

pub fn tests() -> Vec<Test> {
    vec![
        Test::inside("one_side_ends_and_goes_on_reading", half_close),
        Test::inside("resets_are_told", resets),
        Test::inside("a_closed_port_refuses", refused),
        Test::inside("a_dropped_stream_ends_in_order", dropped_stream),
        Test::inside("shutdown_sends_what_is_buffered", shutdown),
        Test::inside("shutdown_of_a_silent_peer_is_bounded", bounded_shutdown),
        Test::inside("a_dropped_stack_leaves_nothing", dropped_stack),
        Test::inside("a_thousand_that_end_at_once_are_all_heard", all_end_at_once),
    ]
}

fn half_close() -> TestResult {
    let net = Net::direct()?;
    let [a, b] = net.sides();
    let target = at(b.kernel()[0], 7000);
    let (ready, listening) = channel();
    let server = b.node.spawn(move || async move {
        let listener = TcpListener::bind(target).await?;
        ready.send(())?;
        let (mut stream, _) = listener.accept().await?;
        let mut request = Vec::new();
        // To the end of the client's stream; then the answer, to a client that has ended its own.
        stream.read_to_end(&mut request).await?;
        stream.write_all(&Pattern::new(2).take(100_000)).await?;
        Ok(request)
    });
    listening.recv_timeout(WAIT)?;
    join(a.with_stack(a.options(), move |stack| async move {
        let mut stream = stack.connect(target, connect())?;
        stream.write_all(b"request").await?;
        stream.shutdown().await?;
        let error = stream.write(b"more").await.unwrap_err();
        assert!(!matches!(error.kind(), ErrorKind::WouldBlock), "{error}");
        receive(&mut stream, 2, 100_000).await
    }))?;
    assert_eq!(join(server)?, b"request");
    Ok(())
}

fn resets() -> TestResult {
    let net = Net::direct()?;
    let [a, b] = net.sides();
    let target = at(b.kernel()[0], 7000);
    let (ready, listening) = channel();
    let server = b.node.spawn(move || async move {
        let listener = TcpListener::bind(target).await?;
        ready.send(())?;
        // The first is reset by the kernel, the second by us.
        let (stream, _) = listener.accept().await?;
        stream.set_zero_linger()?;
        drop(stream);
        let (mut stream, _) = listener.accept().await?;
        let error = stream.read_to_end(&mut Vec::new()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        Ok(())
    });
    listening.recv_timeout(WAIT)?;
    join(a.with_stack(a.options(), move |stack| async move {
        let mut stream = stack.connect(target, connect())?;
        let error = stream.read(&mut [0; 10]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
        let stream = stack.connect(target, connect())?;
        stream.connected().await?;
        stream.abort();
        let error = stream.try_write(b"x").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionAborted, "{error}");
        Ok(())
    }))?;
    join(server)
}

fn refused() -> TestResult {
    let net = Net::direct()?;
    let [a, b] = net.sides();
    // Nobody listens there: neither the kernel nor a stack.
    let closed = at(b.kernel()[0], 7001);
    let stack_port = at(b.addresses()[0], 7001);
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let (ready, open) = channel();
    let other = b.with_stack(b.options(), move |stack| async move {
        ready.send(())?;
        let _ = stopped.await;
        drop(stack);
        Ok(())
    });
    open.recv_timeout(WAIT)?;
    join(a.with_stack(a.options(), move |stack| async move {
        for target in [closed, stack_port] {
            let stream = stack.connect(target, connect())?;
            let error = stream.connected().await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ConnectionRefused, "{error}");
            let error = stream.try_write(b"x").unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ConnectionRefused, "{error}");
        }
        Ok(())
    }))?;
    let error = join(a.node.spawn(move || async move {
        Ok(TcpStream::connect(stack_port).await.unwrap_err().kind())
    }))?;
    assert_eq!(error, ErrorKind::ConnectionRefused);
    drop(stop);
    join(other)
}

fn dropped_stream() -> TestResult {
    let net = Net::direct()?;
    let [a, b] = net.sides();
    let target = at(b.kernel()[0], 7000);
    let (ready, listening) = channel();
    let server = b.node.spawn(move || async move {
        let listener = TcpListener::bind(target).await?;
        ready.send(())?;
        let (stream, _) = listener.accept().await?;
        receive(stream, 3, 60_000).await
    });
    listening.recv_timeout(WAIT)?;
    join(a.with_stack(a.options(), move |stack| async move {
        let mut stream = stack.connect(target, connect())?;
        stream.connected().await?;
        stream.write_all(&Pattern::new(3).take(60_000)).await?;
        drop(stream);
        // The stack goes at once as well, and still brings it to its end.
        Ok(())
    }))?;
    join(server)
}

fn shutdown() -> TestResult {
    let net = Net::direct()?;
    let [a, b] = net.sides();
    let target = at(b.kernel()[0], 7000);
    let (ready, listening) = channel();
    let server = b.node.spawn(move || async move {
        let listener = TcpListener::bind(target).await?;
        ready.send(())?;
        let (stream, _) = listener.accept().await?;
        receive(stream, 4, 200_000).await
    });
    listening.recv_timeout(WAIT)?;
    join(a.with_stack(a.options(), move |stack| async move {
        let mut stream = stack.connect(target, connect())?;
        stream.connected().await?;
        stream.write_all(&Pattern::new(4).take(200_000)).await?;
        stack.shutdown().await;
        let error = stream.read(&mut [0; 1]).await;
        assert!(error.is_err() || matches!(error, Ok(0)));
        let closed = stack.connect(target, connect());
        assert!(matches!(closed, Err(tcpio::Error::Closed)));
        assert!(matches!(stack.listen(target, listen()), Err(tcpio::Error::Closed)));
        stack.shutdown().await;
        Ok(())
    }))?;
    join(server)
}

/// A peer that never ends its side: the stack resets it after its linger time.
fn bounded_shutdown() -> TestResult {
    let net = Net::direct()?;
    let [a, b] = net.sides();
    let target = at(b.kernel()[0], 7000);
    let (ready, listening) = channel();
    let server = b.node.spawn(move || async move {
        let listener = TcpListener::bind(target).await?;
        ready.send(())?;
        let (stream, _) = listener.accept().await?;
        // The end of the client's stream, and then its reset.
        until("a reset", || {
            let read = stream.try_read(&mut [0; 10]);
            matches!(read, Err(ref error) if error.kind() == ErrorKind::ConnectionReset)
                || matches!(stream.try_write(b"x"), Err(ref error) if error.kind() != ErrorKind::WouldBlock)
        })
        .await
    });
    listening.recv_timeout(WAIT)?;
    let options = StackOptions { linger: Duration::from_millis(50), ..a.options() };
    join(a.with_stack(options, move |stack| async move {
        let stream = stack.connect(target, connect())?;
        stream.connected().await?;
        stack.shutdown().await;
        Ok(())
    }))?;
    join(server)
}

fn dropped_stack() -> TestResult {
    let net = Net::direct()?;
    let [a, b] = net.sides();
    let target = at(b.kernel()[0], 7000);
    let (ready, listening) = channel();
    let server = b.node.spawn(move || async move {
        let listener = TcpListener::bind(target).await?;
        ready.send(())?;
        loop {
            let (mut stream, _) = listener.accept().await?;
            let mut bytes = Vec::new();
            if stream.read_to_end(&mut bytes).await? == 0 {
                return Ok(());
            }
        }
    });
    listening.recv_timeout(WAIT)?;
    let options = a.options();
    join(a.node.spawn(move || async move {
        let descriptors = || std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
        // The first opening may start what the runtime keeps.
        for round in 0..4 {
            let before = descriptors();
            let alive = tokio::runtime::Handle::current().metrics().num_alive_tasks();
            let stack = tcpio::Stack::open(options.clone())?;
            assert!(descriptors() > before);
            let mut stream = stack.connect(target, connect())?;
            stream.connected().await?;
            if round < 3 {
                stream.write_all(b"not the last").await?;
            }
            drop(stack);
            // The stream alone keeps it.
            stream.shutdown().await?;
            assert_eq!(stream.read(&mut [0; 1]).await?, 0);
            drop(stream);
            until("no task and no descriptor is left", || {
                // The server's go meanwhile.
                descriptors() <= before
                    && tokio::runtime::Handle::current().metrics().num_alive_tasks() == alive
            })
            .await?;
        }
        Ok(())
    }))?;
    join(server)
}

/// Connections that all end at once, while who serves them has something else to do.
fn all_end_at_once() -> TestResult {
    const CONNECTIONS: usize = 1000;
    let net = Net::direct()?;
    let [a, b] = net.sides();
    let target = at(b.addresses()[0], 7000);
    let (ready, listening) = channel();
    let (accepted, all_accepted) = channel();
    let (ended, all_ended) = channel();
    let server = b.with_stack(joined(&b), move |stack| async move {
        let listener = stack.listen(target, listen())?;
        ready.send(())?;
        let mut streams = Vec::new();
        while streams.len() < CONNECTIONS {
            streams.push(listener.accept().await?);
        }
        accepted.send(())?;
        // Meanwhile nobody drives the stack: this is its runtime's only thread.
        all_ended.recv_timeout(WAIT)?;
        for stream in &mut streams {
            assert_eq!(stream.read(&mut [0; 1]).await?, 0);
        }
        Ok(stack.info().counters)
    });
    listening.recv_timeout(WAIT)?;
    join(a.with_stack(joined(&a), move |stack| async move {
        let mut streams = Vec::new();
        for _ in 0..CONNECTIONS {
            let stream = stack.connect(target, connect())?;
            stream.connected().await?;
            streams.push(stream);
        }
        all_accepted.recv_timeout(WAIT)?;
        // Each says so at once.
        drop(streams);
        Ok(ended.send(())?)
    }))?;
    let counters = join(server)?;
    assert_eq!(counters.lost, 0, "{counters:?}");
    Ok(())
}

/// A stack that takes super-segments.
fn joined(side: &Side) -> StackOptions {
    let name = side.end.interface.clone();
    let device = DeviceOptions::Interface { name, vnet_header: true };
    StackOptions { device, ..side.options() }
}
