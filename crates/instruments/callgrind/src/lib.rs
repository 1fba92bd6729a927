//! Instructions and atomic ones per handshake, counted under valgrind.
//!
//! A program is run twice under `valgrind --tool=callgrind`, with few and with many handshakes; what
//! it executes inside one function is counted by instruction, and the difference divided by the
//! handshakes between them, so that start-up is no part of it. The objects that the instructions came
//! from are then disassembled there, to know which of them are atomic read-modify-writes.
//!
//! The counts do not depend on how fast the machine is, but on the processor that valgrind shows to
//! the program: it has no AVX-512, SHA or vector AES instructions of the newest kinds, so a library
//! picks other code than it may outside. Stubs of the procedure linkage table are not counted. In a
//! program of one thread the C library's malloc takes no locks: with more threads it adds its own.
//!
//! [`Graph`] has the functions and who called whom: what a flame graph is drawn of.
#![forbid(unsafe_code)]

mod atomics;
mod count;
mod graph;
mod output;
mod run;

pub use count::{Part, PerHandshake, per_handshake};
pub use graph::{Call, Frame, Function, Graph};
pub use output::{Executed, ParseError, Place, Profile};
pub use run::{Error, Invocation, Options, profile};
