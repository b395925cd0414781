//! Learning curves as a figure.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, bail};
use iswitch_figure::{Axis, Line, LineChart, Paint, Quantity, Reference};

use crate::statistics::Estimate;

/// File of a run directory that contains the learning curve.
pub const CURVE_FILE: &str = "progress.csv";
/// Column with the mean return of the last 100 episodes.
const RETURN_COLUMN: &str = "charts/mean_return_100";
/// Number of points of a curve that summarises several runs. The runs have points at different steps, so their curves
/// are sampled at common steps.
const POINTS: u32 = 60;
/// Number of resamples for the interval of each point.
const RESAMPLES: usize = 1_000;
/// Colours of the lines, in order; further lines reuse these colours and are dashed.
const PAINTS: [Paint; 7] =
    [Paint::BLUE, Paint::RED, Paint::GREEN, Paint::YELLOW, Paint::PURPLE, Paint::INK, Paint::GREY];

/// Points of a learning curve: environment steps and mean return of the last 100 episodes.
pub type Curve = Vec<(f64, f64)>;

/// Reads the learning curve of a run.
///
/// # Errors
/// Fails if the file cannot be read or lacks the mean-return column.
pub fn read(run: &Path) -> anyhow::Result<Curve> {
    let path = run.join(CURVE_FILE);
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let mut rows = text.lines().map(|row| row.split(',').collect::<Vec<_>>());
    let header = rows.next().unwrap_or_default();
    let Some(column) = header.iter().position(|name| *name == RETURN_COLUMN) else {
        bail!(
            "{}: there is no column {RETURN_COLUMN}; expected a file written by `iswitch train`",
            path.display()
        );
    };
    // Rows before the end of the first episode have no return.
    Ok(rows.filter_map(|row| Some((row.first()?.parse().ok()?, row.get(column)?.parse().ok()?))).collect())
}

/// Learning curves of the runs of one configuration.
#[derive(Clone, Debug, Default)]
pub struct Curves {
    /// Name of the configuration.
    pub name: String,
    /// Curve of each run.
    pub runs: Vec<Curve>,
}

/// Figure of learning curves.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Title.
    pub title: String,
    /// Explanation that is shown below the title.
    pub note: String,
    /// Return at which the environment counts as solved; infinite if there is none.
    pub solved_return: f64,
}

impl Figure {
    /// Draws a line for each configuration, as SVG: the curve of its only run, or the interquartile mean over its runs
    /// with a band for the 95 % interval.
    pub fn draw(self, configurations: &[Curves]) -> String {
        let lines = configurations.iter().enumerate().map(|(at, Curves { name, runs })| {
            let (points, band) = match &runs[..] {
                [run] => (run.clone(), Vec::new()),
                runs => estimates(runs)
                    .into_iter()
                    .map(|(steps, Estimate { iqm, low, high })| ((steps, iqm), (steps, low, high)))
                    .unzip(),
            };
            Line { band, ..Line::of_series(name.clone(), &PAINTS, at, points) }
        });
        let solved = Reference { name: "solved".to_owned(), paint: Paint::INK, value: self.solved_return };
        LineChart {
            title: self.title,
            note: self.note,
            x: Axis { includes: vec![0.0], ..Axis::linear(Quantity::plain("Environment steps")) },
            y: Axis::linear(Quantity::plain("Mean return of the last 100 episodes")),
            lines: lines.collect(),
            references: vec![solved],
        }
        .draw()
    }
}

/// Returns the interquartile means of the curves and their confidence intervals, at equidistant numbers of steps within
/// the range that all curves cover. Empty curves are ignored.
pub fn estimates(curves: &[Curve]) -> Vec<(f64, Estimate)> {
    let first = curves.iter().filter_map(|curve| curve.first()).map(|(steps, _)| *steps).fold(0.0, f64::max);
    let last = curves.iter().filter_map(|curve| curve.last()).map(|(steps, _)| *steps);
    let last = last.fold(f64::INFINITY, f64::min);
    if !last.is_finite() {
        return Vec::new();
    }
    let places = (0..=POINTS).map(|at| first + (last - first) * f64::from(at) / f64::from(POINTS));
    let estimate = |steps: f64| {
        let values: Vec<_> = curves.iter().filter_map(|curve| value_at(curve, steps)).collect();
        Some((steps, Estimate::of(&values, RESAMPLES)?))
    };
    places.filter_map(estimate).collect()
}

/// Returns the last value of a curve at or before `steps`, or `None` if the curve begins later.
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
        let points = estimates(&[curve(10.0, 100.0, 1.0), curve(20.0, 90.0, 3.0), Vec::new()]);
        let (steps, first) = points[0];
        assert_eq!((steps, first.iqm), (20.0, 0.5), "1 and 0 at 20 steps");
        assert_eq!(points.last(), Some(&(90.0, Estimate { iqm: 2.0, low: 1.0, high: 3.0 })));
        assert_eq!(points.len(), POINTS as usize + 1);
        assert_eq!(estimates(&[Vec::new()]), []);
    }

    #[test]
    fn a_single_run_is_drawn_as_it_is() {
        let figure = Figure { title: "t".to_owned(), note: String::new(), solved_return: f64::INFINITY };
        let runs = |count: usize| vec![vec![(0.0, 1.0), (10.0, 5.0), (20.0, 2.0)]; count];
        let draw = |count: usize| {
            let svg = figure.clone().draw(&[Curves { name: "ppo".to_owned(), runs: runs(count) }]);
            svg.matches("<polygon").count()
        };
        assert_eq!([1, 2].map(draw), [0, 1], "only several runs have a band");
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
