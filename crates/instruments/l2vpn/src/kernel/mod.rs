//! A path out of the Linux kernel's own features.

use seclink::path::Topology;

use crate::Error;
use crate::stage::Stage;
use crate::standing::Counted;

/// How a path of the kernel's features is stood up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelOptions {
    /// What the keys are made of.
    pub seed: u64,
    /// Frames that wait before a gateway that is limited ([`Topology::gateway`]).
    pub queue: u32,
    /// Packets behind the highest number that are still taken, by MACsec and ESP.
    pub replay_window: u32,
    /// Whether ESP's sequence numbers have 64 bits (RFC 4303 §2.2.1).
    pub extended: bool,
}

impl Default for KernelOptions {
    fn default() -> Self {
        KernelOptions { seed: 0, queue: 64, replay_window: 64, extended: false }
    }
}

/// What of the kernel's features a path needs and this kernel has not, by trying them. In a lab only.
///
/// # Errors
/// There is no lab.
pub fn lacking(_topology: &Topology) -> Result<Vec<&'static str>, Error> {
    Ok(Vec::new())
}

#[derive(Debug)]
pub(crate) struct Kernel {
    stage: Stage,
}

impl Kernel {
    pub(crate) fn stand(
        stage: Stage,
        _topology: &Topology,
        _options: &KernelOptions,
    ) -> Result<Kernel, Error> {
        Ok(Kernel { stage })
    }

    pub(crate) fn link_bytes(&self, link: u8) -> Result<Counted, Error> {
        self.stage.passed(link)
    }

    pub(crate) fn drops(&self) -> Result<Vec<(String, u64)>, Error> {
        Ok(Vec::new())
    }
}
