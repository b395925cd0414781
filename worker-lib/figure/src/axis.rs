//! Axes, and the grid between them.

use std::cmp::Ordering;
use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, ValueFormatter};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use crate::Paint;
use crate::page::{Page, label_style, short};

/// Differences and powers of what lies beyond would overflow; only a run that diverges gets there.
const GREATEST: f64 = 1e100;

/// An axis of a chart. It is as long as what is drawn needs.
#[derive(Clone, Debug)]
pub struct Axis {
    /// Equal factors are equally far apart. Zero and what is below is left out.
    pub is_logarithmic: bool,
    /// What stands beside a tick.
    pub label: fn(f64) -> String,
    /// Where ticks are, all of which it reaches; none: at round numbers.
    pub ticks: Vec<f64>,
    /// What stands beside those ticks, in their order, in place of labels; none: labels.
    pub names: Vec<String>,
    /// Values that it reaches whatever is drawn.
    pub includes: Vec<f64>,
}

impl Axis {
    /// With round numbers such as `500` or `1.5 k`.
    pub fn linear() -> Self {
        Self {
            is_logarithmic: false,
            label: short,
            ticks: Vec::new(),
            names: Vec::new(),
            includes: Vec::new(),
        }
    }

    /// Equally far apart, with names: for what has no numbers.
    pub fn named(names: Vec<String>) -> Self {
        Self { ticks: (0..names.len()).map(|at| at as f64).collect(), names, ..Self::linear() }
    }

    /// With round numbers, and equal factors equally far apart.
    pub fn logarithmic() -> Self {
        Self { is_logarithmic: true, ..Self::linear() }
    }

    /// Whether the value has a place on it.
    pub(crate) fn has(&self, value: f64) -> bool {
        value.abs() <= GREATEST && (!self.is_logarithmic || value > 1.0 / GREATEST)
    }

    /// Makes it reach all values; `margin` is the room at both ends, in parts of its length.
    pub(crate) fn fit(&self, values: impl Iterator<Item = f64>, margin: f64, most_ticks: usize) -> Scale {
        let values = values.chain(self.includes.iter().chain(&self.ticks).copied());
        let values = values.filter(|value| self.has(*value));
        let range = values.fold(f64::INFINITY..f64::NEG_INFINITY, |Range { start, end }, value| {
            start.min(value)..end.max(value)
        });
        let range = with_length(range, self.is_logarithmic);
        let (first, last) = (place(range.start, self.is_logarithmic), place(range.end, self.is_logarithmic));
        let room = margin * (last - first);
        let mut scale = Scale {
            is_logarithmic: self.is_logarithmic,
            places: first - room..last + room,
            ticks: self.ticks.clone(),
            names: self.names.clone(),
            label: self.label,
        };
        if scale.ticks.is_empty() {
            scale.ticks = round_numbers(&scale.range(), self.is_logarithmic, most_ticks);
        }
        scale
    }
}

/// A single value lies in the middle.
fn with_length(range: Range<f64>, is_logarithmic: bool) -> Range<f64> {
    let Range { start, end } = range;
    match (start.total_cmp(&end), is_logarithmic) {
        (Ordering::Less, _) => range,
        (Ordering::Equal, true) => 0.5 * start..2.0 * start,
        (Ordering::Equal, false) => start - 0.5 * start.abs().max(1.0)..start + 0.5 * start.abs().max(1.0),
        (Ordering::Greater, true) => 1.0..10.0,
        (Ordering::Greater, false) => 0.0..1.0,
    }
}

/// A place on a linear scale.
fn place(value: f64, is_logarithmic: bool) -> f64 {
    if is_logarithmic { value.max(f64::MIN_POSITIVE).ln() } else { value }
}

fn round_numbers(range: &Range<f64>, is_logarithmic: bool, most: usize) -> Vec<f64> {
    let powers = if is_logarithmic { powers(range) } else { Vec::new() };
    if powers.len() > 1 {
        return powers;
    }
    let numbers = RangedCoordf64::from(range.clone()).key_points(most);
    // Sums of steps miss zero by a little.
    let least = 1e-9 * (range.end - range.start);
    numbers.into_iter().map(|number| if number.abs() < least { 0.0 } else { number }).collect()
}

/// 1, 2, 5, 10 and so on, or 1, 3, 10, 30 or 1, 10 where those would be too many.
fn powers(range: &Range<f64>) -> Vec<f64> {
    let digits: &[f64] = match range.end / range.start {
        ..1e2 => &[1.0, 2.0, 5.0],
        ..1e8 => &[1.0, 3.0],
        _ => &[1.0],
    };
    let powers = (range.start.log10().floor() as i32)..=(range.end.log10().ceil() as i32);
    let steps = powers.flat_map(|power| digits.iter().map(move |digit| digit * 10.0_f64.powi(power)));
    steps.filter(|step| range.contains(step)).collect()
}

/// An axis that knows what it reaches, as plotters wants it.
pub(crate) struct Scale {
    is_logarithmic: bool,
    /// From the first to the last place on a linear scale.
    places: Range<f64>,
    ticks: Vec<f64>,
    names: Vec<String>,
    label: fn(f64) -> String,
}

impl Scale {
    /// For what has no numbers.
    pub(crate) fn without_ticks(range: Range<f64>) -> Self {
        Self { is_logarithmic: false, places: range, ticks: Vec::new(), names: Vec::new(), label: short }
    }
}

impl Ranged for Scale {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    /// What lies outside is at the edge, such as the end of a whisker that a logarithmic axis does not have.
    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let place = place(*value, self.is_logarithmic).clamp(self.places.start, self.places.end);
        RangedCoordf64::from(self.places.clone()).map(&place, limit)
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        // There are no lighter lines between those of the grid.
        if hint.weight().allow_light_points() { Vec::new() } else { self.ticks.clone() }
    }

    fn range(&self) -> Range<f64> {
        let value = |place: f64| if self.is_logarithmic { place.exp() } else { place };
        value(self.places.start)..value(self.places.end)
    }
}

impl ValueFormatter<f64> for Scale {
    fn format_ext(&self, value: &f64) -> String {
        let named = self.ticks.iter().position(|tick| tick == value).and_then(|at| self.names.get(at));
        named.cloned().unwrap_or_else(|| (self.label)(*value))
    }
}

/// Room around a chart, in pixels; that for numbers is part of it.
pub(crate) struct Margins {
    pub(crate) top: u32,
    pub(crate) right: u32,
    pub(crate) bottom: u32,
    pub(crate) left: u32,
}

/// A chart whose axes and grid are drawn; tells where a point of it lies on the page.
pub(crate) type Chart<'page, 'svg> = ChartContext<'page, SVGBackend<'svg>, Cartesian2d<Scale, Scale>>;

/// Draws axes, their numbers, and lines from those across the chart.
pub(crate) fn draw_grid<'page, 'svg>(
    page: &'page Page<'svg>,
    margins: &Margins,
    x: Scale,
    y: Scale,
) -> Chart<'page, 'svg> {
    let mut chart = ChartBuilder::on(page)
        .margin_top(margins.top)
        .margin_right(margins.right)
        .x_label_area_size(margins.bottom)
        .y_label_area_size(margins.left)
        .build_cartesian_2d(x, y)
        .expect("the page has room");
    chart
        .configure_mesh()
        .bold_line_style(Paint::GRID.light)
        .axis_style(Paint::GRID.light)
        .x_label_style(label_style(Paint::INK, HPos::Center))
        .y_label_style(label_style(Paint::INK, HPos::Right))
        .draw()
        .expect("a string takes all");
    chart
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(axis: &Axis, values: &[f64]) -> Vec<f64> {
        axis.fit(values.iter().copied(), 0.0, 6).ticks
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(ticks(&Axis::linear(), &[0.0, 4e5]), [0.0, 1e5, 2e5, 3e5, 4e5]);
        assert!(ticks(&Axis::linear(), &[-0.37, 0.4]).contains(&0.0));
        assert_eq!(ticks(&Axis::logarithmic(), &[0.9, 30.5]), [1.0, 2.0, 5.0, 10.0, 20.0]);
        assert_eq!(ticks(&Axis::logarithmic(), &[0.9, 130.0]), [1.0, 3.0, 10.0, 30.0, 100.0]);
        assert_eq!(ticks(&Axis::logarithmic(), &[0.9, 1.1e9]).len(), 10);
        assert!(ticks(&Axis::logarithmic(), &[3.1, 4.4]).len() > 1, "between 2 and 5");
        assert_eq!(ticks(&Axis { ticks: vec![4.0, 7.0], ..Axis::linear() }, &[5.0]), [4.0, 7.0]);
        let scale = Axis::logarithmic().fit(std::iter::once(100.0), 0.0, 6);
        assert_eq!([50.0, 100.0, 200.0].map(|value| scale.map(&value, (0, 100))), [0, 50, 100]);
    }

    #[test]
    fn ticks_may_have_names() {
        let axis = Axis::named(vec!["none".to_owned(), "daily".to_owned()]);
        let scale = axis.fit([0.5].into_iter(), 0.0, 6);
        assert_eq!(scale.ticks, [0.0, 1.0]);
        assert_eq!([0.0, 1.0, 2.0].map(|tick| scale.format_ext(&tick)), ["none", "daily", "2"]);
    }

    #[test]
    fn a_logarithmic_axis_has_no_zero() {
        let axis = Axis { includes: vec![0.0], ..Axis::logarithmic() };
        let scale = axis.fit([-1.0, 0.0, 2.0, 20.0].into_iter(), 0.0, 6);
        assert_eq!(scale.ticks, [2.0, 5.0, 10.0]);
        assert_eq!([-1.0, 0.0, 2.0, 20.0].map(|value| scale.map(&value, (0, 100))), [0, 0, 0, 100]);
    }

    #[test]
    fn every_axis_has_a_length() {
        let odd = [f64::NAN, f64::INFINITY, f64::MAX, f64::MIN];
        for values in [&[][..], &[0.0], &[5.0, 5.0], &[-1e99], &[1e-99], &[-1e99, 1e99], &odd] {
            for axis in [Axis::linear(), Axis::logarithmic()] {
                let scale = axis.fit(values.iter().copied(), 0.05, 6);
                let range = scale.range();
                assert!(range.start < range.end && !scale.ticks.is_empty(), "{values:?}: {range:?}");
            }
        }
    }
}
