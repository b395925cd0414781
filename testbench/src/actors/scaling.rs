//! Training time for increasing numbers of actors, each of which acts in real time. Doubling the number of actors
//! halves the time, until the learner's core is always busy.

use std::fmt::{self, Write as _};

use iswitch_figure::{Axis, Line, LineChart, Paint, Quantity};
use serde_json::{Value, json};

use super::testbed::{Outcome, Run};
use crate::contest::{Contest, Markdown, Progress, Row, Standings};
use iswitch_harness::scratch;

/// Header of the lines that [`Table::csv`] returns.
pub const CSV_HEAD: &str = "actors,turn,seconds,gradients_per_s,busy,last_return\n";

/// Outcomes for each number of actors.
#[derive(Clone, Debug)]
pub struct Table {
    run: Run,
    standings: Standings<Actors, Outcome>,
}

/// Number of actors. Each number is a contender of the contest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Actors(usize);

impl fmt::Display for Actors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} actors", self.0)
    }
}

/// Trains once with each number of actors in each turn; each turn has its own seed.
///
/// # Panics
/// Panics if a process fails.
pub fn measure(run: &Run, actors: &[usize], turns: usize, progress: &Progress) -> Table {
    let contest = Contest::new(actors.iter().copied().map(Actors), turns).seeded(run.seed);
    let standings = contest.hold(progress, |Actors(actors), turn| {
        let directory = scratch::directory();
        let run = Run { actors: *actors, seed: run.seed + turn.index as u64, ..run.clone() };
        let outcome = run.measure(&directory.path().join("run"));
        turn.report(format!("{:.1} s, learner busy {:.0} %", outcome.seconds, 100.0 * outcome.busy()));
        outcome
    });
    Table { run: run.clone(), standings }
}

impl Table {
    /// Returns the table as Markdown.
    pub fn text(&self) -> String {
        let Run { env, steps, rate, .. } = &self.run;
        let mut rows = Markdown::new([
            "actors",
            "training, s",
            "gradients/s",
            "learner busy",
            "return of the last 100 episodes",
        ]);
        for row in &self.standings.rows {
            rows.row([
                row.contender.0.to_string(),
                row.spread(|it| it.seconds).text(1),
                row.spread(Outcome::gradients_per_s).text(0),
                format!("{} %", row.spread(|it| 100.0 * it.busy()).text(0)),
                row.spread(|it| it.last_return).text(0),
            ]);
        }
        format!("### DQN on {env}, {steps} steps, each actor at {rate} steps/s\n\n{}", rows.text())
    }

    /// Returns the table as JSON.
    pub fn json(&self) -> Value {
        let row = |row: &Row<Actors, Outcome>| {
            json!({
                "actors": row.contender.0, "seconds": row.spread(|it| it.seconds).json(),
                "gradients_per_s": row.spread(Outcome::gradients_per_s).json(),
                "busy": row.spread(Outcome::busy).json(),
                "last_return": row.spread(|it| it.last_return).json(),
            })
        };
        let Run { env, steps, rate, .. } = &self.run;
        let rows = self.standings.json(row);
        json!({ "env": env, "steps": steps, "steps_per_second": rate, "rows": rows })
    }

    /// Returns one line for each run, to follow [`CSV_HEAD`].
    pub fn csv(&self) -> String {
        let mut text = String::new();
        for Row { contender: Actors(actors), runs } in &self.standings.rows {
            for (turn, it) in runs.iter().enumerate() {
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

    /// Returns a figure of the gradients per second by number of actors, as SVG.
    pub fn figure(&self) -> String {
        let rate = |row: &Row<Actors, Outcome>| row.spread(Outcome::gradients_per_s);
        let point = |row: &Row<Actors, Outcome>| (row.contender.0 as f64, rate(row).median);
        let rows = || self.standings.rows.iter();
        let measured = Line {
            width_px: 3,
            spreads: rows().map(|row| rate(row).ends()).collect(),
            ..Line::new("measured", Paint::BLUE, rows().map(point).collect())
        };
        // Rate with the smallest number of actors, scaled in proportion to the number of actors.
        let proportional = rows().next().map(|first| {
            let (actors, rate) = point(first);
            let points = rows().map(|row| (row.contender.0 as f64, rate * row.contender.0 as f64 / actors));
            Line::new("proportional", Paint::GREY, points.collect())
        });
        let number = |value: f64| format!("{value:.0}");
        let Run { env, rate, .. } = &self.run;
        LineChart {
            title: format!("Learner throughput by number of actors: DQN on {env}, {rate} steps/s per actor"),
            note: format!(
                "Measured: {}; proportional: extrapolated from the fewest actors.",
                self.standings.note()
            ),
            x: Axis { label: number, ..Axis::logarithmic(Quantity::plain("Actors")) },
            y: Axis { label: number, ..Axis::logarithmic(Quantity::plain("Gradients per second")) },
            lines: [measured].into_iter().chain(proportional).collect(),
            references: Vec::new(),
        }
        .draw()
    }
}
