//! The document's figures.

/// What the document states (studies/observe/published.csv).
const PUBLISHED: &str = include_str!("../published.csv");

/// The document.
pub const SOURCE: &str = "GREE, 2018";

/// One figure of the document.
#[derive(Debug, Clone, PartialEq)]
pub struct Published {
    /// `tls13`, `tls12`, or `tls13-tls12` for what lies between.
    pub version: String,
    /// What the figure is of.
    pub feature: String,
    /// From, in ms.
    pub low_ms: f64,
    /// To, in ms.
    pub high_ms: f64,
    /// Share of that version's handshakes in percent, where it was published.
    pub share_percent: Option<f64>,
}

/// All of them.
#[must_use]
pub fn published() -> Vec<Published> {
    let lines = PUBLISHED.lines().filter(|line| !line.starts_with('#')).skip(1);
    let one = |line: &str| {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let [version, feature, low, high, share] = <[&str; 5]>::try_from(fields).ok()?;
        Some(Published {
            version: version.to_owned(),
            feature: feature.to_owned(),
            low_ms: low.parse().ok()?,
            high_ms: high.parse().ok()?,
            share_percent: share.parse().ok(),
        })
    };
    lines.filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_read() {
        let all = published();
        let lines = PUBLISHED.lines().filter(|line| !line.starts_with('#')).count() - 1;
        assert_eq!(all.len(), lines);
        assert_eq!(all[0].share_percent, Some(15.7));
        assert!(all.iter().all(|figure| figure.low_ms < figure.high_ms));
    }
}
