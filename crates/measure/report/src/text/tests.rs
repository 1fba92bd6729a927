use super::*;
use crate::{KeyFigure, Row, Section, Status};
use proptest::prelude::*;

/// A table of invented numbers.
fn table() -> Table {
    let mut table = Table::new(
        "Invented values",
        vec![
            Column::new("Mode"),
            Column::new("Median").unit("ms"),
            Column::new("Saved").unit("%"),
            Column::new("Verdict"),
        ],
    );
    table.push(Row::new(vec![
        Cell::text("alpha, the long one"),
        Cell::estimate(10.0, 9.5, 10.5, 1),
        Cell::Empty,
        Cell::Status(Status::Good, "as specified".into()),
    ]));
    table.push(Row::new(vec![
        Cell::text("β"),
        Cell::estimate(7.25, 7.0, 112.0, 1),
        Cell::difference(27.0, 0),
        Cell::Status(Status::Bad, "one too many".into()),
    ]));
    table.push(Row::new(vec![Cell::text("日本"), Cell::Empty]));
    table
}

#[test]
fn a_wide_terminal_shows_everything() {
    // The row without a value keeps its dash under the numbers, not under the intervals.
    let expected = "\
Invented values
Mode                            Median  Saved  Verdict
                                  (ms)    (%)
───────────────────  ─────────────────  ─────  ──────────────
alpha, the long one  10.0 [9.5,  10.5]      -  ✓ as specified
β                     7.2 [7.0, 112.0]    +27  ✗ one too many
日本                    -                   -  -
";
    assert_eq!(table().to_text(80), expected);
}

#[test]
fn a_narrow_terminal_loses_the_least_useful_first() {
    let expected = "\
Invented values
Mode                 Median  Saved  Verdict
                       (ms)    (%)
───────────────────  ──────  ─────  ────────
alpha, the long one    10.0      -  ✓ as sp…
β                       7.2    +27  ✗ one t…
日本                      -      -  -
(too narrow for: intervals)
";
    assert_eq!(table().to_text(44), expected);
    // Rows are told apart by their names: these are cut last.
    assert!(table().to_text(43).contains("alpha, the long one    10.0      -\n"));
    let narrow = table().to_text(20);
    assert!(narrow.ends_with("(too narrow for:\nintervals, Saved,\nVerdict)\n"), "{narrow}");
}

#[test]
fn hostile_text_does_not_reach_the_terminal() {
    let mut table = Table::new("a\u{1b}]0;x\u{7}", vec![Column::new("\u{1b}[2J")]);
    table.push(Row::new(vec![Cell::text("a\r\nb\u{9b}31m\u{202e}")]));
    let text = table.to_text(40);
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
    assert_eq!(text.lines().count(), 4, "a cell stays on its line: {text:?}");
}

#[test]
fn a_report_prints_its_answer_and_its_tables() {
    let mut report = Report::new("Invented report");
    report.question = "What does it cost?".into();
    report.answer = vec![Inline::marked("Switch `it` **on**.")];
    report.key_figures = vec![KeyFigure {
        value: "3".into(),
        unit: "ms".into(),
        label: "saved".into(),
        detail: "invented".into(),
        means: "Users wait 3 ms less.".into(),
    }];
    let note = Note::info("It is old.");
    report.cautions = vec![note.answer_stands("times did not change.")];
    report.sections = vec![
        Section::new("one", "First")
            .with(Inline::from("Words that are longer than a line."))
            .with(Note::warning("Something is off.", "Do this.")),
    ];
    let expected = "\
Invented report
===============
What does it cost?

Switch it on.
* 3 ms saved
  (invented)
  Users wait 3 ms
  less.
note: It is old.
the answer stands:
times did not
change.

First
-----
Words that are
longer than a line.

warning: Something
         is off.
hint: Do this.
";
    assert_eq!(report.to_text(20), expected);
}

#[test]
fn names_that_a_cut_makes_alike_stand_whole_above_their_rows() {
    let name = |rtt: u32| format!("a=1 b=2 c=3 d=4 e=5 f=6 g=7 h=8 i=9 rtt={rtt}ms");
    let mut table = Table::new("", vec![Column::new("point"), Column::new("delay")]);
    for (rtt, delay) in [(10, 1.0), (20, 2.0)] {
        table.push(Row::new(vec![Cell::Text(name(rtt)), Cell::number(delay, 1)]));
    }
    table.push(Row::new(vec![Cell::text("short"), Cell::number(3.0, 1)]));
    let narrow = table.to_text(30);
    for rtt in [10, 20] {
        let words = name(rtt);
        let last = words.split(' ').next_back().unwrap_or_default();
        assert!(narrow.contains(last), "{narrow}");
    }
    assert_eq!(narrow.matches("short").count(), 1, "{narrow}");
    assert!(!table.to_text(80).contains("\n\n"));
    assert_eq!(table.to_text(80).lines().count(), 5);
}

fn cell() -> impl Strategy<Value = Cell> {
    prop_oneof![
        Just(Cell::Empty),
        any::<String>().prop_map(Cell::Text),
        any::<f64>().prop_map(|v| Cell::number(v % 1e6, 1)),
        (0.0..1e6, 0.0..1e6).prop_map(|(low, high)| Cell::estimate(low, low, high, 2)),
        any::<String>().prop_map(|text| Cell::Status(Status::Neutral, text)),
    ]
}

proptest! {
    #[test]
    fn no_line_of_text_cells_is_wider_than_asked(
        rows in prop::collection::vec(prop::collection::vec(any::<String>(), 0..5), 0..6),
        width in 20_usize..100,
    ) {
        let mut table = Table::new("Caption", (0..3).map(|n| Column::new(format!("c{n}"))).collect());
        for row in rows {
            table.push(Row::new(row.into_iter().map(Cell::Text).collect()));
        }
        for line in table.to_text(width).lines() {
            prop_assert!(line.width() <= width, "{:?} is {} wide", line, line.width());
        }
    }

    #[test]
    fn any_table_prints(
        rows in prop::collection::vec(prop::collection::vec(cell(), 0..5), 0..6),
        width in 0_usize..100,
    ) {
        let mut table = Table::new("Caption", (0..4).map(|n| Column::new(format!("c{n}"))).collect());
        for cells in rows {
            table.push(Row::new(cells));
        }
        let text = table.to_text(width);
        prop_assert!(text.lines().count() >= table.rows.len() + 3);
        prop_assert_eq!(&text, &table.to_text(width));
    }
}
