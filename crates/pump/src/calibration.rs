//! What a calibration finds, and what to do about it.

use std::fmt;

use serde::{Deserialize, Serialize};
use units::Delay;

use crate::{Mode, TimeSummary};

/// Differences of times, in nanoseconds, with their sign.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DifferenceSummary {
    /// How many there are.
    pub count: u64,
    /// Minimum, in nanoseconds.
    pub min_ns: i64,
    /// Median, in nanoseconds.
    pub p50_ns: i64,
    /// 90th percentile, in nanoseconds.
    pub p90_ns: i64,
    /// 99th percentile, in nanoseconds.
    pub p99_ns: i64,
    /// Maximum, in nanoseconds.
    pub max_ns: i64,
}

impl DifferenceSummary {
    /// Sums up `differences`, in nanoseconds; all zero if there are none. Percentiles are the
    /// smallest values that are not below that share.
    #[must_use]
    pub fn of(mut differences: Vec<i64>) -> Self {
        differences.sort_unstable();
        let at = |per_cent: usize| {
            let rank = (differences.len() * per_cent).div_ceil(100).max(1);
            differences.get(rank - 1).copied().unwrap_or_default()
        };
        DifferenceSummary {
            count: differences.len() as u64,
            min_ns: differences.first().copied().unwrap_or_default(),
            p50_ns: at(50),
            p90_ns: at(90),
            p99_ns: at(99),
            max_ns: differences.last().copied().unwrap_or_default(),
        }
    }
}

/// How exactly a constant delay was kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DelayCheck {
    /// The one-way delay asked for.
    pub configured: Delay,
    /// How late the pump sent, by its own view.
    pub release_error: TimeSummary,
    /// One-way delay from the kernel's stamp at the sending interface to its stamp at the receiving
    /// one, less the configured delay. It holds the emulation's whole error: two veth crossings,
    /// the wait for the pump, two copies.
    pub one_way_error: DifferenceSummary,
    /// Mean absolute difference of the one-way delays of successive frames (RFC 3393), in
    /// nanoseconds.
    pub jitter_ns: u64,
}

/// How many frames of one length a link carries one way.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Capacity {
    /// Length of the Ethernet frames, in bytes.
    pub frame_bytes: u32,
    /// Frames carried in a second.
    pub frames_per_second: f64,
    /// Frames offered in a second, those lost before the pump saw them included as far as they
    /// are known.
    pub offered_per_second: f64,
    /// CPU time of the pump for each frame, in nanoseconds: its own work, the system calls, and
    /// the receiving stack's softirq, which runs in the sender's context.
    pub cpu_ns_per_frame: f64,
    /// System calls for each frame, receiving and sending.
    pub calls_per_frame: f64,
    /// Share of the time that the pump's thread worked, spinning not counted. At 0.9 and more the
    /// figure is the pump's limit; below, the test's sender was, and the pump can do more.
    pub busy: f64,
}

/// How well a pump emulates a link, here and now. Every report states it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// How the nodes are joined: "veth" or "tap".
    pub backend: String,
    /// How the pump waits and is scheduled.
    pub mode: Mode,
    /// Constant delays, each alone.
    pub delays: Vec<DelayCheck>,
    /// Arrival of each frame of bursts over a rate-limited link, less what the same model gives in
    /// virtual time for the same frames: the emulator's error.
    pub model_difference: DifferenceSummary,
    /// Capacity by frame length.
    pub capacity: Vec<Capacity>,
}

/// Something that makes measurements worse than they need be, with a remedy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// What is the matter.
    pub problem: String,
    /// What to do.
    pub remedy: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.problem, self.remedy)
    }
}

/// Median release error that a sound machine keeps with and without real-time scheduling.
const MEDIAN_LIMIT_NS: [(bool, u64); 2] = [(true, 5_000), (false, 60_000)];
/// 99th percentile of the release error that a sound machine keeps.
const TAIL_LIMIT_NS: u64 = 100_000;
/// Frames of 1000 bytes in a second that a sound machine carries.
const CAPACITY_LIMIT: f64 = 300_000.0;

/// A pump that works for less of the time than this waited for frames, or for a processor.
const SATURATED: f64 = 0.85;

impl Calibration {
    /// What makes this emulation worse than it need be; empty if nothing does.
    #[must_use]
    pub fn warnings(&self) -> Vec<Warning> {
        let mut warnings = Vec::new();
        let mut warn = |problem: String, remedy: &str| {
            warnings.push(Warning { problem, remedy: remedy.to_owned() });
        };
        if !self.mode.realtime {
            warn(
                "no real-time scheduling, so frames leave tens of microseconds late".to_owned(),
                "run as root, or allow it: a line `USER - rtprio 10` in \
                 /etc/security/limits.conf, then log in again",
            );
        }
        if self.mode.cpus < 2 {
            warn(
                "one processor for the nodes and the link".to_owned(),
                "use a machine with two or more; compute times and link times disturb each other \
                 here",
            );
        }
        for check in &self.delays {
            self.warn_of_delay(check, &mut warn);
        }
        if let Some(slow) = self.capacity.iter().find(|it| (900..=1100).contains(&it.frame_bytes))
            && slow.frames_per_second < CAPACITY_LIMIT
        {
            let thousands = slow.frames_per_second / 1e3;
            if slow.busy < SATURATED {
                warn(
                    format!(
                        "only {thousands:.0} thousand {}-byte frames/s could be sent to the link, \
                         so how many it carries is not known",
                        slow.frame_bytes
                    ),
                    "stop other programs and calibrate again",
                );
            } else {
                warn(
                    format!(
                        "the link carries {thousands:.0} thousand {}-byte frames/s at most",
                        slow.frame_bytes
                    ),
                    "keep emulated rates well below that, stop other programs, or use offload \
                     mode for bulk flows",
                );
            }
        }
        warnings
    }

    fn warn_of_delay(&self, check: &DelayCheck, warn: &mut impl FnMut(String, &str)) {
        let median_limit = MEDIAN_LIMIT_NS
            .iter()
            .find(|(realtime, _)| *realtime == self.mode.spins)
            .map_or(u64::MAX, |(_, limit)| *limit);
        let error = check.release_error;
        if error.p50_ns > median_limit {
            warn(
                format!(
                    "frames of a {} link leave {:.1} us late at the median",
                    check.configured,
                    error.p50_ns as f64 / 1e3
                ),
                "stop other programs; set the CPU governor to `performance`",
            );
        }
        if error.p99_ns > TAIL_LIMIT_NS {
            warn(
                format!(
                    "1 in 100 frames of a {} link leaves {:.0} us late or later",
                    check.configured,
                    error.p99_ns as f64 / 1e3
                ),
                "stop other programs, or use a machine of your own: a hypervisor that takes the \
                 processor away shows like this",
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn calibration(
        realtime: bool,
        p50_ns: u64,
        p99_ns: u64,
        frames_per_second: f64,
    ) -> Calibration {
        let release_error = TimeSummary { count: 100, p50_ns, p99_ns, ..TimeSummary::default() };
        Calibration {
            backend: "veth".to_owned(),
            mode: Mode { spins: realtime, realtime, offload: false, cpus: 2 },
            delays: vec![DelayCheck {
                configured: Duration::from_millis(10).into(),
                release_error,
                one_way_error: DifferenceSummary::default(),
                jitter_ns: 0,
            }],
            model_difference: DifferenceSummary::default(),
            capacity: vec![Capacity {
                frame_bytes: 1000,
                frames_per_second,
                offered_per_second: frames_per_second,
                cpu_ns_per_frame: 1000.0,
                calls_per_frame: 0.1,
                busy: 1.0,
            }],
        }
    }

    #[test]
    fn a_sound_machine_draws_no_warning() {
        assert_eq!(calibration(true, 900, 2_000, 700e3).warnings(), []);
    }

    #[test]
    fn each_warning_names_its_remedy() {
        let warnings = calibration(false, 70_000, 300_000, 100e3).warnings();
        let texts: Vec<String> = warnings.iter().map(ToString::to_string).collect();
        for part in ["rtprio", "governor", "hypervisor", "offload mode"] {
            assert!(texts.iter().any(|text| text.contains(part)), "{part}: {texts:?}");
        }
        assert_eq!(texts.len(), 4);
    }

    #[test]
    fn a_slow_sender_is_not_taken_for_a_slow_link() {
        let mut calibration = calibration(true, 900, 2_000, 100e3);
        calibration.capacity[0].busy = 0.3;
        let warnings = calibration.warnings();
        assert!(warnings[0].problem.contains("not known"), "{warnings:?}");
        assert_eq!(warnings.len(), 1);
    }

    #[test]
    fn percentiles_are_of_the_nearest_rank() {
        let summary = DifferenceSummary::of((-50..50).rev().collect());
        assert_eq!((summary.min_ns, summary.p50_ns, summary.max_ns), (-50, -1, 49));
        assert_eq!((summary.p90_ns, summary.p99_ns, summary.count), (39, 48, 100));
        assert_eq!(DifferenceSummary::of(Vec::new()), DifferenceSummary::default());
    }

    #[test]
    fn a_calibration_can_be_stored_and_read_back() {
        let calibration = calibration(true, 900, 2_000, 700e3);
        let text = serde_json::to_string(&calibration).unwrap();
        assert_eq!(serde_json::from_str::<Calibration>(&text).unwrap(), calibration);
    }
}
