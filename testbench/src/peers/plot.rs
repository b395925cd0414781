//! Figures of tables and series, as SVG.

use iswitch_figure::{Axis, Bar, BarChart, Line, LineChart, Paint, Quantity, Reference};
use strum::IntoEnumIterator as _;

use super::series::{self, Family, bytes_text, time_text};
use super::table::us_p50;
use super::{Contender, Runs, Series, Table};
use crate::contest::Spread;

/// Quantity that the figures show. It has no unit, because the tick labels have units.
const SUM: &str = "All-reduce time";

/// Draws one bar for each contender: the median of its turns, with whiskers from the minimum to the maximum.
pub fn bars(table: &Table) -> String {
    let bar = |row: &Runs| {
        // Only the switch has a distinct colour, because each bar is labelled with its name.
        bar(row.contender.to_string(), 0.0, us_p50(row), matches!(row.contender, Contender::Switch(..)))
    };
    let bars = table.standings.rows.iter().map(bar).collect();
    let title = format!("All-reduce time: {}", table.figure_title());
    let note = format!("Bars: {}.", table.standings.note());
    bar_chart(title, note, SUM, bars, table.wire_us())
}

/// Returns the bar of a contender, in microseconds. The first part of the bar ends at `first_us`; the whole bar ends at
/// the median of `us`.
pub(crate) fn bar(name: String, first_us: f64, us: Spread, is_marked: bool) -> Bar {
    Bar { name, first: first_us, end: us.median, spread: us.ends(), is_marked }
}

/// Draws a bar chart of times in microseconds, with the first bar at the top and a reference line at `wire_us`.
pub fn bar_chart(title: String, note: String, what: &str, bars: Vec<Bar>, wire_us: Option<f64>) -> String {
    let limit =
        |us: f64| Reference { name: format!("wire limit {}", time_text(us)), paint: Paint::RED, value: us };
    let references = wire_us.map(limit).into_iter().collect();
    let quantity = Quantity::plain(what);
    BarChart { title, note, quantity, tick: tick_text, length: time_text, bars, references }.draw()
}

/// Draws one line for each kind of contender, on two logarithmic axes. At each point, the line shows the fastest
/// contender of the kind.
pub fn lines(series: &Series) -> String {
    let xs: Vec<f64> = series.tables.iter().map(|table| series.x(table)).collect();
    let mut lines: Vec<Line> = Family::iter().filter_map(|family| line(family, series, &xs)).collect();
    let wire: Vec<_> = series.tables.iter().filter_map(Table::wire_us).collect();
    if !wire.is_empty() {
        let limits = xs.iter().copied().zip(wire).collect();
        lines.push(Line { width_px: 1, ..Line::new("wire limit", Paint::RED, limits) });
    }
    let (x_name, x_text): (_, fn(f64) -> String) = match series.axis {
        series::Axis::Bytes => ("Vector length", bytes_text),
        series::Axis::Workers => ("Workers", |workers| format!("{workers:.0}")),
    };
    let x = Axis { label: x_text, ticks: xs, ..Axis::logarithmic(Quantity::plain(x_name)) };
    LineChart {
        title: format!("{SUM} by {}: {}", x_name.to_lowercase(), series.figure_title()),
        note: format!(
            "Points: {}; the fastest variant of each kind at each point.",
            series.tables[0].standings.note()
        ),
        x,
        y: Axis { label: tick_text, ..Axis::logarithmic(Quantity::plain(SUM)) },
        lines,
        references: Vec::new(),
    }
    .draw()
}

/// Returns the line of a kind of contender; `None` if a table lacks that kind.
fn line(family: Family, series: &Series, xs: &[f64]) -> Option<Line> {
    let times = series.tables.iter().map(|table| family.best(table).map(us_p50));
    let times: Vec<Spread> = times.collect::<Option<_>>()?;
    let points = xs.iter().copied().zip(times.iter().map(|us| us.median)).collect();
    let spreads = times.iter().map(|us| us.ends()).collect();
    let width_px = if family == Family::Switch { 3 } else { 2 };
    Some(Line { width_px, spreads, ..Line::new(family.name(), paint(family), points) })
}

fn paint(family: Family) -> Paint {
    match family {
        Family::Switch => Paint::BLUE,
        Family::Mpi => Paint::GREY,
        Family::Gloo => Paint::PURPLE,
        Family::Ring => Paint::YELLOW,
        Family::ParameterServer => Paint::GREEN,
    }
}

/// Returns the label of a tick without digits after the decimal point, because they would all be zero.
pub(crate) fn tick_text(us: f64) -> String {
    time_text(us).replace(".0 ", " ")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::{Links, Load, Run};
    use super::*;
    use iswitch_harness::cluster::PortKind;
    use iswitch_protocol::ElementType;

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
            (Contender::switch(PortKind::Raw), us),
            (Contender::Mpi(Some(4), ElementType::F32), 2.0 * us),
            (Contender::Gloo(ElementType::F32), 60.0 * us),
        ];
        let standings = contenders.map(|(contender, us)| (contender, runs(us))).into_iter().collect();
        Table {
            load: Load { floats, rounds: 1, warm_up: 0, compute: Duration::ZERO },
            links,
            workers: 4,
            racks: None,
            standings,
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
        let svg = lines(&Series { axis: series::Axis::Bytes, tables });
        for text in [
            "4 KiB",
            "16 KiB",
            "64 KiB",
            "iswitchd, the best",
            "Open MPI, the best",
            "Gloo",
            "\nVector length (log scale)\n",
        ] {
            assert!(svg.contains(text), "{text} is not in {svg}");
        }
        assert!(!svg.contains("ring"), "a contender that was not run must not be drawn");
    }
}
