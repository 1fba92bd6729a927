//! Charts from outside: conversations of our own SPDY sessions in clear, written as captured packets.

mod conversation;
mod talk;
