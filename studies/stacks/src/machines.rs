//! What a load takes: CPU time, cores, machines, energy. Pure.

use serde::Serialize;

/// Of its time a core works so much at most in this reckoning; the rest is there for peaks.
pub const BUSY: f64 = 0.6;

/// What a load of new connections takes on the server's side.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Need {
    /// CPU-seconds for a million connections.
    pub cpu_s_per_million: f64,
    /// Cores of this kind that are busy all the time.
    pub cores: f64,
    /// Machines with as many cores as this one, busy for [`BUSY`] of the time; `None` where the locks
    /// let none of them do more than it does already.
    pub machines: Option<u64>,
    /// Whether the bound from lock counts, and not the CPU, gave the number of machines.
    pub by_locks: bool,
}

/// What `per_second` new connections take at `cpu_us` each, on machines of `cores` cores; `most` is
/// the rate that one machine cannot pass whatever its cores.
#[must_use]
pub fn need(cpu_us: f64, per_second: f64, cores: u32, most: Option<f64>) -> Need {
    let busy = per_second * cpu_us / 1e6;
    let by_cpu = f64::from(cores) * BUSY * 1e6 / cpu_us;
    let one = most.map_or(by_cpu, |most| by_cpu.min(most));
    let machines = (per_second / one).ceil();
    Need {
        cpu_s_per_million: cpu_us,
        cores: busy,
        machines: (machines.is_finite() && machines < 1e15).then_some(machines.max(1.0) as u64),
        by_locks: one < by_cpu,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_takes_its_cpu_time_and_room_for_peaks() {
        let need = need(500.0, 20_000.0, 8, None);
        assert_eq!(need.cpu_s_per_million, 500.0);
        assert_eq!(need.cores, 10.0);
        // 8 cores x 0.6 / 500 us = 9600 a second.
        assert_eq!((need.machines, need.by_locks), (Some(3), false));
    }

    #[test]
    fn locks_can_need_more_machines_than_the_cpu() {
        let need = need(500.0, 20_000.0, 64, Some(5_000.0));
        assert_eq!((need.machines, need.by_locks), (Some(4), true));
        assert_eq!(super::need(0.0, 1.0, 1, None).machines, Some(1));
    }
}
