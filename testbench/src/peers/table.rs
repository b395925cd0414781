//! What was measured of all contenders with one vector on one network.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{Contender, Load, Rate, Run};
use crate::spread::Spread;

fn spread(runs: &[Run], value: fn(&Run) -> f64) -> Spread {
    Spread::of(runs.iter().map(value))
}

/// One table: runs of each contender, turn by turn. The first contender is the one that the others are compared with.
#[derive(Clone, Debug)]
pub struct Table {
    /// What was summed.
    pub load: Load,
    /// How fast the links were.
    pub rate: Option<Rate>,
    /// The runs.
    pub rows: Vec<(Contender, Vec<Run>)>,
}

impl Table {
    /// How many times as long a contender takes as the first one in the same turn.
    fn ratio(&self, runs: &[Run]) -> Spread {
        let (_, first) = &self.rows[0];
        Spread::of(runs.iter().zip(first).map(|(run, first)| run.us_p50 / first.us_p50))
    }

    /// Which part of its time a contender would need at the rate of the links, which no sum can beat.
    fn share_of_wire(&self, runs: &[Run]) -> Option<f64> {
        let limit = self.rate?.seconds_for(self.load.bytes()) * 1e6;
        Some(limit / spread(runs, |run| run.us_p50).median)
    }

    /// The fastest of the others' programs, and how many times as long as the first contender it takes.
    pub fn best_peer(&self) -> Option<(Contender, Spread)> {
        let peers = self.rows.iter().filter(|(contender, _)| contender.is_peer());
        let median = |runs: &[Run]| spread(runs, |run| run.us_p50).median;
        let best = peers.min_by(|(_, a), (_, b)| median(a).total_cmp(&median(b)))?;
        Some((best.0, self.ratio(&best.1)))
    }

    /// For people, as Markdown.
    pub fn text(&self) -> String {
        let links = self.rate.map_or_else(|| "links as fast as the machine".to_owned(), Rate::text);
        let mut text = format!("### {} floats, {links}\n\n", self.load.floats);
        text += "| | p50, us | p99, us | of the first row's time | of the wire limit | CPU s/GB, worker \
                 | switch or server | peak MiB, worker | switch or server |\n";
        text += "|---|---|---|---|---|---|---|---|---|\n";
        for (contender, runs) in &self.rows {
            let median = |value: fn(&Run) -> f64| spread(runs, value).median;
            let share =
                self.share_of_wire(runs).map_or_else(String::new, |share| format!("{:.1} %", share * 100.0));
            let mib = |kib: f64| if kib > 0.0 { format!("{:.0}", kib / 1024.0) } else { String::new() };
            let switch_cpu = median(|run| run.switch_cpu_s_per_gb);
            let switch_cpu = if switch_cpu > 0.0 { format!("{switch_cpu:.2}") } else { String::new() };
            let _ = writeln!(
                text,
                "| {contender} | {} | {:.0} | {} | {share} | {:.2} | {switch_cpu} | {} | {} |",
                spread(runs, |run| run.us_p50).text(0),
                median(|run| run.us_p99),
                self.ratio(runs).text(2),
                median(|run| run.worker_cpu_s_per_gb),
                mib(median(|run| run.worker_peak_kib as f64)),
                mib(median(|run| run.switch_peak_kib as f64)),
            );
        }
        if let Some((best, ratio)) = self.best_peer() {
            let _ = writeln!(
                text,
                "\nThe best peer is {best}: {} times the time of the first row.",
                ratio.text(2)
            );
        }
        text
    }

    /// For programs.
    pub fn json(&self) -> Value {
        let row = |(contender, runs): &(Contender, Vec<Run>)| {
            let of = |value: fn(&Run) -> f64| spread(runs, value).json();
            json!({
                "contender": contender.to_string(), "is_peer": contender.is_peer(),
                "us_p50": of(|run| run.us_p50), "us_p99": of(|run| run.us_p99), "ratio": self.ratio(runs).json(),
                "share_of_wire": self.share_of_wire(runs),
                "worker_cpu_s_per_gb": of(|run| run.worker_cpu_s_per_gb),
                "switch_cpu_s_per_gb": of(|run| run.switch_cpu_s_per_gb),
                "worker_peak_kib": of(|run| run.worker_peak_kib as f64),
                "switch_peak_kib": of(|run| run.switch_peak_kib as f64),
            })
        };
        json!({
            "floats": self.load.floats, "rounds": self.load.rounds, "bits_per_s": self.rate.map(|rate| rate.bits_per_s),
            "rows": self.rows.iter().map(row).collect::<Vec<_>>(),
        })
    }
}
