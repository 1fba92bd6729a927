//! The library target of every driver on a C shim: the one symbol that a driver exports. rustc lets no
//! other symbol out of a shared object.

use std::ffi::c_void;

unsafe extern "C" {
    fn shim_driver() -> *const c_void;
}

/// The driver (`struct wt_driver` of wiretax_driver.h).
#[unsafe(no_mangle)]
pub extern "C" fn wiretax_driver() -> *const c_void {
    // SAFETY: the shim takes nothing and returns the address of a constant.
    unsafe { shim_driver() }
}
