//! The clients' round-trip times, for the file that other studies weigh by.

use stats::{ClientRtts, RttPoint, RttQuantile};

use super::{Digest, Spread};

impl Digest {
    /// The clients' round-trip times, over TCP, of records that are not in doubt.
    #[must_use]
    pub fn client_rtts(&self) -> ClientRtts {
        let over_tcp = self.cells.iter().filter(|((kind, _), _)| !kind.quic);
        let all = over_tcp.map(|(_, cell)| cell.round_trip.clone()).reduce(|mut all, other| {
            all.merge(&other);
            all
        });
        let steps = all.as_ref().map(Spread::steps).unwrap_or_default();
        let points = steps.into_iter().map(|(ms, count)| RttPoint { ms, count }).collect();
        let quantile = |p: f64| Some(RttQuantile { p, ms: all.as_ref()?.quantile(p)? });
        let quantiles = [0.05, 0.25, 0.5, 0.75, 0.95, 0.99].into_iter().filter_map(quantile);
        ClientRtts::new(points, quantiles.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stats::RttError;

    #[test]
    fn a_digest_of_nothing_writes_a_file_that_is_refused() {
        let digest = Digest::new(crate::Options::default()).unwrap();
        let written = digest.client_rtts().to_json().unwrap();
        assert!(matches!(ClientRtts::parse(&written), Err(RttError::Empty)));
    }
}
