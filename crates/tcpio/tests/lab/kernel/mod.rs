//! The Linux kernel's TCP as the judge of ours: it is the peer, both ways.

mod beliefs;
mod fast_open;
mod flood;
mod path_mtu;
mod states;
mod transfers;
mod unreachable;
mod windows;

use lab_test::Test;

pub fn tests() -> Vec<Test> {
    [
        beliefs::tests(),
        states::tests(),
        fast_open::tests(),
        windows::tests(),
        path_mtu::tests(),
        unreachable::tests(),
        transfers::tests(),
        flood::tests(),
    ]
    .concat()
}
