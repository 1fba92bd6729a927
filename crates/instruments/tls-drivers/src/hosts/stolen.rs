//! Time that a hypervisor takes.

use std::time::Duration;

/// Time in which this machine's processors had work and the hypervisor ran something else, of all
/// together since the start; `None` where the kernel does not say.
pub(super) fn stolen() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/stat").ok()?;
    stolen_in(&text, rustix::param::clock_ticks_per_second())
}

/// The same in the text of `/proc/stat`: the eighth number of its first line (proc_stat(5), `steal`).
fn stolen_in(text: &str, ticks_per_second: u64) -> Option<Duration> {
    let mut words = text.lines().find_map(|line| line.strip_prefix("cpu "))?.split_whitespace();
    let ticks: u64 = words.nth(7)?.parse().ok()?;
    (ticks_per_second > 0).then(|| Duration::from_secs_f64(ticks as f64 / ticks_per_second as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steal_is_the_eighth_number_of_all_processors() {
        let text = "cpu  1 2 3 4 5 6 7 250 9 10\ncpu0 1 2 3 4 5 6 7 99 9 10\nintr 5\n";
        assert_eq!(stolen_in(text, 100), Some(Duration::from_millis(2500)));
        // Linux before 2.6.11 has no such column.
        for wrong in
            ["cpu  1 2 3 4 5 6 7\n", "", "cpu0 1 2 3 4 5 6 7 8\n", "cpu  1 2 3 4 5 6 7 x\n"]
        {
            assert_eq!(stolen_in(wrong, 100), None, "{wrong}");
        }
        assert_eq!(stolen_in(text, 0), None);
    }
}
