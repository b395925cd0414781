//! Figures of tables and series, as SVG that is readable on a light and on a dark page.

use std::ops::Range;

use plotters::coord::combinators::{BindKeyPoints, IntoLogRange};
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::series::{Axis, Family, bytes_text, time_text};
use super::table::us_p50;
use super::{Contender, Run, Series, Table};
use crate::figure::{
    BLUE, GREEN, GREY, GRID, INK, LABEL_PX, PURPLE, Page, RED, TITLE_PX, YELLOW, label_ends, page,
    text_style, write,
};
use crate::spread::Spread;

const ROW_PX: u32 = 26;
const LINES_HEIGHT_PX: u32 = 460;
/// Bars that are more times as long as the shortest are cut off: they would make the others too short to compare.
const LONGEST: f64 = 8.0;

fn paint(family: Family) -> RGBColor {
    match family {
        Family::Switch => BLUE.light,
        Family::Mpi => GREY.light,
        Family::Gloo => PURPLE.light,
        Family::Ring => YELLOW.light,
        Family::ParameterServer => GREEN.light,
    }
}

/// One bar of a figure.
#[derive(Clone, Debug)]
pub struct Bar {
    /// What stands beside it.
    pub name: String,
    /// Where its first part ends, in microseconds; zero where it has only one.
    pub first_us: f64,
    /// Where it ends, in microseconds.
    pub end_us: Spread,
    /// It stands out.
    pub is_switch: bool,
}

/// One bar for each contender: the median of its turns, and whiskers from the least to the greatest.
pub fn bars(table: &Table) -> String {
    let bar = |(contender, runs): &(Contender, Vec<Run>)| Bar {
        name: contender.to_string(),
        first_us: 0.0,
        end_us: us_p50(runs),
        // One colour stands out: each bar has its name beside it.
        is_switch: matches!(contender, Contender::Switch(_)),
    };
    let bars: Vec<_> = table.rows.iter().map(bar).collect();
    bar_chart(&format!("Time of a sum: {}", table.title()), &bars, table.wire_us())
}

/// Bars, the first at the top; `wire_us` is marked.
pub fn bar_chart(title: &str, bars: &[Bar], wire_us: Option<f64>) -> String {
    let times: Vec<Spread> = bars.iter().map(|bar| bar.end_us).collect();
    let rows = bars.len();
    let height_px = 90 + ROW_PX * rows as u32;
    let scale_us = end_of_scale(&times);
    page(height_px, |page| {
        write(page, title, (16, 20), &text_style(TITLE_PX, INK.light, HPos::Left));
        let mut chart = ChartBuilder::on(page)
            .margin_top(54)
            .margin_right(84)
            .x_label_area_size(30)
            .y_label_area_size(236)
            .build_cartesian_2d(0.0..scale_us, 0.0..rows as f64)
            .expect("the page has room");
        chart
            .configure_mesh()
            .disable_y_mesh()
            .y_labels(0)
            .x_labels(7)
            .bold_line_style(GRID.light)
            .light_line_style(TRANSPARENT)
            .axis_style(GRID.light)
            .x_label_style(text_style(LABEL_PX, INK.light, HPos::Center))
            .x_label_formatter(&|us| time_text(*us).replace(".0 ", " "))
            .draw()
            .expect("a string takes all");
        for (row, bar) in bars.iter().enumerate() {
            let middle = rows as f64 - row as f64 - 0.5;
            let at = |us: f64, up: f64| chart.backend_coord(&(us.min(scale_us), middle + up));
            draw_bar(page, bar, bar.end_us.median > scale_us, &at);
        }
        if let Some(wire_us) = wire_us {
            let (x, top) = chart.backend_coord(&(wire_us, rows as f64));
            let (_, bottom) = chart.backend_coord(&(wire_us, 0.0));
            page.draw(&PathElement::new([(x, top - 4), (x, bottom)], RED.light.stroke_width(2)))
                .expect("a string takes all");
            let label = format!("wire limit {}", time_text(wire_us));
            write(page, &label, (x, top - 12), &text_style(LABEL_PX, RED.light, HPos::Center));
        }
    })
}

fn end_of_scale(times: &[Spread]) -> f64 {
    let least = times.iter().map(|spread| spread.median).fold(f64::MAX, f64::min);
    let shown = times.iter().filter(|spread| spread.median <= LONGEST * least);
    let end = shown.map(|spread| spread.greatest.min(1.5 * LONGEST * least)).fold(0.0, f64::max);
    end * 1.02
}

fn draw_bar(page: &Page<'_>, bar: &Bar, is_cut: bool, at: &dyn Fn(f64, f64) -> (i32, i32)) {
    let Bar { name, first_us, end_us: spread, is_switch } = bar;
    let draw_line = |from: (i32, i32), to: (i32, i32)| {
        page.draw(&PathElement::new([from, to], INK.light.stroke_width(1))).expect("a string takes all");
    };
    let draw_box = |from_us: f64, to_us: f64, colour: RGBColor| {
        let corners = [at(from_us, 0.36), at(to_us, -0.36)];
        page.draw(&Rectangle::new(corners, colour.filled())).expect("a string takes all");
    };
    let (left, end) = (at(0.0, 0.0), at(spread.median, 0.0));
    draw_box(*first_us, spread.median, if *is_switch { BLUE.light } else { GREY.light });
    if *first_us > 0.0 {
        draw_box(0.0, *first_us, GRID.light);
    }
    write(page, name, (left.0 - 10, left.1), &text_style(LABEL_PX, INK.light, HPos::Right));
    let (least, greatest) = (at(spread.least, 0.0), at(spread.greatest, 0.0));
    if !is_cut {
        draw_line(least, greatest);
        for us in [spread.least, spread.greatest] {
            draw_line(at(us, 0.2), at(us, -0.2));
        }
    }
    let label = format!("{}{}", if is_cut { "\u{2192} " } else { "" }, time_text(spread.median));
    let label_at = (greatest.0.max(end.0) + 8, end.1);
    write(page, &label, label_at, &text_style(LABEL_PX, INK.light, HPos::Left));
}

/// One line for each kind of contender, through the best of the kind at each point, on two logarithmic scales.
pub fn lines(series: &Series) -> String {
    lines_of("Time of a sum", series)
}

/// The same of times that are not those of sums.
pub fn lines_of(what: &str, series: &Series) -> String {
    let xs: Vec<f64> = series.tables.iter().map(|table| series.x(table)).collect();
    let families: Vec<(Family, Vec<Spread>)> = Family::ALL
        .into_iter()
        .filter_map(|family| {
            let times = series.tables.iter().map(|table| Some(family.best(table)?.1));
            Some((family, times.collect::<Option<Vec<_>>>()?))
        })
        .collect();
    let wire: Vec<_> = series.tables.iter().filter_map(Table::wire_us).collect();
    let all = || families.iter().flat_map(|(_, times)| times);
    let least = all().map(|spread| spread.least).chain(wire.iter().copied()).fold(f64::MAX, f64::min);
    let greatest = all().map(|spread| spread.greatest).fold(0.0, f64::max);
    page(LINES_HEIGHT_PX, |page| {
        write(
            page,
            &format!("{what}: {}", series.title()),
            (16, 20),
            &text_style(TITLE_PX, INK.light, HPos::Left),
        );
        axes(page, series.axis, &xs, &(least * 0.8..greatest * 1.25), |to_pixels| {
            let mut ends = Vec::new();
            for (family, times) in &families {
                let points: Vec<_> = xs.iter().copied().zip(times.iter().copied()).collect();
                let end = line(page, &points, paint(*family), to_pixels);
                ends.push((end, family.name(), paint(*family)));
            }
            let limits: Vec<_> = xs.iter().zip(&wire).map(|(x, us)| to_pixels((*x, *us))).collect();
            if let Some(end) = limits.last().copied() {
                page.draw(&PathElement::new(limits, RED.light.stroke_width(1))).expect("a string takes all");
                ends.push((end, "wire limit", RED.light));
            }
            label_ends(page, ends);
        });
    })
}

/// Draws both axes, then something that knows where a point of the chart lies on the page.
fn axes(
    page: &Page<'_>,
    axis: Axis,
    xs: &[f64],
    ys: &Range<f64>,
    draw: impl FnOnce(&dyn Fn((f64, f64)) -> (i32, i32)),
) {
    let (first, last) = (xs[0] * 0.93, xs[xs.len() - 1] * 1.04);
    let mut chart = ChartBuilder::on(page)
        .margin_top(44)
        .margin_right(210)
        .x_label_area_size(34)
        .y_label_area_size(70)
        .build_cartesian_2d(
            (first..last).log_scale().with_key_points(xs.to_vec()),
            ys.clone().log_scale().with_key_points(steps(ys)),
        )
        .expect("the page has room");
    chart
        .configure_mesh()
        .bold_line_style(GRID.light)
        .light_line_style(TRANSPARENT)
        .axis_style(GRID.light)
        .x_label_style(text_style(LABEL_PX, INK.light, HPos::Center))
        .y_label_style(text_style(LABEL_PX, INK.light, HPos::Right))
        .x_label_formatter(&|x| match axis {
            Axis::Bytes => bytes_text(*x),
            Axis::Workers => format!("{x:.0} workers"),
        })
        .y_label_formatter(&|us| time_text(*us).replace(".0 ", " "))
        .draw()
        .expect("a string takes all");
    draw(&|point| chart.backend_coord(&point));
}

/// The points with a mark at each and whiskers; returns where the last one is.
fn line(
    page: &Page<'_>,
    points: &[(f64, Spread)],
    colour: RGBColor,
    to_pixels: &dyn Fn((f64, f64)) -> (i32, i32),
) -> (i32, i32) {
    let is_switch = colour == BLUE.light;
    let medians: Vec<_> = points.iter().map(|(x, spread)| to_pixels((*x, spread.median))).collect();
    let width = if is_switch { 3 } else { 2 };
    page.draw(&PathElement::new(medians.clone(), colour.stroke_width(width))).expect("a string takes all");
    for ((x, spread), middle) in points.iter().zip(&medians) {
        let whisker = [to_pixels((*x, spread.least)), to_pixels((*x, spread.greatest))];
        page.draw(&PathElement::new(whisker, colour.stroke_width(1))).expect("a string takes all");
        page.draw(&Circle::new(*middle, if is_switch { 4 } else { 3 }, colour.filled()))
            .expect("a string takes all");
    }
    medians[medians.len() - 1]
}

/// 1, 2, 5, 10 and so on, or 1, 3, 10, 30 where those would be too many.
fn steps(range: &Range<f64>) -> Vec<f64> {
    let digits: &[f64] = if range.end < 100.0 * range.start { &[1.0, 2.0, 5.0] } else { &[1.0, 3.0] };
    let powers = (range.start.log10().floor() as i32)..=(range.end.log10().ceil() as i32);
    let steps = powers.flat_map(|power| digits.iter().map(move |digit| digit * 10.0_f64.powi(power)));
    steps.filter(|step| range.contains(step)).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::{Links, Load};
    use super::*;
    use crate::cluster::PortKind;

    fn table(floats: u32, links: Links) -> Table {
        let run = |us_p50: f64| Run {
            us_p50,
            us_p99: us_p50 * 1.5,
            iteration_us: 0.0,
            compute_us: 0.0,
            worker_cpu_s_per_gb: 1.0,
            switch_cpu_s_per_gb: 1.0,
            worker_peak_kib: 1,
            switch_peak_kib: 1,
        };
        let runs = |us: f64| vec![run(us * 0.9), run(us), run(us * 1.2)];
        let us = f64::from(floats) / 100.0;
        let contenders = [
            (Contender::Switch(PortKind::Raw), us),
            (Contender::Mpi(Some(4)), 2.0 * us),
            (Contender::Gloo, 60.0 * us),
        ];
        let rows = contenders.map(|(contender, us)| (contender, runs(us))).to_vec();
        Table {
            load: Load { floats, rounds: 1, warm_up: 0, compute: Duration::ZERO },
            links,
            workers: 4,
            racks: None,
            rows,
        }
    }

    #[test]
    fn bars_show_each_contender_and_the_limit() {
        let rate = Some("1gbit".parse().unwrap());
        let svg = bars(&table(1_000_000, Links { rate, delay: None }));
        for text in ["iswitchd, raw ports", "Open MPI, ring", "Gloo", "\u{2192} 600 ms", "wire limit 32.0 ms"]
        {
            assert!(svg.contains(text), "{text} is not in {svg}");
        }
        assert!(!bars(&table(1000, Links::default())).contains("wire limit"));
    }

    #[test]
    fn lines_show_each_kind_of_contender() {
        let tables = [1_024, 4_096, 16_384].map(|floats| table(floats, Links::default())).to_vec();
        let svg = lines(&Series { axis: Axis::Bytes, tables });
        for text in ["4 KiB", "16 KiB", "64 KiB", "iswitchd, the best", "Open MPI, the best", "Gloo"] {
            assert!(svg.contains(text), "{text} is not in {svg}");
        }
        assert!(!svg.contains("ring"), "nobody has run it");
    }

    #[test]
    fn colours_follow_the_page() {
        let svg = bars(&table(1000, Links::default()));
        assert!(
            svg.contains("[fill=\"#FFFFFF\"]{fill:#0d1117}") && svg.contains("fill=\"#FFFFFF\" stroke"),
            "{svg}"
        );
    }
}
