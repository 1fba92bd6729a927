//! Our stack against our stack.

use linkmodel::{Path, Reorder};

use lab_test::net::WAIT;
use lab_test::net::sides::*;
use lab_test::{Test, TestResult};

pub fn tests() -> Vec<Test> {
    vec![
        Test::inside("ours_to_ours_by_either_family", either_family),
        Test::inside("ours_to_ours_over_a_lossy_reordering_link", lossy),
        Test::inside("many_connections_of_ours_at_once", many),
        Test::inside("a_spinning_stack_works_the_same", spinning),
        Test::inside("a_runtime_of_several_threads", several_threads),
    ]
}

/// `count` connections from a to b, `len` bytes each way.
fn transfer(net: &Net, family: usize, count: usize, len: usize) -> TestResult {
    let [a, b] = net.sides();
    let target = at(b.addresses()[family], 7000);
    let (ready, listening) = std::sync::mpsc::channel();
    let server = b.with_stack(b.options(), move |stack| async move {
        let listener = stack.listen(target, listen())?;
        ready.send(())?;
        let mut tasks = Vec::new();
        for _ in 0..count {
            let stream = listener.accept().await?;
            let seed = u64::from(stream.peer_addr().port()) << 8;
            tasks.push(tokio::task::spawn_local(exchange(stream, seed, len, false)));
        }
        for task in tasks {
            task.await??;
        }
        stack.shutdown().await;
        Ok(())
    });
    listening.recv_timeout(WAIT)?;
    let client = a.with_stack(a.options(), move |stack| async move {
        let mut tasks = Vec::new();
        for _ in 0..count {
            let stream = stack.connect(target, connect())?;
            stream.connected().await?;
            let seed = u64::from(stream.local_addr().port()) << 8;
            tasks.push(tokio::task::spawn_local(exchange(stream, seed, len, true)));
        }
        for task in tasks {
            task.await??;
        }
        stack.shutdown().await;
        Ok(())
    });
    join(client)?;
    join(server)
}

fn either_family() -> TestResult {
    let net = Net::direct()?;
    transfer(&net, 0, 1, 1_000_000)?;
    transfer(&net, 1, 1, 1_000_000)
}

fn lossy() -> TestResult {
    let mut path = Path::symmetric("4ms".parse()?).with_loss("1%".parse::<units::Probability>()?);
    for side in [&mut path.forward, &mut path.backward] {
        side.reorder = Reorder { probability: "1%".parse()?, delay: "1ms".parse()? };
    }
    transfer(&Net::emulated(&path)?, 0, 2, 1_000_000)
}

fn many() -> TestResult {
    transfer(&Net::direct()?, 0, 300, 3000)
}

fn spinning() -> TestResult {
    let net = Net::direct()?;
    let [a, b] = net.sides();
    let target = at(b.kernel()[0], 7000);
    let (ready, listening) = std::sync::mpsc::channel();
    let server = b.node.spawn(move || async move {
        let listener = tokio::net::TcpListener::bind(target).await?;
        ready.send(())?;
        let (stream, _) = listener.accept().await?;
        exchange(stream, 1, 300_000, false).await
    });
    listening.recv_timeout(WAIT)?;
    let options = tcpio::StackOptions { spin: std::time::Duration::from_millis(5), ..a.options() };
    join(a.with_stack(options, move |stack| async move {
        let stream = stack.connect(target, connect())?;
        exchange(stream, 1, 300_000, true).await
    }))?;
    join(server)
}

fn several_threads() -> TestResult {
    let net = Net::direct()?;
    let [a, b] = net.sides();
    let target = at(b.kernel()[0], 7000);
    let (ready, listening) = std::sync::mpsc::channel();
    let count = 8;
    let server = b.node.spawn(move || async move {
        let listener = tokio::net::TcpListener::bind(target).await?;
        ready.send(())?;
        let mut tasks = Vec::new();
        for _ in 0..count {
            let (stream, peer) = listener.accept().await?;
            tasks.push(tokio::spawn(exchange(stream, u64::from(peer.port()), 200_000, false)));
        }
        for task in tasks {
            task.await??;
        }
        Ok(())
    });
    listening.recv_timeout(WAIT)?;
    let options = a.options();
    // The stack is opened on the node, by a runtime whose threads are elsewhere.
    let client = a.node.run(move || -> TestResult<std::thread::JoinHandle<TestResult>> {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let stack = {
            let _entered = runtime.enter();
            tcpio::Stack::open(options)?
        };
        Ok(std::thread::spawn(move || {
            runtime.block_on(async move {
                let mut tasks = Vec::new();
                for _ in 0..count {
                    let stream = stack.connect(target, connect())?;
                    let seed = u64::from(stream.local_addr().port());
                    tasks.push(tokio::spawn(exchange(stream, seed, 200_000, true)));
                }
                for task in tasks {
                    task.await??;
                }
                // Before the runtime ends, and the driver with it.
                stack.shutdown().await;
                Ok(())
            })
        }))
    })??;
    client.join().map_err(|_| "the client panicked")??;
    join(server)
}
