//! Learning curves of a sweep as a figure.

use iswitch_figure::{Axis, Line, LineChart, Paint, Quantity, Reference};

use crate::plan::Plan;
use crate::statistics::Estimate;

/// Number of points of a curve. The points of the runs differ, so the curves are sampled.
const POINTS: u32 = 60;
/// Number of resamples for the interval of each point.
const RESAMPLES: usize = 1_000;
/// Colours of the lines, in order; further lines use the same colours dashed.
const PAINTS: [Paint; 7] =
    [Paint::BLUE, Paint::RED, Paint::GREEN, Paint::YELLOW, Paint::PURPLE, Paint::INK, Paint::GREY];

/// Points of a learning curve: environment steps and mean return of the last 100 episodes.
pub(crate) type Curve = Vec<(f64, f64)>;

/// Draws a line for each configuration, from its name and the curves of its runs: the interquartile mean over the runs,
/// with a band for its 95 % interval.
pub(crate) fn draw(plan: &Plan, configurations: &[(String, Vec<Curve>)]) -> String {
    let lines = configurations.iter().enumerate().map(|(at, (name, curves))| {
        let (points, band) = estimates(curves);
        Line { band, ..Line::of_series(name.clone(), &PAINTS, at, points) }
    });
    let solved = Reference { name: "solved".to_owned(), paint: Paint::INK, value: plan.solved_return };
    LineChart {
        title: format!(
            "{} on {}, {} worker(s): learning curves",
            plan.algorithm.to_uppercase(),
            plan.env,
            plan.workers
        ),
        note: format!(
            "Lines: interquartile mean of {} seeds; bands: 95 % bootstrap interval.",
            plan.seeds.clone().count()
        ),
        x: Axis { includes: vec![0.0], ..Axis::linear(Quantity::plain("Environment steps")) },
        y: Axis::linear(Quantity::plain("Mean return of the last 100 episodes")),
        lines: lines.collect(),
        references: vec![solved],
    }
    .draw()
}

/// Interquartile means, and their intervals, by environment steps.
type Estimates = (Vec<(f64, f64)>, Vec<(f64, f64, f64)>);

/// Returns the estimates at equidistant points of the range that all curves cover.
fn estimates(curves: &[Curve]) -> Estimates {
    let first = curves.iter().filter_map(|curve| curve.first()).map(|(steps, _)| *steps).fold(0.0, f64::max);
    let last = curves.iter().filter_map(|curve| curve.last()).map(|(steps, _)| *steps);
    let last = last.fold(f64::INFINITY, f64::min);
    if !last.is_finite() {
        return (Vec::new(), Vec::new());
    }
    let places = (0..=POINTS).map(|at| first + (last - first) * f64::from(at) / f64::from(POINTS));
    let estimate = |steps: f64| {
        let values: Vec<_> = curves.iter().filter_map(|curve| value_at(curve, steps)).collect();
        Some((steps, Estimate::of(&values, RESAMPLES)?))
    };
    let estimates = places.filter_map(estimate);
    estimates.map(|(steps, Estimate { iqm, low, high })| ((steps, iqm), (steps, low, high))).unzip()
}

/// Returns the last value of a curve up to a number of steps.
fn value_at(curve: &[(f64, f64)], steps: f64) -> Option<f64> {
    let after = curve.partition_point(|(at, _)| *at <= steps);
    Some(curve.get(after.checked_sub(1)?)?.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_are_compared_where_all_runs_have_values() {
        let curve =
            |first: f64, last: f64, value: f64| vec![(first, 0.0), (first + 1.0, value), (last, value)];
        let (points, band) = estimates(&[curve(10.0, 100.0, 1.0), curve(20.0, 90.0, 3.0), Vec::new()]);
        assert_eq!(points.first(), Some(&(20.0, 0.5)), "1 and 0 at 20 steps");
        assert_eq!(points.last(), Some(&(90.0, 2.0)));
        assert_eq!(band.last(), Some(&(90.0, 1.0, 3.0)));
        assert_eq!(points.len(), POINTS as usize + 1);
        assert_eq!(estimates(&[Vec::new()]), (Vec::new(), Vec::new()));
    }

    #[test]
    fn values_hold_until_the_next_point() {
        let curve = [(10.0, 1.0), (20.0, 2.0)];
        assert_eq!(
            [9.0, 10.0, 19.0, 20.0, 99.0].map(|at| value_at(&curve, at)),
            [None, Some(1.0), Some(1.0), Some(2.0), Some(2.0)]
        );
    }
}
