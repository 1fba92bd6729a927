//! Figures that others published, and what a trial counted.

use std::sync::LazyLock;

use study::Figure;

/// HAProxy 2025's figures: the haproxy study's, read here as well.
const DOCUMENT: &str = include_str!("../../haproxy/published.csv");
/// What a trial counted.
const TRIAL: &str = include_str!("../trial.csv");

/// Both, as one file: the second has no header of its own there.
static ALL: LazyLock<String> = LazyLock::new(|| {
    let is_row = |line: &&str| !line.starts_with('#') && !line.starts_with("document,");
    let trial: Vec<&str> = TRIAL.lines().filter(is_row).collect();
    format!("{DOCUMENT}{}\n", trial.join("\n"))
});

/// HAProxy 2025's figures and the trial's, in the form of all studies.
pub(crate) fn figures() -> &'static str {
    &ALL
}

/// HAProxy 2025's figures.
pub(crate) fn document() -> Vec<Figure> {
    study::figures(DOCUMENT).unwrap_or_default()
}

/// The figures that the trial counted.
pub(crate) fn trials() -> &'static [Figure] {
    static FIGURES: LazyLock<Vec<Figure>> =
        LazyLock::new(|| study::figures(TRIAL).unwrap_or_default());
    &FIGURES
}

/// Items of the trial.
pub(crate) const TLS13_ECDSA: &str = "TLS 1.3 with ECDSA P-256";
pub(crate) const TLS12_RSA: &str = "TLS 1.2 with RSA-2048";
/// Behind a library where the row is the most that its family had.
pub(crate) const AT_MOST: &str = ", at most";

/// What the trial counted of a library, on the server's side of a full handshake: from, to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trial {
    /// TLS 1.3 with ECDSA P-256.
    pub tls13_ecdsa: (f64, f64),
    /// TLS 1.2 with RSA-2048.
    pub tls12_rsa: (f64, f64),
}

/// The trial's counts of a library.
#[must_use]
pub fn trial(library: &str) -> Option<Trial> {
    let value = |item: &str, row: &str| {
        trials().iter().find(|figure| figure.item == item && figure.row == row)?.value
    };
    let range = |item: &str| {
        let least = value(item, library)?;
        Some((least, value(item, &format!("{library}{AT_MOST}")).unwrap_or(least)))
    };
    Some(Trial { tls13_ecdsa: range(TLS13_ECDSA)?, tls12_rsa: range(TLS12_RSA)? })
}

/// By how much a count lies outside a range, as a share of the nearer end; 0 within.
#[must_use]
pub fn outside(count: f64, (low, high): (f64, f64)) -> f64 {
    match count {
        count if count < low => count / low - 1.0,
        count if count > high => count / high - 1.0,
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_read() {
        let all = study::figures(figures()).unwrap();
        assert_eq!(all.len(), document().len() + trials().len());
        assert_eq!((document().len(), trials().len()), (18, 30));
        assert_eq!(trial("openssl-3.0.2").unwrap().tls13_ecdsa, (744.0, 744.0));
        let awslc = trial("awslc-1.29.0-c99").unwrap();
        assert_eq!((awslc.tls13_ecdsa, awslc.tls12_rsa), ((44.0, 47.0), (32.0, 44.0)));
        assert_eq!(trial("nss"), None);
    }

    #[test]
    fn a_range_has_an_inside() {
        assert_eq!(outside(45.0, (44.0, 47.0)), 0.0);
        assert!((outside(22.0, (44.0, 47.0)) + 0.5).abs() < 1e-12);
        assert!((outside(94.0, (44.0, 47.0)) - 1.0).abs() < 1e-12);
    }
}
