//! What is asked and answered, in bytes.

/// How a question begins.
const MARK: &[u8; 16] = b"wiretax survey 1";
/// Bytes of a question's head: the mark, its length and that of the answer.
pub const LEAST: usize = MARK.len() + 4;
/// Most bytes of a question or an answer: what a SYN at an MTU of 1500 holds, and some that it does not.
pub const LARGEST: usize = 4_096;
/// Bytes behind the answer: how many bytes of the SYN's data the server took, and sent on the SYN+ACK.
pub(super) const SEEN: usize = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Question {
    /// Bytes of it in all.
    pub(super) len: usize,
    /// Bytes that are wanted in answer.
    pub(super) answer: usize,
}

/// What the server saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen {
    /// Bytes of data that it took from the SYN.
    pub(super) syn: u16,
    /// Bytes of data that it sent on the SYN+ACK.
    pub(super) syn_ack: u16,
}

impl Question {
    /// The question's bytes.
    pub(super) fn bytes(self) -> Vec<u8> {
        let mut bytes = MARK.to_vec();
        for number in [self.len, self.answer] {
            bytes.extend(u16::try_from(number).unwrap_or(u16::MAX).to_be_bytes());
        }
        bytes.extend(filler(self.len.saturating_sub(LEAST)));
        bytes
    }

    /// The question that begins so; `None` if it is none, or not of a length that is asked for.
    pub(super) fn read(bytes: &[u8]) -> Option<Question> {
        let (mark, rest) = bytes.split_at_checked(MARK.len())?;
        let (numbers, _) = rest.split_first_chunk::<4>()?;
        let [a, b, c, d] = *numbers;
        let len = usize::from(u16::from_be_bytes([a, b]));
        let answer = usize::from(u16::from_be_bytes([c, d]));
        let sound = mark == MARK && (LEAST..=LARGEST).contains(&len) && answer <= LARGEST;
        sound.then_some(Question { len, answer })
    }

    /// Whether bytes that came are this question, unchanged.
    pub(super) fn is(self, bytes: &[u8]) -> bool {
        bytes == self.bytes()
    }
}

impl Seen {
    pub(super) fn bytes(self) -> [u8; SEEN] {
        let ([a, b], [c, d]) = (self.syn.to_be_bytes(), self.syn_ack.to_be_bytes());
        [a, b, c, d]
    }

    pub(super) fn read(bytes: &[u8]) -> Option<Seen> {
        let [a, b, c, d] = *bytes.first_chunk::<SEEN>()?;
        Some(Seen { syn: u16::from_be_bytes([a, b]), syn_ack: u16::from_be_bytes([c, d]) })
    }
}

/// Bytes that say where they belong, so that none can be lost, moved or made up unseen.
pub(super) fn filler(len: usize) -> impl Iterator<Item = u8> {
    (0..len).map(|at| u8::try_from((at * 131 + at / 251) % 256).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_question_is_read_as_it_was_written() {
        for (len, answer) in [(LEAST, 0), (100, 1_300), (LARGEST, LARGEST)] {
            let question = Question { len, answer };
            let bytes = question.bytes();
            assert_eq!((bytes.len(), Question::read(&bytes)), (len, Some(question)));
            assert!(question.is(&bytes));
        }
        let seen = Seen { syn: 1_400, syn_ack: 0 };
        assert_eq!(Seen::read(&seen.bytes()), Some(seen));
    }

    proptest! {
        #[test]
        fn no_bytes_panic_and_few_are_questions(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            if let Some(question) = Question::read(&bytes) {
                prop_assert!(bytes.starts_with(MARK) && question.len <= LARGEST);
            }
            let _ = Seen::read(&bytes);
        }
    }
}
