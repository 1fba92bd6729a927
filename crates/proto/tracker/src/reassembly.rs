//! Puts a byte stream in order: the first bytes of one direction of a TCP connection, or of a QUIC
//! CRYPTO stream. What comes in order is handed on without a copy; the rest is held, bounded.

/// Pieces of a stream's beginning that are held at most: a hostile sender can leave a hole between any
/// two.
const MAX_PIECES: usize = 64;
/// What a held piece takes beside its bytes, about: its place in the list, which doubles as it
/// grows, and the allocator's header.
const PIECE_OVERHEAD: usize = 2 * size_of::<Piece>() + 16;

/// A stream of which the bytes below `next` have been handed on.
#[derive(Debug)]
pub(crate) struct Reassembler {
    next: u64,
    limit: u64,
    /// Bytes and pieces that are held at most.
    room: (usize, usize),
    held: Vec<Piece>,
    held_bytes: usize,
    overflowed: bool,
}

#[derive(Debug)]
struct Piece {
    start: u64,
    data: Box<[u8]>,
}

impl Piece {
    fn end(&self) -> u64 {
        self.start.saturating_add(self.data.len() as u64)
    }
}

/// What a piece turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Every byte had been there before.
    Duplicate,
    /// It continued the stream or left a hole before it.
    New,
}

impl Reassembler {
    /// A stream of which the first `limit` bytes are wanted.
    pub(crate) fn new(limit: u64) -> Self {
        let room = usize::try_from(limit).unwrap_or(usize::MAX);
        Reassembler { room: (room, MAX_PIECES), ..Reassembler::whole(limit, (0, 0)) }
    }

    /// A stream of which the first `limit` bytes are wanted, and behind holes so many bytes and pieces are
    /// held.
    pub(crate) const fn whole(limit: u64, room: (usize, usize)) -> Self {
        Reassembler { next: 0, limit, room, held: Vec::new(), held_bytes: 0, overflowed: false }
    }

    /// Whether a byte that was wanted was given up.
    pub(crate) const fn has_overflowed(&self) -> bool {
        self.overflowed
    }

    /// The next byte to be handed on.
    pub(crate) const fn next(&self) -> u64 {
        self.next
    }

    /// Whether a byte that was wanted was given up, or is still awaited behind a hole.
    pub(crate) fn is_incomplete(&self) -> bool {
        self.overflowed || !self.held.is_empty()
    }

    /// Takes the bytes at `start` and hands on what is in order now. Where pieces overlap, the one
    /// that came first counts.
    pub(crate) fn insert(
        &mut self,
        start: u64,
        data: &[u8],
        mut deliver: impl FnMut(&[u8]),
    ) -> Kind {
        let wanted = usize::try_from(self.limit.saturating_sub(start)).unwrap_or(usize::MAX);
        if data.len() > wanted {
            self.overflowed = true;
        }
        let data = data.get(..wanted).unwrap_or(data);
        let end = start.saturating_add(data.len() as u64);
        if start > self.next {
            return self.hold(start, end, data);
        }
        let seen = usize::try_from(self.next.saturating_sub(start)).unwrap_or(usize::MAX);
        let Some(fresh @ [_, ..]) = data.get(seen..) else { return Kind::Duplicate };
        // Bytes held came before these: they count where both have them.
        let mut fresh = fresh;
        while let Some(piece) = self.take_first_before(end) {
            let before = usize::try_from(piece.start.saturating_sub(self.next)).unwrap_or(0);
            if let Some((gap, rest)) = fresh.split_at_checked(before) {
                self.hand_on(gap, &mut deliver);
                fresh = rest;
            }
            let seen = usize::try_from(self.next.saturating_sub(piece.start)).unwrap_or(usize::MAX);
            let held = piece.data.get(seen..).unwrap_or(&[]);
            fresh = fresh.get(held.len()..).unwrap_or(&[]);
            self.hand_on(held, &mut deliver);
        }
        self.hand_on(fresh, &mut deliver);
        while let Some(piece) = self.take_first_before(self.next) {
            let seen = usize::try_from(self.next.saturating_sub(piece.start)).unwrap_or(usize::MAX);
            self.hand_on(piece.data.get(seen..).unwrap_or(&[]), &mut deliver);
        }
        Kind::New
    }

    fn hand_on(&mut self, bytes: &[u8], deliver: &mut impl FnMut(&[u8])) {
        if !bytes.is_empty() {
            self.next = self.next.saturating_add(bytes.len() as u64);
            deliver(bytes);
        }
    }

    /// The held piece that begins first, if it begins at or before `end`.
    fn take_first_before(&mut self, end: u64) -> Option<Piece> {
        let (at, piece) = self.held.iter().enumerate().min_by_key(|(_, piece)| piece.start)?;
        if piece.start > end {
            return None;
        }
        let piece = self.held.swap_remove(at);
        self.held_bytes = self.held_bytes.saturating_sub(piece.data.len());
        Some(piece)
    }

    fn hold(&mut self, start: u64, end: u64, data: &[u8]) -> Kind {
        if data.is_empty() {
            return Kind::New;
        }
        if self.held.iter().any(|piece| piece.start <= start && end <= piece.end()) {
            return Kind::Duplicate;
        }
        let (room, pieces) = self.room;
        if self.held.len() >= pieces || self.held_bytes.saturating_add(data.len()) > room {
            self.overflowed = true;
            return Kind::New;
        }
        self.held_bytes = self.held_bytes.saturating_add(data.len());
        self.held.push(Piece { start, data: data.into() });
        Kind::New
    }

    /// Bytes held behind holes, with what holding them takes.
    pub(crate) const fn held_bytes(&self) -> usize {
        self.held_bytes.saturating_add(self.held.len().saturating_mul(PIECE_OVERHEAD))
    }

    /// Gives up what is held, to save memory.
    pub(crate) fn give_up(&mut self) {
        self.overflowed |= !self.held.is_empty();
        self.release();
    }

    /// Lets go of what is held: nothing more is wanted.
    pub(crate) fn release(&mut self) {
        self.held = Vec::new();
        self.held_bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn run(limit: u64, pieces: &[(u64, Vec<u8>)]) -> (Vec<u8>, Reassembler) {
        let mut stream = Reassembler::new(limit);
        let mut out = Vec::new();
        for (start, data) in pieces {
            stream.insert(*start, data, |bytes| out.extend_from_slice(bytes));
        }
        (out, stream)
    }

    #[test]
    fn holes_are_filled_and_duplicates_reported() {
        let mut stream = Reassembler::new(100);
        let mut out = Vec::new();
        let mut put = |start, data: &[u8]| stream.insert(start, data, |b| out.extend_from_slice(b));
        assert_eq!(put(0, b"abc"), Kind::New);
        assert_eq!(put(6, b"ghi"), Kind::New);
        assert_eq!(put(7, b"h"), Kind::Duplicate);
        assert_eq!(put(1, b"bc"), Kind::Duplicate);
        assert_eq!(put(2, b"cdefgh"), Kind::New);
        assert_eq!(out, b"abcdefghi");
        assert!(!stream.is_incomplete());
    }

    #[test]
    fn the_first_copy_counts_where_two_differ() {
        let pieces = [(2, b"CD".to_vec()), (0, b"abxxe".to_vec()), (0, b"zzzzzf".to_vec())];
        assert_eq!(run(100, &pieces).0, b"abCDef");
    }

    #[test]
    fn nothing_beyond_the_limit_is_kept() {
        let (out, stream) = run(4, &[(0, b"abcdef".to_vec()), (3, vec![0; 9]), (9, vec![1])]);
        assert_eq!(out, b"abcd");
        assert!(stream.is_incomplete() && stream.held_bytes == 0);
    }

    proptest! {
        #[test]
        fn any_order_gives_the_stream(
            data in proptest::collection::vec(any::<u8>(), 1..200),
            cuts in proptest::collection::vec((0usize..200, 1usize..60), 0..40),
        ) {
            let mut pieces: Vec<(u64, Vec<u8>)> = cuts
                .iter()
                .filter(|(at, _)| *at < data.len())
                .map(|(at, len)| (*at as u64, data[*at..(at + len).min(data.len())].to_vec()))
                .collect();
            pieces.push((0, data.clone()));
            let (out, stream) = run(1000, &pieces);
            prop_assert_eq!(out, data);
            prop_assert_eq!(stream.held_bytes, 0);
        }

        #[test]
        fn memory_is_bounded(
            pieces in proptest::collection::vec(
                (0u64..300, proptest::collection::vec(any::<u8>(), 0..60)), 0..200),
        ) {
            let (out, stream) = run(128, &pieces);
            prop_assert!(out.len() <= 128 && stream.held_bytes <= 128);
            prop_assert_eq!(out.len() as u64, stream.next());
        }
    }
}
