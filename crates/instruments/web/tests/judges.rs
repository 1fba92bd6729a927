//! Other implementations decide.
