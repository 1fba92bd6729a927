//! What the workspace's tests share.
//!
//! [`main`] runs tests that libtest cannot: entering the lab re-executes the program and wants a
//! process without threads, so that each is a process of its own. [`skip()`] and [`skip!`] end a test
//! that cannot run here; what is skipped is reported with its reason, and is a failure where
//! `WIRETAX_REQUIRE` says that this machine can do it. `net` (a feature) has nodes, peers and streams.
#![forbid(unsafe_code)]

mod need;
#[cfg(feature = "lab")]
pub mod net;
mod pcap;
mod runner;
mod scenario;

use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

pub use need::{Need, program, skip, skipped};
pub use pcap::Pcap;
pub use runner::{Test, main};
pub use scenario::{Ended, Running, Scenario, judge};

/// Why a test failed.
pub type Failure = Box<dyn Error + Send + Sync>;

/// How a test, or a step of one, ended.
pub type TestResult<T = ()> = Result<T, Failure>;

/// Writes an executable file. Another process writes it: a file that a thread of this process has open
/// for writing is open in every process that another thread starts just then, and cannot be executed
/// until that one has ended its own start (ETXTBSY).
///
/// # Panics
/// There is no shell, or no room.
pub fn executable(path: &Path, text: &str) {
    let mut shell = Command::new("sh");
    shell.args(["-c", "cat >\"$0\" && chmod 755 \"$0\""]).arg(path).stdin(Stdio::piped());
    let mut shell = shell.spawn().expect("a shell");
    let mut input = shell.stdin.take().expect("its input");
    input.write_all(text.as_bytes()).expect("the shell reads");
    drop(input);
    assert!(shell.wait().expect("the shell ends").success(), "{} is written", path.display());
}

/// Looks every few milliseconds until `look` finds something, for a bounded time.
///
/// # Errors
/// It found nothing in time, or `look` failed.
pub fn until<T>(
    what: &str,
    limit: Duration,
    mut look: impl FnMut() -> TestResult<Option<T>>,
) -> TestResult<T> {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(found) = look()? {
            return Ok(found);
        }
        if Instant::now() > deadline {
            return Err(format!("waited {} s in vain for: {what}", limit.as_secs()).into());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}
