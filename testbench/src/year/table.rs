//! The pauses of a year, by action.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Action, Pause, Plan};
use crate::contest::{Markdown, Spread};

/// Outcome of a year in which every sum was exact and every job continued.
#[derive(Clone, Debug)]
pub struct Table {
    /// Settings of the year.
    pub plan: Plan,
    /// Actions in the order in which they were carried out.
    pub pauses: Vec<Pause>,
    /// Number of exact rounds of all jobs.
    pub rounds: u64,
}

impl Table {
    fn by_action(&self) -> BTreeMap<Action, Vec<Pause>> {
        let mut all: BTreeMap<_, Vec<_>> = BTreeMap::new();
        self.pauses.iter().for_each(|pause| all.entry(pause.action).or_default().push(*pause));
        all
    }

    /// Returns the table as Markdown.
    pub fn text(&self) -> String {
        let heads = [
            "action",
            "times",
            "longest round of the job, ms",
            "other jobs, ms",
            "job with two switches, ms",
        ];
        let mut rows = Markdown::new(heads);
        for (action, pauses) in self.by_action() {
            let cell = |spread: Option<Spread>| spread.map_or("-".to_owned(), |spread| spread.text(0));
            rows.row([
                action.name(),
                &pauses.len().to_string(),
                &cell(spread(&pauses, |pause| pause.target)),
                &cell(spread(&pauses, |pause| pause.others)),
                &cell(spread(&pauses, |pause| pause.pair)),
            ]);
        }
        let Plan { jobs, workers, seed, .. } = self.plan;
        format!(
            "### {} actions on {jobs} jobs of {workers} workers (seed {seed}): {} rounds, all exact\n\n{}",
            self.pauses.len(),
            self.rounds,
            rows.text()
        )
    }

    /// Returns the table as JSON.
    pub fn json(&self) -> Value {
        let json_of = |spread: Option<Spread>| spread.map(Spread::json);
        let row = |(action, pauses): (Action, Vec<Pause>)| {
            json!({
                "action": action.name(), "times": pauses.len(),
                "job_ms": json_of(spread(&pauses, |pause| pause.target)),
                "other_jobs_ms": json_of(spread(&pauses, |pause| pause.others)),
                "pair_ms": json_of(spread(&pauses, |pause| pause.pair)),
            })
        };
        let Plan { jobs, workers, seed, .. } = self.plan;
        let rows = self.by_action().into_iter().map(row).collect::<Vec<_>>();
        json!({
            "jobs": jobs, "workers": workers, "seed": seed, "actions": self.pauses.len(), "rounds": self.rounds,
            "rows": rows,
        })
    }
}

/// Returns the spread of the values that `pause` extracts from several actions, in milliseconds; `None` if there are
/// no values.
fn spread(pauses: &[Pause], pause: impl Fn(&Pause) -> Option<Duration>) -> Option<Spread> {
    let known: Vec<_> = pauses.iter().filter_map(pause).map(ms).collect();
    (!known.is_empty()).then(|| Spread::of(known))
}

fn ms(pause: Duration) -> f64 {
    pause.as_secs_f64() * 1e3
}
