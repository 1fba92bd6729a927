//! What no test can show of a runtime, with the pages that say it.

use crate::Runtime;

/// Something that a test cannot show, with the page that says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fact {
    /// Of what: `lts`, `fips`, `maintainer`.
    pub what: &'static str,
    /// What is the case.
    pub says: &'static str,
    /// A public page.
    pub source: &'static str,
}

const GO: &[Fact] = &[
    Fact {
        what: "lts",
        says: "no LTS: a release is supported until two newer ones are out, about a year",
        source: "https://go.dev/doc/devel/release#policy",
    },
    Fact { what: "maintainer", says: "the Go project", source: "https://github.com/golang/go" },
    Fact {
        what: "fips",
        says: "a module of its own, chosen when a program is built; this build is without",
        source: "https://go.dev/doc/security/fips140",
    },
];

const JAVA: &[Fact] = &[
    Fact {
        what: "maintainer",
        says: "the OpenJDK project and the makers of its builds",
        source: "https://openjdk.org/groups/security/",
    },
    Fact {
        what: "fips",
        says: "none of its own: a certified provider of others can stand under it",
        source: "https://bugs.openjdk.org/browse/JDK-8376055",
    },
];

/// When Oracle's support of a Java ends; other makers decide for themselves.
const ORACLE: &str = "https://www.oracle.com/java/technologies/java-se-support-roadmap.html";

impl Runtime {
    /// The family that people know it by.
    #[must_use]
    pub const fn family(self) -> &'static str {
        match self {
            Self::Go => "Go crypto/tls",
            Self::Java => "Java JSSE",
        }
    }

    /// Its licence as an SPDX expression.
    #[must_use]
    pub const fn licence(self) -> &'static str {
        match self {
            Self::Go => "BSD-3-Clause",
            Self::Java => "GPL-2.0-only WITH Classpath-exception-2.0",
        }
    }

    /// What no test can show of this version of it: "1.26.8", "17.0.16".
    #[must_use]
    pub fn facts(self, version: &str) -> Vec<Fact> {
        match self {
            Self::Go => GO.to_vec(),
            Self::Java => lts(version).into_iter().chain(JAVA.iter().copied()).collect(),
        }
    }
}

fn lts(version: &str) -> Option<Fact> {
    let feature = version.split(|c: char| !c.is_ascii_digit()).next()?.parse::<u32>().ok()?;
    let says = match feature {
        17 => "17, LTS: Oracle's premier support until September 2026, extended until 2029",
        21 => "21, LTS: Oracle's premier support until September 2028, extended until 2031",
        25 => "25, LTS: Oracle's premier support until September 2030, extended until 2033",
        // Each of these has a date of its own that is not known here.
        0..=16 => return None,
        _ => "no LTS: a release is supported until the next one, half a year on",
    };
    // Every fourth release since 17 is for the long term; later ones than 25 have no dates here yet.
    (feature <= 25 || (feature - 17) % 4 != 0).then_some(Fact { what: "lts", says, source: ORACLE })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_java_has_the_support_of_its_release() {
        let says = |version: &str| {
            let facts = Runtime::Java.facts(version);
            facts.iter().find(|fact| fact.what == "lts").map(|fact| fact.says)
        };
        assert!(says("17.0.16").unwrap().starts_with("17, LTS"));
        assert!(says("25").unwrap().starts_with("25, LTS"));
        assert!(says("24.0.1").unwrap().starts_with("no LTS"));
        for unknown in ["29", "1.8.0", "11.0.2", "unknown", ""] {
            assert_eq!(says(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn every_fact_has_a_page() {
        for runtime in Runtime::ALL {
            assert!(!runtime.licence().is_empty() && !runtime.family().is_empty());
            for fact in runtime.facts("17") {
                assert!(fact.source.starts_with("https://") && !fact.says.is_empty(), "{fact:?}");
            }
        }
    }
}
