//! Any bytes as a capture file: what the readers say of them stays within them, and is the same
//! however few of them are seen at once.

use capture::format::{MAX_CAPTURED, Reader, Record, Step, pcapng};

/// Frames of `bytes` for a reader that sees `more` bytes beyond what it asks for.
fn frames(bytes: &[u8], more: usize) -> (Vec<(usize, Record)>, bool) {
    let mut frames = Vec::new();
    let Ok(mut reader) = Reader::recognise(bytes) else { return (frames, false) };
    let (mut at, mut seen) = (0, 0);
    loop {
        let rest = &bytes[at..];
        let view = &rest[..rest.len().min(seen)];
        let used = match reader.step(view) {
            Ok(Step::Need(need)) => {
                assert!(need > view.len() && need <= pcapng::MAX_SECRETS as usize + 64);
                if need > rest.len() {
                    return (frames, false);
                }
                seen = need + more;
                continue;
            }
            Ok(Step::Frame(record)) => {
                assert!(record.captured <= MAX_CAPTURED);
                assert!(record.original_len >= record.captured);
                assert!(record.start + record.captured <= record.used);
                assert!(record.used as usize <= view.len());
                frames.push((at, record));
                record.used as u64
            }
            Ok(Step::KeyLog { start, len, used }) => {
                assert!(start + len <= used && used <= view.len());
                used as u64
            }
            Ok(Step::Pass(count) | Step::Part(count)) => count,
            Err(_) => return (frames, true),
        };
        assert!(used > 0);
        match usize::try_from(used) {
            Ok(used) if used <= rest.len() => at += used,
            _ => return (frames, false),
        }
    }
}

/// As the module says.
pub fn formats(bytes: &[u8]) {
    assert_eq!(frames(bytes, 0), frames(bytes, usize::MAX / 2));
}
