//! By which time a study measures: the machine's, or that of a guest, in which an instruction takes a
//! nanosecond and idle time is skipped.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fault::Problem;
use guest::Guest;
use host::{Host, Place};
use lab::LabOptions;
use record::{Manifest, Sample};
use report::{Caution, Note};
use units::named;

use crate::options::Options;
use crate::plan_file::PlanError;
use crate::sweep::Sweep;

named! {
    /// By which time a point is measured. Times by different clocks are never compared.
    #[derive(Default)]
    pub enum Clock: "clock" {
        /// The machine's: with its noise, and with what its caches and pipelines do.
        #[default]
        Wall = "wall",
        /// A guest's: it counts instructions, and repeats exactly.
        Virtual = "virtual",
    }
}

/// The name of the axis of clocks.
pub const CLOCK: &str = "clock";
/// What the axis of clocks is, for help.
pub const CLOCK_HELP: &str = "Clock: wall, or virtual (a guest's: an instruction takes a nanosecond, idle time none; \
                              repeats exactly; needs `make guest`)";

/// The one clock of a plan's points.
///
/// # Errors
/// [`PlanError::TwoClocks`].
pub fn one_clock(clocks: impl IntoIterator<Item = Clock>) -> Result<Clock, PlanError> {
    let mut clocks = clocks.into_iter();
    let first = clocks.next().unwrap_or_default();
    if clocks.all(|clock| clock == first) { Ok(first) } else { Err(PlanError::TwoClocks) }
}

/// Puts the clock that the user gave into all sweeps of a plan; true if one was given.
pub fn overwrite_clock(sweeps: &mut [Sweep], options: &Options<'_>) -> bool {
    let given = options.given(CLOCK);
    if given {
        for sweep in sweeps {
            sweep.lists.insert(CLOCK.to_owned(), options.all(CLOCK));
        }
    }
    given
}

/// A host in whose guest this program's workers do jobs, and the lab that is asked for there.
///
/// # Errors
/// QEMU, the kernel or a library is missing.
pub fn guest_host(lab: &LabOptions, seed: u64) -> Result<(Host, LabOptions), Problem> {
    let launch = Guest::find()?.with_seed(seed).launch()?;
    // One processor, and nobody to leave it to.
    let pump = pump::Options { cpu: None, ..lab.pump };
    Ok((Host::new(Place::Process(launch)), LabOptions { node_cpu: None, pump, ..*lab }))
}

/// Most guests at once: each takes half a gigabyte of memory.
const MOST_GUESTS: usize = 4;

impl Clock {
    /// Jobs that may be done side by side: one by the machine's own time, for they would disturb each other; in guests
    /// one per processor, which each keeps busy, since what else goes on changes nothing in virtual time.
    #[must_use]
    pub fn lanes(self) -> usize {
        match self {
            Clock::Wall => 1,
            Clock::Virtual => {
                std::thread::available_parallelism().map_or(1, usize::from).min(MOST_GUESTS)
            }
        }
    }

    /// About how long jobs take by this clock that take `time` one after the other.
    #[must_use]
    pub fn side_by_side(self, time: Duration) -> Duration {
        time / u32::try_from(self.lanes()).unwrap_or(1)
    }

    /// Sees whether this machine can measure by it.
    ///
    /// # Errors
    /// A guest is needed, and something of it is missing.
    pub fn check(self) -> Result<(), Problem> {
        match self {
            Clock::Wall => Ok(()),
            Clock::Virtual => Ok(Guest::find().map(drop)?),
        }
    }

    /// Gives a sample the time of day at which it came, in place of the guest's, which is always the same.
    pub fn stamp(self, sample: &mut Sample) {
        if self == Clock::Virtual {
            let since = SystemTime::now().duration_since(UNIX_EPOCH);
            sample.at_unix_ms = since.map_or(0, |since| since.as_millis() as u64);
        }
    }

    /// Says in a manifest that a study's times are virtual, if they are, and which guest they are of.
    pub fn describe(self, manifest: &mut Manifest, study: &str) {
        if self == Clock::Wall {
            return;
        }
        for kind in manifest.values.get_mut(study).into_iter().flat_map(|of| of.values_mut()) {
            if kind.clock == record::Clock::Wall {
                kind.clock = record::Clock::Virtual;
            }
        }
        // What is wrong with a guest is said by who measures in it.
        if let Ok(versions) = Guest::find().and_then(|guest| guest.versions()) {
            manifest.libraries.insert("guest kernel".to_owned(), versions.kernel);
            manifest.libraries.insert("QEMU".to_owned(), versions.qemu);
        }
    }

    /// What a reader of a report must know of virtual times.
    #[must_use]
    pub fn caution(self) -> Option<Caution> {
        let text = "Times are virtual: every instruction took a nanosecond, and waiting none of the machine's \
                    time. They tell how much work something is and how often it waits, and not how fast a \
                    processor with caches does it.";
        let effect = "round trips, bytes, losses and waiting are exact; what computes much could weigh more or less \
                      on a processor with caches.";
        (self == Clock::Virtual).then(|| Note::info(text).answer_may_change(effect))
    }
}

#[cfg(test)]
mod tests {
    use fault::{Explain as _, Fault};

    use super::*;

    #[test]
    fn a_plan_has_one_clock() {
        use Clock::{Virtual, Wall};
        assert_eq!(one_clock([]).unwrap(), Wall);
        assert_eq!(one_clock([Virtual, Virtual]).unwrap(), Virtual);
        let error = one_clock([Wall, Virtual]).unwrap_err();
        assert_eq!(error.fault(), Fault::Caller);
        assert!(error.remedy().is_some());
    }
}
