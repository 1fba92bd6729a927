//! TCP from outside: transcripts, clauses of the standards, sweeps in virtual time.

mod clauses;
mod host;
mod packetdrill;
mod round_trips;
mod sweep;
mod syn_data;
mod transcripts;
