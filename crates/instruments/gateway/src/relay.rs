//! Bytes both ways between the unmodified program's connection and the peer's, each direction ending
//! by itself.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use sslmtcp::SslmTcpStream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

use crate::metrics::Counter;

/// Bytes that one read takes at most: some TLS records (RFC 8446 §5.1: 16 KiB each).
pub(crate) const SCRATCH: usize = 64 << 10;
/// Bytes that are read for a connection that has no room: a TLS record.
pub(crate) const LEAST: usize = 16 << 10;
/// Reads of one direction before others have their turn.
const ROUNDS: usize = 16;

thread_local! {
    /// What is read goes through here, so that a connection that waits holds no buffer.
    static READ: RefCell<Box<[u8]>> = RefCell::new(vec![0; SCRATCH].into_boxed_slice());
}

/// A connection that a relay writes to.
pub(crate) trait Sink: AsyncWrite + Unpin {
    /// Bytes that it takes at once, if it knows.
    fn room(&self) -> usize {
        SCRATCH
    }
}

impl Sink for TcpStream {}

impl Sink for SslmTcpStream {
    fn room(&self) -> usize {
        SslmTcpStream::room(self)
    }
}

/// Which of the two connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// The unmodified program's, over the kernel's TCP.
    Local,
    /// The peer's, over ours.
    Peer,
}

/// Why it ended before both directions did.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Broken {
    /// A connection broke off.
    #[error("{} broke off: {source}", if *.side == Side::Local { "the local connection" } else { "the connection to the peer" })]
    Connection { side: Side, source: io::Error },
    /// Nothing moved for so long.
    #[error("no byte moved for {} s or longer (raise --idle-timeout if that is usual)", .0.as_secs())]
    Idle(Duration),
}

/// What to carry, and how it is counted.
pub(crate) struct Carriage<'a> {
    /// Bytes of the local program that were read already.
    pub(crate) first: Vec<u8>,
    /// Counts local to peer.
    pub(crate) to_peer: &'a Counter,
    /// Counts peer to local.
    pub(crate) from_peer: &'a Counter,
    /// It ends when nothing moves for this long, twice this at most.
    pub(crate) idle: Duration,
}

/// Carries bytes until both directions have ended; the end of one is passed on and leaves the other
/// open (RFC 9293 §3.6). `look` is called with the peer's connection whenever something may have come:
/// a ticket comes without a byte for the program, and often after the last one.
pub(crate) async fn relay<L, P>(
    local: &mut L,
    peer: &mut P,
    carriage: Carriage<'_>,
    mut look: impl FnMut(&mut P),
) -> Result<(), Broken>
where
    L: AsyncRead + Sink,
    P: AsyncRead + Sink,
{
    let Carriage { first, to_peer, from_peer, idle } = carriage;
    let mut up = Direction { unflushed: !first.is_empty(), kept: first, ..Direction::default() };
    let mut down = Direction::default();
    let mut progress = false;
    let mut timer = pin!(sleep(idle));
    poll_fn(|context| {
        let before = (up.moved, down.moved);
        let up_done = up.poll(context, local, peer, [Side::Local, Side::Peer])?;
        let down_done = down.poll(context, peer, local, [Side::Peer, Side::Local])?;
        to_peer.add(up.moved - before.0);
        from_peer.add(down.moved - before.1);
        progress |= before != (up.moved, down.moved);
        look(peer);
        if up_done.is_ready() && down_done.is_ready() {
            return Poll::Ready(Ok(()));
        }
        while timer.as_mut().poll(context).is_ready() {
            if !std::mem::take(&mut progress) {
                return Poll::Ready(Err(Broken::Idle(idle)));
            }
            timer.as_mut().reset(Instant::now() + idle);
        }
        Poll::Pending
    })
    .await
}

/// One direction: what was read and not yet written, and how far it is.
#[derive(Default)]
struct Direction {
    kept: Vec<u8>,
    written: usize,
    unflushed: bool,
    state: State,
    /// Bytes written so far.
    moved: u64,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Open,
    /// The end was read, and is to be passed on.
    Ending,
    Done,
}

impl Direction {
    fn poll<R, W>(
        &mut self,
        context: &mut Context<'_>,
        reader: &mut R,
        writer: &mut W,
        [from, to]: [Side; 2],
    ) -> Poll<Result<(), Broken>>
    where
        R: AsyncRead + Unpin,
        W: Sink,
    {
        let broken = |side| move |source| Broken::Connection { side, source };
        for _ in 0..ROUNDS {
            ready!(self.write_kept(context, writer)).map_err(broken(to))?;
            match self.state {
                State::Open => {
                    // A source is read no faster than its bytes can go.
                    let most = writer.room().clamp(LEAST, SCRATCH);
                    let read = READ.with_borrow_mut(|scratch| {
                        let scratch = scratch.get_mut(..most).unwrap_or_default();
                        let mut buffer = ReadBuf::new(scratch);
                        let read = Pin::new(&mut *reader).poll_read(context, &mut buffer);
                        read.map_ok(|()| self.pass_on(context, writer, buffer.filled()))
                    });
                    match read {
                        Poll::Ready(read) => {
                            read.map_err(broken(from))?.map_err(broken(to))?;
                        }
                        Poll::Pending => {
                            ready!(self.flush(context, writer)).map_err(broken(to))?;
                            return Poll::Pending;
                        }
                    }
                }
                State::Ending => {
                    ready!(Pin::new(&mut *writer).poll_shutdown(context)).map_err(broken(to))?;
                    self.state = State::Done;
                }
                State::Done => return Poll::Ready(Ok(())),
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// Writes what was just read, and keeps what the writer does not take.
    fn pass_on<W: AsyncWrite + Unpin>(
        &mut self,
        context: &mut Context<'_>,
        writer: &mut W,
        mut bytes: &[u8],
    ) -> io::Result<()> {
        if bytes.is_empty() {
            self.state = State::Ending;
            return Ok(());
        }
        self.unflushed = true;
        while !bytes.is_empty() {
            match Pin::new(&mut *writer).poll_write(context, bytes) {
                Poll::Ready(taken) => {
                    let taken = some(taken?)?;
                    self.moved += taken as u64;
                    bytes = bytes.get(taken..).unwrap_or_default();
                }
                Poll::Pending => {
                    self.kept = bytes.to_vec();
                    break;
                }
            }
        }
        Ok(())
    }

    fn write_kept<W: AsyncWrite + Unpin>(
        &mut self,
        context: &mut Context<'_>,
        writer: &mut W,
    ) -> Poll<io::Result<()>> {
        while let Some(rest) = self.kept.get(self.written..).filter(|rest| !rest.is_empty()) {
            let taken = some(ready!(Pin::new(&mut *writer).poll_write(context, rest))?)?;
            self.written += taken;
            self.moved += taken as u64;
        }
        // Gives the memory back too.
        (self.kept, self.written) = (Vec::new(), 0);
        Poll::Ready(Ok(()))
    }

    fn flush<W: AsyncWrite + Unpin>(
        &mut self,
        context: &mut Context<'_>,
        writer: &mut W,
    ) -> Poll<io::Result<()>> {
        if self.unflushed {
            ready!(Pin::new(writer).poll_flush(context))?;
            self.unflushed = false;
        }
        Poll::Ready(Ok(()))
    }
}

/// A write of nothing would be tried for ever.
fn some(taken: usize) -> io::Result<usize> {
    if taken == 0 { Err(io::ErrorKind::WriteZero.into()) } else { Ok(taken) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

    impl Sink for DuplexStream {}

    const IDLE: Duration = Duration::from_secs(3600);

    struct Ends {
        program: DuplexStream,
        far: DuplexStream,
        task: tokio::task::JoinHandle<Result<(), Broken>>,
        counters: std::sync::Arc<[Counter; 2]>,
    }

    fn start(room: usize, first: &[u8], idle: Duration) -> Ends {
        let (program, mut local) = duplex(room);
        let (far, mut peer) = duplex(room);
        let counters = std::sync::Arc::new([Counter::default(), Counter::default()]);
        let (of_task, first) = (counters.clone(), first.to_vec());
        let task = tokio::spawn(async move {
            let [to_peer, from_peer] = &*of_task;
            let carriage = Carriage { first, to_peer, from_peer, idle };
            relay(&mut local, &mut peer, carriage, |_| ()).await
        });
        Ends { program, far, task, counters }
    }

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(future)
    }

    #[test]
    fn each_direction_ends_by_itself() {
        block_on(async {
            let mut ends = start(1 << 10, b"first ", IDLE);
            ends.program.write_all(b"request").await.unwrap();
            ends.program.shutdown().await.unwrap();
            let mut got = String::new();
            ends.far.read_to_string(&mut got).await.unwrap();
            assert_eq!(got, "first request");
            assert!(!ends.task.is_finished(), "the answer is still to come");
            ends.far.write_all(b"answer").await.unwrap();
            ends.far.shutdown().await.unwrap();
            got.clear();
            ends.program.read_to_string(&mut got).await.unwrap();
            assert_eq!(got, "answer");
            ends.task.await.unwrap().unwrap();
            assert_eq!(ends.counters.each_ref().map(Counter::get), [13, 6]);
        });
    }

    #[test]
    fn a_slow_reader_loses_nothing() {
        block_on(async {
            // A pipe of few bytes, so that every write is taken in part.
            let Ends { mut program, mut far, task, .. } = start(7, b"", IDLE);
            let sent: Vec<u8> = (0..20_000u32).map(|number| (number % 251) as u8).collect();
            let mut got = Vec::new();
            let (written, read) = tokio::join!(
                async {
                    program.write_all(&sent).await?;
                    program.shutdown().await
                },
                far.read_to_end(&mut got)
            );
            written.unwrap();
            read.unwrap();
            assert!(got == sent);
            far.shutdown().await.unwrap();
            assert_eq!(program.read(&mut [0]).await.unwrap(), 0);
            task.await.unwrap().unwrap();
        });
    }

    #[test]
    fn a_connection_that_breaks_off_is_no_end_of_data() {
        struct Breaks;
        impl AsyncRead for Breaks {
            fn poll_read(
                self: Pin<&mut Self>,
                _: &mut Context<'_>,
                _: &mut ReadBuf<'_>,
            ) -> Poll<io::Result<()>> {
                Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()))
            }
        }
        impl AsyncWrite for Breaks {
            fn poll_write(
                self: Pin<&mut Self>,
                _: &mut Context<'_>,
                bytes: &[u8],
            ) -> Poll<io::Result<usize>> {
                Poll::Ready(Ok(bytes.len()))
            }
            fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                Poll::Ready(Ok(()))
            }
            fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                Poll::Ready(Ok(()))
            }
        }
        impl Sink for Breaks {}
        block_on(async {
            let (_program, mut local) = duplex(100);
            let (to_peer, from_peer) = (Counter::default(), Counter::default());
            let (to_peer, from_peer) = (&to_peer, &from_peer);
            let carriage = Carriage { first: Vec::new(), to_peer, from_peer, idle: IDLE };
            let ended = relay(&mut local, &mut Breaks, carriage, |_| ()).await;
            assert!(matches!(ended, Err(Broken::Connection { side: Side::Peer, .. })), "{ended:?}");
        });
    }

    #[test]
    fn a_peer_without_room_is_read_a_record_for() {
        /// Takes nothing, and says so.
        struct Full;
        impl AsyncRead for Full {
            fn poll_read(
                self: Pin<&mut Self>,
                _: &mut Context<'_>,
                _: &mut ReadBuf<'_>,
            ) -> Poll<io::Result<()>> {
                Poll::Pending
            }
        }
        impl AsyncWrite for Full {
            fn poll_write(
                self: Pin<&mut Self>,
                _: &mut Context<'_>,
                _: &[u8],
            ) -> Poll<io::Result<usize>> {
                Poll::Pending
            }
            fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                Poll::Pending
            }
            fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                Poll::Pending
            }
        }
        impl Sink for Full {
            fn room(&self) -> usize {
                0
            }
        }
        block_on(async {
            let (mut program, mut local) = duplex(1 << 20);
            program.write_all(&[7; 1 << 20]).await.unwrap();
            let (to_peer, from_peer) = (Counter::default(), Counter::default());
            let (to_peer, from_peer) = (&to_peer, &from_peer);
            let idle = Duration::from_millis(1);
            let carriage = Carriage { first: Vec::new(), to_peer, from_peer, idle };
            let ended = relay(&mut local, &mut Full, carriage, |_| ()).await;
            assert!(matches!(ended, Err(Broken::Idle(_))), "{ended:?}");
            drop(program);
            let mut left = Vec::new();
            local.read_to_end(&mut left).await.unwrap();
            assert_eq!(left.len(), (1 << 20) - LEAST);
        });
    }

    #[test]
    fn what_never_moves_ends() {
        block_on(async {
            let ends = start(100, b"", Duration::from_millis(1));
            let ended = ends.task.await.unwrap();
            assert!(matches!(ended, Err(Broken::Idle(_))), "{ended:?}");
        });
    }
}
