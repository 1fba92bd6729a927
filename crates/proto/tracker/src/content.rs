//! What a TCP connection's streams hold: TLS from the first byte, TLS after another protocol, as
//! STARTTLS and HTTP's CONNECT have it, or another protocol alone.

use wire::proxy::{HeaderReader, Progress};

use crate::keylog::KeyLog;
use crate::side::{Pair, Sender};
use crate::tls::{Handshake, Mark};

/// Bytes of another protocol, of either side, behind which no TLS is looked for any more.
const PLAIN_BYTES: u64 = 16 * 1024;

/// The first byte of a TLS connection: a handshake record.
const HANDSHAKE_RECORD: u8 = 22;
/// The first byte of a record with an alert.
const ALERT_RECORD: u8 = 21;

/// Bytes by which a ClientHello is known: record header, message header, version.
const PROBE: usize = 11;

/// A ClientHello's body is at least this long: version, random, four empty or shortest vectors.
const HELLO_MIN: u32 = 2 + 32 + 1 + 4 + 2;
/// No ClientHello is longer.
const HELLO_MAX: u32 = 32 * 1024;

/// First bytes of clients whose protocols never go on to TLS in the same connection: HTTP requests,
/// of which only CONNECT does, and SSH.
const NEVER_TLS: [&[u8]; 7] = [b"GET ", b"POST", b"HEAD", b"PUT ", b"DELE", b"PRI ", b"SSH-"];

/// What the streams are read as.
#[derive(Debug)]
enum State {
    /// Nothing from the client yet.
    Unknown,
    /// A PROXY header, behind which the client's stream begins.
    Proxy(HeaderReader),
    /// Another protocol, which TLS may follow.
    Watched(Probe),
    Tls(Box<Handshake>),
    /// Something else: every payload byte is application data.
    Plain,
}

/// The front of what may be a ClientHello, cut by the end of a segment.
#[derive(Debug, Default)]
struct Probe {
    bytes: [u8; PROBE],
    have: usize,
}

/// The content of one connection.
#[derive(Debug)]
pub(crate) struct Content {
    state: State,
    /// Bytes of each stream that were no TLS.
    plain: Pair<u64>,
}

impl Content {
    /// Nothing is known.
    pub(crate) fn new() -> Self {
        Content { state: State::Unknown, plain: Pair::default() }
    }

    /// Takes it to be TLS from here on, whatever the bytes are.
    pub(crate) fn begin_tls(&mut self) {
        if !matches!(self.state, State::Tls(_)) {
            let handshake = Handshake::new(self.plain);
            self.state = State::Tls(Box::new(handshake));
        }
    }

    /// Whether nothing more of the streams is wanted.
    pub(crate) fn is_done(&self) -> bool {
        match &self.state {
            State::Unknown | State::Proxy(_) | State::Watched(_) => false,
            State::Plain => true,
            State::Tls(handshake) => handshake.is_done(),
        }
    }

    /// Whether the client's first byte is still awaited.
    pub(crate) const fn is_unknown(&self) -> bool {
        matches!(self.state, State::Unknown)
    }

    /// Whether it is TLS, or may yet come to it.
    pub(crate) const fn may_be_tls(&self) -> bool {
        matches!(self.state, State::Proxy(_) | State::Watched(_) | State::Tls(_))
    }

    /// Bytes held beside its own.
    pub(crate) fn held_bytes(&self) -> usize {
        match &self.state {
            State::Tls(handshake) => handshake.held_bytes(),
            _ => 0,
        }
    }

    /// Gives up what is not whole, to save memory. Whether a hello was.
    pub(crate) fn give_up(&mut self) -> bool {
        match &mut self.state {
            State::Tls(handshake) => handshake.give_up(),
            _ => false,
        }
    }

    /// Lets go of what is held for joining.
    pub(crate) fn release(&mut self) {
        if let State::Tls(handshake) = &mut self.state {
            handshake.release();
        }
    }

    /// The handshake, if there was one. `cut`: bytes are missing, so that a hello that began is one.
    pub(crate) fn into_handshake(self, cut: bool) -> Option<Box<Handshake>> {
        match self.state {
            State::Tls(handshake) if handshake.is_tls() || (cut && handshake.is_cut_hello()) => {
                Some(handshake)
            }
            _ => None,
        }
    }

    /// Takes bytes in order: a piece begins where a segment does. In `keys` those of its session are
    /// looked for.
    pub(crate) fn deliver(&mut self, side: Sender, bytes: &[u8], mark: Mark, keys: &KeyLog) {
        match &mut self.state {
            State::Plain => {}
            State::Tls(handshake) => handshake.deliver(side, bytes, mark, keys),
            State::Unknown | State::Proxy(_) | State::Watched(_) if side == Sender::Server => {
                if begins_server_hello(bytes) {
                    // The client's hello was captured later, or not at all.
                    self.hand_on(side, bytes, mark, keys);
                } else {
                    self.passed(side, bytes.len());
                }
            }
            State::Unknown => self.client_begins(bytes, mark, keys, true),
            State::Proxy(_) => self.proxy_header(bytes, mark, keys),
            State::Watched(_) => self.watch(bytes, mark, keys),
        }
        if matches!(&self.state, State::Tls(handshake) if handshake.is_not_tls()) {
            self.state = State::Plain;
        }
    }

    /// The client's first byte tells most protocols apart.
    fn client_begins(&mut self, bytes: &[u8], mark: Mark, keys: &KeyLog, may_be_proxied: bool) {
        let Some(first) = bytes.first() else { return };
        if *first == HANDSHAKE_RECORD || first & 0x80 != 0 {
            // A byte with the highest bit may begin a hello of SSL 2.0.
            self.hand_on(Sender::Client, bytes, mark, keys);
        } else if matches!(bytes, [20..=24, 3, 0..=4, ..])
            || NEVER_TLS.iter().any(|never| bytes.starts_with(never))
        {
            // A record, but no handshake: the capture began in the midst of TLS.
            self.state = State::Plain;
        } else if may_be_proxied && HeaderReader::may_begin(*first) {
            self.state = State::Proxy(HeaderReader::default());
            self.proxy_header(bytes, mark, keys);
        } else {
            self.state = State::Watched(Probe::default());
            self.watch(bytes, mark, keys);
        }
    }

    /// Passes a PROXY header, behind which the client's own first byte comes.
    fn proxy_header(&mut self, bytes: &[u8], mark: Mark, keys: &KeyLog) {
        let State::Proxy(reader) = &mut self.state else { return };
        match reader.next(bytes) {
            Progress::More => self.passed(Sender::Client, bytes.len()),
            Progress::End(at) => {
                self.state = State::Unknown;
                self.passed(Sender::Client, at);
                self.client_begins(bytes.get(at..).unwrap_or(&[]), mark, keys, false);
            }
            Progress::NotProxy => {
                self.state = State::Watched(Probe::default());
                self.watch(bytes, mark, keys);
            }
        }
    }

    /// Looks for a ClientHello in a piece of the client's: at its front, or behind the end of a line.
    fn watch(&mut self, bytes: &[u8], mark: Mark, keys: &KeyLog) {
        let State::Watched(probe) = &mut self.state else { return };
        let held = probe.have;
        if held > 0 && probe.extend(bytes) {
            if !probe.is_whole() {
                self.passed(Sender::Client, bytes.len());
                return;
            }
            let kept = probe.bytes;
            self.plain.client = self.plain.client.saturating_sub(held as u64);
            self.hand_on(Sender::Client, kept.get(..held).unwrap_or(&[]), mark, keys);
            self.hand_on(Sender::Client, bytes, mark, keys);
            return;
        }
        let mut line_begins = true;
        for (at, byte) in bytes.iter().enumerate() {
            if line_begins && *byte == HANDSHAKE_RECORD {
                let rest = bytes.get(at..).unwrap_or(&[]);
                let mut found = Probe::default();
                if found.extend(rest) {
                    self.passed(Sender::Client, at);
                    self.hello_at(found, rest, mark, keys);
                    return;
                }
            }
            line_begins = *byte == b'\n';
        }
        if let State::Watched(probe) = &mut self.state {
            *probe = Probe::default();
        }
        self.passed(Sender::Client, bytes.len());
    }

    /// What may be a ClientHello begins with `rest`, which ends the piece.
    fn hello_at(&mut self, found: Probe, rest: &[u8], mark: Mark, keys: &KeyLog) {
        if found.is_whole() {
            self.hand_on(Sender::Client, rest, mark, keys);
        } else if let State::Watched(probe) = &mut self.state {
            *probe = found;
            self.passed(Sender::Client, rest.len());
        }
    }

    /// Counts bytes that are no TLS.
    fn passed(&mut self, side: Sender, len: usize) {
        let plain = &mut self.plain[side];
        *plain = plain.saturating_add(len as u64);
        if *plain > PLAIN_BYTES && matches!(self.state, State::Proxy(_) | State::Watched(_)) {
            self.state = State::Plain;
        }
    }

    /// Hands TLS on, which begins here if it has not yet.
    fn hand_on(&mut self, side: Sender, bytes: &[u8], mark: Mark, keys: &KeyLog) {
        self.begin_tls();
        if let State::Tls(handshake) = &mut self.state {
            handshake.deliver(side, bytes, mark, keys);
        }
    }
}

impl Probe {
    /// Takes bytes as far as they are wanted. Whether all of it may still begin a ClientHello.
    fn extend(&mut self, bytes: &[u8]) -> bool {
        let before = self.have;
        for (to, from) in self.bytes.iter_mut().skip(before).zip(bytes) {
            *to = *from;
            self.have += 1;
        }
        let may = self.bytes.get(..self.have).is_some_and(may_begin_client_hello);
        if !may {
            self.have = before;
        }
        may
    }

    const fn is_whole(&self) -> bool {
        self.have == PROBE
    }
}

/// Whether up to eleven bytes are what a ClientHello in a record of its own begins with. Its message
/// may go on in further records.
fn may_begin_client_hello(bytes: &[u8]) -> bool {
    let fits = |at: usize, test: fn(u8) -> bool| bytes.get(at).is_none_or(|byte| test(*byte));
    let framed = fits(0, |byte| byte == HANDSHAKE_RECORD)
        && fits(1, |byte| byte == 3)
        && fits(2, |byte| byte <= 4)
        && fits(5, |byte| byte == 1)
        && fits(9, |byte| byte == 3)
        && fits(10, |byte| byte <= 4);
    let [_, _, _, r1, r0, _, m2, m1, m0, ..] = *bytes else { return framed };
    let record = u32::from(u16::from_be_bytes([r1, r0]));
    let message = u32::from_be_bytes([0, m2, m1, m0]);
    framed
        && (HELLO_MIN..=HELLO_MAX).contains(&message)
        && record >= PROBE as u32 - 5
        && record <= message.saturating_add(4)
}

/// Whether a piece of the server's begins with a record that holds a ServerHello.
fn begins_server_hello(bytes: &[u8]) -> bool {
    matches!(bytes, [HANDSHAKE_RECORD, 3, 0..=4, _, _, 2, 0, ..])
}

/// Whether a piece begins as a server's first TLS record does, or a client's: with a handshake
/// message or an alert.
pub(crate) fn begins_tls(bytes: &[u8]) -> bool {
    matches!(
        bytes,
        [HANDSHAKE_RECORD | ALERT_RECORD] | [HANDSHAKE_RECORD | ALERT_RECORD, 3 | 0x7f, ..]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELLO: [u8; PROBE] = [22, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3];

    #[test]
    fn a_hello_that_was_cut_is_tls_where_bytes_are_missing() {
        for (bytes, cut, is_tls) in [
            (&HELLO[..], true, true),
            (&HELLO, false, false),
            (&[22, 3, 1, 2, 0, 2, 0, 1, 0xfc, 3, 3], true, false),
            (&[22, 3, 1], true, false),
        ] {
            let mut content = Content::new();
            content.deliver(Sender::Client, bytes, Mark::default(), &KeyLog::new(0));
            assert_eq!(content.into_handshake(cut).is_some(), is_tls, "{bytes:?}");
        }
    }

    #[test]
    fn every_prefix_of_a_hello_may_begin_one_and_no_text_does() {
        for len in 0..=PROBE {
            assert!(may_begin_client_hello(&HELLO[..len]), "{len}");
        }
        for at in [0, 1, 2, 5, 6, 9, 10] {
            let mut wrong = HELLO;
            wrong[at] = 99;
            assert!(!may_begin_client_hello(&wrong), "{at}");
        }
        // A record that is longer than its message, one too short to tell, and a whole hello cut
        // into many records.
        for (record, may) in [([2, 1], false), ([0, 5], false), ([0, 6], true)] {
            let mut other = HELLO;
            other[3..5].copy_from_slice(&record);
            assert_eq!(may_begin_client_hello(&other), may, "{record:?}");
        }
        assert!(!may_begin_client_hello(b"STARTTLS\r\n"));
    }

    #[test]
    fn first_bytes_tell_what_needs_no_watching() {
        let done = |bytes: &[u8]| {
            let mut content = Content::new();
            content.deliver(Sender::Client, bytes, Mark::default(), &KeyLog::new(0));
            content.is_done()
        };
        for never in
            [&b"GET / HTTP/1.1"[..], b"SSH-2.0-x", &[23, 3, 3, 1, 0, 9], &[0x80, 1, 9, 9, 9]]
        {
            assert!(done(never), "{never:?}");
        }
        for watched in
            [&b"EHLO x"[..], b"CONNECT x", &[5, 1, 0], &[22], &[22, 3, 1], &HELLO, &[0x80]]
        {
            assert!(!done(watched), "{watched:?}");
        }
    }

    #[test]
    fn a_server_begins_with_handshake_or_alert() {
        assert!(begins_tls(&[22, 3, 3]) && begins_tls(&[21]) && begins_tls(&[22, 0x7f]));
        assert!(!begins_tls(b"220 ready") && !begins_tls(&[]) && !begins_tls(&[22, 22]));
    }
}
