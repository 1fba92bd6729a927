//! The tracker from outside: vectors, transcripts, hostile bytes, outside judges.

mod common;
mod copies;
mod doubts;
mod dtls;
mod failed;
mod fuzz_entries;
mod hand_out;
mod keys;
mod keys_judge;
mod keys_vector;
mod old_hellos;
mod order;
mod outer;
mod pair;
mod quic;
mod starttls;
mod streams;
mod syn_data;
mod talk;
mod tcp;
mod tshark;
mod vectors;
