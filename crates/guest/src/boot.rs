//! The job that every guest can do: saying that it is there.

use std::fs;
use std::time::Duration;

use fault::{Fault, OrProblem as _, Problem};
use host::{Host, HostError, Outlet, Place, Worker};
use serde::{Deserialize, Serialize};

use crate::Guest;

/// A guest that has started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Booted {
    /// Its kernel's release.
    pub kernel: String,
    /// Seconds by its own clock since it was switched on.
    pub virtual_seconds: f64,
}

/// Says that it is there.
pub(crate) struct Boot;

impl Worker for Boot {
    const KIND: &'static str = "guest-boot";
    type Job = ();
    type Answer = Booted;

    fn work(&self, (): (), _: &mut Outlet<'_>) -> Result<Booted, Problem> {
        let read = |file| fs::read_to_string(file).blame(Fault::Machine);
        let uptime = read("/proc/uptime")?;
        let seconds = uptime.split(' ').next().unwrap_or_default();
        Ok(Booted {
            kernel: read("/proc/sys/kernel/osrelease")?.trim().to_owned(),
            virtual_seconds: seconds.parse().blame(Fault::Machine)?,
        })
    }
}

impl Guest {
    /// Starts it, and has it say that it is there. Ended as soon as `stop` says so.
    ///
    /// # Errors
    /// It cannot be started, or does not come up within `limit`.
    pub fn boot(&self, limit: Duration, stop: &dyn Fn() -> bool) -> Result<Booted, Problem> {
        let launch = self.launch()?;
        let host = Host::new(Place::Process(launch));
        let booted: Result<Booted, HostError> =
            host.run_until::<Boot>("the guest", &(), limit, stop, |_| {});
        Ok(booted?)
    }
}
