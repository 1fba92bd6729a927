//! Figures that others published, and what a trial counted.

/// The document's figures (studies/stacks/published.csv).
const PUBLISHED: &str = include_str!("../published.csv");
/// What a trial counted (studies/stacks/trial.csv).
const TRIAL: &str = include_str!("../trial.csv");

/// The document.
pub const SOURCE: &str = "The State of SSL Stacks, 2025";

/// One figure of the document.
#[derive(Debug, Clone, PartialEq)]
pub struct Published {
    /// `full` or `resume-chain`.
    pub scenario: String,
    /// The library as the document names it.
    pub name: String,
    /// The driver that stands for it here.
    pub library: String,
    /// `pthread` or `light`.
    pub locks: String,
    /// Threads.
    pub threads: u32,
    /// New connections a second; `None` where the text gives a rank only.
    pub per_second: Option<f64>,
    /// What the text says beside.
    pub note: String,
}

fn lines(text: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    let lines = text.lines().filter(|line| !line.starts_with('#')).skip(1);
    lines.map(|line| line.split(',').map(str::trim).collect())
}

/// All of them.
#[must_use]
pub fn published() -> Vec<Published> {
    let one = |fields: Vec<&str>| {
        let [scenario, name, library, locks, threads, per_second, note] =
            <[&str; 7]>::try_from(fields).ok()?;
        Some(Published {
            scenario: scenario.to_owned(),
            name: name.to_owned(),
            library: library.to_owned(),
            locks: locks.to_owned(),
            threads: threads.parse().ok()?,
            per_second: per_second.parse().ok(),
            note: note.to_owned(),
        })
    };
    lines(PUBLISHED).filter_map(one).collect()
}

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
    let fields = lines(TRIAL).find(|fields| fields.first() == Some(&library))?;
    let mut numbers = fields.into_iter().skip(1).map(|field| field.parse::<f64>().ok());
    let mut next = || numbers.next().flatten();
    Some(Trial { tls13_ecdsa: (next()?, next()?), tls12_rsa: (next()?, next()?) })
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
        let of = |text: &'static str| lines(text).count();
        let all = published();
        assert_eq!(all.len(), of(PUBLISHED));
        assert!(all.iter().all(|one| ["full", "resume-chain"].contains(&one.scenario.as_str())));
        assert!(all.iter().all(|one| one.locks.parse::<tls_drivers::Locks>().is_ok()));
        let names: Vec<&str> = lines(TRIAL).map(|fields| fields[0]).collect();
        assert!(names.len() == 13 && names.iter().all(|name| trial(name).is_some()));
        assert_eq!(trial("openssl-3.0.2").unwrap().tls13_ecdsa, (744.0, 744.0));
        assert_eq!(trial("nss"), None);
    }

    #[test]
    fn a_range_has_an_inside() {
        assert_eq!(outside(45.0, (44.0, 47.0)), 0.0);
        assert!((outside(22.0, (44.0, 47.0)) + 0.5).abs() < 1e-12);
        assert!((outside(94.0, (44.0, 47.0)) - 1.0).abs() < 1e-12);
    }
}
