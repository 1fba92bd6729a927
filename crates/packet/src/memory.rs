//! Memory of this process.

/// Gives memory that is allocated no more back to the system. glibc keeps most of it otherwise. Takes
/// milliseconds where hundreds of megabytes are free.
pub fn give_back() {
    // SAFETY: malloc_trim(3) takes the allocator's own locks and touches free memory alone.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0);
    }
}
