//! The SPDY paper's figures beside ours.

use browser::CrossTraffic;
use study::Counterpart;
use web::{Congestion, Protocol};

use crate::point::{Handshake, Loader, Visit, Waiting};
use crate::row::Row;
use crate::summary::{Group, Summary};
use crate::window::InitialWindow;

/// The paper's figures: its Tables 2 to 4 (repeated loads), 6 and 7 (first visits), 9 and 10 (flow control).
pub(crate) const FIGURES: &str = include_str!("../published.csv");

/// Why a row has no counterpart, by what the paper's note says.
const DOUBTFUL: &str = "doubtful";

/// What a published row is about, read from its words: `chromium 3G 0.90 off mean`.
struct Asked<'a> {
    page: String,
    link: String,
    browser: &'a str,
    protocols: &'static [Protocol],
    visit: Visit,
    /// Which of a case's loads: `mean`, `min`, `max`, or all of first visits.
    of: &'a str,
    windows: Option<(&'a str, &'a str)>,
}

const SPDY: &[Protocol] = &[Protocol::Spdy31, Protocol::Spdy3];
const OFF: &[Protocol] = &[Protocol::Http1];

impl<'a> Asked<'a> {
    fn of(row: &'a str) -> Option<Asked<'a>> {
        let words: Vec<&str> = row.split(' ').collect();
        let [page, browser, link, variant, of, rest @ ..] = words.as_slice() else { return None };
        let (variant, window) = match variant.split_once('-') {
            Some((variant, window)) => (variant, Some(window)),
            None => (*variant, None),
        };
        let windows = match rest {
            [tcp] => Some((*tcp, window.unwrap_or_default())),
            _ => None,
        };
        Some(Asked {
            page: (*page).to_owned(),
            link: (*link).to_owned(),
            browser,
            protocols: if variant == "spdy" { SPDY } else { OFF },
            visit: if matches!(*of, "mean" | "min") { Visit::Kept } else { Visit::First },
            of,
            windows,
        })
    }

    fn is_of(&self, group: &Group) -> bool {
        (group.page.as_str(), group.link.to_string()) == (&self.page, self.link.clone())
            && group.browser.name() == self.browser
            && group.visit == self.visit
            && group.loss.is_zero()
            && group.queue == Waiting::DropTail
            && group.cross == CrossTraffic::None
            && group.loader == Loader::Ours
    }

    fn has(&self, row: &Row) -> bool {
        let window = |size: crate::window::Window| size.to_string();
        self.protocols.contains(&row.protocol)
            && row.initial_window == InitialWindow::USUAL
            && row.congestion == Congestion::Cubic
            && row.handshake == Handshake::Kernel
            && self.windows.is_none_or(|(tcp, stream)| {
                let streams = stream.is_empty() || window(row.stream_window) == stream;
                window(row.tcp_window) == tcp && streams
            })
    }

    fn command(&self) -> String {
        let Asked { page, link, browser, visit, .. } = self;
        let protocol = self.protocols.first().map(|protocol| protocol.name()).unwrap_or_default();
        let windows = self.windows.map_or(String::new(), |(tcp, stream)| {
            let stream = match stream {
                "" => String::new(),
                stream => format!(" --stream-window {stream}"),
            };
            format!(" --tcp-window {tcp}{stream}")
        });
        format!(
            "wiretax page --page {page} --link {link} --browser {browser} --tls 1.2 --protocol \
             {protocol} --visit {visit}{windows}"
        )
    }
}

/// What stands beside each published figure.
pub(crate) fn counterparts(summary: &Summary) -> Vec<(String, Counterpart)> {
    let figures = study::figures(FIGURES).unwrap_or_default();
    let beside = figures.iter().map(|figure| {
        let counterpart = match Asked::of(&figure.row) {
            _ if figure.note.starts_with(DOUBTFUL) => Counterpart::None {
                reason: "not compared: our copy of the table repeats cells of another".to_owned(),
            },
            Some(asked) => counterpart(summary, &asked),
            None => Counterpart::None { reason: "not a page load".to_owned() },
        };
        (figure.key(), counterpart)
    });
    beside.collect()
}

/// The paper's means of repeated loads, less the doubtful ones.
pub(crate) struct Means(Vec<study::Figure>);

impl Means {
    pub(crate) fn read() -> Means {
        let mut figures = study::figures(FIGURES).unwrap_or_default();
        figures.retain(|figure| !figure.note.starts_with(DOUBTFUL));
        Means(figures)
    }

    /// What the paper measured of this way to load, in seconds.
    pub(crate) fn of(&self, group: &Group, row: &Row) -> Option<f64> {
        let found = self.0.iter().find(|figure| {
            let asked = Asked::of(&figure.row);
            asked.is_some_and(|asked| asked.of == "mean" && asked.is_of(group) && asked.has(row))
        });
        found?.value
    }
}

fn counterpart(summary: &Summary, asked: &Asked<'_>) -> Counterpart {
    let groups = summary.groups.iter().filter(|group| asked.is_of(group));
    let found = groups.flat_map(|group| &group.rows).find(|row| asked.has(row));
    let Some((row, load)) = found.and_then(|row| Some((row, row.load_ms?))) else {
        return Counterpart::NotMeasured { command: asked.command() };
    };
    let seconds = |ms: f64| ms / 1e3;
    let difference = |what: &str| format!("{what} of {} loads, {}", row.loads, row.label(false));
    let of_range = |what, pick: fn((f64, f64)) -> f64| Counterpart::Ours {
        value: row.range_ms.map_or(f64::NAN, |range| seconds(pick(range))),
        interval: None,
        difference: difference(what),
    };
    match asked.of {
        "min" => of_range("shortest repeat", |range| range.0),
        "max" => of_range("longest first visit", |range| range.1),
        // Means of theirs; a median is not moved by one load that the machine held up.
        _ => Counterpart::Ours {
            value: seconds(load.value),
            interval: Some((seconds(load.low), seconds(load.high))),
            difference: difference("median"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;
    use crate::summary::tests::sample;

    #[test]
    fn every_published_figure_has_its_counterpart_or_a_reason() {
        let figures = study::figures(FIGURES).unwrap();
        // 48 rows of three figures, 40 of two, 240 of one.
        assert_eq!(figures.len(), 48 * 3 + 40 * 2 + 240);
        let found = counterparts(&Summary::default());
        assert_eq!(found.len(), figures.len());
        for (key, counterpart) in &found {
            match counterpart {
                Counterpart::NotMeasured { command } => {
                    assert!(command.contains("--page "), "{key}")
                }
                Counterpart::None { reason } => assert!(reason.contains("repeats cells"), "{key}"),
                Counterpart::Ours { .. } => panic!("{key}: nothing was measured"),
            }
        }
    }

    /// The plan `paper` loads what the tables ask for: no published row is without a point in it.
    #[test]
    fn the_papers_plan_measures_every_row_that_is_not_doubtful() {
        let (cells, _) = Plan::built_in("paper").unwrap().cells().unwrap();
        let points: Vec<_> = cells.iter().flat_map(|cell| &cell.points).collect();
        for figure in study::figures(FIGURES).unwrap() {
            if figure.note.starts_with(DOUBTFUL) {
                continue;
            }
            let asked = Asked::of(&figure.row).unwrap();
            let planned = points.iter().any(|point| {
                let page = (point.page.to_string(), point.link.to_string());
                page == (asked.page.clone(), asked.link.clone())
                    && point.browser.name() == asked.browser
                    && point.visit == asked.visit
                    && asked.protocols.contains(&point.protocol)
                    && asked.windows.is_none_or(|(tcp, stream)| {
                        let streams =
                            stream.is_empty() || point.stream_window.to_string() == stream;
                        point.tcp_window.to_string() == tcp && streams
                    })
            });
            assert!(planned, "{}: {}", figure.key(), asked.command());
        }
    }

    #[test]
    fn ours_is_of_the_same_case() {
        let mut samples = Vec::new();
        for repeat in 0..6 {
            samples.push(sample("http/1.1", "first", repeat, 18_000.0 + f64::from(repeat)));
            samples.push(sample("http/1.1", "kept", repeat, 6000.0));
        }
        let found = counterparts(&Summary::of(&samples));
        let of = |row: &str| {
            let key = format!("Table 2/google-play chromium 3g-0.9 off {row}");
            found.iter().find(|(own, _)| *own == key).map(|(_, one)| one.clone()).unwrap()
        };
        let Counterpart::Ours { value, .. } = of("mean") else { panic!() };
        assert_eq!(value, 6.0);
        let Counterpart::Ours { value, .. } = of("max") else { panic!() };
        assert_eq!(value, 18.005);
    }
}
