//! Figures of learning curves.

use iswitch_figure::{Axis, Line, LineChart, Paint, Quantity, Reference};

use super::convergence::{Comparison, Training};
use super::tasks::Method;
use crate::contest::Row;

/// Number of points in a drawn curve. The seeds record different points, so their curves are interpolated.
const POINTS: u32 = 200;
/// End of the horizontal axis, as a multiple of the point from which the last run stays above the target return.
const AFTER: f64 = 1.1;

/// Draws one line for each method: the mean over the seeds, with a band from the minimum to the maximum over the seeds.
/// The axes are the mean return of the last 100 episodes, and environment steps or, for asynchronous methods, gradients
/// applied to the model. The target return is marked. The flat remainder of the curves is cut off.
pub fn draw(comparison: &Comparison) -> String {
    let Comparison { task, workers, standings } = comparison;
    let is_async = standings.rows.iter().any(|row| row.contender.is_async);
    let over = if is_async { "Gradients in the model" } else { "Environment steps" };
    let curves_of = |row: &Row<Method, Training>| -> Vec<Vec<(f64, f64)>> {
        row.runs.iter().map(|run| points(row.contender, run, *workers)).collect()
    };
    let curves: Vec<_> = standings.rows.iter().map(|row| (row.contender, curves_of(row))).collect();
    let settled = curves.iter().flat_map(|(_, curves)| curves).map(|curve| settled(curve, task.threshold));
    let end = AFTER * settled.fold(0.0, f64::max);
    let seeds = standings.rows.iter().map(|row| row.runs.len()).max().unwrap_or(0);
    LineChart {
        title: format!(
            "{} on {}, {workers} workers: learning curves",
            task.algorithm.to_uppercase(),
            task.env
        ),
        note: format!(
            "Lines: mean over {seeds} seeds; bands: minimum to maximum over the seeds. The flat ends of the curves are \
             omitted."
        ),
        x: Axis { includes: vec![0.0], ..Axis::linear(Quantity::plain(over)) },
        y: Axis::linear(Quantity::plain("Mean return of the last 100 episodes")),
        lines: curves.iter().map(|(method, curves)| mean_line(*method, curves, end)).collect(),
        references: vec![Reference { name: "target".to_owned(), paint: Paint::INK, value: task.threshold }],
    }
    .draw()
}

/// Returns the position from which a curve stays above the threshold, or the end of the curve.
fn settled(curve: &[(f64, f64)], threshold: f64) -> f64 {
    let below = curve.iter().rposition(|(_, value)| *value < threshold);
    let at = below.map_or(0, |at| at + 1).min(curve.len().saturating_sub(1));
    curve.get(at).map_or(0.0, |(x, _)| *x)
}

/// Returns the mean and the band of several curves, over the part of the axis that all of them cover.
fn mean_line(method: Method, curves: &[Vec<(f64, f64)>], end: f64) -> Line {
    let first = curves.iter().filter_map(|curve| curve.first()).map(|(x, _)| *x).fold(0.0, f64::max);
    let last = curves.iter().filter_map(|curve| curve.last()).map(|(x, _)| *x).fold(end, f64::min);
    let (mut points, mut band) = (Vec::new(), Vec::new());
    for at in 0..=POINTS {
        let x = first + (last - first) * f64::from(at) / f64::from(POINTS);
        let values: Vec<f64> = curves.iter().filter_map(|curve| interpolated(curve, x)).collect();
        if !values.is_empty() {
            points.push((x, values.iter().sum::<f64>() / values.len() as f64));
            let bounds =
                values.iter().fold((f64::MAX, f64::MIN), |(a, b), value| (a.min(*value), b.max(*value)));
            band.push((x, bounds.0, bounds.1));
        }
    }
    let width_px = if method.aggregator == "switch" { 3 } else { 2 };
    Line { width_px, band, ..Line::new(method.to_string(), paint(method), points) }
}

/// Returns the value of a curve at `x`, by linear interpolation between its points.
fn interpolated(curve: &[(f64, f64)], x: f64) -> Option<f64> {
    let after = curve.iter().position(|(at, _)| *at >= x)?;
    let (right, high) = curve[after];
    let (left, low) = curve[after.saturating_sub(1)];
    Some(if right > left { low + (high - low) * (x - left) / (right - left) } else { high })
}

fn points(method: Method, training: &Training, workers: usize) -> Vec<(f64, f64)> {
    let gradients = training.updates * if method.aggregator == "switch" { workers as f64 } else { 1.0 };
    let points = training.points.iter();
    points
        .map(|point| (if method.is_async { point.part * gradients } else { point.steps }, point.mean_return))
        .collect()
}

fn paint(method: Method) -> Paint {
    match method.aggregator {
        "switch" => Paint::BLUE,
        "ps" => Paint::GREEN,
        "ring" => Paint::YELLOW,
        "local" => Paint::GREY,
        _ => Paint::RED,
    }
}

#[cfg(test)]
mod tests {
    use super::super::convergence::Point;
    use super::super::tasks::TASKS;
    use super::*;

    fn training() -> Training {
        let point =
            |steps: f64, mean_return: f64| Point { steps, seconds: 1.0, part: steps / 4e5, mean_return };
        Training {
            seed: 1,
            points: vec![point(1e5, 20.0), point(2e5, 300.0), point(4e5, 490.0)],
            updates: 1000.0,
            steps: 4e5,
            final_return: Some(490.0),
            staleness: None,
        }
    }

    #[test]
    fn each_method_is_labelled_once_and_the_target_return_is_marked() {
        let rows = Method::SYNCHRONOUS.map(|method| (method, vec![training(), training()]));
        let standings = rows.into_iter().collect();
        let svg = draw(&Comparison { task: TASKS[0], workers: 4, standings });
        for text in
            ["one process", "switch", "ring", "parameter server", "target", "Environment steps", "400 k"]
        {
            assert_eq!(svg.matches(text).count(), 1, "{text} in {svg}");
        }
    }

    #[test]
    fn an_update_by_the_switch_counts_one_gradient_per_worker() {
        let [server, switch] = Method::ASYNCHRONOUS;
        assert_eq!(points(server, &training(), 4).last(), Some(&(1000.0, 490.0)));
        assert_eq!(points(switch, &training(), 4).last(), Some(&(4000.0, 490.0)));
    }

    #[test]
    fn an_empty_learning_curve_is_drawn() {
        let rows = [(Method::ASYNCHRONOUS[0], vec![Training { points: Vec::new(), ..training() }])];
        let standings = rows.into_iter().collect();
        assert!(draw(&Comparison { task: TASKS[0], workers: 4, standings }).contains("target"));
    }
}
