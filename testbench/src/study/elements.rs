//! Comparison of the returns of training with 16-bit elements and with 32-bit elements.

use serde_json::{Value, json};

use iswitch::ElementTypes;

use super::convergence::{self, Comparison, Training};
use super::tasks::{Method, Task};
use crate::contest::{Interval, Markdown, Progress, Row};

/// Training runs of one task. The first row is the reference for all other element types.
#[derive(Clone, Debug)]
pub struct Returns(pub Comparison);

/// Trains through the switch with each of the element types in alternating turns, once for each of `seeds` seeds
/// starting at `first_seed`.
///
/// # Panics
/// Panics in the same cases as [`convergence::measure`].
pub fn measure(
    task: Task,
    wire: &[ElementTypes],
    workers: usize,
    seeds: (u64, u64),
    progress: &Progress,
) -> Returns {
    let methods: Vec<_> =
        wire.iter().map(|elements| Method { elements: *elements, ..Method::SWITCH }).collect();
    Returns(convergence::measure(task, &methods, workers, seeds, None, progress))
}

/// Function that extracts a number from a run, such as its final return.
type Figure = fn(&Training) -> f64;

const FIGURES: [Figure; 2] = [|run| run.final_return.unwrap_or(f64::NAN), Training::mean_return];

impl Returns {
    /// Returns the mean, over the runs of a row, of the number that `figure` extracts, with its confidence interval.
    fn interval(row: &Row<Method, Training>, figure: Figure) -> Interval {
        Interval::of(&row.runs.iter().map(figure).collect::<Vec<_>>())
    }

    /// Returns the mean difference between a row and the first row in the number that `figure` extracts. Runs with the
    /// same seed are paired.
    fn difference(&self, row: &Row<Method, Training>, figure: Figure) -> Interval {
        let pairs = row.runs.iter().zip(&self.0.standings.reference().runs);
        Interval::of(&pairs.map(|(run, wide)| figure(run) - figure(wide)).collect::<Vec<_>>())
    }

    /// Returns whether, in every row, the mean of the number that `figure` extracts is at or above the lower bound of
    /// the first row's interval.
    fn holds(&self, figure: Figure) -> bool {
        let low = Self::interval(self.0.standings.reference(), figure).low;
        self.0.standings.rows.iter().all(|row| Self::interval(row, figure).mean >= low)
    }

    /// Returns the table as Markdown.
    pub fn text(&self) -> String {
        let Task { algorithm, env, threshold } = self.0.task;
        let mut rows = Markdown::new([
            "elements",
            "seeds that reached the return",
            "mean return at the end",
            "difference at the end",
            "mean return over the run",
            "difference over the run",
        ]);
        for row in &self.0.standings.rows {
            let reached = row.runs.iter().filter(|run| run.reached(threshold).is_some()).count();
            let [at_end, over_run] = FIGURES.map(|figure| Self::interval(row, figure).text(1));
            let [by_end, by_run] = FIGURES.map(|figure| self.difference(row, figure).text(1));
            let name = row.contender.elements.to_string();
            let reached = format!("{reached} of {}", row.runs.len());
            rows.row([name, reached, at_end, by_end, over_run, by_run]);
        }
        let verdict = FIGURES.map(|figure| if self.holds(figure) { "yes" } else { "NO" });
        format!(
            "### {} on {env} (return {threshold}), {} workers, means over seeds with 95 % confidence intervals\n\n{}\n\
             Is every mean at or above the lower bound of the first row's interval? At the end: {}; over the run: \
             {}.\n",
            algorithm.to_uppercase(),
            self.0.workers,
            rows.text(),
            verdict[0],
            verdict[1]
        )
    }

    /// Returns the table as JSON.
    pub fn json(&self) -> Value {
        let row = |row: &Row<Method, Training>| {
            let [at_end, over_run] = FIGURES.map(|figure| Self::interval(row, figure).json());
            let [by_end, by_run] = FIGURES.map(|figure| self.difference(row, figure).json());
            let run = |run: &Training| {
                let Training { seed, final_return, .. } = run;
                json!({ "seed": seed, "final_return": final_return, "mean_return": run.mean_return() })
            };
            json!({
                "elements": row.contender.elements.to_string(), "final_return": at_end, "mean_return": over_run,
                "final_return_difference": by_end, "mean_return_difference": by_run,
                "runs": row.runs.iter().map(run).collect::<Vec<_>>(),
            })
        };
        json!({
            "part": "elements", "algorithm": self.0.task.algorithm, "environment": self.0.task.env,
            "threshold": self.0.task.threshold, "workers": self.0.workers,
            "final_return_holds": self.holds(FIGURES[0]), "mean_return_holds": self.holds(FIGURES[1]),
            "rows": self.0.standings.json(row),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::convergence::Point;
    use super::super::tasks::TASKS;
    use super::*;

    fn run(seed: u64, at_end: f64) -> Training {
        let point = |mean_return| Point { steps: 1.0, seconds: 1.0, part: 1.0, mean_return };
        Training {
            seed,
            points: vec![point(at_end / 2.0), point(at_end)],
            updates: 1.0,
            steps: 1.0,
            final_return: Some(at_end),
            staleness: None,
        }
    }

    #[test]
    fn a_mean_below_the_interval_of_the_first_row_is_reported() {
        let of = |name: &str| Method { elements: name.parse().unwrap(), ..Method::SWITCH };
        let runs =
            |returns: [f64; 3]| returns.iter().zip(1..).map(|(x, seed)| run(seed, *x)).collect::<Vec<_>>();
        let compare = |narrow| {
            let rows = [(of("f32"), runs([480.0, 490.0, 500.0])), (of("bf16"), runs(narrow))];
            Returns(Comparison { task: TASKS[0], workers: 4, standings: rows.into_iter().collect() })
        };
        let equal = compare([500.0, 480.0, 490.0]);
        assert!(equal.text().contains("At the end: yes; over the run: yes"), "{}", equal.text());
        let worse = compare([300.0, 490.0, 500.0]);
        assert!(worse.text().contains("At the end: NO; over the run: NO"), "{}", worse.text());
        assert_eq!(worse.json()["rows"][1]["final_return_difference"]["mean"], -60.0);
        assert_eq!(worse.json()["final_return_holds"], false);
    }
}
