//! Our stacks and the kernel's. tshark reads what is on the wire, `openssl s_client` and curl are
//! ordinary peers of the listener.

mod attacker;
mod attacks;
mod captures;
mod fallbacks;
mod flood;
mod ordinary;
mod profiles;
mod service;
mod streams;
mod talk;

use lab_test::Test;

pub fn tests() -> Vec<Test> {
    [
        profiles::tests(),
        fallbacks::tests(),
        streams::tests(),
        captures::tests(),
        ordinary::tests(),
        flood::tests(),
        attacks::tests(),
    ]
    .concat()
}
