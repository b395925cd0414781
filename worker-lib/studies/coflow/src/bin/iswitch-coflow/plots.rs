//! Figures in SVG format.

use iswitch_coflow::deepweave::training::Iteration;
use iswitch_figure::{Axis, Line, LineChart, Paint, Quantity, Reference};

use super::runs::{PolicyRuns, Run};

/// Colours of the lines, in the order of the lines. If there are more lines than colours, the further lines are dashed
/// and reuse the colours.
const PAINTS: [Paint; 7] =
    [Paint::BLUE, Paint::RED, Paint::GREEN, Paint::YELLOW, Paint::PURPLE, Paint::INK, Paint::GREY];
/// Approximate maximum number of points in a line; more points would not be visible.
const POINTS: usize = 400;

/// Function that returns the completion times of a run.
type TimesOf = fn(&Run) -> &[f64];

/// For each distribution, its file name, the noun for its title, and a function that returns the completion times.
pub(super) const CDFS: [(&str, &str, TimesOf); 2] =
    [("cdf-cct.svg", "Coflow", |run| &run.cct), ("cdf-jct.svg", "Job", |run| &run.jct)];

/// Draws the cumulative distribution of completion times for each policy, over a logarithmic time axis.
pub(super) fn cdf(what: &str, policies: &[PolicyRuns], of: TimesOf) -> String {
    let line = |(at, runs): (usize, &PolicyRuns)| {
        Line::of_series(&runs.policy, &PAINTS, at, distribution(runs.runs.iter().flat_map(of)))
    };
    LineChart {
        title: format!("{what} completion times under each policy: cumulative distribution"),
        note: "All draws together; further left and higher is better. Dashed lines reuse the colours of solid lines."
            .to_owned(),
        x: Axis::logarithmic(Quantity::new(format!("{what} completion time"), "s")),
        y: Axis {
            includes: vec![0.0, 1.0],
            ..Axis::linear(Quantity::plain(format!("Share of {}s", what.to_lowercase())))
        },
        lines: policies.iter().enumerate().map(line).collect(),
        references: Vec::new(),
    }
    .draw()
}

/// Draws the test results of a training run.
pub(super) fn learning(history: &[Iteration]) -> String {
    let tested = history.iter().filter_map(|record| Some((record.iteration as f64, record.gain?)));
    LineChart {
        title: "Speed-up of the network over job-sebf in tests".to_owned(),
        note: "Mean job completion time of job-sebf divided by that of the network; higher is better."
            .to_owned(),
        x: Axis { includes: vec![0.0], ..Axis::linear(Quantity::plain("Training iteration")) },
        y: Axis::linear(Quantity::plain("Speed-up")),
        lines: vec![Line::new("network", PAINTS[0], tested.collect())],
        references: vec![Reference { name: "job-sebf".to_owned(), paint: Paint::GREY, value: 1.0 }],
    }
    .draw()
}

fn distribution<'a>(values: impl IntoIterator<Item = &'a f64>) -> Vec<(f64, f64)> {
    let mut sorted: Vec<f64> = values.into_iter().copied().collect();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len();
    // Counting from the end keeps the last point.
    let step = count.div_ceil(POINTS).max(1);
    let points = sorted.iter().enumerate().rev().step_by(step);
    let mut points: Vec<_> = points.map(|(at, value)| (*value, (at + 1) as f64 / count as f64)).collect();
    points.reverse();
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distribution_ends_at_one() {
        assert_eq!(distribution(&[3.0, 1.0]), [(1.0, 0.5), (3.0, 1.0)]);
        let many: Vec<f64> = (1..=1000).map(f64::from).collect();
        let points = distribution(&many);
        assert!(points.len() <= POINTS && points.last() == Some(&(1000.0, 1.0)), "{points:?}");
        assert!(points.iter().all(|(value, share)| (value / 1000.0 - share).abs() < 1e-12));
        assert!(distribution(&[]).is_empty());
    }
}
