//! Line charts with two axes.

use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use crate::axis::{Chart, Margins, draw_grid, draw_x_title, draw_y_title};
use crate::page::{LABEL_PX, Page, draw_path, label_style, page, write};
use crate::{Axis, Paint, Reference};

const HEIGHT_PX: u32 = 518;
/// Margins of the chart. The names of lines are on the right.
const MARGINS: Margins = Margins { top: 82, right: 220, bottom: 54, left: 70 };
/// Maximum number of ticks at round numbers on the x axis. It is smaller than that of the y axis, because the labels of
/// the x axis are side by side.
const X_TICKS: usize = 6;
const Y_TICKS: usize = 11;
/// Space below and above the lines, as a fraction of the length of the y axis.
const Y_MARGIN: f64 = 0.05;
/// Space at each end of a logarithmic x axis, as a fraction of its length. It separates marks from the y axis, because
/// a logarithmic axis has no natural origin.
const LOGARITHMIC_X_MARGIN: f64 = 0.02;
/// Space at each end of an x axis with names, as a fraction of its length. It separates the names below the axis from
/// the names at the ends of lines.
const NAMED_X_MARGIN: f64 = 0.07;
const DASH_PX: i32 = 6;
const GAP_PX: i32 = 4;
/// Length of the sample of a line's stroke, in pixels. The sample is drawn to the left of the line's name.
const SAMPLE_PX: i32 = 20;
const BAND_OPACITY: f64 = 0.18;

/// Line of a chart.
#[derive(Clone, Debug)]
pub struct Line {
    /// Name that is written at the end of the line. If several lines have the same name, only the first of them is
    /// labelled.
    pub name: String,
    /// Colour of the line.
    pub paint: Paint,
    /// Width of the line, in pixels.
    pub width_px: u32,
    /// Whether the line is dashed.
    pub is_dashed: bool,
    /// Points that the line connects.
    pub points: Vec<(f64, f64)>,
    /// Smallest and largest value at each x, as `(x, smallest, largest)`. They are drawn as a translucent band behind
    /// all lines.
    pub band: Vec<(f64, f64, f64)>,
    /// Smallest and largest value at each point. If given, each point is drawn with a mark and whiskers; if empty,
    /// points have neither.
    pub spreads: Vec<(f64, f64)>,
}

impl Line {
    /// Returns a solid line of the default width that has no marks.
    pub fn new(name: impl Into<String>, paint: Paint, points: Vec<(f64, f64)>) -> Self {
        Self {
            name: name.into(),
            paint,
            width_px: 2,
            is_dashed: false,
            points,
            band: Vec::new(),
            spreads: Vec::new(),
        }
    }

    /// Returns line number `at`, counted from 0, of a series. The lines of a series take the colours of the palette in
    /// turn. The lines of the first pass through the palette are solid, those of the second pass are dashed, and so on
    /// alternately.
    ///
    /// # Panics
    /// Panics if the palette is empty.
    pub fn of_series(name: impl Into<String>, palette: &[Paint], at: usize, points: Vec<(f64, f64)>) -> Self {
        let is_dashed = at / palette.len() % 2 == 1;
        Self { is_dashed, ..Self::new(name, palette[at % palette.len()], points) }
    }
}

/// Line chart. The name of each line is written at the line's end.
///
/// ```
/// use iswitch_figure::{Axis, Line, LineChart, Paint, Quantity, Reference};
///
/// let svg = LineChart {
///     title: "PPO learns CartPole faster than DQN".to_owned(),
///     note: "One run of each.".to_owned(),
///     x: Axis { includes: vec![0.0], ..Axis::linear(Quantity::plain("Environment steps")) },
///     y: Axis::linear(Quantity::plain("Mean return")),
///     lines: vec![
///         Line::new("PPO", Paint::BLUE, vec![(1e4, 20.0), (2e4, 180.0)]),
///         Line { is_dashed: true, ..Line::new("DQN", Paint::GREEN, vec![(1e4, 9.0), (2e4, 90.0)]) },
///     ],
///     references: vec![Reference { name: "random".to_owned(), paint: Paint::INK, value: 22.0 }],
/// }
/// .draw();
/// assert!(svg.contains("DQN"));
/// ```
#[derive(Clone, Debug)]
pub struct LineChart {
    /// Title of the figure, which states what the figure compares.
    pub title: String,
    /// Explanation below the title, which states what the lines, whiskers and bands represent.
    pub note: String,
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// Lines of the chart. Wide lines are drawn over narrow lines. Among lines of equal width, later lines are drawn
    /// over earlier ones.
    pub lines: Vec<Line>,
    /// Reference values on the vertical axis, drawn below all lines.
    pub references: Vec<Reference>,
}

impl LineChart {
    /// Returns the figure as SVG.
    pub fn draw(&self) -> String {
        page(&self.title, &self.note, HEIGHT_PX, |page| {
            let chart = self.draw_grid(page);
            draw_x_title(page, &chart, &self.x.title());
            draw_y_title(page, &chart, &self.y.title());
            let across = chart.plotting_area().get_pixel_range().0;
            let mut ends = Vec::new();
            for Reference { name, paint, value } in self.references.iter().filter(|it| self.y.has(it.value)) {
                let (_, y) = chart.backend_coord(&(0.0, *value));
                draw_path(page, [(across.start, y), (across.end - 1, y)], *paint, 1);
                ends.push(End { y, name, paint: *paint, width_px: 1, is_dashed: false });
            }
            self.lines.iter().for_each(|line| self.draw_band(page, &chart, line));
            let mut lines: Vec<&Line> = self.lines.iter().collect();
            lines.sort_by_key(|line| line.width_px);
            for line in lines {
                let Some(y) = self.draw_line(page, &chart, line) else { continue };
                if ends.iter().all(|end| *end.name != line.name) {
                    let Line { name, paint, width_px, is_dashed, .. } = line;
                    ends.push(End { y, name, paint: *paint, width_px: *width_px, is_dashed: *is_dashed });
                }
            }
            label_ends(page, across.end, ends);
        })
    }

    fn draw_grid<'page, 'svg>(&self, page: &'page Page<'svg>) -> Chart<'page, 'svg> {
        let points = || self.lines.iter().flat_map(|line| &line.points).filter(|point| self.has(**point));
        let spreads = self.lines.iter().flat_map(|line| &line.spreads);
        let ys = points().map(|(_, y)| *y).chain(spreads.flat_map(|(least, greatest)| [*least, *greatest]));
        let bands = self.lines.iter().flat_map(|line| &line.band).filter(|(x, ..)| self.x.has(*x));
        let ys = ys.chain(bands.flat_map(|(_, least, greatest)| [*least, *greatest]));
        let ys = ys.chain(self.references.iter().map(|reference| reference.value));
        let x_margin = match (self.x.names.is_empty(), self.x.is_logarithmic) {
            (false, _) => NAMED_X_MARGIN,
            (true, true) => LOGARITHMIC_X_MARGIN,
            (true, false) => 0.0,
        };
        let x = self.x.fit(points().map(|(x, _)| *x), x_margin, X_TICKS);
        draw_grid(page, &MARGINS, x, self.y.fit(ys, Y_MARGIN, Y_TICKS))
    }

    fn has(&self, (x, y): (f64, f64)) -> bool {
        self.x.has(x) && self.y.has(y)
    }

    /// Draws the band between the smallest and largest values of a line.
    fn draw_band(&self, page: &Page<'_>, chart: &Chart<'_, '_>, line: &Line) {
        let has =
            |(x, least, greatest): &&(f64, f64, f64)| self.has((*x, *least)) && self.has((*x, *greatest));
        let band: Vec<_> = line.band.iter().filter(has).collect();
        let below = band.iter().map(|(x, least, _)| chart.backend_coord(&(*x, *least)));
        let above = band.iter().rev().map(|(x, _, greatest)| chart.backend_coord(&(*x, *greatest)));
        let outline: Vec<_> = below.chain(above).collect();
        if !outline.is_empty() {
            let colour = line.paint.light.mix(BAND_OPACITY);
            page.draw(&Polygon::new(outline, colour)).expect("writing cannot fail");
        }
    }

    /// Draws a line, and returns the vertical position of its end in pixels. Returns `None` if the line has no points.
    fn draw_line(&self, page: &Page<'_>, chart: &Chart<'_, '_>, line: &Line) -> Option<i32> {
        let Line { paint, width_px, is_dashed, points, spreads, .. } = line;
        let pixels: Vec<_> =
            points.iter().filter(|point| self.has(**point)).map(|point| chart.backend_coord(point)).collect();
        let (_, end) = *pixels.last()?;
        draw_stroke(page, pixels, *paint, *width_px, *is_dashed);
        for ((x, y), (least, greatest)) in points.iter().zip(spreads).filter(|(point, _)| self.has(**point)) {
            let whisker = [least, greatest].map(|end| chart.backend_coord(&(*x, *end)));
            draw_path(page, whisker, *paint, 1);
            let mark = Circle::new(chart.backend_coord(&(*x, *y)), width_px + 1, paint.light.filled());
            page.draw(&mark).expect("writing cannot fail");
        }
        Some(end)
    }
}

/// Draws a solid or dashed line.
fn draw_stroke(page: &Page<'_>, pixels: Vec<(i32, i32)>, paint: Paint, width_px: u32, is_dashed: bool) {
    if is_dashed {
        let style = paint.light.stroke_width(width_px);
        page.draw(&DashedPathElement::new(pixels, DASH_PX, GAP_PX, style)).expect("writing cannot fail");
    } else {
        draw_path(page, pixels, paint, width_px);
    }
}

/// End point of a line. The line's name and a sample of its stroke are written beside it.
struct End<'a> {
    y: i32,
    name: &'a String,
    paint: Paint,
    width_px: u32,
    is_dashed: bool,
}

/// Writes the names of lines beside the ends of the lines, at positions where the names do not overlap.
fn label_ends(page: &Page<'_>, right: i32, mut ends: Vec<End<'_>>) {
    let step = LABEL_PX + 4;
    ends.sort_by_key(|end| end.y);
    let mut free = i32::MIN;
    let count = ends.len();
    for (at, End { y, name, paint, width_px, is_dashed }) in ends.into_iter().enumerate() {
        // Leave room for the names below on the page.
        let lowest = HEIGHT_PX as i32 - LABEL_PX - step * (count - 1 - at) as i32;
        let y = y.max(free).min(lowest);
        free = y + step;
        let left = right + 10;
        draw_stroke(page, vec![(left, y), (left + SAMPLE_PX, y)], paint, width_px, is_dashed);
        write(page, name, (left + SAMPLE_PX + 6, y), &label_style(paint, HPos::Left));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Quantity;

    fn quantity() -> Quantity {
        Quantity::plain("quantity")
    }

    fn chart(lines: Vec<Line>) -> LineChart {
        let learnt = Reference { name: "learnt".to_owned(), paint: Paint::INK, value: 475.0 };
        let x = Axis { includes: vec![0.0], ..Axis::linear(quantity()) };
        LineChart {
            title: "return".to_owned(),
            note: String::new(),
            x,
            y: Axis::linear(quantity()),
            lines,
            references: vec![learnt],
        }
    }

    fn line(name: &str) -> Line {
        Line::new(name, Paint::BLUE, vec![(1e5, 120.0), (4e5, 490.0)])
    }

    #[test]
    fn line_names_appear_once_and_extremes_are_labelled() {
        let svg = chart(vec![line("switch"), line("switch"), line("a < b")]).draw();
        for text in
            ["\nreturn\n", "\nswitch\n", "\na &lt; b\n", "\nlearnt\n", "\n0\n", "\n400 k\n", "\n450\n"]
        {
            assert_eq!(svg.matches(text).count(), 1, "{text} in {svg}");
        }
    }

    #[test]
    fn a_chart_without_drawable_data_is_drawn() {
        let nowhere = Line::new("nowhere", Paint::RED, vec![(f64::NAN, 1.0), (1.0, f64::INFINITY)]);
        for axis in [Axis::linear(quantity()), Axis::logarithmic(quantity())] {
            let nothing = LineChart { x: axis.clone(), y: axis, ..chart(vec![nowhere.clone(), line("")]) };
            for lines in [Vec::new(), vec![Line::new("not", Paint::RED, Vec::new())], nothing.lines.clone()] {
                let svg = LineChart { lines, ..nothing.clone() }.draw();
                assert!(svg.contains("learnt") && !svg.contains("\nno"), "{svg}");
                assert!(LineChart { references: Vec::new(), ..nothing.clone() }.draw().contains("</svg>"));
            }
        }
    }

    #[test]
    fn points_at_zero_are_omitted_on_a_logarithmic_axis() {
        let mut line = Line::new("loss", Paint::RED, vec![(1.0, 0.0), (2.0, 5.0), (3.0, 50.0)]);
        line.spreads = vec![(0.0, 0.0), (0.0, 6.0), (40.0, 60.0)];
        let logarithmic = LineChart { y: Axis::logarithmic(quantity()), ..chart(vec![line]) };
        let svg = logarithmic.draw();
        assert_eq!(svg.matches("<circle").count(), 2, "{svg}");
        assert!(!chart_numbers(&svg).contains(&"0"), "{svg}");
    }

    /// Returns the numbers beside the vertical axis.
    fn chart_numbers(svg: &str) -> Vec<&str> {
        let texts = svg.split("text-anchor=\"end\"").skip(1);
        texts.filter_map(|text| text.lines().nth(1)).collect()
    }

    #[test]
    fn each_dash_is_a_separate_path() {
        let paths = |is_dashed: bool| {
            let svg = chart(vec![Line { is_dashed, ..line("switch") }]).draw();
            svg.matches("stroke=\"#0072B2\" stroke-width").count()
        };
        assert_eq!(paths(false), 2, "the line and its sample");
        assert!(paths(true) > 20);
    }

    #[test]
    fn line_names_stay_on_the_page() {
        let lines =
            (0..9).map(|at| Line::new(format!("low {at}"), Paint::BLUE, vec![(0.0, 9.0), (1.0, 0.0)]));
        let svg = chart(lines.collect()).draw();
        let heights = svg.split("<text ").filter(|text| text.contains("low "));
        let heights: Vec<i32> = heights
            .map(|text| text.split("y=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap())
            .collect();
        assert!(heights.is_sorted_by(|a, b| a + LABEL_PX < *b), "{heights:?}");
        assert!(heights.len() == 9 && heights[8] < HEIGHT_PX as i32, "{heights:?}");
    }
}
