//! A flood of SYNs with data from addresses that do not answer.

use std::io;

use tcp::{ListenOptions, SynWithData};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use lab_test::net::pattern::Pattern;
use lab_test::net::peers::{Family, Meeting, PORT, limited};
use lab_test::net::syn_flood::{Flood, resident};
use lab_test::net::{WAIT, direct};
use lab_test::{Test, TestResult};

pub fn tests() -> Vec<Test> {
    vec![Test::new("a_flood_of_100000_syns_with_data_leaves_the_server_serving", flood)]
}

const SYNS: u32 = 100_000;
/// What the flood may add to the process's resident memory: the answers of the half-open
/// connections that are kept, and the streams of those that the application holds.
const MEMORY_LIMIT: usize = 32 << 20;

fn admit(_: &SynWithData<'_>) -> bool {
    true
}

/// Answers every connection, with data in its SYN or not: reads what is there, writes a flight of 3000 bytes.
async fn serve(listener: tcpio::TcpListener) -> io::Result<()> {
    loop {
        let mut stream = listener.accept().await?;
        tokio::spawn(async move {
            let mut request = vec![0; 1200];
            if stream.read_exact(&mut request).await.is_ok()
                && stream.write_all(&[7; 3000]).await.is_ok()
            {
                stream.answer();
                // A client that is there says more, or ends; a forged one times out.
                while matches!(stream.read(&mut request).await, Ok(1..)) {}
                let _ = stream.shutdown().await;
            }
        });
    }
}

fn flood() -> TestResult {
    let config = tcp::Config::default();
    let pair = direct()?;
    let gateway = pair.client.addr4()?;
    lab_test::net::peers::teach(&pair.client, &pair.server)?;
    let mut options =
        lab_test::net::peers::stack_options(&pair.server, &pair.client, config.clone())?;
    options.gateways = vec![gateway.into()];
    let stack = lab_test::net::peers::open_on(&pair.server, options)?;
    let (ours, kernel) = (pair.server.clone(), pair.client.clone());
    let meeting = Meeting { pair, stack, ours, kernel };
    let options = ListenOptions { admit, ..ListenOptions::default() };
    let listener = meeting.listen(Family::V4, PORT, options)?;
    drop(meeting.ours.spawn(move || serve(listener)));
    let to = meeting.our_socket(Family::V4, PORT)?;
    let client = move || async move {
        let mut stream = limited("a connection", tokio::net::TcpStream::connect(to)).await??;
        stream.write_all(&[3; 1200]).await?;
        let mut answer = vec![0; 3000];
        limited("the answer", stream.read_exact(&mut answer)).await??;
        assert_eq!(answer, [7; 3000]);
        TestResult::Ok(())
    };
    // All that is allocated once is there before.
    meeting.kernel.spawn(client).join_within(WAIT)??;
    let before = resident()?;
    let flood = Flood { to, syns: SYNS, payload: Pattern::new(1).take(1200) };
    let flooding = flood.start(&meeting.kernel, &meeting.ours)?;
    let (mut most, mut served) = (before, 0);
    while !flooding.is_finished() {
        meeting.kernel.spawn(client).join_within(WAIT)??;
        served += 1;
        most = most.max(resident()?);
    }
    let took = flooding.join().map_err(|_| "the flood panicked")??;
    meeting.kernel.spawn(client).join_within(WAIT)??;
    most = most.max(resident()?);
    let counters = meeting.stack.counters();
    println!(
        "{SYNS} SYNs in {took:?}; {served} clients served meanwhile; resident memory {} kB before, \
         {} kB at most; {counters:?}",
        before >> 10,
        most >> 10
    );
    assert!(served > 0, "the flood was over before the first client");
    // On a busy machine the device drops many of them: enough must come to fill both tables several times.
    let room = config.max_half_open_with_data + config.max_half_open_plain;
    assert!(counters.segments_in > 3 * room as u64, "{counters:?}");
    assert!(counters.half_open_with_data <= config.max_half_open_with_data, "{counters:?}");
    assert!(counters.half_open_plain <= config.max_half_open_plain, "{counters:?}");
    assert!(most.saturating_sub(before) < MEMORY_LIMIT, "{} bytes more", most - before);
    Ok(())
}
