//! What a kept capture of a load shows of flow control: a label of its sample, and a part of the report.

use std::path::Path;

use browser::Kept;
use fault::Problem;
use record::Sample;
use report::{Block, Cell, Code, Column, Inline, Section, Table};
use sequence::{Event, Limits, Reader, fold, text};
use serde::{Deserialize, Serialize};
use tracker::LinkType;

use crate::row::Row;
use crate::summary::Group;

/// The label with the chart of a load, as JSON.
pub(crate) const CHART: &str = "sequence";
/// The label with the name of the file in the folder of captures.
pub(crate) const CAPTURE: &str = "capture";

/// Lines of a ladder at its beginning, and at its end.
const LINES: (usize, usize) = (40, 10);
/// Loads that the report has a ladder of; the files have all.
const SHOWN: usize = 6;

/// The chart of one connection of a load, as the report shows it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Flow {
    /// Which connection it is: the one with most data.
    title: String,
    /// What can be read of its windows.
    windows: Vec<String>,
    /// Milliseconds since it began, who sent, and what.
    lines: Vec<(String, String, String)>,
    /// Lines between the beginning and the end that are left out.
    left_out: usize,
}

impl Flow {
    /// The chart of what was kept; `None` where nothing of SPDY or HTTP/2 is in it.
    fn of(kept: &Kept) -> Option<Flow> {
        let mut reader = Reader::new(Limits::default());
        reader.add_keys(kept.secrets().as_bytes());
        for frame in kept.frames() {
            reader.handle_packet(frame.at, LinkType::Ethernet, &frame.bytes);
        }
        let chart = reader.finish();
        let (number, connection) = chart.by_data().into_iter().next()?;
        let events = fold(&connection.events);
        let line = |event: &Event| {
            let since = event.at.saturating_since(connection.begun);
            let who = if event.from_client { "client" } else { "server" };
            (text::millis(since), who.to_owned(), text::describe(connection.protocol, event))
        };
        let (first, last) = LINES;
        let end = events.len().saturating_sub(last).max(first);
        let begin = events.iter().take(first);
        let lines: Vec<_> = begin.chain(events.iter().skip(end)).map(line).collect();
        let mut windows = text::sentences(connection);
        if kept.lost() > 0 {
            windows.push(format!("{} frames are not in the capture.", kept.lost()));
        }
        Some(Flow {
            title: text::title(number, connection),
            windows: windows.iter().map(|line| line.trim().to_owned()).collect(),
            left_out: events.len().saturating_sub(lines.len()),
            lines,
        })
    }

    /// The chart that a sample has.
    pub(crate) fn of_sample(sample: &Sample) -> Option<Flow> {
        sample.labels.get(CHART).and_then(|text| serde_json::from_str(text).ok())
    }

    fn table(&self) -> Table {
        let columns =
            vec![Column::new("Time").unit("ms"), Column::new("From"), Column::new("Frame")];
        let caption = match self.left_out {
            0 => self.title.clone(),
            lines => format!("{}; {lines} lines in the middle are left out", self.title),
        };
        let mut table = Table::new(caption, columns);
        for (at, who, what) in &self.lines {
            let time = at.parse().map_or_else(|_| Cell::text(at), |ms| Cell::number(ms, 2));
            let cells = vec![time, Cell::text(who), Cell::text(what)];
            table.push(report::Row::new(cells));
        }
        table
    }
}

/// Writes what was kept into the folder of captures, and its chart into the sample.
pub(crate) fn keep(sample: &mut Sample, kept: &Kept, folder: &Path) -> Result<(), Problem> {
    let name = file_name(sample);
    kept.write(folder.join(&name))?;
    sample.labels.insert(CAPTURE.to_owned(), name);
    let chart = Flow::of(kept).and_then(|flow| serde_json::to_string(&flow).ok());
    sample.labels.extend(chart.map(|text| (CHART.to_owned(), text)));
    Ok(())
}

/// A file's name that tells what was loaded, and no two samples share.
fn file_name(sample: &Sample) -> String {
    let words = ["page", "link", "protocol", "visit"];
    let words = words.iter().filter_map(|axis| sample.point.get(*axis));
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
    let words: Vec<String> = words.map(|word| word.chars().take(40).map(plain).collect()).collect();
    let hash = record::plan_hash(&serde_json::json!(sample.key()));
    let hash: String = hash.chars().take(8).collect();
    format!("{}-{hash}.pcapng", words.join("-"))
}

/// The report's part, where loads were captured.
pub(crate) fn section<'a>(groups: impl Iterator<Item = &'a Group>) -> Option<Section> {
    let rows = groups.flat_map(|group| group.rows.iter().map(move |row| (group, row)));
    let captured: Vec<(&Group, &Row, &Flow)> =
        rows.filter_map(|(group, row)| Some((group, row, row.flow.as_ref()?))).collect();
    if captured.is_empty() {
        return None;
    }
    let about = "Frames of the connection with most data of each first load that was captured, at the \
                 server's end of the link: what the client sends is there half a round trip later, and \
                 windows are those that the server knows of. A run of like DATA frames is one line.";
    let mut section = Section::new("page-sequence", "Flow control, frame by frame");
    section = section.with(Inline::new().text(about));
    for (group, row, flow) in captured.iter().take(SHOWN) {
        let what = format!("{}, {}:", group.title(), row.label(group.is_plain()));
        section = section.with(Inline::new().text(what));
        let windows = flow.windows.iter().map(|line| Inline::new().text(line));
        section = section.with(Block::List(windows.collect()));
        section = section.with(flow.table());
    }
    let code = Code {
        language: "sh".to_owned(),
        caption: "Every frame of every captured load, from the folder of the results".to_owned(),
        text: "for file in captures/*.pcapng; do wiretax sequence \"$file\" --all; done".to_owned(),
    };
    Some(section.with(code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_called_by_what_was_loaded() {
        let mut sample = crate::summary::tests::sample("h2", "first", 0, 100.0);
        let one = file_name(&sample);
        assert!(one.contains("h2-first-") && one.ends_with(".pcapng"), "{one}");
        sample.point.insert("windows".to_owned(), "google".to_owned());
        assert_ne!(file_name(&sample), one);
        sample.point.insert("page".to_owned(), "../a b".to_owned());
        assert!(file_name(&sample).starts_with("..-a-b-"), "{}", file_name(&sample));
    }

    #[test]
    fn a_chart_comes_back_from_its_sample() {
        let flow = Flow {
            title: "Connection 1".to_owned(),
            windows: vec!["client announces 10 MiB".to_owned()],
            lines: vec![("0.10".to_owned(), "client".to_owned(), "SETTINGS".to_owned())],
            left_out: 7,
        };
        let mut sample = crate::summary::tests::sample("h2", "first", 0, 100.0);
        assert_eq!(Flow::of_sample(&sample), None);
        sample.labels.insert(CHART.to_owned(), serde_json::to_string(&flow).unwrap());
        assert_eq!(Flow::of_sample(&sample), Some(flow.clone()));
        let table = flow.table();
        assert!(table.rows.len() == 1 && table.caption.contains("7 lines"));
        let summary = crate::summary::Summary::of(&[sample]);
        let section = section(summary.groups.iter()).unwrap();
        assert_eq!(section.blocks.len(), 5);
    }
}
