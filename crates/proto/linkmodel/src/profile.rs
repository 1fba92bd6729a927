//! Named links, each with its source.

use std::borrow::Cow;
use std::sync::LazyLock;

use fault::{Explain, Fault};
use serde::Deserialize;
use thiserror::Error;

use crate::config::LinkConfig;
use crate::error::ConfigError;
use crate::path::Path;

/// A named link.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Profile {
    /// The name by which it is asked for: `lte`.
    pub name: String,
    /// What it stands for, in a sentence.
    pub description: String,
    /// Public documents that its figures are from.
    pub source: String,
    /// Which figures are from there, and which are our choice.
    pub notes: String,
    /// The link. Forward is upload.
    pub path: Path,
}

/// No profile has this name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("no link profile is called `{name}`")]
pub struct UnknownProfile {
    /// The name asked for.
    pub name: String,
    /// The names there are.
    pub known: String,
}

/// A text that is not a profile.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ProfileError {
    /// It is not TOML, or has fields that a profile has not; says where.
    #[error("the profile cannot be read: {0}")]
    Toml(#[from] toml::de::Error),
    /// A value makes no sense.
    #[error("the profile makes no sense: {0}")]
    Config(#[from] ConfigError),
}

impl Explain for UnknownProfile {
    fn fault(&self) -> Fault {
        Fault::Caller
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        Some(format!("choose from {}, or name a profile file (*.toml)", self.known).into())
    }
}

impl Explain for ProfileError {
    fn fault(&self) -> Fault {
        Fault::Caller
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        match self {
            ProfileError::Toml(_) => None,
            ProfileError::Config(error) => error.remedy(),
        }
    }
}

/// The file format: all texts may be left out.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProfileFile {
    #[serde(default)]
    name: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    source: String,
    #[serde(default)]
    notes: String,
    #[serde(default)]
    forward: LinkConfig,
    #[serde(default)]
    backward: LinkConfig,
}

impl Profile {
    /// Reads a profile from TOML: `name`, `description`, `source` and `notes` as texts, `forward`
    /// and `backward` as tables with the fields of [`LinkConfig`]. All may be left out.
    ///
    /// # Errors
    /// Says where the text is wrong, or which field makes no sense.
    pub fn parse(text: &str) -> Result<Self, ProfileError> {
        let ProfileFile { name, description, source, notes, forward, backward } =
            toml::from_str(text)?;
        let path = Path { forward, backward };
        path.validate()?;
        Ok(Profile { name, description, source, notes, path })
    }
}

static PROFILES: LazyLock<Vec<Profile>> = LazyLock::new(|| {
    [
        include_str!("../profiles/lan.toml"),
        include_str!("../profiles/wlan.toml"),
        include_str!("../profiles/cable.toml"),
        include_str!("../profiles/lte.toml"),
        include_str!("../profiles/3g.toml"),
        include_str!("../profiles/satellite.toml"),
    ]
    .iter()
    // Our own data, which a test reads.
    .map(|text| Profile::parse(text).expect("the profiles we ship are valid"))
    .collect()
});

/// All profiles, by round trip time.
#[must_use]
pub fn profiles() -> &'static [Profile] {
    &PROFILES
}

/// The link of the profile called `name`.
///
/// # Errors
/// If there is none; the error lists those that there are.
pub fn profile(name: &str) -> Result<Path, UnknownProfile> {
    let found = profiles().iter().find(|profile| profile.name == name);
    found.map(|profile| profile.path.clone()).ok_or_else(|| {
        let known: Vec<&str> = profiles().iter().map(|profile| profile.name.as_str()).collect();
        UnknownProfile { name: name.to_owned(), known: known.join(", ") }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_has_a_source_and_says_what_is_our_choice() {
        let names: Vec<&str> = profiles().iter().map(|profile| profile.name.as_str()).collect();
        assert_eq!(names, ["lan", "wlan", "cable", "lte", "3g", "satellite"]);
        for profile in profiles() {
            assert!(!profile.description.is_empty(), "{}", profile.name);
            assert!(!profile.source.is_empty(), "{}", profile.name);
            assert!(profile.notes.contains("Our choice"), "{}", profile.name);
            assert_eq!(self::profile(&profile.name).as_ref(), Ok(&profile.path));
        }
        assert!(profiles().is_sorted_by_key(|profile| profile.path.round_trip()));
    }

    #[test]
    fn the_figures_of_the_sources_are_in_the_profiles() {
        for (name, rtt, up, down) in [
            ("lan", "400us", "1gbit/wire", "1gbit/wire"),
            ("wlan", "4ms", "61120kbit/ip", "61120kbit/ip"),
            ("cable", "28ms", "1mbit/ip", "5mbit/ip"),
            ("lte", "70ms", "12mbit/ip", "12mbit/ip"),
            ("3g", "300ms", "768kbit/ip", "1370kbit/ip"),
            ("satellite", "558ms", "3mbit/ip", "25mbit/ip"),
        ] {
            let path = profile(name).unwrap();
            let parse = |text: &str| Some(text.parse::<units::Rate>().unwrap().into());
            assert_eq!(path.round_trip(), rtt.parse().unwrap(), "{name}");
            assert_eq!((path.forward.rate, path.backward.rate), (parse(up), parse(down)), "{name}");
        }
    }

    #[test]
    fn an_unknown_name_is_told_the_known_ones() {
        let error = profile("dsl").unwrap_err();
        assert_eq!(error.to_string(), "no link profile is called `dsl`");
        let remedy = error.remedy().unwrap_or_default();
        assert!(remedy.contains("lan, wlan, cable, lte, 3g, satellite"), "{remedy}");
    }

    #[test]
    fn a_users_file_is_told_what_is_wrong_and_where() {
        let path = Profile::parse("[forward]\ndelay = \"3ms\"").unwrap().path;
        assert_eq!(path.round_trip().to_string(), "3ms");
        for (text, part) in [
            ("[forward]\ndelay = 3", "line 2"),
            ("[upload]", "unknown field `upload`"),
            ("[backward]\nqueue = { packets = 0 }", "`backward.queue.packets` is 0"),
        ] {
            let message = Profile::parse(text).unwrap_err().to_string();
            assert!(message.contains(part), "{text}: {message}");
        }
    }
}
