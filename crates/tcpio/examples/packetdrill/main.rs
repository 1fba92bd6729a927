//! Our TCP as a shared object for packetdrill, in virtual time.
//!
//! ```text
//! cargo build --release -p tcpio --example packetdrill
//! packetdrill --so_filename=target/release/examples/libpacketdrill.so SCRIPT.pkt
//! ```
//!
//! packetdrill calls `packetdrill_interface_init`, which fills a table of functions (`abi`). Each call has the
//! meaning of the system call of its name; `netdev_send` gives a packet to the endpoint and `netdev_receive` takes
//! one from it. Time is the endpoint's: `usleep` lets it pass at once, `netdev_receive` up to the next packet, and
//! `gettimeofday` by a microsecond, since packetdrill spins on it. A call that blocks waits in its thread.
//!
//! `--so_flags` takes words, separated by commas: `nagle=0`, `sack=0`, `timestamps=0`, `window_scale=0`,
//! `wscale=N` (the shift that SYNs tell) and `mtu=N`. Kernel parameters that a script sets by a shell are the
//! machine's and change nothing here.

mod abi;
mod calls;
mod host;
mod memory;
mod options;
mod poll;
#[cfg(test)]
mod tests;

use std::ffi::{CStr, c_char};

use host::Host;

/// Fills packetdrill's table of functions.
///
/// # Safety
/// `flags` is null or a string that ends with a zero; `interface` points to a `struct packetdrill_interface`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn packetdrill_interface_init(
    flags: *const c_char,
    interface: *mut abi::Interface,
) {
    let flags = match flags.is_null() {
        true => "",
        // SAFETY: the caller gives a string that ends with a zero.
        false => unsafe { CStr::from_ptr(flags) }.to_str().unwrap_or(""),
    };
    let host = Box::into_raw(Box::new(Host::new(flags)));
    if !interface.is_null() {
        // SAFETY: the caller gives a place for the table.
        unsafe { interface.write(calls::table(host.cast())) };
    }
}
