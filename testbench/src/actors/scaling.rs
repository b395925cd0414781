//! Training time with growing numbers of actors, each of which acts in real time: until the learner's core is busy all
//! the time, twice the actors take half the time.

use std::fmt::Write as _;

use iswitch_figure::{Axis, Line, LineChart, Paint};
use serde_json::{Value, json};

use super::site::{Outcome, Run};
use crate::spread::Spread;
use iswitch_harness::scratch;

/// Head of the lines that [`Table::csv`] gives.
pub const CSV_HEAD: &str = "actors,turn,seconds,gradients_per_s,busy,last_return\n";

/// Outcomes for each number of actors, turn by turn.
#[derive(Clone, Debug)]
pub struct Table {
    run: Run,
    rows: Vec<(usize, Vec<Outcome>)>,
}

/// Runs it with each number of actors in turns, each turn with a seed of its own.
///
/// # Panics
/// If a process fails.
pub fn measure(run: &Run, actors: &[usize], turns: usize, progress: &dyn Fn(&str)) -> Table {
    let mut rows: Vec<_> = actors.iter().map(|count| (*count, Vec::new())).collect();
    for turn in 0..turns {
        for (actors, outcomes) in &mut rows {
            let directory = scratch::directory();
            let run = Run { actors: *actors, seed: run.seed + turn as u64, ..run.clone() };
            let outcome = run.measure(&directory.path().join("run"));
            progress(&format!(
                "turn {} of {turns}: {actors} actors, {:.1} s, learner busy {:.0} %",
                turn + 1,
                outcome.seconds,
                100.0 * outcome.busy()
            ));
            outcomes.push(outcome);
        }
    }
    Table { run: run.clone(), rows }
}

fn spread(outcomes: &[Outcome], value: impl Fn(&Outcome) -> f64) -> Spread {
    Spread::of(outcomes.iter().map(value))
}

impl Table {
    /// For people, as Markdown.
    pub fn text(&self) -> String {
        let Run { env, steps, rate, .. } = &self.run;
        let mut text = format!("### DQN on {env}, {steps} steps, each actor {rate} a second\n\n");
        text += "| actors | training, s | gradients a second | learner busy | return of the last 100 episodes |\n";
        text += "|---|---|---|---|---|\n";
        for (actors, outcomes) in &self.rows {
            let _ = writeln!(
                text,
                "| {actors} | {} | {} | {} % | {} |",
                spread(outcomes, |it| it.seconds).text(1),
                spread(outcomes, Outcome::gradients_per_s).text(0),
                spread(outcomes, |it| 100.0 * it.busy()).text(0),
                spread(outcomes, |it| it.last_return).text(0),
            );
        }
        text
    }

    /// For programs.
    pub fn json(&self) -> Value {
        let row = |(actors, outcomes): &(usize, Vec<Outcome>)| {
            json!({
                "actors": actors, "seconds": spread(outcomes, |it| it.seconds).json(),
                "gradients_per_s": spread(outcomes, Outcome::gradients_per_s).json(),
                "busy": spread(outcomes, Outcome::busy).json(),
                "last_return": spread(outcomes, |it| it.last_return).json(),
            })
        };
        let Run { env, steps, rate, .. } = &self.run;
        let rows: Vec<_> = self.rows.iter().map(row).collect();
        json!({ "env": env, "steps": steps, "steps_per_second": rate, "rows": rows })
    }

    /// One line for each run, below [`CSV_HEAD`].
    pub fn csv(&self) -> String {
        let mut text = String::new();
        for (actors, outcomes) in &self.rows {
            for (turn, it) in outcomes.iter().enumerate() {
                let (gradients, busy) = (it.gradients_per_s(), it.busy());
                let _ = writeln!(
                    text,
                    "{actors},{turn},{:.3},{gradients:.1},{busy:.3},{:.1}",
                    it.seconds, it.last_return
                );
            }
        }
        text
    }

    /// Gradients a second over the number of actors, as SVG.
    pub fn figure(&self) -> String {
        let point = |(actors, outcomes): &(usize, Vec<Outcome>)| {
            (*actors as f64, spread(outcomes, Outcome::gradients_per_s).median)
        };
        let spreads = self.rows.iter().map(|(_, outcomes)| spread(outcomes, Outcome::gradients_per_s).ends());
        let measured = Line {
            width_px: 3,
            spreads: spreads.collect(),
            ..Line::new("measured", Paint::BLUE, self.rows.iter().map(point).collect())
        };
        // What the fewest actors come to, times as many.
        let proportional = self.rows.first().map(|first| {
            let (actors, rate) = point(first);
            let points = self.rows.iter().map(|(count, _)| (*count as f64, rate * *count as f64 / actors));
            Line::new("in proportion to the actors", Paint::GREEN, points.collect())
        });
        let number = |value: f64| format!("{value:.0}");
        let Run { env, rate, .. } = &self.run;
        LineChart {
            title: format!("Gradients a second over actors: DQN on {env}, each actor {rate} steps a second"),
            x: Axis { label: number, ..Axis::logarithmic() },
            y: Axis { label: number, ..Axis::logarithmic() },
            lines: [measured].into_iter().chain(proportional).collect(),
            references: Vec::new(),
        }
        .draw()
    }
}
