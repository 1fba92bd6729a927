//! How an engine runs.

use packet::PortOptions;
use serde::{Deserialize, Serialize};
use units::named;

named! {
    /// How an engine waits for frames.
    #[derive(Default)]
    pub enum Wait: "way to wait" {
        /// Spins where more processors may be used than it has threads, else blocks.
        #[default]
        Auto = "auto",
        /// The same: nothing spins on the only processor.
        Spin = "spin",
        /// Blocks: a frame waits some tens of microseconds for the wake-up, and an idle engine costs nothing.
        Block = "block",
    }
}

named! {
    /// Which threads an engine has.
    #[derive(Default)]
    pub enum Threads: "threads of an engine" {
        /// One for both directions of all nodes.
        #[default]
        One = "one",
        /// One each direction.
        PerDirection = "per-direction",
    }
}

impl Threads {
    /// How many there are.
    #[must_use]
    pub const fn count(self) -> usize {
        match self {
            Threads::One => 1,
            Threads::PerDirection => 2,
        }
    }
}

/// How an engine runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    /// How it waits.
    pub wait: Wait,
    /// One thread, or one for each direction.
    pub threads: Threads,
    /// The processors that they stay on: that of the only thread or of the forward direction, and that of the
    /// backward direction; any if not given. A thread that stays keeps the order of its frames.
    pub cpus: [Option<usize>; 2],
    /// Frames that a thread holds at one time; one that finds no buffer is dropped and counted.
    pub buffers: u32,
    /// Frames that each AF_PACKET port holds until they are taken.
    pub ring_frames: u32,
    /// Bytes of the longest frame that is taken.
    pub frame_bytes: u32,
}

impl Default for Options {
    /// Links of an MTU of 2000 bytes.
    fn default() -> Self {
        Options {
            wait: Wait::Auto,
            threads: Threads::One,
            cpus: [None; 2],
            buffers: 2048,
            ring_frames: 2048,
            frame_bytes: 2018,
        }
    }
}

impl Options {
    /// How the engine's ports are to be opened.
    #[must_use]
    pub const fn ports(&self) -> PortOptions {
        PortOptions {
            ring_frames: self.ring_frames,
            frame_bytes: self.frame_bytes,
            vnet_header: false,
            promiscuous: true,
        }
    }

    /// Whether it spins where it may use so many processors.
    pub(crate) const fn spins(&self, cpus: usize) -> bool {
        match self.wait {
            Wait::Block => false,
            Wait::Auto | Wait::Spin => cpus > self.threads.count(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_spins_without_a_processor_to_spare() {
        for (threads, least) in [(Threads::One, 2), (Threads::PerDirection, 3)] {
            for wait in [Wait::Auto, Wait::Spin] {
                let options = Options { wait, threads, ..Options::default() };
                assert!(options.spins(least) && !options.spins(least - 1));
            }
            let options = Options { wait: Wait::Block, threads, ..Options::default() };
            assert!(!options.spins(8));
        }
    }
}
