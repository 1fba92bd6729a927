//! One line of `samples.jsonl`.

use crate::{LineProblem, Sample};

/// The longest line, its line feed included, in bytes. A sample is some hundred bytes.
pub const MAX_LINE: usize = 1 << 20;

/// Reads one line, without its line feed. The bytes are not trusted.
///
/// # Errors
/// [`LineProblem`]: too long, not JSON of a sample (with the column), or a number out of range.
pub fn parse_line(line: &[u8]) -> Result<Sample, LineProblem> {
    if line.len() >= MAX_LINE {
        return Err(LineProblem::TooLong { limit: MAX_LINE });
    }
    let mut sample: Sample = serde_json::from_slice(line).map_err(|error| LineProblem::Json {
        column: error.column(),
        problem: without_place(&error),
    })?;
    sample.check()?;
    if let Some(key) = sample.point.get_mut("key") {
        rename_key(key);
    }
    Ok(sample)
}

/// Gives a key's name that is spelt as it was until version 0.1.0 its spelling of today, so that old
/// and new samples are of the same point.
pub(crate) fn rename_key(key: &mut String) {
    if matches!(key.as_str(), "rsa2048" | "rsa4096") {
        key.insert("rsa".len(), '-');
    }
}

/// The line of a sample, its line feed included. JSON escapes line feeds in text, so that one line
/// is one sample whatever the texts hold.
///
/// # Errors
/// [`LineProblem`]: not finite, or too long.
pub(crate) fn write_line(sample: &Sample, out: &mut Vec<u8>) -> Result<(), LineProblem> {
    sample.check()?;
    out.clear();
    serde_json::to_writer(&mut *out, sample)
        .map_err(|error| LineProblem::Json { column: 0, problem: without_place(&error) })?;
    out.push(b'\n');
    if out.len() > MAX_LINE {
        return Err(LineProblem::TooLong { limit: MAX_LINE });
    }
    Ok(())
}

/// serde_json's message without its "at line 1 column 2", which is said by the caller.
pub(crate) fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(at) => text[..at].to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Outcome, sample::tests::example};
    use proptest::prelude::*;

    #[test]
    fn the_line_of_a_sample() {
        let mut line = Vec::new();
        write_line(&example(0), &mut line).unwrap();
        assert_eq!(
            String::from_utf8(line).unwrap(),
            concat!(
                r#"{"study":"handshake","point":{"mode":"tls13","rtt":"20ms"},"repeat":0,"#,
                r#""seed":18446744073709551615,"at_unix_ms":1750000000000,"#,
                r#""outcome":{"kind":"completed"},"values":{"ready_ms":40.123456789,"up_bytes":517.0},"#,
                r#""labels":{"group":"X25519"},"command":"wiretax handshake --rtt 20ms"}"#,
                "\n"
            )
        );
    }

    #[test]
    fn a_newer_minor_version_reads() {
        let text = r#"{"study":"s","point":{},"repeat":1,"seed":2,"at_unix_ms":3,"new":[1,{}],
            "outcome":{"kind":"timed_out","after_ms":5,"new":1},"values":{"v":1},"command":""}"#;
        let sample = parse_line(text.as_bytes()).unwrap();
        assert_eq!(sample.outcome, Outcome::TimedOut { after_ms: 5.0 });
    }

    #[test]
    fn a_key_s_old_spelling_reads_as_today_s() {
        for (old, new) in [("rsa2048", "rsa-2048"), ("rsa4096", "rsa-4096"), ("dsa", "dsa")] {
            let mut sample = example(0);
            sample.point.insert("key".to_owned(), old.to_owned());
            sample.point.insert("library".to_owned(), old.to_owned());
            let mut line = Vec::new();
            write_line(&sample, &mut line).unwrap();
            let read = parse_line(&line).unwrap();
            assert_eq!((read.point["key"].as_str(), read.point["library"].as_str()), (new, old));
        }
    }

    #[test]
    fn what_is_wrong_is_said_with_its_column() {
        let json = |line: &str| match parse_line(line.as_bytes()) {
            Err(LineProblem::Json { column, problem }) => (column, problem),
            other => panic!("{line}: {other:?}"),
        };
        assert_eq!(json("{").0, 1);
        let (column, problem) = json(r#"{"study":"s","point":{},"repeat":-1}"#);
        assert_eq!(column, 35);
        assert!(problem.contains("-1") && !problem.contains(" at line"), "{problem}");
        assert!(json(r#"{"values":{"v":1e999}}"#).1.contains("out of range"));
        assert!(matches!(parse_line(&vec![b' '; MAX_LINE]), Err(LineProblem::TooLong { .. })));
    }

    #[test]
    fn what_json_cannot_hold_is_refused() {
        for value in [f64::NAN, f64::INFINITY] {
            let mut sample = example(0);
            sample.values.insert("bad_ms".into(), value);
            assert!(matches!(
                write_line(&sample, &mut Vec::new()),
                Err(LineProblem::NotFinite { name, .. }) if name == "bad_ms"
            ));
            let mut sample = example(0);
            sample.outcome = Outcome::TimedOut { after_ms: value };
            assert!(matches!(
                write_line(&sample, &mut Vec::new()),
                Err(LineProblem::NotFinite { name, .. }) if name == "outcome.after_ms"
            ));
        }
        let mut sample = example(0);
        sample.command = "x".repeat(MAX_LINE);
        assert!(matches!(write_line(&sample, &mut Vec::new()), Err(LineProblem::TooLong { .. })));
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back_to_the_bit(
            bits in any::<u64>(), seed in any::<u64>(), text in ".*", reason in any::<String>(),
        ) {
            let value = f64::from_bits(bits);
            prop_assume!(value.is_finite());
            let mut sample = example(7);
            sample.seed = seed;
            sample.values.insert(text.clone(), value);
            sample.labels.insert("l".into(), text);
            sample.outcome = Outcome::Failed { reason };
            let mut line = Vec::new();
            write_line(&sample, &mut line).unwrap();
            prop_assert_eq!(line.iter().filter(|b| **b == b'\n').count(), 1);
            let read = parse_line(&line[..line.len() - 1]).unwrap();
            for (name, value) in &sample.values {
                prop_assert_eq!(read.values[name].to_bits(), value.to_bits());
            }
            prop_assert_eq!(read, sample);
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse_line(&bytes);
        }
    }
}
