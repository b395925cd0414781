//! Axes of charts, and their grids.

use std::cmp::Ordering;
use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, ValueFormatter};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use crate::page::{MARGIN_PX, Page, label_style, short, write};
use crate::{Paint, Quantity};

/// Largest absolute value that is drawn. Larger values, which only a diverging run produces, would cause differences
/// and powers to overflow.
const GREATEST: f64 = 1e100;

/// Axis of a chart. The range of the axis is determined by the values that are drawn.
#[derive(Clone, Debug)]
pub struct Axis {
    /// Name and unit of the quantity that the axis shows. The title of the axis consists of both.
    pub quantity: Quantity,
    /// Whether the axis is logarithmic. Zero and negative values are not drawn on a logarithmic axis.
    pub is_logarithmic: bool,
    /// Function that formats the label of a tick.
    pub label: fn(f64) -> String,
    /// Positions of the ticks, all of which lie within the range of the axis. If the vector is empty, the ticks are at
    /// round numbers.
    pub ticks: Vec<f64>,
    /// Names of `ticks`, in the same order. They replace the tick labels. If the vector is empty, the tick labels are
    /// used.
    pub names: Vec<String>,
    /// Values that the range must include, even if all drawn values are far from them.
    pub includes: Vec<f64>,
}

impl Axis {
    /// Returns a linear axis with ticks at round numbers and labels such as `500` or `1.5 k`.
    pub fn linear(quantity: Quantity) -> Self {
        Self {
            quantity,
            is_logarithmic: false,
            label: short,
            ticks: Vec::new(),
            names: Vec::new(),
            includes: Vec::new(),
        }
    }

    /// Returns an axis for categories. Its ticks are equidistant and have the given names.
    pub fn named(quantity: Quantity, names: Vec<String>) -> Self {
        Self { ticks: (0..names.len()).map(|at| at as f64).collect(), names, ..Self::linear(quantity) }
    }

    /// Returns a logarithmic axis with ticks at round numbers.
    pub fn logarithmic(quantity: Quantity) -> Self {
        Self { is_logarithmic: true, ..Self::linear(quantity) }
    }

    pub(crate) fn title(&self) -> String {
        self.quantity.title(self.is_logarithmic)
    }

    /// Returns whether the axis can represent a value.
    pub(crate) fn has(&self, value: f64) -> bool {
        value.abs() <= GREATEST && (!self.is_logarithmic || value > 1.0 / GREATEST)
    }

    /// Returns a scale that includes all values. `margin` is the extra space at each end, as a fraction of the axis
    /// length.
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

/// Extends a range of length zero to a positive length, so that a single value is in the middle of the range.
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

/// Returns the position of a value: its logarithm if the axis is logarithmic, and the value itself otherwise.
fn place(value: f64, is_logarithmic: bool) -> f64 {
    if is_logarithmic { value.max(f64::MIN_POSITIVE).ln() } else { value }
}

fn round_numbers(range: &Range<f64>, is_logarithmic: bool, most: usize) -> Vec<f64> {
    let powers = if is_logarithmic { powers(range) } else { Vec::new() };
    if powers.len() > 1 {
        return powers;
    }
    let numbers = RangedCoordf64::from(range.clone()).key_points(most);
    // Because of rounding, a tick at zero may deviate slightly from zero.
    let least = 1e-9 * (range.end - range.start);
    numbers.into_iter().map(|number| if number.abs() < least { 0.0 } else { number }).collect()
}

/// Returns ticks at 1, 2, 5, 10 and so on. If that would be too many, returns ticks at 1, 3, 10, 30 and so on, or
/// only at powers of ten.
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

/// Axis with a known range, in the form that the plotters crate needs.
pub(crate) struct Scale {
    is_logarithmic: bool,
    /// Range of the axis, as positions that [`place`] returns rather than as values.
    places: Range<f64>,
    ticks: Vec<f64>,
    names: Vec<String>,
    label: fn(f64) -> String,
}

impl Scale {
    /// Returns a scale without ticks, for an axis without numbers.
    pub(crate) fn without_ticks(range: Range<f64>) -> Self {
        Self { is_logarithmic: false, places: range, ticks: Vec::new(), names: Vec::new(), label: short }
    }
}

impl Ranged for Scale {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    /// Maps a value to a pixel. A value outside the range is mapped to the edge of the range. For example, this applies
    /// to the end of a whisker if a logarithmic axis cannot represent it.
    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let place = place(*value, self.is_logarithmic).clamp(self.places.start, self.places.end);
        RangedCoordf64::from(self.places.clone()).map(&place, limit)
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        // The grid has no minor lines.
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

/// Margins around a chart, in pixels, including the space for labels.
pub(crate) struct Margins {
    pub(crate) top: u32,
    pub(crate) right: u32,
    pub(crate) bottom: u32,
    pub(crate) left: u32,
}

/// Chart whose axes and grid have been drawn. It converts values to positions on the page.
pub(crate) type Chart<'page, 'svg> = ChartContext<'page, SVGBackend<'svg>, Cartesian2d<Scale, Scale>>;

/// Draws the axes, their labels and the grid lines.
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
        .expect("the page is large enough");
    chart
        .configure_mesh()
        .bold_line_style(Paint::GRID.light)
        .axis_style(Paint::GRID.light)
        .x_label_style(label_style(Paint::INK, HPos::Center))
        .y_label_style(label_style(Paint::INK, HPos::Right))
        .draw()
        .expect("writing cannot fail");
    chart
}

/// Writes the title of the horizontal axis below its tick labels.
pub(crate) fn draw_x_title(page: &Page<'_>, chart: &Chart<'_, '_>, title: &str) {
    let (across, down) = chart.plotting_area().get_pixel_range();
    let at = (across.start.midpoint(across.end), down.end + 38);
    write(page, title, at, &label_style(Paint::INK, HPos::Center));
}

/// Writes the title of the vertical axis above the axis, so that it can be read without turning the page.
pub(crate) fn draw_y_title(page: &Page<'_>, chart: &Chart<'_, '_>, title: &str) {
    let (_, down) = chart.plotting_area().get_pixel_range();
    write(page, title, (MARGIN_PX, down.start - 16), &label_style(Paint::INK, HPos::Left));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(axis: &Axis, values: &[f64]) -> Vec<f64> {
        axis.fit(values.iter().copied(), 0.0, 6).ticks
    }

    #[test]
    fn axis_ticks_are_round_numbers() {
        assert_eq!(ticks(&Axis::linear(Quantity::plain("x")), &[0.0, 4e5]), [0.0, 1e5, 2e5, 3e5, 4e5]);
        assert!(ticks(&Axis::linear(Quantity::plain("x")), &[-0.37, 0.4]).contains(&0.0));
        assert_eq!(
            ticks(&Axis::logarithmic(Quantity::plain("x")), &[0.9, 30.5]),
            [1.0, 2.0, 5.0, 10.0, 20.0]
        );
        assert_eq!(
            ticks(&Axis::logarithmic(Quantity::plain("x")), &[0.9, 130.0]),
            [1.0, 3.0, 10.0, 30.0, 100.0]
        );
        assert_eq!(ticks(&Axis::logarithmic(Quantity::plain("x")), &[0.9, 1.1e9]).len(), 10);
        assert!(ticks(&Axis::logarithmic(Quantity::plain("x")), &[3.1, 4.4]).len() > 1, "between 2 and 5");
        assert_eq!(
            ticks(&Axis { ticks: vec![4.0, 7.0], ..Axis::linear(Quantity::plain("x")) }, &[5.0]),
            [4.0, 7.0]
        );
        let scale = Axis::logarithmic(Quantity::plain("x")).fit(std::iter::once(100.0), 0.0, 6);
        assert_eq!([50.0, 100.0, 200.0].map(|value| scale.map(&value, (0, 100))), [0, 50, 100]);
    }

    #[test]
    fn axis_ticks_may_have_names() {
        let axis = Axis::named(Quantity::plain("x"), vec!["none".to_owned(), "daily".to_owned()]);
        let scale = axis.fit([0.5].into_iter(), 0.0, 6);
        assert_eq!(scale.ticks, [0.0, 1.0]);
        assert_eq!([0.0, 1.0, 2.0].map(|tick| scale.format_ext(&tick)), ["none", "daily", "2"]);
    }

    #[test]
    fn a_logarithmic_axis_excludes_zero() {
        let axis = Axis { includes: vec![0.0], ..Axis::logarithmic(Quantity::plain("x")) };
        let scale = axis.fit([-1.0, 0.0, 2.0, 20.0].into_iter(), 0.0, 6);
        assert_eq!(scale.ticks, [2.0, 5.0, 10.0]);
        assert_eq!([-1.0, 0.0, 2.0, 20.0].map(|value| scale.map(&value, (0, 100))), [0, 0, 0, 100]);
    }

    #[test]
    fn every_axis_has_a_positive_length() {
        let odd = [f64::NAN, f64::INFINITY, f64::MAX, f64::MIN];
        for values in [&[][..], &[0.0], &[5.0, 5.0], &[-1e99], &[1e-99], &[-1e99, 1e99], &odd] {
            let x = || Quantity::plain("x");
            for axis in [Axis::linear(x()), Axis::logarithmic(x())] {
                let scale = axis.fit(values.iter().copied(), 0.05, 6);
                let range = scale.range();
                assert!(range.start < range.end && !scale.ticks.is_empty(), "{values:?}: {range:?}");
            }
        }
    }
}
