//! Figures of the routing paper, as SVG.

use iswitch_figure::{Axis, HeatMap, Line, LineChart, Matrix, MatrixRow, Paint, Quantity, Reference};
use iswitch_routing::measure::Measurement;
use iswitch_routing::network::Shape;
use iswitch_routing::training::Iteration;

use super::results::Summary;
use iswitch_cli::mean::Mean;

/// Name of the learned policy, whose line is emphasised.
const LEARNED: &str = "mlpi";
/// Colours of the learning curves, in order.
const PAINTS: [Paint; 6] = [Paint::BLUE, Paint::RED, Paint::GREEN, Paint::YELLOW, Paint::PURPLE, Paint::INK];
/// Colours of the other policies, in order. If there are more policies than colours, the colours are reused with dashed
/// lines.
const OTHERS: [Paint; 5] = [Paint::RED, Paint::GREEN, Paint::YELLOW, Paint::PURPLE, Paint::INK];

/// Returns the quantity for an axis that shows queued packets.
pub(super) fn packets() -> Quantity {
    Quantity::plain("Mean queued packets")
}

/// Returns the quantity for an axis that shows delays.
pub(super) fn delay() -> Quantity {
    Quantity::new("Mean delay", "slots")
}

/// Draws figures 2 to 5 of the paper: a value for each policy iteration and, for reference, the values of policies that
/// do not learn.
pub(super) fn learning(
    title: String,
    quantity: Quantity,
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
        note: "Test after each iteration; horizontal lines: policies that do not learn.".to_owned(),
        x: Axis { label: whole, includes: vec![0.0], ..Axis::linear(Quantity::plain("Policy iteration")) },
        y: Axis::linear(quantity),
        lines: runs.iter().zip(PAINTS.into_iter().cycle()).map(line).collect(),
        references: references.into_iter().map(reference).collect(),
    }
    .draw()
}

/// Formats the number of an iteration; the label is empty for a tick between whole numbers.
fn whole(iteration: f64) -> String {
    if iteration.fract() == 0.0 { format!("{iteration:.0}") } else { String::new() }
}

/// Draws figure 6 of the paper: a mean as a function of the load, with one line for each policy and one for the lower
/// bound.
pub(super) fn over_load(
    title: String,
    quantity: Quantity,
    policies: &[String],
    summaries: &[Summary],
    of: fn(&Summary) -> Mean,
    bound: fn(&Summary) -> Mean,
) -> String {
    let points = |policy: &String, of: fn(&Summary) -> Mean| -> Vec<_> {
        let own = summaries.iter().filter(|summary| summary.policy == *policy);
        own.map(|summary| (summary.load, of(summary).mean)).collect()
    };
    let others = policies.iter().filter(|policy| *policy != LEARNED).enumerate();
    let mut lines: Vec<_> =
        others.map(|(at, policy)| Line::of_series(policy, &OTHERS, at, points(policy, of))).collect();
    let learned = policies.iter().filter(|policy| *policy == LEARNED);
    lines.extend(
        learned.map(|policy| Line { width_px: 3, ..Line::new(policy, Paint::BLUE, points(policy, of)) }),
    );
    if let Some(first) = policies.first() {
        lines.push(Line { is_dashed: true, ..Line::new("bound", Paint::GREY, points(first, bound)) });
    }
    LineChart {
        title,
        note: "Mean over all draws. Dashed lines reuse the colours of solid lines; grey and dashed: lower bound for \
               any policy."
            .to_owned(),
        x: Axis::linear(Quantity::plain("Load")),
        y: Axis { includes: vec![0.0], ..Axis::linear(quantity) },
        lines,
        references: Vec::new(),
    }
    .draw()
}

/// Draws figure 7 of the paper: the mean lengths of all queues, as one matrix of switches by classes for each stage.
pub(super) fn heat(title: String, shape: Shape, runs: &[(String, &Measurement)]) -> String {
    let row = |(name, measured): &(String, &Measurement)| {
        let stages = measured.heat.chunks_exact(shape.links()).enumerate();
        let matrix = |(stage, lens): (usize, &[f64])| Matrix {
            caption: format!("stage {}", stage + 1),
            values: lens.chunks_exact(shape.switches()).map(<[f64]>::to_vec).collect(),
        };
        MatrixRow { name: name.clone(), matrices: stages.map(matrix).collect() }
    };
    HeatMap {
        title,
        note: "Axis labels: first and last switch and class. All squares have the same colour scale."
            .to_owned(),
        columns: Quantity::plain("Switch"),
        lines: Quantity::plain("Class"),
        scale: Quantity::plain("Mean packets"),
        rows: runs.iter().map(row).collect(),
    }
    .draw()
}
