//! HTTP/2 as a load generator's client speaks it (RFC 9113): `GET` without bodies, many at once, read without
//! keeping anything of a response but its status.

mod hpack;
mod huffman;
mod reader;
mod session;

pub(crate) use hpack::get;
pub(crate) use reader::{Violation, code};
pub(crate) use session::{Outcome, Session, Stream};

/// Any bytes as what a server sends, for fuzzing: the first says how they are cut and how many streams are
/// open. However they are cut, all comes to the same end, and what waits to be sent is bounded.
pub fn fuzz(bytes: &[u8]) {
    let Some((first, bytes)) = bytes.split_first() else { return };
    let streams = usize::from(first >> 4) + 1;
    let whole = read(bytes, bytes.len().max(1), streams);
    let pieces = read(bytes, usize::from(first & 0x0f) + 1, streams);
    assert_eq!(whole, pieces, "{} streams in pieces of {}", streams, first & 0x0f);
}

/// What comes of reading in pieces of this size: the outcomes, the violation, and what is sent.
fn read(bytes: &[u8], size: usize, streams: usize) -> (Vec<Outcome>, Option<Violation>, Vec<u8>) {
    let mut session = Session::new(streams, None);
    let block = get("https", "server.test", "/");
    let mut outcomes = Vec::new();
    for due in 0..streams as u64 {
        session.request(&block, due, due);
    }
    // The reply to a server's settings may be a limit below what is open.
    let mut sent = std::mem::take(&mut session.out);
    for piece in bytes.chunks(size) {
        let done = session.receive(piece, 1, &mut |outcome| outcomes.push(outcome));
        assert!(session.out.len() <= (1 << 20) + 64 * 1024, "bounded");
        sent.append(&mut session.out);
        if let Err(violation) = done {
            return (outcomes, Some(violation), sent);
        }
    }
    assert!(session.open() <= streams);
    session.drain(|stream| outcomes.push(Outcome::Unprocessed(stream)));
    assert_eq!(session.open(), 0);
    (outcomes, None, sent)
}
