//! Bar charts whose bars have names.

use plotters::style::text_anchor::HPos;

use crate::axis::{Margins, Scale, draw_grid, draw_x_title};
use crate::page::{Page, draw_box, draw_path, label_style, page, write};
use crate::{Axis, Paint, Quantity, Reference};

const ROW_PX: u32 = 26;
/// Margins of the chart. The names of bars are on the left, the formatted lengths on the right, and the labels of
/// reference lengths above the bars.
const MARGINS: Margins = Margins { top: 74, right: 84, bottom: 50, left: 236 };
const MOST_TICKS: usize = 7;
/// Maximum ratio of a bar's length to the length of the shortest bar. Longer bars are cut off, because otherwise the
/// other bars would be too short to be compared.
const LONGEST: f64 = 8.0;

/// Bar of a bar chart.
#[derive(Clone, Debug)]
pub struct Bar {
    /// Name that is written beside the bar.
    pub name: String,
    /// End of the first of the bar's two parts; zero if the bar has only one part.
    pub first: f64,
    /// End of the bar.
    pub end: f64,
    /// Minimum and maximum position of the bar's end over several measurements, shown as whiskers.
    pub spread: (f64, f64),
    /// Whether the bar is highlighted.
    pub is_marked: bool,
}

/// Bar chart whose whiskers show the minimum and maximum position of each bar's end.
#[derive(Clone, Debug)]
pub struct BarChart {
    /// Title of the figure.
    pub title: String,
    /// Explanation below the title, which states what the bars and whiskers represent.
    pub note: String,
    /// Quantity that the bars show. The tick labels include the unit.
    pub quantity: Quantity,
    /// Function that formats the label of a tick.
    pub tick: fn(f64) -> String,
    /// Function that formats the length of a bar. The result is written beside the bar.
    pub length: fn(f64) -> String,
    /// Bars from top to bottom.
    pub bars: Vec<Bar>,
    /// Reference lengths. Each is marked by a line across all bars.
    pub references: Vec<Reference>,
}

impl BarChart {
    /// Returns the figure as SVG.
    pub fn draw(&self) -> String {
        let rows = self.bars.len();
        let end_of_scale = self.end_of_scale();
        page(&self.title, &self.note, 130 + ROW_PX * rows as u32, |page| {
            let x = Axis {
                label: self.tick,
                includes: vec![0.0, end_of_scale],
                ..Axis::linear(self.quantity.clone())
            };
            let title = x.title();
            let x = x.fit(std::iter::empty(), 0.0, MOST_TICKS);
            let chart = draw_grid(page, &MARGINS, x, Scale::without_ticks(0.0..rows.max(1) as f64));
            draw_x_title(page, &chart, &title);
            for (row, bar) in self.bars.iter().enumerate() {
                let middle = rows as f64 - row as f64 - 0.5;
                let at = |length: f64, up: f64| chart.backend_coord(&(length, middle + up));
                self.draw_bar(page, bar, bar.end > end_of_scale, &at);
            }
            for Reference { name, paint, value } in &self.references {
                let (x, top) = chart.backend_coord(&(*value, rows as f64));
                let (_, bottom) = chart.backend_coord(&(*value, 0.0));
                draw_path(page, [(x, top - 4), (x, bottom)], *paint, 2);
                write(page, name, (x, top - 12), &label_style(*paint, HPos::Center));
            }
        })
    }

    fn end_of_scale(&self) -> f64 {
        let least = self.bars.iter().map(|bar| bar.end).fold(f64::MAX, f64::min);
        let shown = self.bars.iter().filter(|bar| bar.end <= LONGEST * least);
        let end = 1.02 * shown.map(|bar| bar.spread.1.min(1.5 * LONGEST * least)).fold(0.0, f64::max);
        self.references.iter().map(|reference| reference.value).fold(end, f64::max)
    }

    fn draw_bar(&self, page: &Page<'_>, bar: &Bar, is_cut: bool, at: &dyn Fn(f64, f64) -> (i32, i32)) {
        let Bar { name, first, end, spread: (least, greatest), is_marked } = bar;
        let paint = if *is_marked { Paint::BLUE } else { Paint::GREY };
        draw_box(page, [at(*first, 0.36), at(*end, -0.36)], paint.light);
        if *first > 0.0 {
            draw_box(page, [at(0.0, 0.36), at(*first, -0.36)], Paint::GRID.light);
        }
        let (left, middle) = at(0.0, 0.0);
        write(page, name, (left - 10, middle), &label_style(Paint::INK, HPos::Right));
        if !is_cut {
            draw_path(page, [at(*least, 0.0), at(*greatest, 0.0)], Paint::INK, 1);
            for end in [least, greatest] {
                draw_path(page, [at(*end, 0.2), at(*end, -0.2)], Paint::INK, 1);
            }
        }
        let length = format!("{}{}", if is_cut { "\u{2192} " } else { "" }, (self.length)(*end));
        let behind = at(greatest.max(*end), 0.0).0 + 8;
        write(page, &length, (behind, middle), &label_style(Paint::INK, HPos::Left));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(ends: &[f64]) -> BarChart {
        let bar = |end: &f64| Bar {
            name: format!("bar {end}"),
            first: end / 3.0,
            end: *end,
            spread: (end * 0.9, end * 1.1),
            is_marked: *end < 2.0,
        };
        let metres = |length: f64| format!("{length} m");
        let limit = Reference { name: "limit".to_owned(), paint: Paint::RED, value: 0.5 };
        BarChart {
            title: "Lengths of bars".to_owned(),
            note: "Bars: median.".to_owned(),
            quantity: Quantity::new("Length", "m"),
            tick: |length| format!("{length:.0}"),
            length: metres,
            bars: ends.iter().map(bar).collect(),
            references: vec![limit],
        }
    }

    #[test]
    fn bar_names_and_lengths_appear_once() {
        let svg = chart(&[1.0, 4.0, 90.0]).draw();
        for text in [
            "Lengths of bars",
            "\nLength (m)\n",
            "bar 1",
            "bar 4",
            "bar 90",
            "limit",
            "\n1 m\n",
            "\n4 m\n",
            "\n\u{2192} 90 m\n",
            "\n4\n",
        ] {
            assert_eq!(svg.matches(text).count(), 1, "{text} in {svg}");
        }
    }

    #[test]
    fn a_chart_without_drawable_data_is_drawn() {
        for ends in [&[][..], &[0.0], &[f64::NAN], &[f64::INFINITY]] {
            assert!(chart(ends).draw().contains("</svg>"), "{ends:?}");
        }
    }
}
