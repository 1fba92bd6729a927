//! The machines from outside: whole dialogs, and each kind of fault.

mod dialogs;
mod faults;
mod hostile;
mod proxies;
