//! Both directions of a link.

use serde::{Deserialize, Serialize};
use units::{Delay, Time};

use crate::config::{LinkConfig, Queue, RateSource};
use crate::error::ConfigError;
use crate::frame::Frame;
use crate::link::Link;
use crate::loss::Loss;
use crate::middlebox::Middlebox;
use crate::seed::mix;

/// Both directions of a link, each its own. The default is a perfect link.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Path {
    /// From the first end to the second: client to server, upload.
    pub forward: LinkConfig,
    /// From the second end to the first: server to client, download.
    pub backward: LinkConfig,
}

impl Path {
    /// A link with this round trip time, half each way, and nothing else.
    #[must_use]
    pub fn symmetric(rtt: Delay) -> Self {
        let (there, back) = rtt.split_round_trip();
        Path {
            forward: LinkConfig { delay: there, ..LinkConfig::default() },
            backward: LinkConfig { delay: back, ..LinkConfig::default() },
        }
    }

    /// The same with this rate each way.
    #[must_use]
    pub fn with_rate(self, rate: impl Into<RateSource>) -> Self {
        let rate = rate.into();
        self.with_each(|link| link.rate = Some(rate.clone()))
    }

    /// The same with this loss each way.
    #[must_use]
    pub fn with_loss(self, loss: impl Into<Loss>) -> Self {
        let loss = loss.into();
        self.with_each(|link| link.loss = loss)
    }

    /// The same with this queue each way.
    #[must_use]
    pub fn with_queue(self, queue: Queue) -> Self {
        self.with_each(|link| link.queue = queue)
    }

    /// The same with this middlebox each way.
    #[must_use]
    pub fn with_middlebox(self, middlebox: Middlebox) -> Self {
        self.with_each(|link| link.middlebox = middlebox)
    }

    fn with_each(mut self, change: impl Fn(&mut LinkConfig)) -> Self {
        change(&mut self.forward);
        change(&mut self.backward);
        self
    }

    /// The round trip time of a small frame on an idle link, without jitter and rate.
    #[must_use]
    pub fn round_trip(&self) -> Delay {
        (self.forward.delay.duration() + self.backward.delay.duration()).into()
    }

    /// Whether links can be made of it.
    ///
    /// # Errors
    /// Names the first field that makes no sense.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.forward.validate().map_err(|error| error.inside("forward"))?;
        self.backward.validate().map_err(|error| error.inside("backward"))
    }

    /// The links of both directions, forward first. Their seeds are derived from `seed`, so the
    /// same seed gives the same fates wherever the path is opened, in virtual time or real.
    /// `start` is the time from which traces and outages count.
    ///
    /// # Errors
    /// As for [`Path::validate`].
    pub fn open<F: Frame>(
        &self,
        start: Time,
        seed: u64,
    ) -> Result<(Link<F>, Link<F>), ConfigError> {
        let forward = Link::starting_at(start, self.forward.clone(), mix(seed, 1));
        let backward = Link::starting_at(start, self.backward.clone(), mix(seed, 2));
        let forward = forward.map_err(|error| error.inside("forward"))?;
        Ok((forward, backward.map_err(|error| error.inside("backward"))?))
    }
}
