//! Any bytes as an HTTP/1.1 response: however they are cut, the reader comes to the same end.
#![no_main]

use libfuzzer_sys::fuzz_target;
use load::Response;

fuzz_target!(|input: (u8, &[u8])| {
    let (cut, bytes) = input;
    let whole = read(bytes, bytes.len().max(1));
    let pieces = read(bytes, usize::from(cut).max(1));
    assert_eq!(whole, pieces, "in pieces of {cut}");
});

/// How reading ends, in pieces of this size.
fn read(bytes: &[u8], size: usize) -> (bool, Result<(u16, bool, bool), load::Malformed>) {
    let mut response = Response::default();
    for piece in bytes.chunks(size) {
        if let Err(malformed) = response.receive(piece) {
            return (false, Err(malformed));
        }
    }
    let done = response.is_done();
    let ended = response.ends();
    (done, Ok((response.status(), response.keeps_alive(), ended)))
}
