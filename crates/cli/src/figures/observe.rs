//! The observe study's figures: what captures of known clients said.

use observe::truth::Said;
use study::Findings;

/// Handshakes by version and class, the difference between versions, and how far it is right.
pub(super) fn markdown(said: &Said) -> String {
    said.markdown().into_iter().flatten().map(|(_, text)| text).collect()
}
