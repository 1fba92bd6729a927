//! What a value of a sample is: its unit, which way is better, and what it was measured by.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// What a value of a sample is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValueKind {
    /// Its unit: `ms`, `1/s`, `bytes`; empty for a count of things.
    pub unit: Cow<'static, str>,
    /// Which way is better.
    pub better: Better,
    /// What it was measured by.
    pub clock: Clock,
}

impl ValueKind {
    /// A value of this kind.
    #[must_use]
    pub const fn new(unit: &'static str, better: Better, clock: Clock) -> ValueKind {
        ValueKind { unit: Cow::Borrowed(unit), better, clock }
    }
}

/// Which way a value is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Better {
    /// A larger one: a rate.
    More,
    /// A smaller one: a time, a cost.
    Less,
    /// Neither: it says what happened.
    Neither,
}

/// What a value was measured by. Values of different clocks are never compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Clock {
    /// Time of the machine, or a rate by it: it has the machine's noise.
    Wall,
    /// Virtual time: exact, and the same on every machine.
    Virtual,
    /// Counted: bytes, round trips, instructions, locks.
    Count,
}
