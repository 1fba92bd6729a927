//! What a fair comparison needs: the kernel's congestion control, medians, required figures.

use std::os::fd::AsRawFd;

use lab_test::TestResult;
use stats::{Confidence, Sample};

/// Gives a kernel's socket the congestion control that most hosts have, whatever this one has as
/// its default.
pub fn cubic(socket: &impl AsRawFd) -> TestResult {
    let name = b"cubic";
    // SAFETY: the name is live and of the stated size.
    let set = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_CONGESTION,
            name.as_ptr().cast(),
            name.len() as libc::socklen_t,
        )
    };
    match set {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error().into()),
    }
}

/// A row of results: median, and the 95 % interval of it or as much as so few samples give.
pub fn row(name: &str, values: &[f64], unit: &str) -> TestResult<f64> {
    let estimate = Sample::new(values)?.median_estimate(Confidence::C95);
    println!(
        "  {name:<44} {:>10.3} {unit} ({:.3} to {:.3}, {:.0} % of {} runs)",
        estimate.value,
        estimate.low,
        estimate.high,
        estimate.confidence * 100.0,
        values.len()
    );
    Ok(estimate.value)
}

/// A required figure beside the measured one. Nothing fails by it: machines are noisy.
pub fn required(what: &str, measured: f64, least: f64) {
    let verdict = if measured >= least { "reached" } else { "MISSED" };
    println!("  {what}: {measured:.3}, required at least {least:.3}: {verdict}");
}
