//! Times of all contenders with one vector on one network.

use std::fmt::Write as _;

use iswitch_protocol::limits::DEFAULT_SEGMENT_FLOATS;
use serde_json::{Value, json};

use super::series::bytes_text;
use super::{Contender, Links, Load, Run};
use crate::contest::{Markdown, Row, Spread, Standings};

/// Length of the headers of a packet, in bytes: Ethernet, IPv4, UDP and Seg.
const HEADER_BYTES: f64 = 14.0 + 20.0 + 8.0 + 8.0;

/// Runs of one contender.
pub type Runs = Row<Contender, Run>;

/// Returns the spread of the median times of a sum, in microseconds.
pub(super) fn us_p50(row: &Runs) -> Spread {
    row.spread(|run| run.us_p50)
}

/// Measurements of all contenders with one vector on one network.
#[derive(Clone, Debug)]
pub struct Table {
    /// Vector and rounds.
    pub load: Load,
    /// Properties of the links.
    pub links: Links,
    /// Number of workers.
    pub workers: usize,
    /// Number of racks, if the workers are in racks.
    pub racks: Option<usize>,
    /// Runs of each contender.
    pub standings: Standings<Contender, Run>,
}

impl Table {
    /// Returns a contender's time divided by that of the first contender in the same turn.
    pub fn ratio(&self, row: &Runs) -> Spread {
        row.ratio_to(self.standings.reference(), |run| run.us_p50)
    }

    /// Returns the time for which the vector, without headers, occupies a link, in microseconds. No sum can take less
    /// time.
    pub fn wire_us(&self) -> Option<f64> {
        Some(self.links.rate?.seconds_for(self.load.bytes()) * 1e6)
    }

    /// Returns the time for which the vector occupies a link, in microseconds, including the headers of the switch's
    /// packets and of Ethernet, which the shapers count.
    fn framed_wire_us(&self) -> Option<f64> {
        let segments = self.load.floats.div_ceil(u32::from(DEFAULT_SEGMENT_FLOATS));
        let bytes = self.load.bytes() + f64::from(segments) * HEADER_BYTES;
        Some(self.links.rate?.seconds_for(bytes) * 1e6)
    }

    /// Returns the time for which a contender's elements occupy a link, divided by the contender's median time.
    fn share_of_wire(&self, row: &Runs) -> Option<f64> {
        Some(self.wire_us()? * row.contender.wire_share() / us_p50(row).median)
    }

    /// Returns a title with the vector, the workers and the links.
    pub fn title(&self) -> String {
        format!("{} floats, {}", self.load.floats, self.setting())
    }

    /// Returns a figure title, with the vector length in bytes.
    pub(super) fn figure_title(&self) -> String {
        format!("{}, {}", bytes_text(self.load.bytes()), self.setting())
    }

    /// Returns the workers and the links, such as `4 workers in 2 racks, 1 Gbit/s`.
    pub(crate) fn setting(&self) -> String {
        let racks = self.racks.map_or_else(String::new, |racks| format!(" in {racks} racks"));
        format!("{} workers{racks}, {}", self.workers, self.links.text())
    }

    /// Returns the part of a file name that identifies the table.
    pub fn slug(&self) -> String {
        let racks = self.racks.map_or_else(String::new, |racks| format!("-{racks}racks"));
        let workers = if self.workers == 4 { String::new() } else { format!("-{}workers", self.workers) };
        format!("{}-{}{workers}{racks}", self.load.floats, self.links.slug())
    }

    /// Returns the fastest program that does not belong to this project, and its time divided by that of the first
    /// contender.
    pub fn best_peer(&self) -> Option<(Contender, Spread)> {
        let best = self.standings.least(|contender| contender.is_peer(), |run| run.us_p50)?;
        Some((best.contender, self.ratio(best)))
    }

    /// Returns the heading of the column with the values of [`Self::ratio`].
    pub(super) fn ratio_heading(&self) -> String {
        format!("p50 / p50 of {}", self.standings.reference().contender)
    }

    /// Returns the table as Markdown.
    pub fn text(&self) -> String {
        let relative = self.ratio_heading();
        let mut rows = Markdown::new([
            "",
            "p50, us",
            "p99, us",
            relative.as_str(),
            "share of the wire limit",
            "CPU s/GB, worker",
            "CPU s/GB, switch or server",
            "peak MiB, worker",
            "peak MiB, switch or server",
        ]);
        self.standings.rows.iter().for_each(|row| rows.row(self.cells(row)));
        let mut text = format!("### {}\n\n{}", self.title(), rows.text());
        if let (Some(bare), Some(framed)) = (self.wire_us(), self.framed_wire_us()) {
            let _ = writeln!(
                text,
                "\nFor 32-bit elements, the wire limit is {bare:.0} us, or {framed:.0} us including the \
                 headers of the switch's packets."
            );
        }
        if let Some((best, ratio)) = self.best_peer() {
            let _ = writeln!(
                text,
                "\nThe best peer is \"{best}\": it takes {} times as long as \"{}\".",
                ratio.text(2),
                self.standings.reference().contender
            );
        }
        text
    }

    fn cells(&self, row: &Runs) -> [String; 9] {
        let median = |value: fn(&Run) -> f64| row.spread(value).median;
        let share =
            self.share_of_wire(row).map_or_else(String::new, |share| format!("{:.1} %", share * 100.0));
        let mib = |kib: f64| if kib > 0.0 { format!("{:.0}", kib / 1024.0) } else { String::new() };
        let switch_cpu = median(|run| run.switch_cpu_s_per_gb);
        [
            row.contender.to_string(),
            us_p50(row).text(0),
            format!("{:.0}", median(|run| run.us_p99)),
            self.ratio(row).text(2),
            share,
            format!("{:.2}", median(|run| run.worker_cpu_s_per_gb)),
            if switch_cpu > 0.0 { format!("{switch_cpu:.2}") } else { String::new() },
            mib(median(|run| run.worker_peak_kib as f64)),
            mib(median(|run| run.switch_peak_kib as f64)),
        ]
    }

    /// Returns the table as JSON.
    pub fn json(&self) -> Value {
        let row = |row: &Runs| {
            let of = |value: fn(&Run) -> f64| row.spread(value).json();
            json!({
                "contender": row.contender.to_string(), "is_peer": row.contender.is_peer(),
                "us_p50": of(|run| run.us_p50), "us_p99": of(|run| run.us_p99), "ratio": self.ratio(row).json(),
                "share_of_wire": self.share_of_wire(row),
                "worker_cpu_s_per_gb": of(|run| run.worker_cpu_s_per_gb),
                "switch_cpu_s_per_gb": of(|run| run.switch_cpu_s_per_gb),
                "worker_peak_kib": of(|run| run.worker_peak_kib as f64),
                "switch_peak_kib": of(|run| run.switch_peak_kib as f64),
            })
        };
        json!({
            "floats": self.load.floats, "rounds": self.load.rounds, "workers": self.workers, "racks": self.racks,
            "wire_us": self.wire_us(), "framed_wire_us": self.framed_wire_us(),
            "bits_per_s": self.links.rate.map(|rate| rate.bits_per_s),
            "delay_us": self.links.delay.map(|delay| delay.as_secs_f64() * 1e6),
            "rows": self.standings.json(row),
        })
    }
}
