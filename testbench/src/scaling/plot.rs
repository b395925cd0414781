//! SVG figure of all-reduce times by number of workers, with two logarithmic axes.

use iswitch_figure::{Axis, Line, LineChart, Paint, Quantity};

use super::study::{Cell, Table};
use super::{Algorithm, micros};
use crate::peers::plot::tick_text;
use crate::peers::series::bytes_text;

/// Draws the figure of a table.
pub fn draw(table: &Table) -> String {
    let columns = table.rows.first().map_or(0, |(_, cells)| cells.len());
    LineChart {
        title: format!(
            "Predicted all-reduce time by workers: {}",
            bytes_text(4.0 * f64::from(table.scenario.floats))
        ),
        note: "Model with measured costs; without whiskers, because the model is deterministic.".to_owned(),
        x: Axis { label: |workers| format!("{workers:.0}"), ..Axis::logarithmic(Quantity::plain("Workers")) },
        y: Axis { label: tick_text, ..Axis::logarithmic(Quantity::plain("All-reduce time")) },
        lines: (0..columns).map(|column| line(table, column)).collect(),
        references: Vec::new(),
    }
    .draw()
}

/// Returns the line of one algorithm: all-reduce time in microseconds by number of workers.
fn line(table: &Table, column: usize) -> Line {
    let algorithm = table.rows[0].1[column].algorithm;
    let point = |(workers, cells): &(usize, Vec<Cell>)| Some((*workers as f64, micros(cells[column].time?)));
    let points = table.rows.iter().filter_map(point).collect();
    let (paint, is_dashed) = look(algorithm);
    let width_px = if algorithm.is_switch() { 3 } else { 2 };
    Line { width_px, is_dashed, ..Line::new(algorithm.to_string(), paint, points) }
}

/// Returns the colour and style of an algorithm: each kind has a colour; the second algorithm of a kind is dashed.
fn look(algorithm: Algorithm) -> (Paint, bool) {
    match algorithm {
        Algorithm::Daemon => (Paint::BLUE, false),
        Algorithm::Hardware => (Paint::BLUE, true),
        Algorithm::Ring => (Paint::YELLOW, false),
        Algorithm::RingPipelined => (Paint::YELLOW, true),
        Algorithm::Server => (Paint::GREEN, false),
        Algorithm::ServerPipelined => (Paint::GREEN, true),
        Algorithm::ShardedServer => (Paint::GREY, false),
        Algorithm::HalvingDoubling => (Paint::PURPLE, false),
        Algorithm::RecursiveDoubling => (Paint::PURPLE, true),
    }
}
