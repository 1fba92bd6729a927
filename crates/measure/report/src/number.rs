//! Numbers as text.

/// `value` with `decimals` digits after the point; a value that rounds to zero has no sign.
pub(crate) fn fixed(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    match text.strip_prefix('-') {
        Some(rest) if rest.chars().all(|c| c == '0' || c == '.') => rest.to_owned(),
        _ => text,
    }
}

/// The digits after the point with which a number of this size is shown alone: three in all, or so.
#[must_use]
pub fn decimals(value: f64) -> usize {
    match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        _ => 2,
    }
}

/// The digits after the point that show about four significant digits of the largest of `values`
/// (three for the small ones beside it), so that a column has one number of decimals.
pub(crate) fn decimals_for(values: impl IntoIterator<Item = f64>) -> usize {
    let mut whole = true;
    let mut largest = 0.0_f64;
    for value in values.into_iter().filter(|value| value.is_finite()) {
        whole &= value.fract() == 0.0;
        largest = largest.max(value.abs());
    }
    if whole {
        return 0;
    }
    match largest {
        l if l >= 1000.0 => 0,
        l if l >= 100.0 => 1,
        l if l >= 1.0 => 2,
        l if l >= 0.1 => 3,
        l if l >= 0.01 => 4,
        _ => 6,
    }
}

/// The same number for print: a real minus sign, and groups of three digits from 10 000 on.
pub(crate) fn typeset(text: &str) -> String {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => ("\u{2212}", rest),
        None => ("", text),
    };
    let (whole, fraction) = digits.split_once('.').map_or((digits, None), |(w, f)| (w, Some(f)));
    let mut out = sign.to_owned();
    for (at, c) in whole.chars().enumerate() {
        // U+202F is a narrow space that does not break.
        if at > 0 && whole.len() > 4 && (whole.len() - at) % 3 == 0 {
            out.push('\u{202F}');
        }
        out.push(c);
    }
    if let Some(fraction) = fraction {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_has_no_negative_zero() {
        assert_eq!(fixed(-0.001, 2), "0.00");
        assert_eq!(fixed(-0.006, 2), "-0.01");
        assert_eq!(fixed(1.0, 0), "1");
    }

    #[test]
    fn decimals_follow_the_largest() {
        assert_eq!(decimals_for([1.0, 20.0]), 0);
        assert_eq!(decimals_for([0.5, 171.25]), 1);
        assert_eq!(decimals_for([0.5, 17.1]), 2);
        assert_eq!(decimals_for([0.025]), 4);
        assert_eq!(decimals_for([]), 0);
    }

    #[test]
    fn typeset_groups_and_signs() {
        assert_eq!(typeset("-1234567.89"), "\u{2212}1\u{202f}234\u{202f}567.89");
        assert_eq!(typeset("1234"), "1234");
    }
}
