//! What the figures mean for who runs a link, a sentence each.

use stats::Estimate;

use crate::pictures::Line;
use crate::present::bits;
use crate::summary::{PerHop, Row};

/// Of what a protocol carries, beside the same link without it.
pub(crate) fn throughput(plain: Option<&Row>, found: Estimate) -> String {
    if found.value <= 0.0 {
        return "Each trial lost frames: this says nothing of the protocol.".to_owned();
    }
    let plain = plain.and_then(|row| row.throughput_mbps).filter(|plain| plain.value > 0.0);
    match plain {
        Some(plain) if found.high < plain.low => format!(
            "Security leaves {:.0} % of what the same link carries without it, {}.",
            found.value / plain.value * 100.0,
            bits(plain.value)
        ),
        Some(_) => "No measurable loss of throughput.".to_owned(),
        None => format!(
            "A link that is to carry more than {} needs more processors.",
            bits(found.value)
        ),
    }
}

/// Of delays by load: where each line begins, before any queue fills.
pub(crate) fn under_load(lines: &[Line]) -> String {
    let starts = lines.iter().filter_map(|(name, points)| {
        let first = points.iter().min_by(|a, b| a.x.total_cmp(&b.x))?;
        Some((first.y.value, first.x, name))
    });
    let mut starts: Vec<(f64, f64, &String)> = starts.collect();
    starts.sort_by(|a, b| a.0.total_cmp(&b.0));
    let rest = "where a line turns up, frames queue: keep the load below";
    match starts.as_slice() {
        [(least, load, soonest), .., (most, _, latest)] => format!(
            "At {} a frame takes {least:.0} µs under {soonest} and {most:.0} µs under {latest}; {rest}.",
            bits(*load)
        ),
        [(only, load, name)] => {
            format!("At {} a frame takes {only:.0} µs under {name}; {rest}.", bits(*load))
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
    fn a_load_is_said_by_its_least() {
        let line = |name: &str, us: f64| {
            let points = [(10.0, us / 2.0), (1000.0, us)];
            let points = points.map(|(x, y)| Point::new(x, Mark::new(y)));
            (name.to_owned(), points.to_vec())
        };
        let said = under_load(&[line("esp", 90.0), line("macsec", 40.0)]);
        assert!(
            said.contains("At 10 Mbit/s a frame takes 20 µs under macsec and 45 µs under esp;"),
            "{said}"
        );
        let said = under_load(&[line("esp", 90.0)]);
        assert!(said.starts_with("At 10 Mbit/s a frame takes 45 µs under esp;"), "{said}");
    }

    #[test]
    fn nothing_that_got_through_says_nothing_of_a_protocol() {
        let found = Estimate { value: 0.0, low: 0.0, high: 0.0, confidence: 0.95 };
        assert!(throughput(None, found).starts_with("Each trial lost frames"));
    }
}
