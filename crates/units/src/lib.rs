//! Quantities as types, so that a delay cannot be taken for a rate, nor a rate that counts
//! Ethernet frames for one that counts IP packets.
//!
//! Every quantity is parsed by [`core::str::FromStr`], printed by [`core::fmt::Display`] in the
//! form that it is parsed from, and serialised as that string. A wrong text gives a [`ParseError`]
//! that names the text, what is wrong with it and a form that works. [`named!`] does the same for
//! choices that have names.
#![forbid(unsafe_code)]

mod bytes;
mod counted;
mod delay;
mod error;
mod named;
mod probability;
mod rate;
mod seq;
mod time;

pub use bytes::Bytes;
pub use counted::counted;
pub use delay::Delay;
pub use error::ParseError;
pub use named::UnknownName;
pub use probability::Probability;
pub use rate::{CountedBytes, Rate};
pub use seq::SeqNumber;
pub use time::Time;

#[doc(hidden)]
pub use fault;
#[doc(hidden)]
pub use serde;

/// Serialises a type as the text that it prints, and reads it back through `FromStr`.
#[macro_export]
macro_rules! serde_as_text {
    ($type:ty) => {
        impl $crate::serde::Serialize for $type {
            fn serialize<S: $crate::serde::Serializer>(
                &self,
                serializer: S,
            ) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> $crate::serde::Deserialize<'de> for $type {
            fn deserialize<D: $crate::serde::Deserializer<'de>>(
                deserializer: D,
            ) -> Result<Self, D::Error> {
                let text =
                    <::std::borrow::Cow<'de, str> as $crate::serde::Deserialize>::deserialize(
                        deserializer,
                    )?;
                text.parse().map_err(|error| {
                    <D::Error as $crate::serde::de::Error>::custom(
                        $crate::fault::Explain::in_one_text(&error),
                    )
                })
            }
        }
    };
}
