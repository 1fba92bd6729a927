//! From which sources results come.

use std::borrow::Cow;

use fault::{Explain, Fault};
use thiserror::Error;

use crate::Manifest;

/// Results that cannot be measured again from one commit.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("it cannot be traced to one commit: {}", listed(.0))]
pub struct Untraceable(pub Vec<Option<String>>);

fn listed(commits: &[Option<String>]) -> String {
    let sessions = commits.iter().enumerate().map(|(at, commit)| {
        let commit = commit.as_deref().map_or("an unknown commit".into(), short_commit);
        format!("session {} is of {commit}", at + 1)
    });
    sessions.collect::<Vec<_>>().join(", ")
}

impl Explain for Untraceable {
    fn fault(&self) -> Fault {
        Fault::Results
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        Some("measure again into another folder, with one build of a clean checkout".into())
    }
}

/// Twelve digits of a commit, and whether the sources were changed after it.
#[must_use]
pub fn short_commit(commit: &str) -> Cow<'_, str> {
    let (digits, changed) = match commit.split_once('-') {
        Some((digits, changed)) => (digits, Some(changed)),
        None => (commit, None),
    };
    let digits = digits.get(..12).unwrap_or(digits);
    match changed {
        Some(changed) => format!("{digits}-{changed}").into(),
        None => digits.into(),
    }
}

impl Manifest {
    /// The commit from which every session's program was built.
    ///
    /// # Errors
    /// Sessions are of different commits, of one that is not known, or of sources that were changed
    /// after it.
    pub fn commit(&self) -> Result<&str, Untraceable> {
        let mut commits = self.sessions.iter().map(|session| session.tool.commit.as_deref());
        let first = commits.next().flatten();
        match first {
            Some(commit) if !commit.contains('-') && commits.all(|other| other == first) => {
                Ok(commit)
            }
            _ => {
                let all = self.sessions.iter().map(|session| session.tool.commit.clone());
                Err(Untraceable(all.collect()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Session;

    fn of(commits: &[Option<&str>]) -> Result<String, String> {
        let mut manifest = Manifest::new(serde_json::json!({}), Session::begin(false));
        let sessions = commits.iter().map(|commit| {
            let mut session = Session::begin(false);
            session.tool.commit = commit.map(str::to_owned);
            session
        });
        manifest.sessions = sessions.collect();
        manifest.commit().map(str::to_owned).map_err(|error| error.to_string())
    }

    #[test]
    fn one_clean_commit_is_a_source_and_nothing_else_is() {
        let (a, b) = ("87de933fceab1fe61332c3c2", "98e003346b6deba9284bb604");
        assert_eq!(of(&[Some(a)]).as_deref(), Ok(a));
        assert_eq!(of(&[Some(a), Some(a)]).as_deref(), Ok(a));
        let mixed = of(&[Some(a), Some(b)]).unwrap_err();
        assert!(mixed.ends_with("session 1 is of 87de933fceab, session 2 is of 98e003346b6d"));
        let dirty = of(&[Some("87de933fceab1fe61332c3c2-dirty")]).unwrap_err();
        assert!(dirty.ends_with("session 1 is of 87de933fceab-dirty"), "{dirty}");
        assert!(of(&[Some(a), None]).unwrap_err().contains("session 2 is of an unknown commit"));
        assert!(of(&[]).is_err());
    }
}
