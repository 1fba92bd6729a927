//! The reader of HTTP/1.1 responses.

use super::*;
use proptest::prelude::*;

fn whole(text: &str) -> Result<Response, Malformed> {
    let mut response = Response::default();
    response.receive(text.as_bytes())?;
    Ok(response)
}

#[test]
fn each_framing_finds_its_end() {
    for (text, done, keeps) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", true, true),
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no", false, true),
        ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", true, false),
        ("HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", true, true),
        ("HTTP/1.1 204 No Content\r\n\r\n", true, true),
        ("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", true, false),
        ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 x\r\n\r\n", true, true),
        ("HTTP/1.1 200 OK\r\n\r\nuntil the end", false, false),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, Chunked\r\n\r\n3;a=b\r\nabc\r\n10\r\n0123456789abcdef\r\n0\r\nX: y\r\n\r\n",
            true,
            true,
        ),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n", false, true),
    ] {
        let mut response = whole(text).unwrap();
        assert_eq!((response.is_done(), response.keeps_alive()), (done, keeps), "{text}");
        if text.contains("until") {
            assert!(response.ends() && response.is_done());
        } else {
            assert_eq!(response.ends(), done, "{text}");
        }
    }
}

#[test]
fn what_is_no_response_is_refused() {
    for (text, wrong) in [
        ("SSH-2.0\r\n\r\n", Malformed::StatusLine),
        ("HTTP/2 200\r\n\r\n", Malformed::StatusLine),
        ("HTTP/1.1 20\r\n\r\n", Malformed::StatusLine),
        ("HTTP/1.1 2000 x\r\n\r\n", Malformed::StatusLine),
        ("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", Malformed::ContentLength),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
            Malformed::ContentLength,
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
            Malformed::ContentLength,
        ),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz", Malformed::Chunk),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n", Malformed::Chunk),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff1\r\n",
            Malformed::Chunk,
        ),
        ("HTTP/1.1 204 x\r\n\r\nmore", Malformed::Excess),
    ] {
        assert_eq!(whole(text).err(), Some(wrong), "{text}");
    }
}

#[test]
fn responses_are_read_as_clients_read_them() {
    for (text, done, keeps) in [
        // RFC 9112 §6.3: equal values count as one.
        ("HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nok", true, true),
        ("HTTP/1.1 200 OK\r\nContent-Length: 2,2,\r\nContent-Length: 2\r\n\r\nok", true, true),
        // §2.2: a line feed alone ends a line.
        ("HTTP/1.1 200 OK\nContent-Length: 2\n\nok", true, true),
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\n\r\nok", true, true),
        ("HTTP/1.1 200 OK\nContent-Length: 2\r\n\nok", true, true),
        ("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n2;a=\"b\"\nok\n0\nA: b\n\n", true, true),
        // A coding counts, not the length beside it.
        (
            "HTTP/1.1 200 OK\r\nContent-Length: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            true,
            true,
        ),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\nContent-Length: 2\r\n\r\nok", false, false),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            true,
            true,
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nContent-Length: 2\r\n\r\nok",
            true,
            true,
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0000000000000000000002\r\nok\r\n0\r\n\r\n",
            true,
            true,
        ),
        // Several interim responses, and connection options in a list.
        (
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: foo, Close\r\n\r\n",
            true,
            false,
        ),
        ("HTTP/1.1 304 x\r\nContent-Length: 9\r\n\r\n", true, true),
        ("HTTP/1.1 200 OK\r\nX-Folded: a\r\n b\r\nContent-Length : 2\r\n\r\nok", true, true),
    ] {
        let response = whole(text).map_err(|wrong| format!("{text}: {wrong}")).unwrap();
        assert_eq!((response.is_done(), response.keeps_alive()), (done, keeps), "{text}");
        // In pieces of one byte it is the same.
        let mut pieces = Response::default();
        text.bytes().for_each(|byte| pieces.receive(&[byte]).unwrap());
        assert_eq!((pieces.is_done(), pieces.keeps_alive()), (done, keeps), "{text}");
    }
    for wrong in ["2, 3", "2,,x", "", "+2", "2 2"] {
        let text = format!("HTTP/1.1 200 OK\r\nContent-Length: {wrong}\r\n\r\nok");
        assert_eq!(whole(&text).err(), Some(Malformed::ContentLength), "{wrong}");
    }
}

#[test]
fn a_response_to_head_has_no_body() {
    let mut response = Response::default();
    response.set_answers_head(true);
    for _ in 0..2 {
        response.reset();
        response.receive(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n").unwrap();
        assert!(response.is_done() && response.keeps_alive());
    }
}

#[test]
fn long_heads_and_many_fields_are_read() {
    for (fields, len) in [(1, 200_000), (3000, 60)] {
        let field = format!("Set-Cookie: {}\r\n", "a".repeat(len));
        let text =
            format!("HTTP/1.1 200 OK\r\n{}Content-Length: 2\r\n\r\nok", field.repeat(fields));
        assert!(whole(&text).unwrap().is_done(), "{fields} fields of {len} bytes");
    }
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "A: b\r\n".repeat(5000));
    assert_eq!(whole(&many).err(), Some(Malformed::HeadTooLong));
}

#[test]
fn a_head_without_end_is_given_up() {
    let mut response = Response::default();
    response.receive(b"HTTP/1.1 200 OK\r\n").unwrap();
    let line = [b'a'; 1000];
    let refused = (0..300).find_map(|_| response.receive(&line).err());
    assert_eq!(refused, Some(Malformed::HeadTooLong));
    assert!(response.head.len() <= MAX_HEAD);
    let mut response = Response::default();
    response.receive(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n").unwrap();
    let refused = (0..300).find_map(|_| response.receive(&line).err());
    assert_eq!(refused, Some(Malformed::HeadTooLong));
}

proptest! {
    #[test]
    fn the_pieces_do_not_matter(cuts in proptest::collection::vec(1usize..20, 0..40)) {
        let text = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nA: b\r\n\r\n";
        let mut response = Response::default();
        let mut rest = &text[..];
        for cut in cuts {
            let (piece, after) = rest.split_at(cut.min(rest.len()));
            response.receive(piece).unwrap();
            rest = after;
        }
        response.receive(rest).unwrap();
        prop_assert!(response.is_done());
        prop_assert_eq!(response.status(), 200);
    }

    #[test]
    fn rubbish_never_panics_nor_grows(pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..200), 0..50)) {
        let mut response = Response::default();
        for piece in [&b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"[..]].into_iter().chain(pieces.iter().map(Vec::as_slice)) {
            if response.receive(piece).is_err() { break; }
        }
        prop_assert!(response.head.len() <= MAX_HEAD);
        let mut response = Response::default();
        for piece in &pieces {
            if response.receive(piece).is_err() { break; }
        }
        prop_assert!(response.head.len() <= MAX_HEAD);
    }
}
