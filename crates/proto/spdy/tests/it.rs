//! Sessions from outside: exact frames, hostile peers, properties, the presets' windows.

mod clauses;
mod common;
mod hostile;
mod presets;
mod properties;
mod stalls;
