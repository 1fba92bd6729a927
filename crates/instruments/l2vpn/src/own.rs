//! A path out of our own engine.

use std::time::Duration;

use seclink::path::Topology;

use crate::Error;
use crate::stage::Stage;
use crate::standing::Counted;

/// How a path of our own engine is stood up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OwnOptions {
    /// What the keys are made of.
    pub seed: u64,
}

/// The engine's part of a path.
#[derive(Debug)]
pub(crate) struct Own {
    stage: Stage,
}

impl Own {
    pub(crate) fn stand(
        stage: Stage,
        _topology: &Topology,
        _options: &OwnOptions,
    ) -> Result<Own, Error> {
        drop(Own { stage });
        Err(Error::NotBuilt)
    }

    pub(crate) fn link_bytes(&self, link: u8) -> Result<Counted, Error> {
        self.stage.passed(link)
    }

    pub(crate) fn drops(&self) -> Result<Vec<(String, u64)>, Error> {
        Err(Error::NotBuilt)
    }

    pub(crate) fn cpu_time(&self) -> Option<Duration> {
        None
    }
}
