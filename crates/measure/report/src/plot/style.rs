//! How a series looks: colour, marker and dash together, so that no two differ by colour alone.

use plotly::common::{DashType, MarkerSymbol};

use super::Series;

/// Colours in the palette: `--s1` to `--s7` in the style sheet (Okabe and Ito's without yellow,
/// two of them darker on white to reach a contrast of 3:1).
const COLOURS: usize = 7;

/// A marker's shape. Eight shapes and seven colours meet again only after 56 series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Circle,
    Square,
    Diamond,
    TriangleUp,
    X,
    TriangleDown,
    Cross,
    Star,
}

const SHAPES: [Shape; 8] = [
    Shape::Circle,
    Shape::Square,
    Shape::Diamond,
    Shape::TriangleUp,
    Shape::X,
    Shape::TriangleDown,
    Shape::Cross,
    Shape::Star,
];

/// The look of one series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Style {
    /// 1 to [`COLOURS`]; 0 is muted.
    pub slot: usize,
    pub shape: Shape,
    /// Not filled: a published figure.
    pub hollow: bool,
    /// 0 is a solid line.
    pub dash: usize,
}

impl Style {
    /// The look of the series at `index`.
    pub(crate) fn of<T>(index: usize, series: &Series<T>) -> Self {
        let published = series.is_published();
        Self {
            slot: if series.muted { 0 } else { 1 + index % COLOURS },
            shape: SHAPES[index % SHAPES.len()],
            hollow: published,
            dash: if published { 1 } else { 2 * (index / COLOURS).min(2) },
        }
    }

    /// The name of the colour in the style sheet; the script puts the colour in its place.
    pub(crate) fn colour(self) -> String {
        match self.slot {
            0 => "var(--s-muted)".to_owned(),
            slot => format!("var(--s{slot})"),
        }
    }

    /// The name of the same colour, translucent.
    pub(crate) fn band(self) -> String {
        match self.slot {
            0 => "var(--s-muted-band)".to_owned(),
            slot => format!("var(--s{slot}-band)"),
        }
    }

    pub(crate) fn dash_type(self) -> DashType {
        match self.dash {
            0 => DashType::Solid,
            1 => DashType::Dot,
            2 => DashType::Dash,
            _ => DashType::DashDot,
        }
    }

    /// The dash as SVG's `stroke-dasharray`; empty for a solid line.
    pub(crate) fn dash_array(self) -> &'static str {
        match self.dash {
            0 => "",
            1 => "2 3",
            2 => "6 3",
            _ => "6 3 2 3",
        }
    }

    pub(crate) fn line_width(self) -> f64 {
        if self.slot == 0 { 1.25 } else { 2.0 }
    }

    pub(crate) fn symbol(self) -> MarkerSymbol {
        use MarkerSymbol as M;
        match (self.shape, self.hollow) {
            (Shape::Circle, false) => M::Circle,
            (Shape::Circle, true) => M::CircleOpen,
            (Shape::Square, false) => M::Square,
            (Shape::Square, true) => M::SquareOpen,
            (Shape::Diamond, false) => M::Diamond,
            (Shape::Diamond, true) => M::DiamondOpen,
            (Shape::TriangleUp, false) => M::TriangleUp,
            (Shape::TriangleUp, true) => M::TriangleUpOpen,
            (Shape::X, false) => M::X,
            (Shape::X, true) => M::XOpen,
            (Shape::TriangleDown, false) => M::TriangleDown,
            (Shape::TriangleDown, true) => M::TriangleDownOpen,
            (Shape::Cross, false) => M::Cross,
            (Shape::Cross, true) => M::CrossOpen,
            (Shape::Star, false) => M::Star,
            (Shape::Star, true) => M::StarOpen,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn looks_differ_by_more_than_colour() {
        let looks: Vec<Style> = (0..21).map(|n| Style::of(n, &Series::measured("s", ()))).collect();
        let with_colour: BTreeSet<_> =
            looks.iter().map(|s| (s.slot, format!("{:?}", s.shape), s.dash)).collect();
        let without: BTreeSet<_> =
            looks.iter().map(|s| (format!("{:?}", s.shape), s.dash)).collect();
        assert_eq!(with_colour.len(), 21);
        assert_eq!(without.len(), 21);
    }

    #[test]
    fn published_series_are_hollow_and_dotted() {
        let style = Style::of(0, &Series::published("s", "a paper", ()));
        assert!(style.hollow);
        assert_eq!(style.dash_array(), "2 3");
    }
}
