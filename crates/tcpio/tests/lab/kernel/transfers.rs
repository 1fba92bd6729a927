//! Bulk data between our stack and the kernel's on bad paths, every byte compared.

use linkmodel::{LinkConfig, Path};

use lab_test::net::pattern::exchange;
use lab_test::net::peers::{FAMILIES, Meeting, OPENERS, PORT};
use lab_test::net::{direct, pair};
use lab_test::{Test, TestResult};

pub fn tests() -> Vec<Test> {
    vec![
        Test::new("a_clean_path_carries_every_byte", clean),
        Test::new("a_path_that_loses_1_percent_carries_every_byte", loss_1),
        Test::new("a_path_that_loses_5_percent_carries_every_byte", loss_5),
        Test::new("a_path_that_reorders_carries_every_byte", reordering),
        Test::new("a_path_that_duplicates_carries_every_byte", duplication),
        Test::new("a_path_that_corrupts_carries_every_byte", corruption),
        Test::new("a_path_that_does_all_of_it_carries_every_byte", everything),
    ]
}

/// Bytes that a connection carries each way.
const LEN: usize = 2_500_000;

/// Paths that are not clean, times connections on each, times both ways: what the issue asks for.
const _: () = assert!(6 * 4 * 2 * LEN >= 100_000_000);

fn clean() -> TestResult {
    carry(&Meeting::new(direct()?)?)
}

fn loss_1() -> TestResult {
    let meeting = on(|link| link.loss = probability("1%").into())?;
    carry(&meeting)?;
    let stats = meeting.pair.link.stats()?;
    assert!(stats.forward.link.dropped.loss.frames > 50, "{stats:?}");
    assert!(stats.backward.link.dropped.loss.frames > 50, "{stats:?}");
    Ok(())
}

fn loss_5() -> TestResult {
    let meeting = on(|link| link.loss = probability("5%").into())?;
    carry(&meeting)?;
    let stats = meeting.pair.link.stats()?;
    assert!(stats.forward.link.dropped.loss.frames > 250, "{stats:?}");
    Ok(())
}

fn reordering() -> TestResult {
    let meeting = on(|link| link.reorder = probability("5%").into())?;
    carry(&meeting)?;
    let stats = meeting.pair.link.stats()?;
    assert!(stats.forward.link.reordered > 100, "{stats:?}");
    assert!(stats.backward.link.reordered > 100, "{stats:?}");
    Ok(())
}

fn duplication() -> TestResult {
    let meeting = on(|link| link.duplicate = probability("5%"))?;
    carry(&meeting)?;
    let stats = meeting.pair.link.stats()?;
    assert!(stats.forward.link.duplicated.frames > 100, "{stats:?}");
    Ok(())
}

// A single inverted bit never escapes the Internet checksum (RFC 1071 §3), and the pump inverts
// one at most.
fn corruption() -> TestResult {
    let meeting = on(|link| link.corrupt = probability("1%"))?;
    carry(&meeting)?;
    let stats = meeting.pair.link.stats()?;
    assert!(stats.forward.link.corrupted > 50, "{stats:?}");
    assert!(stats.backward.link.corrupted > 50, "{stats:?}");
    Ok(())
}

fn everything() -> TestResult {
    let meeting = on(|link| {
        link.loss = probability("1%").into();
        link.reorder = probability("1%").into();
        link.duplicate = probability("1%");
        link.corrupt = probability("0.3%");
    })?;
    carry(&meeting)
}

fn probability(text: &str) -> units::Probability {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Both sides on a path with a short round trip time and the same trouble each way.
fn on(change: impl Fn(&mut LinkConfig)) -> TestResult<Meeting> {
    let mut path = Path::symmetric("0.4ms".parse()?);
    change(&mut path.forward);
    change(&mut path.backward);
    Meeting::new(pair(&path)?)
}

/// Connections by IPv4 and IPv6, opened by either side, all at the same time and full both ways.
fn carry(meeting: &Meeting) -> TestResult {
    let mut running = Vec::new();
    for family in FAMILIES {
        for opener in OPENERS {
            let number = running.len() as u64;
            let (ours, kernels) = (2 * number + 1, 2 * number + 2);
            let both = meeting.meet(
                (family, opener, PORT + number as u16),
                move |stream| async move { Ok(exchange(stream, ours, kernels, LEN).await?) },
                move |stream| async move { Ok(exchange(stream, kernels, ours, LEN).await?) },
            )?;
            running.push((family, opener, both));
        }
    }
    for (family, opener, both) in running {
        both.join().map_err(|error| format!("{family:?}, opened by {opener:?}: {error}"))?;
    }
    Ok(())
}
