//! What the figures mean for who visits a page, a sentence each.

use crate::present::seconds;
use crate::row::Row;
use crate::summary::Group;

/// Says the shortest and the longest median of a group.
pub(crate) fn fastest(group: &Group) -> String {
    let plain = group.is_plain();
    let load = |row: &Row| row.load_ms.map_or(String::new(), |load| seconds(load.value));
    match group.by_median().as_slice() {
        [best, .., worst] if load(best) == load(worst) => {
            format!("Median load time: {} with all.", load(best))
        }
        [best, .., worst] => format!(
            "Median load time: {} with {}, {} with {}.",
            load(best),
            best.label(plain),
            load(worst),
            worst.label(plain)
        ),
        [only] => format!("Median load time: {} with {}.", load(only), only.label(plain)),
        [] => "No load was whole.".to_owned(),
    }
}

/// Of loads on the move: what the unlucky wait.
pub(crate) fn moving(group: &Group) -> String {
    let plain = group.is_plain();
    let each = group.rows.iter().filter_map(|row| {
        let mut loads: Vec<f64> = row.loads_ms().collect();
        loads.sort_by(f64::total_cmp);
        let nine = loads.get((loads.len() * 9).div_ceil(10).checked_sub(1)?)?;
        Some(format!("{} with {}", seconds(*nine), row.label(plain)))
    });
    let each: Vec<String> = each.collect();
    format!("One visitor in ten waits longer than {}.", each.join(", "))
}

/// What takes the time of objects, and what would make it less; in the order of a waterfall's phases.
const CURES: [(&str, &str); 6] = [
    (
        "waiting for a free connection",
        "more requests at once on a connection help, as in HTTP/2 and HTTP/3",
    ),
    ("asking for addresses", "fewer host names help"),
    ("setting up connections", "fewer hosts and handshakes with fewer round trips help"),
    ("sending requests", "smaller requests help"),
    ("waiting for the server's first byte", "fewer round trips to it, or a nearer server, help"),
    ("receiving", "fewer bytes or a faster link help"),
];

/// Of a waterfall: the phase that takes most of the objects' time, and what would make it less.
pub(crate) fn waterfall(objects: impl Iterator<Item = [f64; 6]>) -> String {
    longest_phase(objects).unwrap_or_else(|| "No object took any time.".to_owned())
}

/// The same; `None` where no object took any time.
pub(crate) fn longest_phase(objects: impl Iterator<Item = [f64; 6]>) -> Option<String> {
    let sums = objects.fold([0.0; 6], |mut sums, phases| {
        sums.iter_mut().zip(phases).for_each(|(sum, phase)| *sum += phase);
        sums
    });
    let all: f64 = sums.iter().sum();
    let (sum, (what, cure)) = sums.iter().zip(CURES).max_by(|a, b| a.0.total_cmp(b.0))?;
    let share = sum / all * 100.0;
    (all > 0.0).then(|| format!("{share:.0} % of the objects' time is spent on {what}: {cure}."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::Summary;
    use crate::summary::tests::samples;

    #[test]
    fn a_waterfall_is_said_by_its_longest_phase() {
        let bars = [[1.0, 0.0, 60.0, 0.0, 30.0, 9.0]; 2];
        let said = waterfall(bars.into_iter());
        assert!(
            said.starts_with("60 % of the objects' time is spent on setting up connections:"),
            "{said}"
        );
        assert_eq!(waterfall(std::iter::empty()), "No object took any time.");
    }

    #[test]
    fn visitors_wait_between_the_fastest_and_the_slowest() {
        let summary = Summary::of(&samples());
        let said = fastest(&summary.groups[0]);
        assert!(said.contains("8.0 s with h2") && said.contains("with http/1.1"), "{said}");
        assert!(moving(&summary.groups[0]).starts_with("One visitor in ten waits longer than "));
    }
}
