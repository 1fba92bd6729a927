//! A comparison as tables.

use report::{Cell, Column, Row, Status, Table};
use stats::Verdict;

use super::judge::{Changed, Compared, Measure};
use super::side::{Group, Timed};

/// Rows that are shown at most; JSON has all.
const ROWS: usize = 60;

impl Compared {
    /// The table: what changed, then what of all, of each version and class did not.
    #[must_use]
    pub fn table(&self) -> Table {
        let columns = vec![
            Column::new("What"),
            Column::new("handshakes"),
            Column::new("before"),
            Column::new("after"),
            Column::new("change"),
            Column::new("share").unit("%"),
            Column::new("q"),
            Column::new("verdict"),
        ];
        let caption = format!(
            "{} handshakes before, {} after: medians of {} ({}) and shares (%), the change with its \
             interval of 95 %; q is the share of false alarms that the verdict accepts over all rows",
            self.handshakes_before,
            self.handshakes_after,
            self.timed,
            self.timed.unit()
        );
        let mut table = Table::new(caption, columns);
        for changed in self.shown().take(ROWS) {
            table.push(row(changed, self.timed));
        }
        table
    }

    /// What is worth a row.
    fn shown(&self) -> impl Iterator<Item = &Changed> {
        self.changes.iter().filter(|changed| {
            changed.is_worse()
                || changed.is_better()
                || matches!(changed.group, Group::All | Group::Version(_) | Group::Class(_))
        })
    }
}

fn row(changed: &Changed, timed: Timed) -> Row {
    let (factor, decimals) = match (changed.measure, timed) {
        (Measure::Resumption | Measure::Failure, _) => (100.0, 2),
        (Measure::Time, Timed::RoundTrips) => (1.0, 3),
        _ => (1.0, 2),
    };
    let what = match changed.measure {
        Measure::Time => "time",
        Measure::Resumption => "resumed",
        Measure::Failure => "failed",
        Measure::RoundTrip => "round trip",
    };
    let shift = changed.shift.map(|shift| shift * factor);
    let share = changed.relative.map_or(Cell::Empty, |r| Cell::difference(r.value * 100.0, 1));
    let (status, word) = verdict(changed);
    Row::new(vec![
        Cell::text(format!("{what}, {}", changed.group)),
        Cell::text(format!("{}, {}", changed.count_before, changed.count_after)),
        Cell::number(changed.before * factor, decimals),
        Cell::number(changed.after * factor, decimals),
        Cell::estimate(shift.value, shift.low, shift.high, decimals),
        share,
        Cell::number(changed.q_value, 3),
        Cell::Status(status, word.to_owned()),
    ])
}

fn verdict(changed: &Changed) -> (Status, &'static str) {
    match (changed.measure, changed.verdict) {
        (Measure::RoundTrip, Verdict::Slower) => (Status::Neutral, "clients farther away"),
        (Measure::RoundTrip, Verdict::Faster) => (Status::Neutral, "clients nearer"),
        (Measure::Time, Verdict::Slower) => (Status::Bad, "slower"),
        (Measure::Time, Verdict::Faster) => (Status::Good, "faster"),
        (Measure::Resumption, Verdict::Slower) => (Status::Bad, "resumes less"),
        (Measure::Resumption, Verdict::Faster) => (Status::Good, "resumes more"),
        (Measure::Failure, Verdict::Slower) => (Status::Bad, "fails more"),
        (Measure::Failure, Verdict::Faster) => (Status::Good, "fails less"),
        (_, Verdict::NoDifference) => (Status::Neutral, "no difference"),
        _ => (Status::Neutral, "too few to tell"),
    }
}
