//! Under which conditions results were measured, for the page that has their figures.

use record::{Manifest, Session, Warning, short_commit};
use report::plain_markdown;

/// The commit and date of each session, and every warning of the manifest, as a paragraph of Markdown.
pub(super) fn conditions(manifest: &Manifest) -> String {
    let sessions = match manifest.sessions.as_slice() {
        [only] => format!("Measured by commit {}.", commit(only)),
        several => {
            let each = several.iter().enumerate().map(|(at, session)| {
                let date = session.started.strftime("%Y-%m-%d");
                format!("session {} ({date}) by commit {}", at + 1, commit(session))
            });
            format!(
                "Measured in {} sessions: {}.",
                several.len(),
                each.collect::<Vec<_>>().join(", ")
            )
        }
    };
    let refused = match manifest.commit() {
        Ok(_) => "",
        Err(_) => {
            " **These figures cannot be traced to one commit: they are to be measured again.**"
        }
    };
    // Outside code: a backtick of a stranger's would begin some.
    let text = |warning: &Warning| plain_markdown(&warning.what.replace('`', "\u{FFFD}"));
    let warnings: Vec<String> = manifest.warnings.iter().map(text).collect();
    let warnings = match warnings.as_slice() {
        [] => String::new(),
        warnings => format!(" Warnings: {}.", warnings.join("; ")),
    };
    format!("{sessions}{refused}{warnings}\n")
}

/// In code, so that no character of it is read as Markdown.
fn commit(session: &Session) -> String {
    session
        .tool
        .commit
        .as_deref()
        .map_or_else(|| "unknown".to_owned(), |commit| format!("`{}`", short_commit(commit)))
}
