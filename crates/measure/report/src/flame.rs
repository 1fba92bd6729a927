//! A flame graph: what was executed, below whom.

use crate::{Cell, Column, Row, Table, number};

/// A flame graph, the root at its top.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Flame {
    /// What it is of.
    pub title: String,
    /// A sentence that says what it shows.
    pub alt: String,
    /// A sentence that says what that means for the reader, made of measured values.
    pub means: String,
    /// What the values count: `instructions`.
    pub unit: String,
    /// What frames are coloured by, in the order of the colours.
    pub kinds: Vec<String>,
    /// The frames: each followed by its children, which are one deeper.
    pub frames: Vec<FlameFrame>,
    /// Whether it is unfolded at first.
    pub open: bool,
}

/// A frame of a flame graph.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FlameFrame {
    /// Callers above it; the root has none.
    pub depth: usize,
    /// What it is called.
    pub label: String,
    /// An index into [`Flame::kinds`]; any other is drawn without colour.
    pub kind: usize,
    /// Its value, those of its children among it; finite.
    pub value: f64,
}

/// A frame where it is drawn: shares of the root's width.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Placed<'a> {
    pub(crate) frame: &'a FlameFrame,
    pub(crate) left: f64,
    pub(crate) width: f64,
}

impl Flame {
    /// The frames that can be drawn, each within its parent. One without a parent is left out.
    pub(crate) fn placed(&self) -> Vec<Placed<'_>> {
        let total = self.frames.first().map_or(0.0, |root| root.value);
        // For each depth where the next child begins and where its parent ends.
        let mut room = vec![(0.0, 1.0)];
        let mut placed = Vec::new();
        for frame in &self.frames {
            let share = frame.value / total;
            let Some(&(left, end)) = room.get(frame.depth) else { continue };
            let width = share.min(end - left);
            if !share.is_finite() || width <= 0.0 {
                continue;
            }
            room.truncate(frame.depth + 1);
            if let Some(own) = room.last_mut() {
                own.0 = left + width;
            }
            room.push((left, left + width));
            placed.push(Placed { frame, left, width });
        }
        placed
    }

    /// What it draws, as a table.
    pub(crate) fn values(&self) -> Table {
        let columns = vec![
            Column::new("Function"),
            Column::new("below the root"),
            Column::new("of what kind"),
            Column::new("with what it calls").unit(self.unit.clone()),
            Column::new("of all").unit("%"),
        ];
        let mut table = Table::new(self.title.clone(), columns);
        for Placed { frame, width, .. } in self.placed() {
            table.push(Row::new(vec![
                Cell::text(frame.label.clone()),
                Cell::count(frame.depth as u64),
                Cell::text(self.kinds.get(frame.kind).cloned().unwrap_or_default()),
                Cell::number(frame.value, 0),
                Cell::number(100.0 * width, 1),
            ]));
        }
        table
    }

    /// What a frame is, in full.
    pub(crate) fn says(&self, placed: Placed<'_>) -> String {
        let Placed { frame, width, .. } = placed;
        let kind = self.kinds.get(frame.kind).map_or(String::new(), |kind| format!(", {kind}"));
        let value = number::typeset(&number::fixed(frame.value, 0));
        format!("{}: {value} {}, {:.1} %{kind}", frame.label, self.unit, 100.0 * width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flame(frames: &[(usize, f64)]) -> Flame {
        let frame = |(at, &(depth, value)): (usize, &(usize, f64))| FlameFrame {
            depth,
            label: format!("f{at}"),
            kind: at,
            value,
        };
        Flame {
            unit: "instructions".to_owned(),
            kinds: vec!["hash".to_owned()],
            frames: frames.iter().enumerate().map(frame).collect(),
            ..Flame::default()
        }
    }

    fn places(flame: &Flame) -> Vec<(&str, f64, f64)> {
        flame.placed().iter().map(|one| (one.frame.label.as_str(), one.left, one.width)).collect()
    }

    #[test]
    fn children_lie_within_their_parent() {
        let flame = flame(&[(0, 8.0), (1, 4.0), (2, 2.0), (2, 1.0), (1, 2.0), (2, 2.0)]);
        let expected = [
            ("f0", 0.0, 1.0),
            ("f1", 0.0, 0.5),
            ("f2", 0.0, 0.25),
            ("f3", 0.25, 0.125),
            ("f4", 0.5, 0.25),
            ("f5", 0.5, 0.25),
        ];
        assert_eq!(places(&flame), expected);
        let table = flame.values();
        assert_eq!(table.rows.len(), 6);
        assert_eq!(flame.says(flame.placed()[0]), "f0: 8 instructions, 100.0 %, hash");
        assert_eq!(flame.says(flame.placed()[1]), "f1: 4 instructions, 50.0 %");
    }

    #[test]
    fn what_has_no_place_is_left_out() {
        let flame = flame(&[(0, 4.0), (1, 3.0), (1, 3.0), (3, 1.0), (1, f64::NAN), (1, -1.0)]);
        assert_eq!(places(&flame), [("f0", 0.0, 1.0), ("f1", 0.0, 0.75), ("f2", 0.75, 0.25)]);
        assert!(super::Flame::default().placed().is_empty());
        assert!(self::flame(&[(0, 0.0), (1, 0.0)]).placed().is_empty());
    }
}
