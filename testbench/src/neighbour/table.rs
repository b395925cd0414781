//! What was measured under all attacks.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{Attack, Load, Run};
use crate::spread::Spread;

/// The runs of each attack, each with the one of the victim alone in the same turn.
#[derive(Clone, Debug)]
pub struct Table {
    /// The victim.
    pub load: Load,
    /// Alone, and under attack, turn by turn.
    pub rows: Vec<(Attack, Vec<(Run, Run)>)>,
}

/// One row in figures.
struct Figures {
    alone: Spread,
    attacked: Spread,
    ratio: Spread,
    attacks_per_s: Spread,
    is_exact: bool,
}

impl Figures {
    fn of(runs: &[(Run, Run)]) -> Self {
        let spread = |value: fn(&(Run, Run)) -> f64| Spread::of(runs.iter().map(value));
        Self {
            alone: spread(|(alone, _)| alone.rounds_per_s),
            attacked: spread(|(_, attacked)| attacked.rounds_per_s),
            ratio: spread(|(alone, attacked)| {
                attacked.rounds_per_s / alone.rounds_per_s.max(f64::MIN_POSITIVE)
            }),
            attacks_per_s: spread(|(_, attacked)| attacked.attacks_per_s),
            is_exact: runs.iter().all(|(alone, attacked)| alone.is_exact && attacked.is_exact),
        }
    }
}

impl Table {
    /// Whether every sum was exact.
    pub fn is_exact(&self) -> bool {
        self.rows.iter().all(|(_, runs)| Figures::of(runs).is_exact)
    }

    /// For people, as Markdown.
    pub fn text(&self) -> String {
        let Load { workers, floats, .. } = self.load;
        let mut text = format!("### {workers} workers, {floats} floats\n\n");
        text += "| attack | attacks/s | rounds/s alone | rounds/s under attack | ratio | sums |\n";
        text += "|---|---|---|---|---|---|\n";
        for (attack, runs) in &self.rows {
            let Figures { alone, attacked, ratio, attacks_per_s, is_exact } = Figures::of(runs);
            let sums = if is_exact { "exact" } else { "WRONG" };
            let _ = writeln!(
                text,
                "| {} | {:.0} | {} | {} | {} | {sums} |",
                attack.name(),
                attacks_per_s.median,
                alone.text(0),
                attacked.text(0),
                ratio.text(2),
            );
        }
        for (attack, failure) in self.failures() {
            let _ = writeln!(text, "\n{}: the job failed: {failure}", attack.name());
        }
        text
    }

    /// Why jobs did not come to their end.
    fn failures(&self) -> impl Iterator<Item = (Attack, &str)> {
        let runs = self.rows.iter().flat_map(|(attack, runs)| runs.iter().map(move |pair| (*attack, pair)));
        let both = runs.flat_map(|(attack, (alone, attacked))| [alone, attacked].map(|run| (attack, run)));
        both.filter_map(|(attack, run)| Some((attack, run.failure.as_deref()?)))
    }

    /// For programs.
    pub fn json(&self) -> Value {
        let row = |(attack, runs): &(Attack, Vec<(Run, Run)>)| {
            let Figures { alone, attacked, ratio, attacks_per_s, is_exact } = Figures::of(runs);
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
