//! Results of the victim under all attacks.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{Attack, Condition, Load, Run};
use crate::contest::{Markdown, Spread, Standings};

/// Runs under each attack, and runs of the victim alone in the same turns.
#[derive(Clone, Debug)]
pub struct Table {
    /// Load of the victim.
    pub load: Load,
    /// For each attack, the runs of the victim alone, followed by those under attack.
    pub rows: Vec<(Attack, Standings<Condition, Run>)>,
}

/// Measurements that the table shows in one row.
struct Figures {
    alone: Spread,
    attacked: Spread,
    ratio: Spread,
    attacks_per_s: Spread,
    is_exact: bool,
}

impl Figures {
    fn of(standings: &Standings<Condition, Run>) -> Self {
        let (alone, attacked) = (standings.reference(), &standings.rows[1]);
        Self {
            alone: alone.spread(|run| run.rounds_per_s),
            attacked: attacked.spread(|run| run.rounds_per_s),
            ratio: attacked.beside(alone, |attacked, alone| {
                attacked.rounds_per_s / alone.rounds_per_s.max(f64::MIN_POSITIVE)
            }),
            attacks_per_s: attacked.spread(|run| run.attacks_per_s),
            is_exact: standings.rows.iter().flat_map(|row| &row.runs).all(|run| run.is_exact),
        }
    }
}

impl Table {
    /// Returns whether every sum was exact.
    pub fn is_exact(&self) -> bool {
        self.rows.iter().all(|(_, standings)| Figures::of(standings).is_exact)
    }

    /// Returns the table as Markdown.
    pub fn text(&self) -> String {
        let Load { workers, floats, .. } = self.load;
        let mut rows = Markdown::new([
            "attack",
            "attacks/s",
            "rounds/s alone",
            "rounds/s under attack",
            "ratio",
            "sums",
        ]);
        for (attack, standings) in &self.rows {
            let Figures { alone, attacked, ratio, attacks_per_s, is_exact } = Figures::of(standings);
            rows.row([
                attack.name(),
                &format!("{:.0}", attacks_per_s.median),
                &alone.text(0),
                &attacked.text(0),
                &ratio.text(2),
                if is_exact { "exact" } else { "WRONG" },
            ]);
        }
        let mut text = format!("### {workers} workers, {floats} floats\n\n{}", rows.text());
        for (attack, failure) in self.failures() {
            let _ = writeln!(text, "\n{}: the job failed: {failure}", attack.name());
        }
        text
    }

    /// Returns the reasons why jobs did not finish.
    fn failures(&self) -> impl Iterator<Item = (Attack, &str)> {
        self.rows.iter().flat_map(|(attack, standings)| {
            let runs = standings.rows.iter().flat_map(|row| &row.runs);
            runs.filter_map(|run| Some((*attack, run.failure.as_deref()?)))
        })
    }

    /// Returns the table as JSON.
    pub fn json(&self) -> Value {
        let row = |(attack, standings): &(Attack, Standings<Condition, Run>)| {
            let Figures { alone, attacked, ratio, attacks_per_s, is_exact } = Figures::of(standings);
            json!({
                "attack": attack.name(), "attacks_per_s": attacks_per_s.json(), "rounds_per_s_alone": alone.json(),
                "rounds_per_s_attacked": attacked.json(), "ratio": ratio.json(), "exact": is_exact,
            })
        };
        let Load { workers, floats, seconds } = self.load;
        let failures: Vec<_> = self.failures().map(|(attack, why)| [attack.name(), why]).collect();
        let rows = self.rows.iter().map(row).collect::<Vec<_>>();
        json!({ "workers": workers, "floats": floats, "seconds": seconds, "rows": rows, "failures": failures })
    }
}
