//! Page load times on a link whose capacity changes: no median says what a moving user sees.

use fault::{Fault, OrProblem, Problem};
use report::{Axis, Chart, Distribution, Plot, Section, Series};

use crate::means;
use crate::present::is_plain;
use crate::summary::Group;

/// What the section is called.
const TITLE: &str = "On the move";

/// The loads of each group on a moving link, as distributions; none without such a group.
pub(crate) fn section<'a>(
    groups: impl Iterator<Item = &'a Group>,
) -> Result<Option<Section>, Problem> {
    let mut section = Section::new("page-moving", TITLE);
    for group in groups.filter(|group| group.link.is_moving()) {
        section = section.with(plot(group)?);
    }
    Ok((!section.blocks.is_empty()).then_some(section))
}

/// The share of loads that are done after a time, by protocol.
fn plot(group: &Group) -> Result<Plot, Problem> {
    let plain = is_plain(group);
    let series = group.rows.iter().map(|row| {
        let seconds = row.loads_ms().map(|ms| ms / 1e3).collect();
        let loads = Distribution::new(seconds, row.failed).command(row.command.as_str());
        Series::measured(row.label(plain), loads)
    });
    let chart = Chart::Ecdf { series: series.collect() };
    let longest = group.rows.iter().filter_map(|row| row.range_ms).map(|(_, most)| most);
    let alt = format!(
        "Share of page loads that are done after a time, by protocol; the longest took {:.1} s.",
        longest.fold(0.0, f64::max) / 1e3
    );
    let (x, y) = (Axis::new("page load time", "s").from_zero(), Axis::new("share of loads", ""));
    let means = means::moving(group);
    let plot = Plot::new(group.title(), alt, means, x, y, chart).blame(Fault::Measurement)?;
    Ok(plot.caption(
        "Loads of one turn begin at the same moment of the link's changes, so that protocols meet the same \
         outages. The SPDY paper's Figure 2 is of this, without printed values: 63 loads with SPDY and 93 with \
         HTTP, on different roads.",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::Summary;
    use crate::summary::tests::samples;

    fn loaded_over(link: &str) -> Vec<record::Sample> {
        let mut loads = samples();
        for load in &mut loads {
            load.point.insert("link".to_owned(), link.to_owned());
        }
        loads
    }

    #[test]
    fn a_moving_link_has_a_picture_and_others_have_none() {
        let bus = Summary::of(&loaded_over("bus")).groups;
        let section = section(bus.iter()).unwrap().unwrap();
        assert_eq!(section.blocks.len(), bus.len());
        let wired = Summary::of(&loaded_over("wired-10")).groups;
        assert!(super::section(wired.iter()).unwrap().is_none());
    }
}
