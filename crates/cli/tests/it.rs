//! The program as a user runs it.

mod bad_input;
mod commands;
mod drivers;
mod haproxy;
mod lifecycle;
mod load;
mod observe;
mod probe;
mod readme;
mod resume;
mod stacks;
mod support;
