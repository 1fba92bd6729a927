//! Our stack against the kernel's TCP.

use linkmodel::{Path, Reorder};
use tokio::net::{TcpListener, TcpStream};

use lab_test::net::WAIT;
use lab_test::net::sides::*;
use lab_test::{Test, TestResult};

pub fn tests() -> Vec<Test> {
    vec![
        Test::inside("our_client_to_the_kernel", || ours_to_kernel(&Net::direct()?, 1_000_000)),
        Test::inside("the_kernels_client_to_us", || kernel_to_ours(&Net::direct()?, 1_000_000)),
        Test::inside("our_client_to_the_kernel_under_loss", || {
            ours_to_kernel(&lossy()?, 1_000_000)
        }),
        Test::inside("the_kernels_client_to_us_under_loss", || {
            kernel_to_ours(&lossy()?, 1_000_000)
        }),
        Test::inside("super_segments_both_ways", super_segments),
    ]
}

fn lossy() -> TestResult<Net> {
    let mut path = Path::symmetric("4ms".parse()?).with_loss("1%".parse::<units::Probability>()?);
    for side in [&mut path.forward, &mut path.backward] {
        side.reorder = Reorder { probability: "1%".parse()?, delay: "1ms".parse()? };
    }
    Net::emulated(&path)
}

fn ours_to_kernel(net: &Net, len: usize) -> TestResult {
    let [a, b] = net.sides();
    for family in 0..2 {
        let target = at(b.kernel()[family], 7000);
        let (ready, listening) = std::sync::mpsc::channel();
        let server = b.node.spawn(move || async move {
            let listener = TcpListener::bind(target).await?;
            ready.send(())?;
            let (stream, _) = listener.accept().await?;
            exchange(stream, 1, len, false).await
        });
        listening.recv_timeout(WAIT)?;
        join(a.with_stack(a.options(), move |stack| async move {
            let stream = stack.connect(target, connect())?;
            let info = stream.connected().await?;
            assert_eq!((info.local, info.remote), (stream.local_addr(), target));
            exchange(stream, 1, len, true).await
        }))?;
        join(server)?;
    }
    Ok(())
}

fn kernel_to_ours(net: &Net, len: usize) -> TestResult {
    let [a, b] = net.sides();
    for family in 0..2 {
        let target = at(b.addresses()[family], 7000);
        let (ready, listening) = std::sync::mpsc::channel();
        let server = b.with_stack(b.options(), move |stack| async move {
            let listener = stack.listen(at(target.ip(), 7000), listen())?;
            ready.send(())?;
            let stream = listener.accept().await?;
            stream.established().await?;
            assert_eq!(stream.local_addr(), target);
            exchange(stream, 1, len, false).await
        });
        listening.recv_timeout(WAIT)?;
        join(a.node.spawn(move || async move {
            let stream = TcpStream::connect(target).await?;
            exchange(stream, 1, len, true).await
        }))?;
        join(server)?;
    }
    Ok(())
}

/// With offloads on at both ends: what passes is not cut to the MTU.
fn super_segments() -> TestResult {
    let net = Net::direct()?;
    let [a, b] = net.sides();
    for side in [&a, &b] {
        let name = side.end.interface.clone();
        let on = packet::offload::Offloads {
            tx_checksum: true,
            scatter_gather: true,
            tso: true,
            gso: true,
            gro: true,
        };
        side.node.run(move || packet::offload::set(&name, on))??;
    }
    let len = 20_000_000;
    let target = at(b.kernel()[0], 7000);
    let (ready, listening) = std::sync::mpsc::channel();
    let server = b.node.spawn(move || async move {
        let listener = TcpListener::bind(target).await?;
        ready.send(())?;
        let (stream, _) = listener.accept().await?;
        exchange(stream, 1, len, false).await
    });
    listening.recv_timeout(WAIT)?;
    let mut options = a.options();
    options.device =
        tcpio::DeviceOptions::Interface { name: a.end.interface.clone(), vnet_header: true };
    let (sent, received) = join(a.with_stack(options, move |stack| async move {
        let stream = stack.connect(target, connect())?;
        exchange(stream, 1, len, true).await?;
        let counters = stack.info().counters;
        Ok((counters.sent, counters.received))
    }))?;
    join(server)?;
    // Segments of the MTU would be 13,812 each way, and acknowledgments besides.
    assert!(sent < 10_000 && received < 10_000, "{sent} frames sent, {received} received");
    Ok(())
}
