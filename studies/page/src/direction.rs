//! What the SPDY paper says of page load times, and whether these samples say the same; where they do not, why, as
//! far as samples show it.

use report::{Cell as Shown, Column, Inline, Section, Table};
use stats::{Confidence, Estimate, compare_paired};
use study::Claim;
use units::named;

use crate::beside::ENOUGH;
use crate::cells::{self, Cell, median};
use crate::point::Visit;
use crate::published::Means;
use crate::row::Row;
use crate::sample::value;
use crate::summary::{Group, Summary};

/// What the section is called.
const TITLE: &str = "The SPDY paper's direction";
/// Of HTTP/1.1's time: a gain that counts, the least that the paper has of repeats over 3G.
const GAIN: f64 = 0.95;
/// A share of a load's time from which a window counts as binding.
const BINDING: f64 = 0.01;
/// The largest bandwidth-delay product of the paper's testbed, and the least of its windows, in bytes.
const PRODUCT: u64 = 12_500;
const LEAST_WINDOW: u64 = 64 * 1024;
/// A p-value from which a number of cells may be chance.
const CHANCE: f64 = 0.05;

named! {
    /// Whether ours is the paper's direction.
    pub(crate) enum Verdict: "verdict" {
        /// Both have the same direction.
        Same = "as in the paper",
        /// It is another.
        Different = "not as in the paper",
        /// There are too few cells or loads, or intervals are too wide.
        Undetermined = "cannot be determined",
    }
}

/// What came of one statement of the paper.
pub(crate) struct Statement {
    /// The claim's item.
    pub(crate) item: &'static str,
    pub(crate) verdict: Verdict,
    /// SPDY's time of HTTP/1.1's, by cell; of stalls the share of a load, by row.
    ratios: Vec<f64>,
    /// Ours in words, with the reason if it is another direction.
    pub(crate) ours: String,
}

/// What these samples say of each statement: those that they have cells for.
pub(crate) fn statements(summary: &Summary) -> Vec<Statement> {
    let all = cells::cells(summary);
    let (means, all) = (Means::read(), all.as_slice());
    let found = [
        repeats_3g(all, &means),
        repeats_wlan(all),
        longest(all),
        first_visits(all),
        large_images(all),
        small_page(all),
        large_pages(all),
        windows(summary),
        bus(all),
    ];
    found.into_iter().flatten().collect()
}

/// The cells for which a condition holds, if there are so many.
fn those<'c, 's>(
    all: &'c [Cell<'s>],
    least: usize,
    is: impl Fn(&Cell<'s>) -> bool,
) -> Option<Vec<&'c Cell<'s>>> {
    let cells: Vec<&Cell<'s>> = all.iter().filter(|cell| is(cell)).collect();
    (cells.len() >= least).then_some(cells)
}

/// What all loads of the cells say together: the paper's where their ratio's interval lies on one side of a limit.
fn by_loads(
    cells: &[&Cell<'_>],
    same: impl Fn(Estimate) -> bool,
    other: impl Fn(Estimate) -> bool,
) -> Verdict {
    let pairs = cells.iter().flat_map(|cell| cell.spdy.pairs_with(cell.http1));
    let (http1, spdy): (Vec<f64>, Vec<f64>) = pairs.unzip();
    let ratio = compare_paired(&http1, &spdy, Confidence::C95).ok().and_then(|both| both.ratio);
    match ratio.filter(|ratio| ratio.confidence >= ENOUGH) {
        Some(ratio) if same(ratio) => Verdict::Same,
        Some(ratio) if other(ratio) => Verdict::Different,
        _ => Verdict::Undetermined,
    }
}

/// A gain that counts.
fn gains(ratio: Estimate) -> bool {
    ratio.high < GAIN
}

/// None that counts.
fn gains_not(ratio: Estimate) -> bool {
    ratio.low > GAIN
}

/// Whether SPDY is slower in most cells, or faster, where that is not chance by the sign test.
fn by_sign(cells: &[&Cell<'_>], slower: bool) -> Verdict {
    let ratios: Vec<f64> = cells.iter().map(|cell| cell.ratio.value).collect();
    let ones = vec![1.0; ratios.len()];
    let test = compare_paired(&ones, &ratios, Confidence::C95);
    if test.is_ok_and(|test| test.sign_p_value < CHANCE) {
        let above = ratios.iter().filter(|ratio| **ratio > 1.0).count();
        let is_slower = above * 2 > ratios.len();
        return if is_slower == slower { Verdict::Same } else { Verdict::Different };
    }
    Verdict::Undetermined
}

impl Statement {
    fn of(item: &'static str, cells: &[&Cell<'_>], verdict: Verdict, why: Option<String>) -> Self {
        let ratios = cells.iter().map(|cell| cell.ratio.value).collect();
        let count = |is: &dyn Fn(&Cell<'_>) -> bool| cells.iter().filter(|c| is(c)).count();
        let mut ours = format!(
            "SPDY faster in {} of {} cells ({} certainly), slower in {} ({} certainly)",
            count(&|cell| cell.ratio.value < 1.0),
            cells.len(),
            count(&|cell| cell.is_below(1.0)),
            count(&|cell| cell.ratio.value > 1.0),
            count(&|cell| cell.is_above(1.0)),
        );
        let why = why.filter(|_| verdict == Verdict::Different);
        if let Some(why) = why {
            ours += &format!(". Why: {why}");
        }
        Statement { item, verdict, ratios, ours }
    }

    /// Its ratios in words: `0.88 to 1.08 of HTTP/1.1's time`.
    fn range(&self) -> String {
        let least = self.ratios.iter().copied().fold(f64::INFINITY, f64::min);
        let most = self.ratios.iter().copied().fold(0.0, f64::max);
        format!("{least:.2} to {most:.2}")
    }

    /// As a claim's answer.
    pub(crate) fn answer(&self) -> String {
        format!("{}: {}; {}", self.verdict, self.range_said(), self.ours)
    }

    fn range_said(&self) -> String {
        match self.item {
            WINDOWS => format!("{} of a load's time stalled", self.range()),
            _ => format!("{} of HTTP/1.1's time", self.range()),
        }
    }
}

fn repeats_3g(all: &[Cell<'_>], means: &Means) -> Option<Statement> {
    let cells = those(all, 3, |cell| cell.link() == "3G" && cell.group.visit == Visit::Kept)?;
    let verdict = by_loads(&cells, gains, gains_not);
    Some(Statement::of(REPEATS_3G, &cells, verdict, why_repeats(&cells, means)))
}

/// What leaves little to save of a repeat: open connections, requests from the cache, and the link itself.
fn why_repeats(cells: &[&Cell<'_>], means: &Means) -> Option<String> {
    let of = |name| median(cells.iter().filter_map(|cell| cell.http1.median(name)));
    let busy = cells.iter().filter_map(|cell| {
        let bits = cell.http1.median(value::DOWN)? * 8.0;
        Some(bits / cell.group.link.down()? as f64 / (cell.http1.load_ms?.value / 1e3))
    });
    let theirs = |row: for<'c> fn(&'c Cell<'_>) -> &'c Row| {
        let ratios = cells.iter().filter_map(|cell| {
            let row = row(cell);
            Some(means.of(cell.group, row)? / (row.load_ms?.value / 1e3))
        });
        median(ratios)
    };
    let mut said = format!(
        "HTTP/1.1's repeats open {:.0} connections here and make {:.0} requests, the rest comes from the cache; \
         their bytes take {:.0} % of the load at the link's rate, which no protocol saves",
        of(value::CONNECTIONS)?,
        of(value::REQUESTS)?,
        median(busy)? * 100.0
    );
    if let (Some(http1), Some(spdy)) = (theirs(|cell| cell.http1), theirs(|cell| cell.spdy)) {
        said += &format!(
            ". The paper's HTTP/1.1 took {http1:.1} times as long as ours and its SPDY {spdy:.1} times: what it \
             gained, its HTTP/1.1 had lost"
        );
    }
    Some(said + " (medians of cells)")
}

fn repeats_wlan(all: &[Cell<'_>]) -> Option<Statement> {
    let cells = those(all, 3, |cell| cell.link() == "WLAN" && cell.group.visit == Visit::Kept)?;
    let verdict = by_loads(&cells, gains_not, gains);
    Some(Statement::of(REPEATS_WLAN, &cells, verdict, why(&cells)))
}

/// What SPDY and HTTP/1.1 did differently.
fn why(cells: &[&Cell<'_>]) -> Option<String> {
    let of = |name: &str| {
        let spdy = median(cells.iter().filter_map(|cell| cell.spdy.median(name)))?;
        Some((spdy, median(cells.iter().filter_map(|cell| cell.http1.median(name)))?))
    };
    let (spdy, http1) = of(value::CONNECTIONS)?;
    let mut said = format!("SPDY opens {spdy:.0} connections and HTTP/1.1 {http1:.0}, all in TLS");
    if let Some((spdy, http1)) = of(value::SENT_AGAIN) {
        said += &format!("; of them {spdy:.0} and {http1:.0} packets are sent again");
    }
    if let Some((spdy, http1)) = of(SSL) {
        said += &format!(
            "; objects wait {:.2} and {:.2} s in all for TLS handshakes",
            spdy / 1e3,
            http1 / 1e3
        );
    }
    Some(said + " (medians of cells)")
}

/// The sum over objects of HAR's `ssl`.
const SSL: &str = "sum_ssl_ms";

/// Of first visits whether the paper's HTTP/1.1 paid for TLS too is open.
fn why_first(cells: &[&Cell<'_>]) -> Option<String> {
    Some(
        why(cells)?
            + ". The paper does not say that its HTTP/1.1 was in TLS: in clear it saves these handshakes",
    )
}

/// The paper's three pages of repeated loads.
const PAGES: [&str; 3] = ["google-play", "domestic-2mb", "domestic-4mb"];

fn is_mobile(cell: &Cell<'_>) -> bool {
    matches!(cell.link().as_str(), "3G" | "WLAN")
}

fn longest(all: &[Cell<'_>]) -> Option<Statement> {
    let is_of = |cell: &Cell<'_>| {
        PAGES.contains(&cell.group.page.as_str())
            && (is_mobile(cell) && cell.group.visit == Visit::First)
    };
    let cells = those(all, 6, is_of)?;
    Some(Statement::of(LONGEST, &cells, by_sign(&cells, true), why_first(&cells)))
}

fn first_visits(all: &[Cell<'_>]) -> Option<Statement> {
    let is_of = |cell: &Cell<'_>| {
        cell.group.page.starts_with("site-")
            && (is_mobile(cell) && cell.group.visit == Visit::First)
    };
    let cells = those(all, 6, is_of)?;
    Some(Statement::of(FIRST_VISITS, &cells, by_sign(&cells, true), why_first(&cells)))
}

fn large_images(all: &[Cell<'_>]) -> Option<Statement> {
    let cells = those(all, 1, |cell| cell.group.page == "cablelabs-large")?;
    let verdict = by_loads(&cells, |ratio| ratio.low > 1.0, |ratio| ratio.high < 1.0 / GAIN);
    Some(Statement::of(LARGE_IMAGES, &cells, verdict, why(&cells)))
}

/// A page of the paper's testbed on one of its links.
fn on_testbed(cell: &Cell<'_>, small: bool) -> bool {
    let page = cell.group.page.as_str();
    cell.link() == "wired" && page.starts_with("testbed-") && (page == "testbed-1") == small
}

fn small_page(all: &[Cell<'_>]) -> Option<Statement> {
    let cells = those(all, 6, |cell| on_testbed(cell, true))?;
    Some(Statement::of(SMALL_PAGE, &cells, by_sign(&cells, false), why(&cells)))
}

fn large_pages(all: &[Cell<'_>]) -> Option<Statement> {
    let cells = those(all, 6, |cell| on_testbed(cell, false))?;
    Some(Statement::of(LARGE_PAGES, &cells, by_sign(&cells, true), why(&cells)))
}

fn bus(all: &[Cell<'_>]) -> Option<Statement> {
    let cells = those(all, 1, |cell| cell.link() == "bus")?;
    let verdict = by_loads(&cells, gains_not, gains);
    Some(Statement::of(BUS, &cells, verdict, why(&cells)))
}

/// No window of 64 KB or more binds where a round trip holds 12.5 KB.
fn windows(summary: &Summary) -> Option<Statement> {
    let is_short = |group: &&Group| {
        let product = group.link.bandwidth_delay();
        cells::kind_of_link(group) == "wired" && product.is_some_and(|own| own.count() <= PRODUCT)
    };
    let is_wide = |row: &&Row| {
        let wide = |window: crate::window::Window| {
            window.0.is_none_or(|bytes| bytes.count() >= LEAST_WINDOW)
        };
        row.protocol.is_multiplexed() && wide(row.stream_window) && wide(row.tcp_window)
    };
    let rows = summary.groups.iter().filter(is_short).flat_map(|group| {
        let rows = group.rows.iter().filter(is_wide);
        rows.filter_map(move |row| {
            let stalled = row.median(value::STALLED)?;
            Some((stalled / row.load_ms?.value, format!("{}, {}", group.title(), row.label(false))))
        })
    });
    let rows: Vec<(f64, String)> = rows.collect();
    let (most, worst) = rows.iter().max_by(|a, b| a.0.total_cmp(&b.0))?;
    let binding = rows.iter().filter(|(share, _)| *share > BINDING).count();
    let verdict = if binding == 0 { Verdict::Same } else { Verdict::Different };
    let mut ours = format!(
        "of {} ways to load with windows of 64 KB or more {binding} stalled on them for more than 1 % of their time",
        rows.len()
    );
    if verdict == Verdict::Different {
        ours += &format!(". Most, {:.1} %: {worst}", most * 100.0);
    }
    let ratios = rows.iter().map(|(share, _)| *share).collect();
    Some(Statement { item: WINDOWS, verdict, ratios, ours })
}

/// The items of the claims.
const REPEATS_3G: &str = "Tables 2 to 4: repeated loads, 3G";
const REPEATS_WLAN: &str = "Tables 2 to 4: repeated loads, WLAN";
const LONGEST: &str = "Tables 2 to 4: the longest loads";
const FIRST_VISITS: &str = "Tables 6 and 7: first visits";
const LARGE_IMAGES: &str = "CableLabs: few large images";
const SMALL_PAGE: &str = "Tables 9 and 10: 20 small objects";
const LARGE_PAGES: &str = "Tables 9 and 10: large objects";
const WINDOWS: &str = "Tables 9 and 10: windows";
const BUS: &str = "Figure 2: a moving bus";
/// All of them.
pub(crate) const ITEMS: [&str; 9] = [
    REPEATS_3G,
    REPEATS_WLAN,
    LONGEST,
    FIRST_VISITS,
    LARGE_IMAGES,
    SMALL_PAGE,
    LARGE_PAGES,
    WINDOWS,
    BUS,
];

/// The verdicts with their figures, and the split by link and size; none of results without such cells.
pub(crate) fn tables(summary: &Summary) -> Vec<Table> {
    let found = statements(summary);
    let columns = ["Of the paper", "here", "cells", "median ratio", "least", "most"];
    let mut table = Table::new(TITLE, columns.map(Column::new).to_vec());
    for statement in &found {
        let mut cells = vec![
            Shown::text(statement.item),
            Shown::text(statement.verdict.name()),
            Shown::count(statement.ratios.len() as u64),
        ];
        cells.extend(cells::range(statement.ratios.iter().copied()));
        table.push(report::Row::new(cells));
    }
    let verdicts = (!found.is_empty()).then_some(table);
    verdicts.into_iter().chain(cells::split(summary)).collect()
}

/// Each statement in a sentence: what the paper says, and ours.
fn sentences(summary: &Summary, claims: &[Claim]) -> Vec<String> {
    let found = statements(summary);
    let of = |statement: &Statement| {
        let claim = claims.iter().find(|claim| claim.item == statement.item)?;
        Some(format!("{}: {}. Here {}.", claim.item, claim.says, statement.answer()))
    };
    found.iter().filter_map(of).collect()
}

/// The report's section.
pub(crate) fn section(summary: &Summary, claims: &[Claim]) -> Option<Section> {
    let tables = tables(summary);
    if tables.is_empty() {
        return None;
    }
    let section = tables.into_iter().fold(Section::new("page-direction", TITLE), Section::with);
    let sentences = sentences(summary, claims).into_iter();
    Some(sentences.fold(section, |section, said| section.with(Inline::new().text(said))))
}

/// The same as a fragment for Markdown.
pub(crate) fn markdown(summary: &Summary, claims: &[Claim], provenance: &str) -> Option<String> {
    let tables = tables(summary);
    if tables.is_empty() {
        return None;
    }
    let mut text = format!("{provenance}.\n");
    for said in sentences(summary, claims) {
        text += &format!("\n- {said}");
    }
    for table in tables {
        text += &format!("\n\n{}:\n\n{}", table.caption, table.to_markdown().trim_end());
    }
    Some(text + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::tests::sample;

    /// Loads of a page over a link by HTTP/1.1 in 1000 ms, by SPDY in `spdy` with a wobble.
    fn cell(page: &str, link: &str, visit: &str, loads: u32, spdy: f64) -> Vec<record::Sample> {
        let of = |repeat, protocol, ms| {
            let mut sample = sample(protocol, visit, repeat, ms);
            sample.point.insert("page".to_owned(), page.to_owned());
            sample.point.insert("link".to_owned(), link.to_owned());
            let values =
                [(value::BODY, 1_500_000.0), (value::REQUESTS, 16.0), (value::DOWN, 56_000.0)];
            sample.values.extend(values.map(|(name, value)| (name.to_owned(), value)));
            sample
        };
        let each = |repeat| {
            let wobble = f64::from(repeat % 2) * 2.0;
            [of(repeat, "http/1.1", 1000.0), of(repeat, "spdy/3.1", spdy + wobble)]
        };
        (0..loads).flat_map(each).collect()
    }

    fn repeats(link: &str, spdy: f64) -> Summary {
        let pages = PAGES.iter().flat_map(|page| cell(page, link, "kept", 8, spdy));
        Summary::of(&pages.collect::<Vec<_>>())
    }

    fn only(summary: &Summary) -> Statement {
        let mut found = statements(summary);
        assert_eq!(found.len(), 1, "{:?}", found.iter().map(|s| s.item).collect::<Vec<_>>());
        found.remove(0)
    }

    #[test]
    fn repeats_gain_on_3g_or_the_reason_is_said() {
        let gain = only(&repeats("3g-0.9", 700.0));
        assert_eq!((gain.item, gain.verdict), (REPEATS_3G, Verdict::Same));
        assert!(!gain.ours.contains("Why"), "{}", gain.ours);
        let none = only(&repeats("3g-0.9", 1010.0));
        assert_eq!(none.verdict, Verdict::Different);
        // 56 kB take 0.5 s of 1.0 s at 0.9 Mbit/s; google-play's mean in the paper is 7.21 s.
        assert!(none.ours.contains("50 % of the load at the link's rate"), "{}", none.ours);
        assert!(none.ours.contains("open 17 connections"), "{}", none.ours);
        assert!(none.ours.contains("times as long as ours"), "{}", none.ours);
        // On fast WLAN none is what the paper has.
        assert_eq!(only(&repeats("wlan-17", 1010.0)).verdict, Verdict::Same);
        assert_eq!(only(&repeats("wlan-17", 700.0)).verdict, Verdict::Different);
    }

    #[test]
    fn first_visits_are_counted_by_cells() {
        let sites = |slower: usize, loads| {
            let samples = (0..10).flat_map(|n| {
                let spdy = if n < slower { 1100.0 } else { 900.0 };
                cell(&format!("site-{n}"), "3g-0.9", "first", loads, spdy)
            });
            only(&Summary::of(&samples.collect::<Vec<_>>()))
        };
        let most = sites(10, 5);
        assert_eq!((most.item, most.verdict), (FIRST_VISITS, Verdict::Same));
        // Five loads give no interval of 95 %, and the number of cells says it all the same.
        assert!(most.ours.contains("slower in 10 (0 certainly)"), "{}", most.ours);
        assert!(sites(10, 6).ours.contains("slower in 10 (10 certainly)"));
        assert_eq!(sites(6, 5).verdict, Verdict::Undetermined);
        let few = sites(0, 5);
        assert_eq!(few.verdict, Verdict::Different);
        assert!(few.ours.contains("all in TLS"), "{}", few.ours);
    }

    #[test]
    fn large_images_lose_or_do_not() {
        let of = |spdy| {
            let samples = cell("cablelabs-large", "3g-1.37", "first", 8, spdy);
            only(&Summary::of(&samples)).verdict
        };
        assert_eq!([of(1100.0), of(1000.0)], [Verdict::Same, Verdict::Different]);
    }

    #[test]
    fn a_window_binds_where_a_load_stalls_on_it() {
        let of = |stalled: f64, window: &str| {
            let mut samples = cell("testbed-2", "wired-10", "first", 3, 1000.0);
            for sample in &mut samples {
                sample.values.insert(value::STALLED.to_owned(), stalled);
                sample.point.insert("stream-window".to_owned(), window.to_owned());
            }
            statements(&Summary::of(&samples)).pop().map(|one| (one.item, one.verdict))
        };
        assert_eq!(of(5.0, "64KiB"), Some((WINDOWS, Verdict::Same)));
        assert_eq!(of(50.0, "64KiB"), Some((WINDOWS, Verdict::Different)));
        assert_eq!(of(50.0, "16KiB"), None);
    }

    #[test]
    fn cells_are_split_by_link_size_and_visit() {
        let mut samples = cell("google-play", "3g-0.9", "kept", 8, 900.0);
        for page in ["site-gmail", "site-webtide", "site-twitter", "site-cloudflare"] {
            samples.extend(cell(page, "3g-0.9", "first", 8, 1100.0));
        }
        assert!(cells::split(&Summary::of(&samples)).is_none(), "five cells are few");
        samples.extend(cell("google-play", "wlan-17", "kept", 8, 1000.0));
        let table = cells::split(&Summary::of(&samples)).unwrap();
        let text = table.to_markdown();
        assert!(text.contains("| 3G | 1 to 2 MB | first | 4 | 0 | 0 | 4 | 4 | 1.10 |"), "{text}");
        assert!(text.contains("| 3G | 1 to 2 MB | kept | 1 | 1 | 1 | 0 | 0 | 0.90 |"), "{text}");
        assert_eq!(table.rows.len(), 3, "{text}");
        assert!(table.rows.iter().all(|row| row.cells.len() == table.columns.len()));
    }
}
