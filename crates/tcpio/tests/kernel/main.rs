//! The Linux kernel's TCP as the judge of ours: it is the peer, both ways, in namespaces.
//!
//! Entering the lab re-executes the program and wants a process without threads, so that libtest
//! cannot run these: every test is a process of its own.

mod beliefs;
mod fast_open;
mod flood;
mod harness;
mod path_mtu;
mod pattern;
mod peers;
mod segments;
mod states;
mod syn_flood;
mod transfers;
mod windows;

fn main() -> std::process::ExitCode {
    let mut tests = Vec::new();
    tests.extend(beliefs::tests());
    tests.extend(states::tests());
    tests.extend(fast_open::tests());
    tests.extend(windows::tests());
    tests.extend(path_mtu::tests());
    tests.extend(transfers::tests());
    tests.extend(flood::tests());
    harness::main("-p tcpio --test kernel", &tests)
}
