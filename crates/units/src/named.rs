//! Choices that have names.

use std::borrow::Cow;

use fault::{Explain, Fault};
use thiserror::Error;

/// A text that names none of the choices.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("no {what} is called `{text}`")]
pub struct UnknownName {
    /// What was to be named: `key`, `TLS version`.
    pub what: &'static str,
    /// The text as given.
    pub text: String,
    /// Every name that there is, as it is written.
    pub known: &'static [&'static str],
}

impl Explain for UnknownName {
    fn fault(&self) -> Fault {
        Fault::Caller
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        Some(format!("choose from {}", self.known.join(", ")).into())
    }
}

/// Defines an enum that is printed, parsed and serialised by one name per variant. Names are read
/// whatever their case is; an alias is read and never written.
///
/// ```
/// units::named! {
///     /// The key of a certificate.
///     #[derive(Default)]
///     pub enum Key: "key" {
///         /// RSA, 2048 bits.
///         #[default]
///         Rsa2048 = "rsa-2048" | "rsa2048",
///         /// ECDSA on P-256.
///         EcdsaP256 = "ecdsa-p256",
///     }
/// }
/// assert_eq!("RSA2048".parse(), Ok(Key::Rsa2048));
/// assert_eq!(Key::default().to_string(), "rsa-2048");
/// assert_eq!(Key::ALL, [Key::Rsa2048, Key::EcdsaP256]);
/// let error = "dsa".parse::<Key>().unwrap_err();
/// assert_eq!(error.to_string(), "no key is called `dsa`");
/// ```
#[macro_export]
macro_rules! named {
    (
        $(#[$meta:meta])*
        $visibility:vis enum $type:ident: $what:literal {
            $( $(#[$variant_meta:meta])* $variant:ident = $name:literal $(| $alias:literal)* ),+ $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $visibility enum $type { $( $(#[$variant_meta])* $variant ),+ }

        #[allow(dead_code, reason = "a private choice may need only some of these")]
        impl $type {
            /// All that there are, in the order of their declaration.
            pub const ALL: &'static [Self] = &[$( Self::$variant ),+];

            /// The name that it is printed and serialised by.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $( Self::$variant => $name ),+ }
            }
        }

        impl ::core::fmt::Display for $type {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                f.pad(self.name())
            }
        }

        impl ::core::str::FromStr for $type {
            type Err = $crate::UnknownName;

            fn from_str(text: &str) -> Result<Self, $crate::UnknownName> {
                $(
                    if [$name $(, $alias)*].iter().any(|name| name.eq_ignore_ascii_case(text)) {
                        return Ok(Self::$variant);
                    }
                )+
                Err($crate::UnknownName { what: $what, text: text.to_owned(), known: &[$( $name ),+] })
            }
        }

        $crate::serde_as_text!($type);
    };
}

#[cfg(test)]
mod tests {
    use fault::Explain;

    crate::named! {
        /// What a key is.
        #[derive(Default)]
        enum Key: "key" {
            /// Many bits.
            #[default]
            Rsa = "rsa-2048" | "rsa2048" | "rsa",
            /// Fewer.
            Ecdsa = "ecdsa-p256",
        }
    }

    #[test]
    fn names_are_read_as_written_and_aliases_are_read_only() {
        for &key in Key::ALL {
            assert_eq!(key.to_string().parse(), Ok(key));
            assert_eq!(key.name().to_uppercase().parse(), Ok(key));
        }
        assert_eq!("RSA2048".parse::<Key>().map(Key::name), Ok("rsa-2048"));
        assert_eq!("rsa".parse(), Ok(Key::default()));
        assert_eq!(format!("{:>12}|", Key::Ecdsa), "  ecdsa-p256|");
    }

    #[test]
    fn a_wrong_name_lists_the_right_ones() {
        let error = "dsa".parse::<Key>().unwrap_err();
        assert_eq!(error.to_string(), "no key is called `dsa`");
        assert_eq!(error.remedy().as_deref(), Some("choose from rsa-2048, ecdsa-p256"));
    }

    #[test]
    fn a_name_is_what_is_serialised() {
        use serde::de::value::{Error, StrDeserializer};
        use serde::{Deserialize, de::IntoDeserializer};
        let read = |text: &'static str| {
            let text: StrDeserializer<'_, Error> = text.into_deserializer();
            Key::deserialize(text).map_err(|error| error.to_string())
        };
        assert_eq!(read("rsa2048"), Ok(Key::Rsa));
        assert!(read("dsa").unwrap_err().contains("choose from rsa-2048"));
    }
}
