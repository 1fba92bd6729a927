//! Counts in words.

use core::fmt::Display;

/// Writes a count with its noun: `1 frame`, `2 frames`.
pub fn counted<N: Display + PartialEq + From<u8>>(count: N, one: &str) -> String {
    let ending = if count == N::from(1) { "" } else { "s" };
    format!("{count} {one}{ending}")
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn one_of_a_thing_is_not_several() {
        assert_eq!(
            [0u64, 1, 2].map(|count| counted(count, "cell")),
            ["0 cells", "1 cell", "2 cells"]
        );
    }
}
