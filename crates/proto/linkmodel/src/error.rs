//! What is said of a configuration that cannot be.

use thiserror::Error;

/// A link configuration that makes no sense. The caller's fault; it names the field and says
/// which values work.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{field}` {problem}: {works}")]
pub struct ConfigError {
    /// The field as a configuration file writes it: `forward.jitter.pareto.shape`.
    pub field: String,
    /// What is wrong with it.
    pub problem: String,
    /// Values that work.
    pub works: &'static str,
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
