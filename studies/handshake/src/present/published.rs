//! The SSLmTCP paper's figures beside ours.

use report::{
    Axis, Cell, Chart, Column, Inline, Mark, Plot, PlotError, Point, Row as TableRow, Section,
    Series, Table, Uncertainty,
};
use stats::LineFit;
use study::{Counterpart, Figure};

use super::document::Pair;
use super::lineup::listed;
use super::{Findings, document};
use crate::embedded::{Embedded, Model};
use crate::mode::{Mode, Security, Transport};
use crate::summary::{Row, value};

/// The SSLmTCP paper's figures.
pub(crate) const PUBLISHED: &str = include_str!("../../published.csv");
const SOURCE: &str = "SSLmTCP, 2017";
/// Round trips of TCP then TLS 1.2 until the client may send.
const ROUND_TRIPS: f64 = 3.0;
/// The SSLmTCP paper's key.
const PUBLISHED_KEY: &str = "rsa-4096";

/// The rows of the file, of each place.
const PING: &str = "ping";
const SEQUENTIAL: &str = "in sequence";
const EMBEDDED: &str = "embedded";
const LESS: &str = "less";

/// One place of the SSLmTCP paper.
#[derive(Default)]
struct Place {
    name: String,
    ping_ms: f64,
    sequential_ms: Option<f64>,
    embedded_ms: Option<f64>,
    reduction_percent: Option<f64>,
}

impl Place {
    /// The compute with which one round trip less of three is the published reduction.
    fn compute_by_reduction(&self) -> Option<f64> {
        Some(Model::c_for(ROUND_TRIPS, self.ping_ms, self.reduction_percent? / 100.0))
    }

    /// The compute that the published time leaves beside three round trips.
    fn compute_by_time(&self) -> Option<f64> {
        Some(self.sequential_ms? - ROUND_TRIPS * self.ping_ms)
    }
}

fn places() -> Vec<Place> {
    let mut places: Vec<Place> = Vec::new();
    // A test reads our own file.
    for Figure { item, row, value, .. } in study::figures(PUBLISHED).unwrap_or_default() {
        if places.last().is_none_or(|place| place.name != item) {
            places.push(Place { name: item, ..Place::default() });
        }
        let Some(place) = places.last_mut() else { continue };
        match row.as_str() {
            PING => place.ping_ms = value.unwrap_or_default(),
            SEQUENTIAL => place.sequential_ms = value,
            EMBEDDED => place.embedded_ms = value,
            _ => place.reduction_percent = value,
        }
    }
    // The other items are counts and compute times: see `document`.
    places.retain(|place| place.ping_ms > 0.0);
    places
}

/// What is held against the SSLmTCP paper: TCP then TLS 1.2 with RSA key exchange, over our TCP where
/// SSLmTCP was measured beside it, and over the kernel's where not.
pub(super) struct Ours<'a> {
    pub(super) row: &'a Row,
    fit: &'a LineFit,
    pub(super) paper: Option<&'a Embedded>,
}

impl<'a> Ours<'a> {
    pub(super) fn find(findings: &'a Findings) -> Option<Ours<'a>> {
        let rows = findings.summary.rows.iter().filter(|row| row.key.is_unhindered());
        let of = |transport| Mode { transport, security: Security::Tls12Rsa };
        let wanted = rows.filter(|row| {
            [of(Transport::UserTcp), of(Transport::Tcp)].contains(&row.key.mode)
                && row.ready.is_some()
        });
        let paper = |row: &Row| {
            findings.embedded.iter().find(|embedded| {
                let beside = crate::summary::RowKey { mode: embedded.key.mode, ..row.key.clone() };
                embedded.control == row.key.mode && embedded.key == beside
            })
        };
        // The SSLmTCP paper's key before others, then what has SSLmTCP beside it, then most paths.
        let row = wanted.max_by_key(|row| {
            (paper(row).is_some(), row.key.key == PUBLISHED_KEY, row.cells.len())
        })?;
        Some(Ours { row, fit: row.ready.as_ref()?, paper: paper(row) })
    }

    /// What stands beside one of a place's figures, if it was measured at its RTT.
    fn beside(&self, rtt_ms: f64, row: &str) -> Option<Counterpart> {
        let saved = self.paper.and_then(|paper| paper.saved.iter().find(|s| s.rtt_ms == rtt_ms));
        let (value, interval) = match row {
            PING => (self.row.at_rtt(rtt_ms)?.rtt_ms, None),
            SEQUENTIAL => {
                let median = self.row.at_rtt(rtt_ms)?.median(value::READY)?;
                (median.value, Some((median.low, median.high)))
            }
            EMBEDDED => (saved?.embedded_ms, None),
            _ => {
                let less = saved?.reduction?.map(|share| 100.0 * share);
                (less.value, Some((less.low, less.high)))
            }
        };
        let difference = match (row, self.paper) {
            (PING, _) => "the link's round-trip time".to_owned(),
            (SEQUENTIAL, _) | (_, None) => self.title(),
            (_, Some(paper)) => format!("{}, {}", paper.key.mode, paper.key.key),
        };
        Some(Counterpart::Ours { value, interval, difference })
    }

    fn title(&self) -> String {
        format!("{}, {}", self.row.key.mode, self.row.key.key)
    }
}

/// The command that measures what the SSLmTCP paper did, and SSLmTCP beside it.
const COMMAND: &str = "wiretax handshake --scale paper";

/// What stands beside each published figure.
pub(super) fn counterparts(findings: &Findings) -> Vec<(String, Counterpart)> {
    let ours = Ours::find(findings);
    let of_place = |place: Place| {
        let figures = [
            (PING, Some(place.ping_ms)),
            (SEQUENTIAL, place.sequential_ms),
            (EMBEDDED, place.embedded_ms),
            (LESS, place.reduction_percent),
        ];
        let published = figures.into_iter().filter(|(_, value)| value.is_some());
        let each = published.map(|(row, _)| {
            let beside = ours.as_ref().and_then(|ours| ours.beside(place.ping_ms, row));
            let otherwise = || Counterpart::NotMeasured { command: COMMAND.to_owned() };
            (format!("{}/{row}", place.name), beside.unwrap_or_else(otherwise))
        });
        each.collect::<Vec<_>>()
    };
    let counted = document::counterparts(findings, COMMAND);
    places().into_iter().flat_map(of_place).chain(counted).collect()
}

/// The SSLmTCP paper's handshake measured here, and what SSLmTCP saves of it, there and here.
pub(super) fn section(findings: &Findings) -> Result<Option<Section>, PlotError> {
    let Some(ours) = Ours::find(findings) else { return Ok(None) };
    let title = "The SSLmTCP paper's model, and how far it fits";
    let mut section = Section::new("model", title).with(misfit(&ours));
    if let Some(paper) = ours.paper {
        section = section.with(reduction_text(&ours, paper));
        section = section.with(reduction_plot(&ours, paper)?);
        section = section.with(reductions(paper));
    }
    Ok(Some(section.with(plot(&ours)?)))
}

/// That theirs fit no model and ours do, in a sentence.
pub(super) fn one_model(pair: &Pair<'_>) -> Option<String> {
    let of = |compute: fn(&Place) -> Option<f64>| {
        let all: Vec<f64> = places().iter().filter_map(compute).collect();
        all.iter().map(|c| format!("{c:.0}")).collect::<Vec<_>>()
    };
    Some(format!(
        "the points do not fit one: RTT / (3 RTT + c) needs c = {} ms place by place, the one absolute time leaves \
         {} ms; ours fit it with {:.1} ms",
        listed(&of(Place::compute_by_reduction)),
        listed(&of(Place::compute_by_time)),
        pair.embedded.model?.c_ms
    ))
}

/// What the published points say of each other.
fn misfit(ours: &Ours<'_>) -> Inline {
    let computes: Vec<f64> = places().iter().filter_map(Place::compute_by_reduction).collect();
    let least = computes.iter().copied().fold(f64::INFINITY, f64::min);
    let most = computes.iter().copied().fold(0.0, f64::max);
    let by_time: Vec<f64> = places().iter().filter_map(Place::compute_by_time).collect();
    let by_time = by_time.iter().map(|c| format!("{c:.0} ms")).collect::<Vec<_>>();
    Inline::new().text(format!(
        "The SSLmTCP paper measured TCP then TLS 1.2 with RSA key exchange and RSA-4096 (about \
         40 ms of compute by its text), and how much one round trip less saves. Here: {} keys, \
         c = {:.1} ms. Its points do not fit one model: reduction = RTT / (3 RTT + c) needs a c \
         between {least:.0} and {most:.0} ms, place by place as in the table, and its one absolute \
         time leaves {}.",
        ours.row.key.key,
        ours.fit.intercept.value,
        listed(&by_time)
    ))
}

/// What ours say.
fn reduction_text(ours: &Ours<'_>, paper: &Embedded) -> Inline {
    let saved = paper.saved.iter().filter(|saved| saved.reduction.is_some());
    let percents = saved.filter_map(|saved| {
        Some(format!("{:.1} % at {} ms", 100.0 * saved.reduction?.value, saved.rtt_ms))
    });
    let model = paper.model.map(|model| {
        format!(
            " The model fits these with c = {:.1} ms; the line through the times of {} has \
             c = {:.1} ms.",
            model.c_ms, ours.row.key.mode, ours.fit.intercept.value
        )
    });
    Inline::new().text(format!(
        "{} takes {} less than {} with the same keys over the same TCP.{}",
        paper.key.mode,
        listed(&percents.collect::<Vec<_>>()),
        paper.control,
        model.unwrap_or_default()
    ))
}

/// Reductions by place: published, here, and the c that each needs.
fn reductions(paper: &Embedded) -> Table {
    let columns = vec![
        Column::new("RTT").unit("ms"),
        Column::new("Place"),
        Column::new("less, published").unit("%"),
        Column::new("c it needs").unit("ms"),
        Column::new("less, here").unit("%"),
        Column::new("c it needs").unit("ms"),
        Column::new("less, by the model").unit("%"),
        Column::new("misfit of published").unit("% points"),
    ];
    let caption = format!(
        "Time until the client may send, {} against {}: less by so much, and the c of \
         RTT / (3 RTT + c) that it needs",
        paper.key.mode, paper.control
    );
    let mut table = Table::new(caption, columns);
    let places = places();
    let mut rtts: Vec<f64> = paper.saved.iter().map(|saved| saved.rtt_ms).collect();
    rtts.extend(places.iter().map(|place| place.ping_ms));
    rtts.sort_by(f64::total_cmp);
    rtts.dedup();
    let number = |value: Option<f64>| value.map_or(Cell::Empty, |v| Cell::number(v, 1));
    for rtt in rtts {
        let place = places.iter().find(|place| place.ping_ms == rtt);
        let published = place.and_then(|place| place.reduction_percent);
        let here = paper.saved.iter().find(|saved| saved.rtt_ms == rtt);
        let here = here.and_then(|saved| saved.reduction);
        let by_model = paper.model.map(|model| 100.0 * model.at(rtt));
        let needs = here.map(|less| Model::c_for(ROUND_TRIPS, rtt, less.value));
        let misfit = published.zip(by_model).map(|(published, model)| published - model);
        table.push(TableRow::new(vec![
            Cell::number(rtt, 1),
            place.map_or(Cell::Empty, |place| Cell::text(place.name.clone())),
            number(published),
            number(place.and_then(Place::compute_by_reduction)),
            here.map_or(Cell::Empty, |less| super::estimate(&less.map(|share| 100.0 * share), 1)),
            number(needs),
            number(by_model),
            misfit.map_or(Cell::Empty, |misfit| Cell::difference(misfit, 1)),
        ]));
    }
    table
}

/// Points of a model's curve.
const CURVE: u32 = 60;

fn reduction_plot(ours: &Ours<'_>, paper: &Embedded) -> Result<Plot, PlotError> {
    let here = paper.saved.iter().filter_map(|saved| {
        let less = saved.reduction?.map(|share| 100.0 * share);
        let mark = Mark::new(less.value).interval(less.low, less.high);
        Some(Point::new(saved.rtt_ms, mark.note(format!("{} pairs", saved.pairs))))
    });
    let here: Vec<Point> = here.collect();
    let theirs = places().into_iter().filter_map(|place| {
        let mark = Mark::new(place.reduction_percent?).note(place.name);
        Some(Point::new(place.ping_ms, mark))
    });
    let theirs: Vec<Point> = theirs.collect();
    let longest = here.iter().chain(&theirs).map(|point| point.x).fold(0.0, f64::max);
    let mut series = vec![
        Series::measured(format!("{}, {}", paper.key.mode, paper.key.key), here),
        Series::published("SSLmTCP, RSA-4096", SOURCE, theirs),
    ];
    if let Some(model) = paper.model {
        let curve = (1..=CURVE).map(|n| {
            let rtt_ms = longest * f64::from(n) / f64::from(CURVE);
            Point::new(rtt_ms, Mark::new(100.0 * model.at(rtt_ms)))
        });
        let name = format!("RTT / (3 RTT + {:.1} ms)", model.c_ms);
        series.push(Series::measured(name, curve.collect()).muted());
    }
    let model =
        paper.model.map(|model| format!(", as RTT / (3 RTT + {:.1} ms) has it", model.c_ms));
    let farthest =
        paper.saved.iter().rev().find_map(|saved| Some((saved.rtt_ms, saved.reduction?)));
    let means = farthest.map_or_else(
        || "No distance saves more than a third.".to_owned(),
        |(rtt_ms, less)| {
            format!(
                "At {rtt_ms} ms a handshake takes {:.0} % less; users farther away gain more, up to a third.",
                100.0 * less.value
            )
        },
    );
    Plot::new(
        "Handshake time that SSLmTCP saves, as a share",
        format!(
            "With the RTT the share saved grows towards a third{}; the published points lie on \
             another curve, whose compute is longer ({:.1} ms here).",
            model.unwrap_or_default(),
            ours.fit.intercept.value
        ),
        means,
        Axis::new("Round-trip time", "ms").from_zero(),
        Axis::new("Less than in sequence", "%").from_zero(),
        Chart::Lines { series, uncertainty: Uncertainty::Bars },
    )
}

fn plot(ours: &Ours<'_>) -> Result<Plot, PlotError> {
    let mine = ours.row.cells.iter().filter_map(|cell| {
        let median = cell.median(value::READY)?;
        let mark = Mark::new(median.value).interval(median.low, median.high);
        Some(Point::new(cell.rtt_ms, mark.command(cell.command.clone())))
    });
    let published = |of: fn(&Place) -> Option<f64>| {
        let point = |place: Place| {
            let mark = Mark::new(of(&place)?).note(place.name);
            Some(Point::new(place.ping_ms, mark))
        };
        places().into_iter().filter_map(point).collect::<Vec<_>>()
    };
    let differences: Vec<String> = places()
        .iter()
        .filter_map(|place| {
            let difference = place.sequential_ms? - ours.fit.line().at(place.ping_ms);
            let side = if difference < 0.0 { "below" } else { "above" };
            Some(format!(
                "the published time at {} ms lies {:.0} ms {side} it",
                place.ping_ms,
                difference.abs()
            ))
        })
        .collect();
    let mut series = vec![
        Series::measured(ours.title(), mine.collect()),
        Series::published(
            "TCP then TLS 1.2, RSA-4096",
            SOURCE,
            published(|place| place.sequential_ms),
        ),
    ];
    if let Some(paper) = ours.paper {
        let embedded =
            paper.saved.iter().map(|s| Point::new(s.rtt_ms, Mark::new(s.embedded_ms))).collect();
        let name = format!("{}, {}", paper.key.mode, paper.key.key);
        series.insert(1, Series::measured(name, embedded));
        let theirs = published(|place| place.embedded_ms);
        series.push(Series::published("SSLmTCP, RSA-4096", SOURCE, theirs));
    }
    let farthest =
        ours.row.cells.iter().filter_map(|cell| Some((cell, cell.median(value::READY)?)));
    let farthest = farthest.max_by(|a, b| a.0.rtt_ms.total_cmp(&b.0.rtt_ms));
    let means = farthest.map_or_else(
        || "Each round trip makes users wait as long again.".to_owned(),
        |(cell, ready)| {
            format!(
                "Users at {} ms wait {:.0} ms here before the client may send, by the paper's handshake in sequence.",
                cell.rtt_ms, ready.value
            )
        },
    );
    Plot::new(
        "Handshake time with RSA key exchange: in sequence, and embedded",
        format!(
            "Our handshake time in sequence grows by {:.2} ms with each millisecond of RTT; {}.",
            ours.fit.slope.value,
            listed(&differences)
        ),
        means,
        Axis::new("Round-trip time", "ms").from_zero(),
        Axis::new("Time until the client may send", "ms").from_zero(),
        Chart::Lines { series, uncertainty: Uncertainty::Bars },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_file_is_read_whole() {
        let places = places();
        assert_eq!(places.len(), 3);
        assert_eq!(places[2].sequential_ms, Some(326.6));
        assert_eq!(places[2].embedded_ms, Some(236.1));
        assert_eq!((places[0].ping_ms, places[0].sequential_ms), (0.4, None));
        assert_eq!(places[1].reduction_percent, Some(14.0));
    }

    #[test]
    fn every_published_figure_has_its_counterpart() {
        let summary = crate::summary::summarise([], 1).unwrap();
        let findings = Findings::new(summary, "tcp+tls12".parse().unwrap(), None, 1).unwrap();
        let keys: Vec<String> = counterparts(&findings).into_iter().map(|(key, _)| key).collect();
        let figures = study::figures(PUBLISHED).unwrap();
        assert_eq!(keys, figures.iter().map(Figure::key).collect::<Vec<_>>());
    }

    #[test]
    fn the_published_points_need_three_different_computes() {
        let computes: Vec<_> = places().iter().filter_map(Place::compute_by_reduction).collect();
        let rounded: Vec<_> = computes.iter().map(|c| c.round()).collect();
        assert_eq!(rounded, [11.0, 48.0, 52.0]);
        assert_eq!(places()[2].compute_by_time().map(f64::round), Some(70.0));
    }

    /// The published reduction and the published times of one place agree with each other.
    #[test]
    fn the_published_times_give_the_published_reduction() {
        let place = &places()[2];
        let (before, after) = (place.sequential_ms.unwrap(), place.embedded_ms.unwrap());
        let reduction = 100.0 * (1.0 - after / before);
        assert!((reduction - place.reduction_percent.unwrap()).abs() < 0.05, "{reduction}");
    }
}
