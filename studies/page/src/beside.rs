//! Chromium beside our loader: whether what we say of pages holds for a real browser.

use report::{Cell, Column, Inline, Table};
use serde::Serialize;
use stats::Estimate;
use units::named;
use web::Protocol;

use browser::Windows;

use crate::point::{Loader, Tls};
use crate::row::Row;
use crate::summary::{Group, Summary};
use crate::window::Window;

/// The aim: our page load time is within this share of Chromium's.
pub(crate) const AIM: f64 = 0.15;
/// An interval of less says too little.
pub(crate) const ENOUGH: f64 = 0.95;

named! {
    /// Whether the aim is reached.
    pub enum Verdict: "verdict" {
        /// The ratio's whole interval lies within it.
        Reached = "reached",
        /// The ratio's whole interval lies outside.
        Missed = "missed",
        /// The interval has the aim's end in it, or there are too few loads for one.
        CannotBeTold = "cannot be determined",
    }
}

impl Verdict {
    fn of(ratio: Option<Estimate>) -> Verdict {
        let (least, most) = (1.0 - AIM, 1.0 + AIM);
        match ratio.filter(|ratio| ratio.confidence >= ENOUGH) {
            Some(ratio) if least <= ratio.low && ratio.high <= most => Verdict::Reached,
            Some(ratio) if ratio.high < least || most < ratio.low => Verdict::Missed,
            _ => Verdict::CannotBeTold,
        }
    }
}

/// One page over one link by one protocol, by both.
#[derive(Debug, Clone, Serialize)]
pub struct Beside {
    /// Page, link and visit: `google-play over 3g-0.9, first visit`.
    pub what: String,
    /// What carried it.
    pub protocol: Protocol,
    /// The TLS version.
    pub tls: Tls,
    /// Our page load time in milliseconds.
    pub ours_ms: Estimate,
    /// Chromium's page load time in milliseconds.
    pub chromium_ms: Estimate,
    /// Ours over Chromium's of the same turn.
    pub ratio: Option<Estimate>,
    /// Whether that is within the aim.
    pub verdict: Verdict,
    /// The command that measures Chromium's again.
    pub command: String,
}

impl Summary {
    /// What was loaded by both, in the order of Chromium's groups.
    #[must_use]
    pub fn beside(&self) -> Vec<Beside> {
        let theirs = self.groups.iter().filter(|group| group.loader == Loader::Chromium);
        let pairs = theirs.flat_map(|theirs| {
            let ours = self.groups.iter().find(|ours| ours.is_ours_of(theirs));
            let rows =
                ours.into_iter().flat_map(|ours| theirs.rows.iter().map(move |row| (ours, row)));
            rows.filter_map(|(ours, row)| beside(ours, row))
        });
        pairs.collect()
    }
}

impl Group {
    /// Whether it is the same as this one, loaded by our own loader.
    fn is_ours_of(&self, theirs: &Group) -> bool {
        self.loader == Loader::Ours
            && (&self.sweep, &self.page, &self.link) == (&theirs.sweep, &theirs.page, &theirs.link)
            && (self.loss, self.queue, self.browser, self.visit)
                == (theirs.loss, theirs.queue, theirs.browser, theirs.visit)
    }
}

fn beside(group: &Group, theirs: &Row) -> Option<Beside> {
    let ours = group.rows.iter().find(|ours| {
        (ours.protocol, ours.tls, ours.windows) == (theirs.protocol, theirs.tls, Windows::Chromium)
            && (ours.stream_window, ours.tcp_window) == (Window(None), Window(None))
    })?;
    let ratio = ours.ratio_to(theirs);
    Some(Beside {
        what: group.title(),
        protocol: theirs.protocol,
        tls: theirs.tls,
        ours_ms: ours.load_ms?,
        chromium_ms: theirs.load_ms?,
        ratio,
        verdict: Verdict::of(ratio),
        command: theirs.command.clone(),
    })
}

/// What the comparison with a real browser is called.
pub(crate) const TITLE: &str = "Chromium beside our loader";

/// In how many cases our loader does as Chromium does.
pub(crate) fn answer(all: &[Beside]) -> Option<Inline> {
    let count = |verdict| all.iter().filter(|one| one.verdict == verdict).count();
    let text = format!(
        "Our loader is within {:.0} % of Chromium's page load time in {} of {} cases, outside in {}; \
         in {} it cannot be determined.",
        AIM * 100.0,
        count(Verdict::Reached),
        all.len(),
        count(Verdict::Missed),
        count(Verdict::CannotBeTold)
    );
    (!all.is_empty()).then(|| Inline::new().text(text))
}

/// What both browsers took, if both loaded anything.
pub(crate) fn table(all: &[Beside]) -> Option<Table> {
    let columns = vec![
        Column::new("Page, link, visit"),
        Column::new("Protocol"),
        Column::new("ours").unit("s"),
        Column::new("Chromium").unit("s"),
        Column::new("ours of Chromium's"),
        Column::new(format!("within {:.0} %", AIM * 100.0)),
    ];
    let mut table = Table::new(TITLE, columns);
    for one in all {
        let time = |e: stats::Estimate| Cell::estimate(e.value / 1e3, e.low / 1e3, e.high / 1e3, 2);
        let protocol = match one.tls {
            Tls::V13 => one.protocol.to_string(),
            Tls::V12 => format!("{}, TLS 1.2", one.protocol),
        };
        let cells = vec![
            Cell::text(&one.what),
            Cell::text(protocol),
            time(one.ours_ms),
            time(one.chromium_ms),
            one.ratio.map_or_else(|| Cell::text(""), |e| Cell::estimate(e.value, e.low, e.high, 2)),
            Cell::text(one.verdict.name()),
        ];
        table.push(report::Row::new(cells).command(&one.command));
    }
    (!all.is_empty()).then_some(table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::tests::sample;

    #[test]
    fn the_aim_is_said_as_reached_missed_or_unknown() {
        let mut samples = Vec::new();
        for repeat in 0..8 {
            let wobble = f64::from(repeat % 2) * 0.2;
            // Ours over Chromium's: 0.95, 1.3, and anything from 1.05 to 1.25.
            let loads = [("http/1.1", 950.0), ("h2", 1300.0), ("h3", 1050.0 + 1000.0 * wobble)];
            for (protocol, ours) in loads {
                samples.push(sample(protocol, "first", repeat, ours));
                let mut theirs = sample(protocol, "first", repeat, 1000.0);
                theirs.point.insert("loader".to_owned(), "chromium".to_owned());
                samples.push(theirs);
            }
        }
        let summary = Summary::of(&samples);
        assert_eq!(summary.groups.len(), 2);
        let beside = summary.beside();
        let verdicts: Vec<Verdict> = beside.iter().map(|one| one.verdict).collect();
        assert_eq!(verdicts, [Verdict::Reached, Verdict::Missed, Verdict::CannotBeTold]);
        assert!((beside[1].ratio.unwrap().value - 1.3).abs() < 1e-9);
        assert_eq!(beside[0].what, "google-play over 3g-0.9, first visit");
        let rows = table(&beside).unwrap().to_markdown();
        let row = "| h2 | 1.30 [1.30, 1.30] | 1.00 [1.00, 1.00] | 1.30 [1.30, 1.30] | missed |";
        assert!(rows.contains(row), "{rows}");
        assert!(table(&[]).is_none());
        // Too few loads.
        let few: Vec<_> = samples.into_iter().filter(|sample| sample.repeat < 5).collect();
        let beside = Summary::of(&few).beside();
        assert!(beside.iter().all(|one| one.verdict == Verdict::CannotBeTold));
        assert!(Summary::of(&crate::summary::tests::samples()).beside().is_empty());
    }
}
