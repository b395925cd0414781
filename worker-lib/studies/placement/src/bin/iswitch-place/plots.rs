//! SVG figures of results.

use iswitch_figure::{Axis, Line, LineChart, Paint, Quantity, Reference};
use iswitch_placement::learned::training::Iteration;

use super::results::Summary;
use super::rules::Saving;
use super::{DAY_S, HOUR_S};

/// Colours of the lines, in the order of the lines. If there are more lines than colours, the colours are used again
/// for dashed lines.
const PAINTS: [Paint; 7] =
    [Paint::BLUE, Paint::RED, Paint::GREEN, Paint::YELLOW, Paint::PURPLE, Paint::INK, Paint::GREY];
const NOTE: &str =
    "Mean over draws; whiskers: 95 % confidence interval. Dashed lines reuse the colours of solid lines.";
const UNITS: [(f64, &str); 3] = [(DAY_S, "d"), (HOUR_S, "h"), (60.0, "min")];

/// Plots the makespan of each policy against the failure-rate factor. Only summaries with the checkpoint setting
/// `saving` are used.
pub(super) fn over_rates(
    summaries: &[Summary],
    policies: &[String],
    factors: &[f64],
    saving: Saving,
) -> String {
    let checkpoint = saving.to_string();
    let place = |summary: &Summary| (summary.checkpoint == checkpoint).then_some(summary.rate_factor);
    LineChart {
        title: format!(
            "Makespan by failure-rate factor, for each placement policy; checkpoint: {}",
            name(saving)
        ),
        note: NOTE.to_owned(),
        x: Axis {
            label: |factor| format!("x{factor}"),
            ticks: factors.to_vec(),
            ..Axis::logarithmic(Quantity::plain("Failure-rate factor"))
        },
        y: Axis::logarithmic(Quantity::new("Makespan", "days")),
        lines: lines(summaries, policies, place),
        references: Vec::new(),
    }
    .draw()
}

/// Plots the makespan of each policy for each checkpoint setting, in the given order. Only summaries with the
/// failure-rate factor `factor` are used.
pub(super) fn over_checkpoints(
    summaries: &[Summary],
    policies: &[String],
    savings: &[Saving],
    factor: f64,
) -> String {
    let place = |summary: &Summary| {
        let at = savings.iter().position(|saving| saving.to_string() == summary.checkpoint)?;
        (summary.rate_factor == factor).then_some(at as f64)
    };
    LineChart {
        title: format!(
            "Makespan by checkpoint setting, for each placement policy; failure-rate factor {factor}"
        ),
        note: NOTE.to_owned(),
        x: Axis::named(
            Quantity::plain("Checkpoint setting"),
            savings.iter().map(|saving| name(*saving)).collect(),
        ),
        y: Axis::logarithmic(Quantity::new("Makespan", "days")),
        lines: lines(summaries, policies, place),
        references: Vec::new(),
    }
    .draw()
}

/// Plots the test results of a training run. `reference` is the name of the policy with which the network was compared.
pub(super) fn learning(history: &[Iteration], reference: &str) -> String {
    let tested = history.iter().filter_map(|record| Some((record.iteration as f64, record.gain?)));
    LineChart {
        title: format!("Speed-up of the network over {reference} in tests"),
        note: format!("Makespan of {reference} divided by that of the network; higher is better."),
        x: Axis { includes: vec![0.0], ..Axis::linear(Quantity::plain("Training iteration")) },
        y: Axis::linear(Quantity::plain("Speed-up")),
        lines: vec![Line::new("network", PAINTS[0], tested.collect())],
        references: vec![Reference { name: reference.to_owned(), paint: Paint::GREY, value: 1.0 }],
    }
    .draw()
}

/// Returns one line for each policy, with 95 % confidence intervals. `place` returns the position of a summary on the
/// horizontal axis, or `None` to omit it.
fn lines(summaries: &[Summary], policies: &[String], place: impl Fn(&Summary) -> Option<f64>) -> Vec<Line> {
    let line = |(at, policy): (usize, &String)| {
        let own = summaries.iter().filter(|summary| summary.policy == *policy);
        let (mut points, mut spreads) = (Vec::new(), Vec::new());
        for (x, summary) in own.filter_map(|summary| Some((place(summary)?, summary))) {
            let (mean, ci95) = (summary.makespan.mean, summary.makespan.ci95.unwrap_or(0.0));
            points.push((x, mean / DAY_S));
            spreads.push(((mean - ci95) / DAY_S, (mean + ci95) / DAY_S));
        }
        Line { spreads, ..Line::of_series(policy, &PAINTS, at, points) }
    };
    policies.iter().enumerate().map(line).collect()
}

/// Returns a short name of a checkpoint setting, for an axis label.
fn name(saving: Saving) -> String {
    let Saving::Every(seconds) = saving else { return saving.to_string() };
    let unit = UNITS.into_iter().find(|(unit, _)| seconds % unit == 0.0);
    let (unit, name) = unit.unwrap_or((1.0, "s"));
    format!("{} {name}", seconds / unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_have_short_names() {
        let names = [86_400.0, 5400.0, 7200.0, 7.5].map(|seconds| name(Saving::Every(seconds)));
        assert_eq!(names, ["1 d", "90 min", "2 h", "7.5 s"]);
        assert_eq!(name(Saving::YoungDaly), "young-daly");
    }
}
