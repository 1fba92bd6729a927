//! What the figures mean for who runs a link, a sentence each.

use stats::Estimate;

use crate::present::{Line, bits};
use crate::summary::{PerHop, Row};

/// Of what a protocol carries, beside the same link without it.
pub(crate) fn throughput(plain: Option<&Row>, found: Estimate) -> String {
    if found.value <= 0.0 {
        return "Each trial lost frames: this says nothing of the protocol.".to_owned();
    }
    let plain = plain.and_then(|row| row.throughput_mbps).filter(|plain| plain.value > 0.0);
    match plain {
        Some(plain) => format!(
            "Security leaves {:.0} % of what the same link carries without it, {}.",
            found.value / plain.value * 100.0,
            bits(plain.value)
        ),
        None => format!(
            "A link that is to carry more than {} needs more processors.",
            bits(found.value)
        ),
    }
}

/// Of delays by load: where each line ends.
pub(crate) fn under_load(lines: &[Line]) -> String {
    let ends = lines.iter().filter_map(|(name, points)| {
        let last = points.iter().max_by(|a, b| a.x.total_cmp(&b.x))?;
        Some((last.y.value, last.x, name))
    });
    let mut ends: Vec<(f64, f64, &String)> = ends.collect();
    ends.sort_by(|a, b| a.0.total_cmp(&b.0));
    match ends.as_slice() {
        [(least, load, soonest), .., (most, highest, latest)] => format!(
            "A frame waits {least:.0} µs under {soonest} at {} and {most:.0} µs under {latest} at {}, the highest \
             loads of each.",
            bits(*load),
            bits(*highest)
        ),
        [(only, load, name)] => {
            format!("A frame waits {only:.0} µs under {name} at {}, the highest load.", bits(*load))
        }
        [] => "No delay was measured.".to_owned(),
    }
}

/// Of delays by hops: what a longer path costs.
pub(crate) fn per_hop<'a>(all: impl Iterator<Item = &'a PerHop>) -> String {
    let each = all
        .map(|one| format!("{:.1} µs under {}, {}", one.slope_us.value, one.protocol, one.reach));
    let each: Vec<String> = each.collect();
    format!("Each hop more on your path delays a frame by {}.", each.join("; "))
}

#[cfg(test)]
mod tests {
    use report::{Mark, Point};

    use super::*;

    #[test]
    fn a_load_is_said_by_its_ends() {
        let line = |name: &str, us: f64| {
            let points = [(10.0, us / 2.0), (1000.0, us)];
            let points = points.map(|(x, y)| Point::new(x, Mark::new(y)));
            (name.to_owned(), points.to_vec())
        };
        let said = under_load(&[line("esp", 90.0), line("macsec", 40.0)]);
        assert!(said.contains("40 µs under macsec at 1.00 Gbit/s and 90 µs under esp"), "{said}");
        let said = under_load(&[line("esp", 90.0)]);
        assert!(said.ends_with("90 µs under esp at 1.00 Gbit/s, the highest load."), "{said}");
    }

    #[test]
    fn nothing_that_got_through_says_nothing_of_a_protocol() {
        let found = Estimate { value: 0.0, low: 0.0, high: 0.0, confidence: 0.95 };
        assert!(throughput(None, found).starts_with("Each trial lost frames"));
    }
}
