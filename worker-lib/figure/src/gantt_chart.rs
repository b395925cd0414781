//! Gantt charts, which show rows of coloured bars over time.

use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use crate::axis::{Margins, Scale, draw_grid, draw_x_title};
use crate::page::{LABEL_PX, MARGIN_PX, Page, WIDTH_PX, draw_box, draw_path, label_style, page, write};
use crate::{Axis, Paint};

/// Height of a row, in pixels. If a chart has more than `MANY_ROWS` rows, the height of its rows is `NARROW_ROW_PX`
/// instead.
const ROW_PX: i32 = 18;
const NARROW_ROW_PX: i32 = 8;
const MANY_ROWS: usize = 40;
/// Margins of the chart. Row names are on the left, and series names on the right. The left margin is wider if row
/// names are long.
const MARGINS: Margins = Margins { top: 62, right: 116, bottom: 50, left: 84 };
/// Estimated width of a character in a name, in pixels.
const CHARACTER_PX: usize = 7;
/// Gap between the name of a row and its bars, in pixels.
const GAP_PX: i32 = 8;
const TICKS: usize = 7;
/// Difference between the hues of two successive series, as a fraction of the colour wheel. With this difference, no
/// two hues of the first few dozen series are close to each other.
const HUE_STEP: f64 = 0.618_034;
const SQUARE_PX: i32 = 10;
/// Vertical extent of an outage within its row, from 0 at the bottom to 1 at the top.
const OUTAGE_PART: (f64, f64) = (0.0, 0.4);
/// Width of the line at the start of an outage, in pixels. The line is as high as the row, so that short outages are
/// visible.
const MARK_PX: u32 = 2;

/// Bar in a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    /// Start of the bar, as a value on the horizontal axis.
    pub begin: f64,
    /// End of the bar.
    pub end: f64,
    /// Vertical extent of the bar within the row, from 0 at the bottom to 1 at the top.
    pub part: (f64, f64),
    /// Index of the bar's series in the chart's list of series. It determines the bar's colour.
    pub series: usize,
}

/// Row of bars over time, with a name.
#[derive(Clone, Debug)]
pub struct GanttRow {
    /// Name that is written to the left of the row.
    pub name: String,
    /// Bars of the row in any order. Later bars are drawn over earlier ones.
    pub spans: Vec<Span>,
    /// Intervals in which the row was out of service. They are drawn as narrow bars over the bars in `spans`.
    pub outages: Vec<(f64, f64)>,
}

/// Gantt chart: rows of bars over time. The colour of a bar represents its series. For example, each row may represent
/// a processor, and each series a job that occupies processors.
///
/// ```
/// use iswitch_figure::{Axis, GanttChart, GanttRow, Quantity, Span};
///
/// let span = |begin, end, series| Span { begin, end, part: (0.0, 1.0), series };
/// let svg = GanttChart {
///     title: "Processors over time, by job".to_owned(),
///     note: "Bars: the job that occupies the processor.".to_owned(),
///     x: Axis { includes: vec![0.0], ..Axis::linear(Quantity::new("Time", "s")) },
///     outage: Some("broken".to_owned()),
///     series: vec!["job 1".to_owned(), "job 2".to_owned()],
///     rows: vec![GanttRow {
///         name: "cpu 0".to_owned(),
///         spans: vec![span(0.0, 2.5, 0), span(3.0, 4.0, 1)],
///         outages: vec![(2.5, 3.0)],
///     }],
/// }
/// .draw();
/// assert!(svg.contains("job 2"));
/// ```
#[derive(Clone, Debug)]
pub struct GanttChart {
    /// Title of the figure.
    pub title: String,
    /// Explanation below the title, which states what the bars and their heights represent.
    pub note: String,
    /// Horizontal axis.
    pub x: Axis,
    /// Label of outages in the legend, where it is the first entry; `None` if the chart shows no outages.
    pub outage: Option<String>,
    /// Names of the series. The legend on the right lists as many of them as fit.
    pub series: Vec<String>,
    /// Rows from top to bottom.
    pub rows: Vec<GanttRow>,
}

impl GanttChart {
    /// Returns the figure as SVG.
    pub fn draw(&self) -> String {
        let rows = self.rows.len();
        let row_px = if rows > MANY_ROWS { NARROW_ROW_PX } else { ROW_PX };
        let inside = (row_px * rows as i32).max(4 * ROW_PX);
        let longest = self.rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0);
        let left = MARGINS.left.max((MARGIN_PX + GAP_PX) as u32 + (CHARACTER_PX * longest) as u32);
        let margins = Margins { left, ..MARGINS };
        page(&self.title, &self.note, (inside as u32) + MARGINS.top + MARGINS.bottom, |page| {
            let spans = self.rows.iter().flat_map(|row| &row.spans).map(|span| (span.begin, span.end));
            let outages = self.rows.iter().flat_map(|row| &row.outages).copied();
            let drawn = spans.chain(outages).filter(|(begin, end)| self.is_drawn(*begin, *end));
            let ends = drawn.flat_map(|(begin, end)| [begin, end]);
            let x = self.x.fit(ends, 0.0, TICKS);
            let chart = draw_grid(page, &margins, x, Scale::without_ticks(0.0..rows.max(1) as f64));
            draw_x_title(page, &chart, &self.x.title());
            // Omit names that would overlap.
            let named = if row_px > LABEL_PX { 1 } else { (LABEL_PX / row_px) as usize + 1 };
            for (at, row) in self.rows.iter().enumerate() {
                let bottom = (rows - at - 1) as f64;
                self.draw_row(page, row, &|x, part| chart.backend_coord(&(x, bottom + part)));
                if at % named == 0 {
                    let (_, y) = chart.backend_coord(&(0.0, bottom + 0.5));
                    let x = left as i32 - GAP_PX;
                    write(page, &row.name, (x, y), &label_style(Paint::INK, HPos::Right));
                }
            }
            self.draw_legend(page, inside);
        })
    }

    /// Returns whether the horizontal axis can represent an interval.
    fn is_drawn(&self, begin: f64, end: f64) -> bool {
        self.x.has(begin) && self.x.has(end)
    }

    fn draw_row(&self, page: &Page<'_>, row: &GanttRow, at: &dyn Fn(f64, f64) -> (i32, i32)) {
        let inside = |part: f64| 0.08 + 0.84 * part.clamp(0.0, 1.0);
        let spans = row.spans.iter().filter(|span| self.is_drawn(span.begin, span.end));
        for Span { begin, end, part, series } in spans {
            draw_box(page, [at(*begin, inside(part.1)), at(*end, inside(part.0))], colour(*series));
        }
        for (begin, end) in row.outages.iter().filter(|(begin, end)| self.is_drawn(*begin, *end)) {
            let corners = [at(*begin, inside(OUTAGE_PART.1)), at(*end, inside(OUTAGE_PART.0))];
            draw_box(page, corners, Paint::INK.light);
            draw_path(page, [at(*begin, 0.0), at(*begin, 1.0)], Paint::INK, MARK_PX);
        }
    }

    fn draw_legend(&self, page: &Page<'_>, inside: i32) {
        let room = (inside / (LABEL_PX + 4)) as usize;
        let left = WIDTH_PX as i32 - MARGINS.right as i32 + MARGIN_PX;
        let outage = self.outage.iter().map(|name| (name, None));
        let series = self.series.iter().enumerate().map(|(series, name)| (name, Some(series)));
        for (at, (name, series)) in outage.chain(series).enumerate().take(room) {
            let y = MARGINS.top as i32 + (LABEL_PX + 4) * at as i32 + LABEL_PX / 2;
            let (top, bottom) = (y - SQUARE_PX / 2, y + SQUARE_PX / 2);
            if let Some(series) = series {
                draw_box(page, [(left, top), (left + SQUARE_PX, bottom)], colour(series));
            } else {
                draw_box(page, [(left, y + 1), (left + SQUARE_PX, bottom)], Paint::INK.light);
                draw_path(page, [(left, top), (left, bottom)], Paint::INK, MARK_PX);
            }
            write(page, name, (left + SQUARE_PX + 6, y), &label_style(Paint::INK, HPos::Left));
        }
    }
}

/// Returns the colour of a series. The colour has a medium lightness, which contrasts with light and dark pages.
/// Successive series also differ in lightness, because with many series, the hues of neighbours in the legend differ
/// too little.
fn colour(series: usize) -> RGBColor {
    let lightness = [0.41, 0.60, 0.51][series % 3];
    let (r, g, b) =
        HSLColor((0.58 + HUE_STEP * series as f64).fract(), 0.62, lightness).to_backend_color().rgb;
    RGBColor(r, g, b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Quantity;
    use std::collections::HashSet;

    fn chart(rows: Vec<Vec<Span>>) -> GanttChart {
        let rows = rows.into_iter().enumerate();
        let rows =
            rows.map(|(at, spans)| GanttRow { name: format!("port {at}"), spans, outages: Vec::new() });
        GanttChart {
            title: "ports".to_owned(),
            note: "Heights: shares.".to_owned(),
            outage: Some("down".to_owned()),
            x: Axis { includes: vec![0.0], ..Axis::linear(Quantity::new("Time", "s")) },
            series: (0..3).map(|job| format!("job {job}")).collect(),
            rows: rows.collect(),
        }
    }

    fn span(begin: f64, end: f64, part: (f64, f64), series: usize) -> Span {
        Span { begin, end, part, series }
    }

    /// Returns the width and height of all rectangles of a colour, except its square in the legend.
    fn boxes(svg: &str, series: usize) -> Vec<(f64, f64)> {
        let RGBColor(r, g, b) = colour(series);
        let fill = format!("fill=\"#{r:02X}{g:02X}{b:02X}\"");
        let number = |text: &str, name: &str| -> f64 {
            let value = text.split(&format!(" {name}=\"")).nth(1).unwrap().split('"').next().unwrap();
            value.parse().unwrap()
        };
        let rects = svg.split("<rect").filter(|text| text.contains(&fill));
        let mut sizes: Vec<_> = rects.map(|text| (number(text, "width"), number(text, "height"))).collect();
        sizes.pop();
        sizes
    }

    #[test]
    fn bar_lengths_match_spans_and_bar_heights_match_shares() {
        let rows = vec![
            vec![span(0.0, 10.0, (0.0, 1.0), 0), span(10.0, 15.0, (0.0, 0.5), 1)],
            vec![span(0.0, 20.0, (0.5, 1.0), 1)],
        ];
        let svg = chart(rows).draw();
        let [first, second] = [0, 1].map(|series| boxes(&svg, series));
        let (width, height) = first[0];
        let near = |a: f64, b: f64| (a - b).abs() <= 1.5;
        assert!(first.len() == 1 && width > 100.0, "{first:?}");
        assert!(near(second[0].0, width / 2.0) && near(second[0].1, height / 2.0), "{second:?}");
        assert!(near(second[1].0, 2.0 * width) && near(second[1].1, height / 2.0), "{second:?}");
        for text in ["\nports\n", "\nport 0\n", "\nport 1\n", "\njob 0\n", "\njob 2\n", "\n20\n"] {
            assert_eq!(svg.matches(text).count(), 1, "{text} in {svg}");
        }
    }

    #[test]
    fn outages_look_like_their_entry_in_the_legend() {
        let mut chart = chart(vec![vec![span(0.0, 10.0, (0.0, 1.0), 0)], Vec::new()]);
        let lines = |chart: &GanttChart| chart.draw().matches("stroke-width=\"2\"").count();
        assert_eq!(lines(&chart), 1, "the legend");
        chart.rows[1].outages = vec![(5.0, 6.0), (10.0, 10.0), (f64::NAN, 1.0)];
        assert_eq!(lines(&chart), 3);
        // The range of the axis includes the outages.
        chart.rows[0].outages = vec![(30.0, 40.0)];
        let svg = chart.draw();
        assert!(svg.contains("\n40\n") && svg.contains("\nTime (s)\n") && svg.contains("\ndown\n"), "{svg}");
        chart.outage = None;
        assert!(!chart.draw().contains("\ndown\n"));
    }

    #[test]
    fn series_colours_differ() {
        let colours: HashSet<_> = (0..60).map(|series| format!("{:?}", colour(series))).collect();
        assert_eq!(colours.len(), 60);
        assert!((0..60).all(|series| {
            let RGBColor(r, g, b) = colour(series);
            let light = f64::from(r).mul_add(0.3, f64::from(g).mul_add(0.59, f64::from(b) * 0.11));
            (50.0..205.0).contains(&light)
        }));
    }

    #[test]
    fn a_chart_without_drawable_data_is_drawn() {
        let odd = span(f64::NAN, f64::INFINITY, (-1.0, 9.0), usize::MAX / 2);
        for rows in [vec![], vec![vec![]], vec![vec![odd]], vec![Vec::new(); 300]] {
            assert!(chart(rows).draw().contains("</svg>"));
        }
    }
}
