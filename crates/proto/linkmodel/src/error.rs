//! What is said of a configuration that cannot be.

use std::borrow::Cow;

use fault::{Explain, Fault};
use thiserror::Error;

/// A link configuration that makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{field}` {problem}")]
pub struct ConfigError {
    /// The field as a configuration file writes it: `forward.jitter.pareto.shape`.
    pub field: String,
    /// What is wrong with it.
    pub problem: String,
    /// Values that work, as an imperative: "give at most 60min".
    pub works: &'static str,
}

impl Explain for ConfigError {
    fn fault(&self) -> Fault {
        Fault::Caller
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        Some(self.works.into())
    }
}

impl ConfigError {
    pub(crate) fn new(field: &str, problem: impl Into<String>, works: &'static str) -> Self {
        ConfigError { field: field.to_owned(), problem: problem.into(), works }
    }

    /// The same error for a field inside of `parent`.
    #[must_use]
    pub(crate) fn inside(mut self, parent: &str) -> Self {
        self.field = format!("{parent}.{}", self.field);
        self
    }
}
