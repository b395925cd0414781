//! Figures of the paper, as SVG.

use iswitch_figure::{Axis, HeatMap, Line, LineChart, Matrix, MatrixRow, Paint, Reference};
use iswitch_routing::measure::Measurement;
use iswitch_routing::network::Shape;
use iswitch_routing::training::Iteration;

use super::results::Summary;
use iswitch_cli::mean::Mean;

/// Colours of the lines, in order.
const PAINTS: [Paint; 6] = [Paint::BLUE, Paint::RED, Paint::GREEN, Paint::YELLOW, Paint::PURPLE, Paint::INK];

/// Draws figures 2 to 5: a value over policy iterations, with those of policies without learning as references.
pub(super) fn learning(
    title: String,
    runs: &[(String, &[Iteration])],
    of: fn(&Iteration) -> f64,
    references: Vec<(String, f64)>,
) -> String {
    let line = |((name, history), paint): (&(String, &[Iteration]), Paint)| {
        let points = history.iter().map(|record| (record.iteration as f64, of(record))).collect();
        Line::new(name, paint, points)
    };
    let reference = |(name, value)| Reference { name, paint: Paint::GREY, value };
    LineChart {
        title,
        x: Axis { includes: vec![0.0], ..Axis::linear() },
        y: Axis::linear(),
        lines: runs.iter().zip(PAINTS.into_iter().cycle()).map(line).collect(),
        references: references.into_iter().map(reference).collect(),
    }
    .draw()
}

/// Draws figure 6: a mean over the load, with one line for each policy and one for the bound.
pub(super) fn over_load(
    title: String,
    policies: &[String],
    summaries: &[Summary],
    of: fn(&Summary) -> Mean,
    bound: fn(&Summary) -> Mean,
) -> String {
    let points = |policy: &String, of: fn(&Summary) -> Mean| -> Vec<_> {
        let own = summaries.iter().filter(|summary| summary.policy == *policy);
        own.map(|summary| (summary.load, of(summary).mean)).collect()
    };
    let line = |(policy, paint): (&String, Paint)| Line::new(policy, paint, points(policy, of));
    let mut lines: Vec<_> = policies.iter().zip(PAINTS.into_iter().cycle()).map(line).collect();
    if let Some(first) = policies.first() {
        lines.push(Line { is_dashed: true, ..Line::new("bound", Paint::GREY, points(first, bound)) });
    }
    LineChart {
        title,
        x: Axis::linear(),
        y: Axis { includes: vec![0.0], ..Axis::linear() },
        lines,
        references: Vec::new(),
    }
    .draw()
}

/// Draws figure 7: mean lengths of all queues, with one matrix by switch and class for each stage.
pub(super) fn heat(title: String, shape: Shape, runs: &[(String, &Measurement)]) -> String {
    let row = |(name, measured): &(String, &Measurement)| {
        let stages = measured.heat.chunks_exact(shape.links()).enumerate();
        let matrix = |(stage, lens): (usize, &[f64])| Matrix {
            caption: format!("stage {}", stage + 1),
            values: lens.chunks_exact(shape.switches()).map(<[f64]>::to_vec).collect(),
        };
        MatrixRow { name: name.clone(), matrices: stages.map(matrix).collect() }
    };
    HeatMap { title, rows: runs.iter().map(row).collect() }.draw()
}
