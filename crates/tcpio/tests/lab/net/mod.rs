//! Stacks against each other and against the kernel's, on devices of every kind.

mod closing;
mod devices;
mod kernel;
mod ours;

use lab_test::Test;

pub fn tests() -> Vec<Test> {
    [ours::tests(), kernel::tests(), closing::tests(), devices::tests()].concat()
}
