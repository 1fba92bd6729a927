//! Locks under a library: counted, or lighter ones in their place.
//!
//! Two small shared objects are embedded, to be preloaded into the process that runs the library:
//! [`Object::Count`] counts the locks that a thread takes while it asks for it, with their call
//! sites; [`Object::Light`] puts small locks of our own in the place of the C library's. [`Counter`]
//! is how the process talks to the first; [`cost`] measures what one acquisition costs.
//!
//! What is counted does not depend on the machine, nor on how fast the process runs under it: locks
//! of `pthread_rwlock_*`, `pthread_mutex_*` and `pthread_spin_*`. Not counted, since no preloaded
//! object sees them: the C library's own locks (of malloc, stdio and the loader), the mutex that
//! `pthread_cond_wait` takes again, `pthread_once`, C11's `mtx_*`, the futexes of other runtimes
//! (Rust's `std`, Go's) and atomic instructions; the crate `callgrind` counts the last.

pub mod cost;
mod counter;
mod names;
mod object;
mod symbols;

pub use cost::{Cost, CostError, Operation, contended_cost};
pub use counter::{Counter, Counts, Kind, Side, Site};
pub use object::{Object, ObjectError, preloaded};
