//! TCP from outside: transcripts, clauses of the standards, sweeps in virtual time.

mod clauses;
mod host;
mod loaded;
mod round_trips;
mod sweep;
mod transcripts;
