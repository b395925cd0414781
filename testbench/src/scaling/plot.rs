//! Lines of time over workers, both logarithmic, as SVG.

use std::path::Path;

use plotters::prelude::*;

use super::study::Table;
use super::{Algorithm, micros};

const SIZE: (u32, u32) = (900, 600);

/// Draws a table.
///
/// # Errors
/// What the file system or the plotter said.
pub fn draw(table: &Table, path: &Path) -> Result<(), String> {
    try_draw(table, path).map_err(|error| format!("{}: {error}", path.display()))
}

fn try_draw(table: &Table, path: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let lines = lines(table);
    let points = || lines.iter().flat_map(|(_, points)| points.iter().copied());
    let fold = |of: fn((f64, f64)) -> f64| {
        points().map(of).fold((f64::MAX, f64::MIN), |(least, most), x| (least.min(x), most.max(x)))
    };
    let ((left, right), (bottom, top)) = (fold(|point| point.0), fold(|point| point.1));
    if left > right {
        return Err("no times".into());
    }
    let area = SVGBackend::new(path, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .margin(15)
        .caption(format!("{} floats", table.scenario.floats), ("sans-serif", 18))
        .x_label_area_size(40)
        .y_label_area_size(70)
        .build_cartesian_2d(
            (left..right.max(left * 1.1)).log_scale(),
            (bottom * 0.8..top * 1.25).log_scale(),
        )?;
    chart.configure_mesh().x_desc("workers").y_desc("ms for one sum").draw()?;
    for (at, (algorithm, points)) in lines.into_iter().enumerate() {
        let color = Palette99::pick(at).to_rgba();
        let style = color.stroke_width(if algorithm.is_switch() { 3 } else { 1 });
        chart
            .draw_series(std::iter::once(PathElement::new(points, style)))?
            .label(algorithm.to_string())
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], style));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK)
        .draw()?;
    area.present()?;
    Ok(())
}

/// Milliseconds over workers.
fn lines(table: &Table) -> Vec<(Algorithm, Vec<(f64, f64)>)> {
    let columns = table.rows.first().map_or(0, |(_, cells)| cells.len());
    let line = |column: usize| {
        let point = |(workers, cells): &(usize, Vec<super::study::Cell>)| {
            // A logarithmic axis has no zero.
            let time = cells[column].time.filter(|time| *time > 0)?;
            Some((*workers as f64, micros(time) * 1e-3))
        };
        (table.rows[0].1[column].algorithm, table.rows.iter().filter_map(point).collect())
    };
    (0..columns).map(line).collect()
}
