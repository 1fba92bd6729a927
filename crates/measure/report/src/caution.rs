//! What a reader must know before believing an answer, and whether the answer would change.

use crate::{Inline, Note};

/// What a caution means for the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// The answer would be the same without it; why.
    Stands(Inline),
    /// The answer holds for less than was asked; what it does not cover.
    Narrower(Inline),
    /// The answer could be another without it; what could change.
    MayChange(Inline),
}

impl Effect {
    /// What it is, as a sentence begins.
    pub(crate) fn lead(&self) -> &'static str {
        match self {
            Self::Stands(_) => "The answer stands",
            Self::Narrower(_) => "The answer covers less",
            Self::MayChange(_) => "The answer may change",
        }
    }

    /// Why, or how far.
    pub(crate) fn why(&self) -> &Inline {
        let (Self::Stands(why) | Self::Narrower(why) | Self::MayChange(why)) = self;
        why
    }
}

/// A note on the whole answer. It is made of a [`Note`] by [`Note::answer_stands`],
/// [`Note::answer_covers_less`] or [`Note::answer_may_change`], so that none goes without its effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caution {
    /// What is the case, and what to do about it.
    pub note: Note,
    /// Whether the answer would change.
    pub effect: Effect,
}

impl Caution {
    /// Whether the answer would change, in one line for a terminal.
    #[must_use]
    pub fn effect_text(&self) -> String {
        format!("{}: {}", self.effect.lead().to_lowercase(), self.effect.why().to_plain())
    }
}

impl Note {
    /// The answer would be the same without this. `why` begins in lower case and ends with a full stop.
    #[must_use]
    pub fn answer_stands(self, why: impl Into<Inline>) -> Caution {
        Caution { note: self, effect: Effect::Stands(why.into()) }
    }

    /// The answer holds for less than was asked. `what` is not covered; written as above.
    #[must_use]
    pub fn answer_covers_less(self, what: impl Into<Inline>) -> Caution {
        Caution { note: self, effect: Effect::Narrower(what.into()) }
    }

    /// The answer could be another without this. `what` could change; written as above.
    #[must_use]
    pub fn answer_may_change(self, what: impl Into<Inline>) -> Caution {
        Caution { note: self, effect: Effect::MayChange(what.into()) }
    }
}
