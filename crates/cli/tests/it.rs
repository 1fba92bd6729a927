//! The program as a user runs it.

mod bad_input;
mod before_after;
mod chain;
mod commands;
mod documented;
mod drivers;
mod ech;
mod emulate;
mod figures;
mod guest;
mod haproxy;
mod lifecycle;
mod load;
mod meaning;
mod observe;
mod probe;
mod query;
mod readme;
mod real;
mod resume;
mod roam;
mod scripts;
mod sequence;
mod stacks;
mod support;
mod words;
