//! The clients' round-trip times that savings are weighed by.

use std::borrow::Cow;

use fault::{Explain, Fault};
use stats::{ClientRtts, Distribution, DistributionError, RttError};
use thiserror::Error;

/// The clients' round-trip times, from a file that a user gives: what `wiretax observe --rtt-out`
/// wrote, or one time a line with its weight.
#[derive(Debug, Clone, PartialEq)]
pub struct Clients {
    weights: Distribution,
    connections: Option<u64>,
}

/// What can be wrong with such a file: the user's to mend.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ClientsError {
    /// It is JSON, but not what `--rtt-out` writes.
    #[error(transparent)]
    Observed(#[from] RttError),
    /// It is text, but not of times.
    #[error(transparent)]
    Lines(#[from] DistributionError),
}

impl Explain for ClientsError {
    fn fault(&self) -> Fault {
        Fault::Caller
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        match self {
            ClientsError::Observed(error) => error.remedy(),
            ClientsError::Lines(error) => error.remedy(),
        }
    }
}

impl Clients {
    /// Reads either kind of file: JSON begins with a brace, which no time does.
    ///
    /// # Errors
    /// [`ClientsError`] says what is wrong, and where.
    pub fn parse(text: &str) -> Result<Clients, ClientsError> {
        // A byte order mark is what some editors put in front.
        let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
        if text.trim_start().starts_with('{') {
            let observed = ClientRtts::parse(text)?;
            let weights = observed.distribution()?;
            return Ok(Clients { weights, connections: Some(observed.connections) });
        }
        Ok(Clients { weights: Distribution::parse(text)?, connections: None })
    }

    /// The round-trip times in ms, with their weights.
    #[must_use]
    pub fn weights(&self) -> &Distribution {
        &self.weights
    }

    /// The same, taken out.
    #[must_use]
    pub fn into_weights(self) -> Distribution {
        self.weights
    }

    /// Connections that it rests on, where the file says so.
    #[must_use]
    pub fn connections(&self) -> Option<u64> {
        self.connections
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OBSERVED: &str = r#"{
        "format": "wiretax-client-round-trips", "version": 1, "connections": 4,
        "points": [{ "ms": 25, "count": 3 }, { "ms": 55.5, "count": 1 }]
    }"#;

    #[test]
    fn both_kinds_of_file_are_read() {
        let observed = Clients::parse(OBSERVED).unwrap();
        let lines = Clients::parse("25ms 3\n55.5 1\n").unwrap();
        assert_eq!(observed.weights(), lines.weights());
        assert_eq!((observed.connections(), lines.connections()), (Some(4), None));
        assert!(Clients::parse(&format!("\u{FEFF}\n{OBSERVED}")).is_ok());
    }

    #[test]
    fn what_is_wrong_is_said_in_the_terms_of_the_file() {
        let newer = OBSERVED.replace("\"version\": 1", "\"version\": 9");
        assert!(matches!(
            Clients::parse(&newer),
            Err(ClientsError::Observed(RttError::Version(9)))
        ));
        assert!(matches!(Clients::parse("{}"), Err(ClientsError::Observed(_))));
        assert!(matches!(Clients::parse("fast"), Err(ClientsError::Lines(_))));
        assert!(matches!(Clients::parse(""), Err(ClientsError::Lines(_))));
    }
}
