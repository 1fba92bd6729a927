//! The answer on a terminal.

use std::time::Duration;

use report::{Cell, Column, Row, Table};
use stats::Estimate;

use super::answer::{Answer, PolicyRow};
use super::policy::words;

impl Answer {
    /// The answer in a few sentences, and the tables below it.
    #[must_use]
    pub fn text(&self, width: usize) -> String {
        let mut text = self.sentences().join("\n");
        text.push('\n');
        for table in self.tables() {
            text += &format!("\n{}\n", table.to_text(width));
        }
        text
    }

    /// What to set, and how far that can be trusted.
    #[must_use]
    pub fn sentences(&self) -> Vec<String> {
        let span = words(Duration::from_secs_f64(self.span_s.max(0.0)));
        let mut said = vec![match &self.advice {
            Some(advice) => {
                let lifetime = words(Duration::from_secs(advice.lifetime_s));
                format!(
                    "Let tickets live {lifetime} ({} s): at most {:.1} % of the clients that came back \
                     would have resumed, of {:.1} % with {}. Now {:.1} % do.",
                    advice.lifetime_s,
                    advice.hits * 100.0,
                    advice.hits_of_longest * 100.0,
                    words(Duration::from_secs(advice.longest_s)),
                    percent(self.resumed, self.returns)
                )
            }
            None => format!(
                "No lifetime can be named: {} returns in {span} are too few, or none was soon enough.",
                self.returns
            ),
        }];
        if let Some(advice) = &self.advice {
            if advice.may_be_longer {
                said.push(format!(
                    "A longer one may be better still: the records span {span} and cannot tell."
                ));
            }
            if advice.hits_across_names > advice.hits + 0.02 {
                said.push(format!(
                    "Of clients that came back to any server name {:.1} % would have resumed if one \
                     ticket served all names: share the keys, with a certificate for all of them.",
                    advice.hits_across_names * 100.0
                ));
            }
        }
        said.push(format!(
            "{} of {} returns brought a ticket. Hits are the most that there can be: behind one address \
             there may be many clients, and some keep no tickets.",
            self.brought, self.returns
        ));
        if self.one_of > 1 {
            said.push(format!("One client of {} was looked at, a fair draw.", self.one_of));
        }
        if self.late * 100 > self.handshakes {
            said.push(format!(
                "{} of {} handshakes were not in order of time: give the records of one run at a time.",
                self.late, self.handshakes
            ));
        }
        said
    }

    fn tables(&self) -> [Table; 3] {
        let lifetimes = policies("Tickets by lifetime", "Lifetime", &self.lifetimes);
        let rotations = policies("Tickets by rotation of the keys", "Keys", &self.rotations);
        [lifetimes, rotations, self.by_away()]
    }

    fn by_away(&self) -> Table {
        let columns = vec![
            Column::new("Away for at most"),
            Column::new("returns"),
            Column::new("brought a ticket").unit("%"),
            Column::new("resumed").unit("%"),
        ];
        let mut table =
            Table::new("What returning clients did, by how long they were away", columns);
        for row in self.away.iter().filter(|row| row.returns > 0) {
            let up_to = row.up_to_s.map(|seconds| words(Duration::from_secs(seconds)));
            table.push(Row::new(vec![
                Cell::text(up_to.unwrap_or_else(|| "longer".to_owned())),
                Cell::count(row.returns),
                Cell::number(percent(row.brought, row.returns), 1),
                Cell::number(percent(row.resumed, row.returns), 1),
            ]));
        }
        table
    }
}

fn policies(caption: &str, what: &str, rows: &[PolicyRow]) -> Table {
    let columns = vec![
        Column::new(what),
        Column::new("resumed at most").unit("%"),
        Column::new("of clients with tickets").unit("%"),
        Column::new("of all handshakes").unit("%"),
        Column::new("a hit saves, TLS 1.2").unit("ms"),
        Column::new("with early data, TLS 1.3").unit("ms"),
    ];
    let caption = format!("{caption}: shares of returns with intervals of 95 %");
    let mut table = Table::new(caption, columns);
    for row in rows {
        let number = |ms: Option<f64>| ms.map_or(Cell::Empty, |ms| Cell::number(ms, 1));
        let name = Cell::text(row.policy.to_string());
        table.push(Row::new(if row.told {
            vec![
                name,
                estimate(row.hits),
                row.hits_of_known.map_or(Cell::Empty, estimate),
                Cell::number(row.of_all * 100.0, 1),
                number(row.saves_tls12_ms),
                number(row.saves_tls13_ms),
            ]
        } else {
            vec![name, Cell::text("longer than the records")]
        }));
    }
    table
}

fn estimate(share: Estimate) -> Cell {
    Cell::estimate(share.value * 100.0, share.low * 100.0, share.high * 100.0, 1)
}

fn percent(count: u64, of: u64) -> f64 {
    if of == 0 { 0.0 } else { count as f64 * 100.0 / of as f64 }
}
