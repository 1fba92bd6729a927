//! What every user of a machine can read of a program, as `ps` does: no key is in it.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use l2vpn::{Direction, KernelOptions, Standing, keys};
use lab_test::TestResult;
use seclink::path::{Protection, Topology};

use super::{SEED, new_lab};

/// Bytes of a key that are looked for: the beginning of each.
const BEGINNING: usize = 8;

/// Keys of all protections are in no command line and no environment while paths are stood up.
pub fn unseen() -> TestResult {
    let stop = Arc::new(AtomicBool::new(false));
    let looking = {
        let stop = Arc::clone(&stop);
        thread::spawn(move || look(&stop))
    };
    let stood = stand_all();
    stop.store(true, Ordering::Release);
    let seen = looking.join().map_err(|_| "who looked has panicked")?;
    stood?;
    // It looked while keys were set.
    assert!(seen.iter().any(|words| words.contains("-batch")), "{seen:?}");
    for protection in Protection::ALL {
        for span in 0..=8 {
            for direction in Direction::ALL {
                let key = keys(SEED, *protection, span, *direction, BEGINNING);
                let digits = hex(key.expose());
                let found = seen.iter().find(|words| words.to_lowercase().contains(&digits));
                assert_eq!(found, None, "a key of {protection}");
            }
        }
    }
    Ok(())
}

fn stand_all() -> TestResult {
    let options = KernelOptions { seed: SEED, ..KernelOptions::default() };
    for protection in Protection::ALL.iter().copied() {
        let cipher = protection.usual_cipher();
        let path = Topology { protection, cipher, ..Topology::default() };
        let mut lab = new_lab()?;
        drop(Standing::of_kernel(&mut lab, &path, &options)?);
    }
    Ok(())
}

/// Command lines and environments of all programs that there were.
fn look(stop: &AtomicBool) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    while !stop.load(Ordering::Acquire) {
        for process in fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok) {
            for file in ["cmdline", "environ"] {
                let words = fs::read(process.path().join(file)).unwrap_or_default();
                if !words.is_empty() {
                    seen.insert(String::from_utf8_lossy(&words).replace('\0', " "));
                }
            }
        }
        thread::sleep(Duration::from_micros(200));
    }
    seen
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut digits, byte| {
        let _ = write!(digits, "{byte:02x}");
        digits
    })
}
