//! Training runs up to a target return. They count the updates that asynchronous methods need, and show that all
//! synchronous methods have the same learning curve.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use iswitch::ElementTypes;
use serde_json::{Value, json};

use super::asynchronous::mean;
use super::paper::STALENESS_BOUND;
use super::tasks::{Method, Task};
use crate::contest::{Contest, Markdown, Progress, Row, Spread, Standings};
use iswitch_harness::binaries;
use iswitch_harness::process::{Process, command};
use iswitch_harness::scratch;

const TIMEOUT: Duration = Duration::from_secs(3600);
/// Maximum difference between the returns of two curves that are considered equal, as a fraction of the return.
const SAME: f64 = 0.01;

/// Point of a learning curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Number of environment steps over all workers.
    pub steps: f64,
    /// Seconds since the start.
    pub seconds: f64,
    /// Fraction of the run's updates up to this point. Consecutive rows of the file are the same number of updates
    /// apart.
    pub part: f64,
    /// Mean return of the last 100 episodes.
    pub mean_return: f64,
}

/// Result of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Training {
    /// Seed of the run.
    pub seed: u64,
    /// Learning curve.
    pub points: Vec<Point>,
    /// Number of updates of the whole run.
    pub updates: f64,
    /// Number of environment steps of the whole run.
    pub steps: f64,
    /// Mean return at the end.
    pub final_return: Option<f64>,
    /// Mean staleness when committed, in updates; `None` for a synchronous run.
    pub staleness: Option<f64>,
}

/// First point at which a run reached the target return of its task.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reached {
    /// Number of updates up to this point.
    pub updates: f64,
    /// Number of environment steps up to this point.
    pub steps: f64,
    /// Seconds up to this point.
    pub seconds: f64,
}

impl Training {
    /// Returns the first point at which the mean return reached `threshold`.
    pub fn reached(&self, threshold: f64) -> Option<Reached> {
        let Point { steps, seconds, part, .. } =
            self.points.iter().find(|point| point.mean_return >= threshold).copied()?;
        Some(Reached { updates: self.updates * part, steps, seconds })
    }

    /// Returns the number of steps after which this curve first differs from the other curve by more than 1 % of its
    /// own mean return.
    pub fn same_until(&self, other: &Self) -> f64 {
        let parted = self.points.iter().zip(&other.points).find(|(a, b)| {
            a.steps != b.steps || (a.mean_return - b.mean_return).abs() > SAME * a.mean_return.abs().max(1.0)
        });
        let shorter = self.steps.min(other.steps);
        parted.map_or(shorter, |(a, _)| a.steps)
    }

    /// Returns the average of the mean return over the whole curve.
    pub fn mean_return(&self) -> f64 {
        self.points.iter().map(|point| point.mean_return).sum::<f64>() / self.points.len().max(1) as f64
    }
}

/// Reads the columns `step`, `charts/mean_return_100` and `charts/SPS` of a `progress.csv` file. Rows without episodes
/// are skipped.
///
/// # Errors
/// Fails if a column or a number is missing.
pub fn read_curve(csv: &str) -> Result<Vec<Point>, String> {
    let mut lines = csv.lines();
    let header: Vec<_> = lines.next().unwrap_or_default().split(',').collect();
    let column = |name: &str| {
        header
            .iter()
            .position(|column| *column == name)
            .ok_or_else(|| format!("column {name} is missing, found only {header:?}"))
    };
    let (step, mean, speed) = (column("step")?, column("charts/mean_return_100")?, column("charts/SPS")?);
    let (mut points, mut before, mut seconds) = (Vec::new(), 0.0, 0.0);
    let rows = lines.clone().count() as f64;
    for (row, line) in lines.enumerate() {
        let cells: Vec<_> = line.split(',').collect();
        let number = |at: usize| cells.get(at).and_then(|cell| cell.parse::<f64>().ok());
        let (Some(steps), Some(speed)) = (number(step), number(speed)) else {
            return Err(format!("expected numbers in {line:?}"));
        };
        seconds += if speed > 0.0 { (steps - before) / speed } else { 0.0 };
        before = steps;
        if let Some(mean_return) = number(mean) {
            points.push(Point { steps, seconds, part: (row + 1) as f64 / rows, mean_return });
        }
    }
    Ok(points)
}

/// Runs `iswitch train` once in a temporary directory, which is removed afterwards.
///
/// # Panics
/// Panics if the run fails.
pub fn train(task: Task, method: Method, workers: usize, seed: u64, steps: Option<u64>) -> Training {
    let directory = scratch::directory();
    let out = directory.path().join("run");
    let mut command = command(binaries::iswitch());
    command.args([
        "train",
        task.algorithm,
        "--env",
        task.env,
        "--json",
        "--quiet",
        "--checkpoint-every",
        "0",
    ]);
    command.args(["--seed", &seed.to_string()]).arg("--out").arg(&out);
    let workers = if method.aggregator == "local" { 1 } else { workers };
    command.args(["--workers", &workers.to_string(), "--aggregator", method.aggregator]);
    if method.elements != ElementTypes::F32 {
        command.args(["--wire", &method.elements.to_string()]);
    }
    if method.is_async {
        command.args(["--async", "--staleness", &STALENESS_BOUND.to_string()]);
    }
    if let Some(steps) = steps {
        command.args(["--steps", &steps.to_string()]);
    }
    let name = format!("iswitch train {} by {method}", task.algorithm);
    let printed = Process::spawn(&name, &mut command).wait_success(TIMEOUT);
    read_training(&printed, &out, seed).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn read_training(printed: &str, out: &Path, seed: u64) -> Result<Training, String> {
    let result: Value = serde_json::from_str(printed.lines().last().unwrap_or_default())
        .map_err(|error| format!("{error} in {printed:?}"))?;
    let csv = std::fs::read_to_string(out.join("progress.csv")).map_err(|error| error.to_string())?;
    let number = |field: &str| {
        let missing = || format!("{field} is missing or not a number in the result {result}");
        result[field].as_f64().ok_or_else(missing)
    };
    let staleness = result["staleness"].as_array().map(|counts| {
        let counts: Vec<_> = counts.iter().filter_map(Value::as_u64).collect();
        mean(&counts)
    });
    Ok(Training {
        seed,
        points: read_curve(&csv)?,
        updates: number("iterations")?,
        steps: number("steps")?,
        final_return: result["final_return"].as_f64(),
        staleness,
    })
}

/// All runs of one task.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Training task.
    pub task: Task,
    /// Number of workers.
    pub workers: usize,
    /// Runs of each method. Each seed is one turn.
    pub standings: Standings<Method, Training>,
}

/// Trains with each method in alternating turns, one turn for each of `seeds` seeds starting at `first_seed`.
///
/// # Panics
/// Panics in the same cases as [`train`].
pub fn measure(
    task: Task,
    methods: &[Method],
    workers: usize,
    (first_seed, seeds): (u64, u64),
    steps: Option<u64>,
    progress: &Progress,
) -> Comparison {
    let contest = Contest::new(methods.iter().copied(), seeds as usize);
    let contest = contest.titled(format!("{} on {}", task.algorithm, task.env));
    let standings = contest
        .hold(progress, |method, turn| train(task, *method, workers, first_seed + turn.index as u64, steps));
    Comparison { task, workers, standings }
}

impl Comparison {
    /// Returns the spread of a value over the seeds that reached the task's target return; `None` if no seed did.
    fn reached(&self, trainings: &[Training], value: fn(&Reached) -> f64) -> Option<Spread> {
        let values: Vec<_> = trainings
            .iter()
            .filter_map(|training| training.reached(self.task.threshold))
            .map(|reached| value(&reached))
            .collect();
        (!values.is_empty()).then(|| Spread::of(values))
    }

    /// Returns the table as Markdown.
    pub fn text(&self) -> String {
        let Task { algorithm, env, threshold } = self.task;
        let mut rows = Markdown::new([
            "",
            "seeds that reached the return",
            "updates to reach it",
            "environment steps",
            "seconds",
            "mean staleness",
            "mean return over the run",
            "mean return at the end",
            "steps until the return differs by more than 1 % from that of the first row",
        ]);
        self.standings.rows.iter().for_each(|row| rows.row(self.cells(row)));
        let mut text = format!(
            "### {} on {env} to a mean return of {threshold}, {} workers (real)\n\n{}",
            algorithm.to_uppercase(),
            self.workers,
            rows.text()
        );
        if let Some(ratio) = self.fewer_gradients() {
            let _ = writeln!(
                text,
                "\nNumber of gradients applied until the return was reached, first row divided by second row: \
                 {ratio:.2}."
            );
        }
        text
    }

    fn cells(&self, row: &Row<Method, Training>) -> [String; 9] {
        let Row { contender: method, runs } = row;
        let cell = |value: fn(&Reached) -> f64, digits: usize| {
            self.reached(runs, value).map_or_else(|| "never".to_owned(), |spread| spread.text(digits))
        };
        let reached = runs.iter().filter(|it| it.reached(self.task.threshold).is_some()).count();
        let over = |value: fn(&Training) -> Option<f64>, digits: usize| {
            let values: Vec<_> = runs.iter().filter_map(value).collect();
            if values.is_empty() { String::new() } else { Spread::of(values).text(digits) }
        };
        let same_until = || row.beside(self.standings.reference(), Training::same_until).text(0);
        [
            method.to_string(),
            format!("{reached} of {}", runs.len()),
            cell(|reached| reached.updates, 0),
            cell(|reached| reached.steps, 0),
            cell(|reached| reached.seconds, 1),
            over(|it| it.staleness, 2),
            over(|it| Some(it.mean_return()), 1),
            over(|it| it.final_return, 1),
            if method.is_async { String::new() } else { same_until() },
        ]
    }

    /// Returns the number of gradients that the asynchronous parameter server needs to reach the target return, divided
    /// by the number that the asynchronous switch needs. An update of the server contains one gradient; an update of
    /// the switch contains one gradient from each worker.
    fn fewer_gradients(&self) -> Option<f64> {
        let [server, switch] = self.standings.rows.as_slice() else { return None };
        let updates =
            |row: &Row<Method, Training>| Some(self.reached(&row.runs, |reached| reached.updates)?.median);
        (server.contender.is_async && switch.contender.is_async).then_some(())?;
        Some(updates(server)? / (updates(switch)? * self.workers as f64))
    }

    /// Returns the table as JSON.
    pub fn json(&self) -> Value {
        let run = |training: &Training| {
            let reached = training.reached(self.task.threshold);
            json!({
                "seed": training.seed, "updates": training.updates, "steps": training.steps,
                "final_return": training.final_return, "mean_return": training.mean_return(),
                "staleness": training.staleness,
                "reached": reached.map(|it| json!({
                    "updates": it.updates, "steps": it.steps, "seconds": it.seconds,
                })),
            })
        };
        let row = |row: &Row<Method, Training>| {
            let runs: Vec<_> = row.runs.iter().map(run).collect();
            json!({ "method": row.contender.to_string(), "runs": runs })
        };
        json!({
            "part": "convergence", "algorithm": self.task.algorithm, "environment": self.task.env,
            "threshold": self.task.threshold, "workers": self.workers,
            "gradients_server_over_switch": self.fewer_gradients(),
            "rows": self.standings.json(row),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tasks::TASKS;
    use super::*;

    const CSV: &str = "step,charts/episodic_return,charts/mean_return_100,charts/SPS\n\
                       100,,,50\n200,9,9,100\n300,21,20,100\n400,500,480,200\n500,1,490,100\n";

    fn training() -> Training {
        Training {
            seed: 1,
            points: read_curve(CSV).unwrap(),
            updates: 300.0,
            steps: 500.0,
            final_return: Some(490.0),
            staleness: None,
        }
    }

    #[test]
    fn learning_curves_are_parsed() {
        let points = read_curve(CSV).unwrap();
        assert_eq!(points.len(), 4);
        assert_eq!(points[2], Point { steps: 400.0, seconds: 4.5, part: 0.8, mean_return: 480.0 });
        assert!(read_curve("step,charts/SPS\n").unwrap_err().contains("charts/mean_return_100"));
        assert!(read_curve("step,charts/mean_return_100,charts/SPS\nx,1,2\n").is_err());
    }

    #[test]
    fn the_first_crossing_of_the_target_counts() {
        let training = training();
        let reached = training.reached(475.0).unwrap();
        assert_eq!(reached, Reached { updates: 240.0, steps: 400.0, seconds: 4.5 });
        assert_eq!(training.reached(495.0), None);
    }

    #[test]
    fn diverging_curves_are_detected() {
        let first = training();
        let mut other = training();
        assert_eq!(first.same_until(&other), 500.0);
        other.points[2].mean_return = 484.0;
        assert_eq!(first.same_until(&other), 500.0, "differences within one percent must not count");
        other.points[2].mean_return = 400.0;
        assert_eq!(first.same_until(&other), 400.0);
    }

    #[test]
    fn runs_that_never_reach_the_target_are_reported() {
        let mut never = training();
        never.points.truncate(2);
        let [server, switch] = Method::ASYNCHRONOUS;
        let compare = |of_server| {
            let rows = [(server, vec![of_server]), (switch, vec![training()])];
            Comparison { task: TASKS[0], workers: 4, standings: rows.into_iter().collect() }
        };
        let comparison = compare(never);
        let text = comparison.text();
        assert!(
            text.contains("| parameter server, asynchronous | 0 of 1 | never | never | never |"),
            "{text}"
        );
        assert!(text.contains("| switch, asynchronous | 1 of 1 | 240 (240 to 240) |"), "{text}");
        assert_eq!(comparison.json()["rows"][0]["runs"][0]["reached"], Value::Null);
        assert_eq!(comparison.fewer_gradients(), None);
        let mut later = training();
        later.points.remove(2);
        assert_eq!(compare(later).fewer_gradients(), Some(300.0 / 960.0));
    }
}
