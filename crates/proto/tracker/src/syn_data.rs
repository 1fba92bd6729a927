//! Data on a SYN: part of the stream only as far as the server acknowledged them.
//!
//! A server may take none of them (RFC 9293 §3.10.7.2 lets it, RFC 7413 §4.2 tells when); the
//! client then sends them again, or, in SSLmTCP, other bytes at the same sequence numbers.

use crate::tls::Mark;

/// SYNs of which the data are kept: the first, and one that was sent again with others.
const MAX_SYNS: usize = 2;

/// The data of one SYN.
#[derive(Debug)]
pub(crate) struct SynData {
    /// As far as captured.
    pub(crate) bytes: Box<[u8]>,
    /// Their number by the IP header.
    pub(crate) len: usize,
    /// Bytes of the TCP segment, header included.
    pub(crate) segment_len: usize,
    pub(crate) mark: Mark,
}

/// What is known of the data on a client's SYNs.
#[derive(Debug, Default)]
pub(crate) struct SynDataState {
    /// Those that wait for the server's word, in the order of capture.
    waiting: Vec<SynData>,
    /// What the server did not take, and where in the stream it would have been.
    refused: Option<(u64, Box<[u8]>)>,
    /// The server's word is known: what other SYNs carry does not count.
    settled: bool,
}

impl SynDataState {
    /// Whether the server's word is known.
    pub(crate) const fn is_settled(&self) -> bool {
        self.settled
    }

    /// The number of bytes on the first SYN that waits for the server's word, and the greatest of
    /// any.
    pub(crate) fn waiting(&self) -> Option<(u64, u64)> {
        let longest = self.waiting.iter().map(|one| one.len as u64).max()?;
        self.waiting.first().map(|first| (first.len as u64, longest))
    }

    /// Keeps the data of a SYN. False if they are the same as those of one before, or come too
    /// late to count.
    pub(crate) fn keep(&mut self, data: SynData) -> bool {
        let same = |one: &SynData| one.len == data.len && one.bytes == data.bytes;
        if self.settled || self.waiting.iter().any(same) {
            return false;
        }
        // The last one kept gives way: the first may still be the one that arrived.
        self.waiting.truncate(MAX_SYNS - 1);
        self.waiting.push(data);
        true
    }

    /// The server took `acked` bytes: the data that it took them of, if it took any. Of several
    /// SYNs it took the first that has as many, else the last.
    pub(crate) fn settle(&mut self, acked: u64) -> Option<SynData> {
        self.settled = true;
        let exact = self.waiting.iter().position(|one| one.len as u64 == acked);
        let mut waiting = std::mem::take(&mut self.waiting);
        let chosen = exact.unwrap_or(waiting.len().saturating_sub(1));
        if chosen >= waiting.len() {
            return None;
        }
        let data = waiting.swap_remove(chosen);
        let taken = usize::try_from(acked).unwrap_or(usize::MAX);
        if taken >= data.len {
            return Some(data);
        }
        let split = taken.min(data.bytes.len());
        let (kept, refused) = data.bytes.split_at_checked(split)?;
        self.refused = Some((acked, refused.into()));
        let kept = kept.into();
        (taken > 0).then_some(SynData { bytes: kept, len: taken, ..data })
    }

    /// Whether a segment's `payload` at `start` sends again only what was refused. Anything else
    /// at these sequence numbers replaces it.
    pub(crate) fn sent_again(&mut self, start: u64, payload: &[u8]) -> bool {
        let Some((at, refused)) = &self.refused else { return false };
        if start.saturating_add(payload.len() as u64) <= *at {
            return false;
        }
        let from = start.checked_sub(*at).and_then(|from| usize::try_from(from).ok());
        let rest = from.and_then(|from| refused.get(from..));
        let same = rest.is_some_and(|rest| rest.starts_with(payload));
        if !same {
            self.refused = None;
        }
        same
    }

    pub(crate) fn held_bytes(&self) -> usize {
        let refused = self.refused.as_ref().map_or(0, |(_, bytes)| bytes.len());
        let each = |data: &SynData| data.bytes.len().saturating_add(size_of::<SynData>());
        let waiting: usize = self.waiting.iter().map(each).sum();
        waiting.saturating_add(refused)
    }

    /// Lets go of what is held.
    pub(crate) fn release(&mut self) {
        *self = SynDataState { settled: true, ..SynDataState::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(bytes: &[u8]) -> SynData {
        SynData {
            bytes: bytes.into(),
            len: bytes.len(),
            segment_len: 20 + bytes.len(),
            mark: Mark::default(),
        }
    }

    fn taken(kept: &[&[u8]], acked: u64) -> Option<Vec<u8>> {
        let mut state = SynDataState::default();
        for bytes in kept {
            state.keep(data(bytes));
        }
        state.settle(acked).map(|data| data.bytes.into())
    }

    #[test]
    fn what_was_acknowledged_is_taken() {
        assert_eq!(taken(&[b"hello"], 5), Some(b"hello".to_vec()));
        assert_eq!(taken(&[b"hello"], 9), Some(b"hello".to_vec()));
        assert_eq!(taken(&[b"hello"], 2), Some(b"he".to_vec()));
        assert_eq!(taken(&[b"hello"], 0), None);
        assert_eq!(taken(&[], 5), None);
    }

    #[test]
    fn of_several_syns_the_one_of_that_length_was_taken() {
        assert_eq!(taken(&[b"hello", b"other hello"], 5), Some(b"hello".to_vec()));
        assert_eq!(taken(&[b"hello", b"other hello"], 11), Some(b"other hello".to_vec()));
        assert_eq!(taken(&[b"hello", b"ohell"], 5), Some(b"hello".to_vec()));
        assert_eq!(taken(&[b"hello", b"a third one", b"the last"], 8), Some(b"the last".to_vec()));
    }

    #[test]
    fn what_replaces_refused_data_is_no_retransmission() {
        let mut state = SynDataState::default();
        assert!(state.keep(data(b"hello")) && !state.keep(data(b"hello")));
        assert!(state.settle(1).is_some());
        assert_eq!(state.held_bytes(), 4);
        assert!(state.sent_again(1, b"el") && state.sent_again(3, b"lo"));
        assert!(!state.sent_again(1, b"elloh"));
        assert_eq!(state.held_bytes(), 0);
        assert!(!state.keep(data(b"late")));
    }
}
