//! Rights that commands begin with and give up.

use fault::{Problem, WhileDoing};

use crate::diagnostics::Diagnostics;

/// Gives up all rights beyond an ordinary user's, for good, and says as whom `what` is done from now on.
///
/// # Errors
/// Some right could not be given up.
pub fn give_up(what: &str, diagnostics: &Diagnostics) -> Result<(), Problem> {
    let dropped = capture::drop_privileges();
    let dropped =
        dropped.while_doing(|| "rights that are no longer needed could not be given up")?;
    if let Some(identity) = dropped.identity {
        let (user, group) = (identity.user, identity.group);
        diagnostics.note(format!("{what} as user {user} of group {group}"));
    }
    Ok(())
}
