//! What stands under the library's reader-writer locks.

units::named! {
    /// What stands under the library's reader-writer locks.
    pub enum Locks: "kind of locks" {
        /// The C library's.
        Pthread = "pthread",
        /// HAProxy's own light ones (USE_PTHREAD_EMULATION).
        Light = "light",
    }
}
