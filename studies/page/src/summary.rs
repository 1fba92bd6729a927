//! Samples in, what they say out: a group for each page, link and visit, a row for each way to load it.

use browser::{CrossTraffic, ServerPush};
use page::Browser;
use record::Sample;
use stats::claims::{Better, MARGIN, Ranking};
use units::Probability;
use web::Protocol;

use crate::link::LinkName;
use crate::passed::Passed;
use crate::point::{Handshake, Loader, Point, Tls, Visit, Waiting};
use crate::row::Row;
use crate::sample::STUDY;

/// What the samples come to.
#[derive(Debug, Clone, Default)]
pub struct Summary {
    /// The groups, in the order of their first samples.
    pub groups: Vec<Group>,
    /// How long the loads took.
    pub passed: Passed,
}

/// What is loaded, and over what: within it protocols are compared.
#[derive(Debug, Clone)]
pub struct Group {
    /// The sweep that the samples belong to.
    pub sweep: String,
    /// The page's name.
    pub page: String,
    /// The link that it is loaded over.
    pub link: LinkName,
    /// Loss each way.
    pub loss: Probability,
    /// How frames wait for the link's rate.
    pub queue: Waiting,
    /// What else is on the link.
    pub cross: CrossTraffic,
    /// Which browser's policy says what is asked for when.
    pub browser: Browser,
    /// Who loads it.
    pub loader: Loader,
    /// What was kept from before.
    pub visit: Visit,
    /// The ways to load it, in the order of their first samples.
    pub rows: Vec<Row>,
}

impl Group {
    fn of(point: &Point) -> Group {
        Group {
            sweep: point.sweep.clone(),
            page: point.page.to_string(),
            link: point.link.clone(),
            loss: point.loss,
            queue: point.queue,
            cross: point.cross,
            browser: point.browser,
            loader: point.loader,
            visit: point.visit,
            rows: Vec::new(),
        }
    }

    fn is_of(&self, point: &Point) -> bool {
        (&self.sweep, &self.page) == (&point.sweep, &point.page.to_string())
            && (&self.link, self.loss, self.queue) == (&point.link, point.loss, point.queue)
            && (self.cross, self.browser, self.visit) == (point.cross, point.browser, point.visit)
            && self.loader == point.loader
    }

    /// The row that others are set against: HTTP/1.1 in TLS of the same version, handshake, buffers,
    /// initial window and congestion control, without hints.
    pub(crate) fn reference(&self, row: &Row) -> Option<&Row> {
        self.rows.iter().find(|other| {
            let same_tls = other.tls == row.tls || row.protocol == Protocol::Http3;
            let same_tcp = other.tcp_window == row.tcp_window || row.protocol == Protocol::Http3;
            let same_start =
                other.initial_window == row.initial_window && other.congestion == row.congestion;
            let same_handshake = other.handshake == row.handshake;
            (other.protocol, other.server_push) == (Protocol::Http1, ServerPush::None)
                && (same_tls && same_tcp && same_start && same_handshake)
        })
    }

    /// The row that a handshake is set against which does more at once: the same protocol over the same TCP (or
    /// QUIC), one step after the other.
    pub(crate) fn sequential(&self, row: &Row) -> Option<&Row> {
        row.handshake.sequential().iter().find_map(|handshake| self.with_handshake(*handshake, row))
    }

    /// The row that differs from another in its handshake alone, and its TLS version if need be.
    fn with_handshake(&self, handshake: Handshake, row: &Row) -> Option<&Row> {
        let mut others = self.rows.iter().filter(|other| {
            other.handshake == handshake
                && (other.protocol, other.windows) == (row.protocol, row.windows)
                && (other.stream_window, other.tcp_window) == (row.stream_window, row.tcp_window)
                && (other.initial_window, other.congestion) == (row.initial_window, row.congestion)
                && other.server_push == row.server_push
        });
        // Fast Open takes both versions. Else TLS 1.3 is what stands against all; TLS 1.2 only where nothing else
        // was measured.
        let first = others.next()?;
        let wanted = if row.handshake == Handshake::FastOpen { row.tls } else { Tls::V13 };
        if first.tls == wanted {
            return Some(first);
        }
        Some(others.find(|other| other.tls == wanted).unwrap_or(first))
    }

    /// The row of the shortest load, at the median.
    #[must_use]
    pub fn fastest(&self) -> Option<&Row> {
        self.by_median().first().copied()
    }

    /// The ranking of its measured rows by load time, the shortest median first. Loads of one turn make a pair.
    #[must_use]
    pub fn ranking(&self) -> Ranking {
        let plain = self.is_plain();
        let mut ranking = Ranking::new(Better::Less, MARGIN);
        for row in self.by_median() {
            ranking.push_turns(row.label(plain), row.loads_by_turn());
        }
        ranking
    }

    /// Returns the measured rows, the shortest median first.
    #[must_use]
    pub fn by_median(&self) -> Vec<&Row> {
        let mut rows: Vec<(f64, &Row)> =
            self.rows.iter().filter_map(|row| Some((row.load_ms?.value, row))).collect();
        rows.sort_by(|a, b| a.0.total_cmp(&b.0));
        rows.into_iter().map(|(_, row)| row).collect()
    }

    /// Whether all rows differ in the protocol alone.
    pub(crate) fn is_plain(&self) -> bool {
        let mut protocols: Vec<_> = self.rows.iter().map(|row| row.protocol).collect();
        protocols.sort_unstable();
        protocols.windows(2).all(|pair| pair.first() != pair.get(1))
    }

    /// What it is, for people: `google-play over 3g-0.9, first visit`.
    #[must_use]
    pub fn title(&self) -> String {
        let visit = match self.visit {
            Visit::First => "first visit",
            Visit::Kept => "repeat on open connections",
            Visit::Closed => "repeat on new connections",
        };
        let loss = match self.loss.value() {
            0.0 => String::new(),
            loss => format!(", loss {} %", loss * 100.0),
        };
        let queue = match self.queue {
            Waiting::DropTail => "",
            Waiting::Codel => ", CoDel",
        };
        let cross = match self.cross {
            CrossTraffic::None => "",
            CrossTraffic::Bulk => ", beside a download",
        };
        let browser = match self.browser {
            Browser::Chromium => "",
            Browser::Firefox => ", Firefox",
        };
        let loader = match self.loader {
            Loader::Ours => "",
            Loader::Chromium => ", loaded by Chromium",
        };
        let what = format!("{} over {}{loss}{queue}{cross}{browser}", self.page, self.link);
        format!("{what}{loader}, {visit}")
    }
}

impl Summary {
    /// Sums samples up; those of other studies are left out.
    #[must_use]
    pub fn of(samples: &[Sample]) -> Summary {
        let mut groups: Vec<Group> = Vec::new();
        for sample in samples.iter().filter(|sample| sample.study == STUDY) {
            let Some(point) = Point::of_fields(&sample.point) else { continue };
            let at = groups.iter().position(|group| group.is_of(&point)).unwrap_or_else(|| {
                groups.push(Group::of(&point));
                groups.len() - 1
            });
            let Some(group) = groups.get_mut(at) else { continue };
            let at = group.rows.iter().position(|row| row.is_of(&point)).unwrap_or_else(|| {
                group.rows.push(Row::of(&point, &sample.command));
                group.rows.len() - 1
            });
            if let Some(row) = group.rows.get_mut(at) {
                row.take(sample);
            }
        }
        for group in &mut groups {
            // Samples come in the order in which loads end.
            group.rows.sort_by_key(Row::order);
            group.rows.iter_mut().for_each(Row::sum_up);
            let ratio_to = |row: &Row, other: Option<&Row>| row.ratio_to(other?);
            let ratios = group.rows.iter().map(|row| {
                let sequential = group.sequential(row);
                (ratio_to(row, group.reference(row)), ratio_to(row, sequential))
            });
            let ratios: Vec<_> = ratios.collect();
            for (row, ratios) in group.rows.iter_mut().zip(ratios) {
                (row.ratio, row.handshake_ratio) = ratios;
            }
        }
        Summary { groups, passed: Passed::of(samples) }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeMap;

    use record::Outcome;
    use stats::claims::Leaders;

    use super::*;
    use crate::sample::value;

    /// A load: protocol, visit, repeat and time.
    pub(crate) fn sample(protocol: &str, visit: &str, repeat: u32, load_ms: f64) -> Sample {
        let fields = [
            ("sweep", "test"),
            ("page", "google-play"),
            ("link", "3g-0.9"),
            ("browser", "chromium"),
            ("tls", "1.3"),
            ("windows", "chromium"),
            ("protocol", protocol),
            ("visit", visit),
        ];
        let values = [
            (value::LOAD, load_ms),
            (value::FIRST_BYTE, load_ms / 10.0),
            (value::STALLED, if protocol == "h2" { load_ms / 20.0 } else { 0.0 }),
            (value::CONNECTIONS, 17.0),
        ];
        let owned = |(name, text): (&str, &str)| (name.to_owned(), text.to_owned());
        Sample {
            study: STUDY.into(),
            point: fields.map(owned).into(),
            repeat,
            seed: 1,
            at_unix_ms: 0,
            outcome: Outcome::Completed,
            values: values.map(|(name, value)| (name.to_owned(), value)).into(),
            labels: BTreeMap::new(),
            attachments: Vec::new(),
            command: format!("wiretax page --protocol {protocol}"),
        }
    }

    /// Ten loads each, HTTP/2 a fifth faster than HTTP/1.1 and HTTP/3 the same as HTTP/2.
    pub(crate) fn samples() -> Vec<Sample> {
        let mut samples = Vec::new();
        for repeat in 0..10 {
            let base = 10_000.0 + f64::from(repeat) * 10.0;
            let wobble = if repeat % 2 == 0 { 5.0 } else { -5.0 };
            samples.push(sample("http/1.1", "first", repeat, base));
            samples.push(sample("h2", "first", repeat, base * 0.8));
            samples.push(sample("h3", "first", repeat, base * 0.8 + wobble + 1.0));
        }
        samples
    }

    #[test]
    fn ratios_are_of_loads_that_took_turns() {
        let summary = Summary::of(&samples());
        let [group] = summary.groups.as_slice() else { panic!("{:?}", summary.groups) };
        assert_eq!(group.title(), "google-play over 3g-0.9, first visit");
        let best = group.fastest().unwrap();
        assert_eq!((best.protocol, best.loads), (Protocol::Http2, 10));
        let ratio = best.ratio.unwrap();
        assert!((ratio.value - 0.8).abs() < 1e-9 && ratio.high < 0.81, "{ratio:?}");
        let ranking = group.ranking();
        assert_eq!(ranking.verdict().leaders, Leaders::Tied(vec![0, 1]));
        assert_eq!([0, 1, 2].map(|at| ranking.name(at)), ["h2", "h3", "http/1.1"]);
        assert_eq!(best.median(value::CONNECTIONS), Some(17.0));
    }

    #[test]
    fn a_handshake_is_set_against_the_one_in_sequence_over_the_same_transport() {
        let loads = [
            ("h2", "kernel", 100.0),
            ("h2", "tfo", 90.0),
            ("h2", "0rtt", 80.0),
            ("h2", "usertcp", 200.0),
            ("h2", "usertcp-tls12-rsa", 250.0),
            ("h2", "sslmtcp-paper", 100.0),
            ("h2", "sslmtcp-0rtt", 100.0),
            ("h2", "tls12-rsa", 150.0),
            ("h3", "kernel", 50.0),
            ("h3", "0rtt", 40.0),
        ];
        let samples: Vec<Sample> = (0..8)
            .flat_map(|repeat| {
                loads.map(|(protocol, handshake, load_ms)| {
                    let mut sample = sample(protocol, "first", repeat, load_ms);
                    sample.point.insert("handshake".to_owned(), handshake.to_owned());
                    sample
                })
            })
            .collect();
        let summary = Summary::of(&samples);
        let ratios: Vec<(String, Option<f64>)> = summary.groups[0]
            .rows
            .iter()
            .map(|row| (row.label(false), row.handshake_ratio.map(|ratio| ratio.value)))
            .collect();
        let expected = [
            ("h2", None),
            ("h2, tfo", Some(0.9)),
            ("h2, 0rtt", Some(0.8)),
            ("h2, tls12-rsa", None),
            ("h2, usertcp", None),
            ("h2, usertcp-tls12-rsa", None),
            ("h2, sslmtcp-paper", Some(0.4)),
            ("h2, sslmtcp-0rtt", Some(0.5)),
            ("h3", None),
            ("h3, 0rtt", Some(0.8)),
        ];
        let named = |(label, ratio): (&str, Option<f64>)| (label.to_owned(), ratio);
        let close = |a: &(String, Option<f64>), b: &(String, Option<f64>)| match (a.1, b.1) {
            (Some(x), Some(y)) => (x - y).abs() < 1e-9 && a.0 == b.0,
            (x, y) => x == y && a.0 == b.0,
        };
        let expected = expected.map(named);
        assert_eq!(ratios.len(), expected.len(), "{ratios:?}");
        assert!(ratios.iter().zip(&expected).all(|(a, b)| close(a, b)), "{ratios:?}");
    }

    #[test]
    fn a_load_that_is_not_whole_is_counted_and_in_no_figure() {
        let mut samples = samples();
        samples[1].outcome = Outcome::TimedOut { after_ms: 180_000.0 };
        samples[1].values.insert(value::LOAD.into(), 1e9);
        let summary = Summary::of(&samples);
        let row = &summary.groups[0].rows[1];
        assert_eq!((row.loads, row.failed), (9, 1));
        assert_eq!(row.failure.as_deref(), Some("given up after 180 s"));
        assert!(row.load_ms.unwrap().high < 9000.0);
        assert!(Summary::of(&[]).groups.is_empty());
    }
}
