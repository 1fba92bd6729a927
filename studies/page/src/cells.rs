//! SPDY and HTTP/1.1 on one page, link, browser and visit: a cell, as the SPDY paper's tables have them.

use std::collections::BTreeMap;

use browser::{CrossTraffic, ServerPush};
use report::{Cell as Shown, Column, Table};
use stats::Estimate;
use web::{Congestion, Protocol};

use crate::beside::ENOUGH;
use crate::point::{Handshake, Loader, Visit, Waiting};
use crate::row::Row;
use crate::sample::value;
use crate::summary::{Group, Summary};
use crate::window::InitialWindow;

/// What the split is called.
const SPLIT: &str = "SPDY against HTTP/1.1 by link, page size and visit";
/// Fewer cells need no split.
const FEWEST: usize = 6;

/// A way by SPDY, and HTTP/1.1 beside it.
pub(crate) struct Cell<'a> {
    pub(crate) group: &'a Group,
    pub(crate) spdy: &'a Row,
    pub(crate) http1: &'a Row,
    /// SPDY's page load time of HTTP/1.1's, load by load of the same turn.
    pub(crate) ratio: Estimate,
}

impl Cell<'_> {
    /// Whether the ratio's whole interval lies below.
    pub(crate) fn is_below(&self, limit: f64) -> bool {
        self.ratio.confidence >= ENOUGH && self.ratio.high < limit
    }

    /// Whether it lies above.
    pub(crate) fn is_above(&self, limit: f64) -> bool {
        self.ratio.confidence >= ENOUGH && self.ratio.low > limit
    }

    /// What kind of link it is.
    pub(crate) fn link(&self) -> String {
        kind_of_link(self.group)
    }
}

/// `3G`, `WLAN`, `wired` or `bus`; else the link's own name.
pub(crate) fn kind_of_link(group: &Group) -> String {
    let name = group.link.to_string();
    let known = [("3g-", "3G"), ("wlan-", "WLAN"), ("wired-", "wired"), ("bus", "bus")];
    let kind = known.into_iter().find(|(start, _)| name.starts_with(start));
    kind.map_or(name, |(_, kind)| kind.to_owned())
}

/// The cells of these samples, on links without loss and cross traffic, loaded by our loader with what is usual in
/// all but protocol, TLS version and windows.
pub(crate) fn cells(summary: &Summary) -> Vec<Cell<'_>> {
    let is_plain = |group: &&Group| {
        group.loss.is_zero()
            && (group.queue, group.cross) == (Waiting::DropTail, CrossTraffic::None)
            && group.loader == Loader::Ours
    };
    let is_spdy = |row: &&Row| {
        matches!(row.protocol, Protocol::Spdy3 | Protocol::Spdy31)
            && (row.handshake, row.server_push) == (Handshake::Kernel, ServerPush::None)
            && (row.initial_window, row.congestion) == (InitialWindow::USUAL, Congestion::Cubic)
    };
    let of_group = |group| -> Vec<Cell<'_>> {
        let group: &Group = group;
        let rows = group.rows.iter().filter(is_spdy);
        let cells = rows.filter_map(|spdy| {
            Some(Cell { group, spdy, http1: group.reference(spdy)?, ratio: spdy.ratio? })
        });
        cells.collect()
    };
    summary.groups.iter().filter(is_plain).flat_map(of_group).collect()
}

/// The median of some values.
pub(crate) fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    stats::median(&values.collect::<Vec<_>>())
}

/// The bytes of each page: the most that a load of it fetched, at the median.
fn sizes(summary: &Summary) -> BTreeMap<&str, f64> {
    let mut sizes = BTreeMap::<&str, f64>::new();
    for group in &summary.groups {
        let bytes = group.rows.iter().filter_map(|row| row.median(value::BODY));
        let size = sizes.entry(&group.page).or_default();
        *size = bytes.fold(*size, f64::max);
    }
    sizes
}

/// Classes of pages by their bytes, each up to its limit.
const SIZES: [(f64, &str); 4] = [
    (200e3, "up to 200 kB"),
    (1e6, "200 kB to 1 MB"),
    (2e6, "1 to 2 MB"),
    (f64::INFINITY, "above 2 MB"),
];

/// Cells by kind of link, size of the page and visit: how many gain and lose. None of few cells.
pub(crate) fn split(summary: &Summary) -> Option<Table> {
    let (cells, sizes) = (cells(summary), sizes(summary));
    let mut parts = BTreeMap::<(String, usize, Visit), Vec<&Cell<'_>>>::new();
    for cell in &cells {
        let size = sizes.get(cell.group.page.as_str()).copied().unwrap_or_default();
        let class = SIZES.iter().position(|(most, _)| size <= *most).unwrap_or_default();
        parts.entry((cell.link(), class, cell.group.visit)).or_default().push(cell);
    }
    let columns = vec![
        Column::new("Link"),
        Column::new("page"),
        Column::new("visit"),
        Column::new("cells"),
        Column::new("faster"),
        Column::new("certainly"),
        Column::new("slower"),
        Column::new("certainly"),
        Column::new("median ratio"),
        Column::new("least"),
        Column::new("most"),
    ];
    let mut table = Table::new(SPLIT, columns);
    for ((link, class, visit), cells) in parts {
        let count = |is: &dyn Fn(&Cell<'_>) -> bool| {
            Shown::count(cells.iter().filter(|cell| is(cell)).count() as u64)
        };
        let mut shown = vec![
            Shown::text(link),
            Shown::text(SIZES.get(class).map_or("", |(_, name)| *name)),
            Shown::text(visit.name()),
            Shown::count(cells.len() as u64),
            count(&|cell| cell.ratio.value < 1.0),
            count(&|cell| cell.is_below(1.0)),
            count(&|cell| cell.ratio.value > 1.0),
            count(&|cell| cell.is_above(1.0)),
        ];
        shown.extend(range(cells.iter().map(|cell| cell.ratio.value)));
        table.push(report::Row::new(shown));
    }
    (cells.len() >= FEWEST).then_some(table)
}

/// Median, least and most of some ratios.
pub(crate) fn range(ratios: impl Iterator<Item = f64> + Clone) -> [Shown; 3] {
    let number = |ratio| Shown::known(ratio, 2);
    let (least, most) = (ratios.clone().reduce(f64::min), ratios.clone().reduce(f64::max));
    [number(median(ratios)), number(least), number(most)]
}
