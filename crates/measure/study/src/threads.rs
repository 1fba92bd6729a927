//! Numbers of threads, said by the machine's cores.

use crate::axis::UnknownValue;

/// The thread counts that a word means on a machine of so many cores: a number, `cores`, a multiple such
/// as `2xcores`, or `powers`: 1, 2, 4 … and the cores, on machines that have them as many more as `least`
/// asks for.
///
/// # Errors
/// The word means no number from 1 to `most`.
pub fn threads(
    word: &str,
    cores: usize,
    most: usize,
    least: usize,
) -> Result<Vec<usize>, UnknownValue> {
    let cores = cores.max(1);
    let unknown = || UnknownValue {
        axis: "threads",
        word: word.to_owned(),
        why: format!(
            "expected an integer from 1 to {most} threads, `cores`, a multiple such as `2xcores`, or `powers`"
        ),
        remedy: None,
    };
    let counts = match word {
        "cores" => vec![cores],
        "powers" => powers(cores, least),
        word => {
            let (number, factor) =
                word.strip_suffix("xcores").map_or((word, 1), |number| (number, cores));
            vec![number.parse::<usize>().map_err(|_| unknown())?.saturating_mul(factor)]
        }
    };
    match counts.iter().all(|count| (1..=most).contains(count)) {
        true => Ok(counts),
        false => Err(unknown()),
    }
}

fn powers(cores: usize, least: usize) -> Vec<usize> {
    let below = std::iter::successors(Some(1usize), |n| n.checked_mul(2));
    let mut counts: Vec<usize> = below.take_while(|n| *n < cores).chain([cores]).collect();
    let halfway = [3, 6, 12, 24].into_iter().chain(1..);
    for more in halfway.take_while(|more| *more <= cores.max(24)) {
        if counts.len() < least && more < cores && !counts.contains(&more) {
            counts.push(more);
        }
    }
    counts.sort_unstable();
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_numbers_or_said_by_the_cores() {
        let of = |word: &str, cores| threads(word, cores, 1024, 6).unwrap();
        assert_eq!(of("powers", 1), [1]);
        assert_eq!(of("powers", 2), [1, 2]);
        assert_eq!(of("powers", 4), [1, 2, 3, 4]);
        // Enough for a curve wherever the cores are.
        assert_eq!(of("powers", 6), [1, 2, 3, 4, 5, 6]);
        assert_eq!(of("powers", 8), [1, 2, 3, 4, 6, 8]);
        assert_eq!(of("powers", 64), [1, 2, 4, 8, 16, 32, 64]);
        assert_eq!(threads("powers", 6, 256, 0).unwrap(), [1, 2, 4, 6]);
        assert_eq!(of("cores", 6), [6]);
        assert_eq!(of("2xcores", 6), [12]);
        for wrong in ["0", "-1", "many", "5000", "xcores", "99999999999999999999"] {
            assert!(threads(wrong, 6, 1024, 6).is_err(), "{wrong}");
        }
    }
}
