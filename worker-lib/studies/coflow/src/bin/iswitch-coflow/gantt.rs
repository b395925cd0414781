//! Gantt charts of the ports. They show how the jobs share the rate of each port over time.

use iswitch_coflow::simulation::{Fabric, Interval, State};
use iswitch_coflow::workload::{Coflow, Job};
use iswitch_figure::{Axis, GanttChart, GanttRow, Quantity, Span};

/// Maximum number of bars in a chart. A chart with more bars is not readable, and its file is too large.
pub(super) const SPANS_MAX: usize = 20_000;
/// Minimum share of a port's rate for which a bar is drawn; smaller shares would not be visible.
const SHARE_MIN: f64 = 1e-3;

/// Recorder of the busiest ports of a run.
#[derive(Clone, Debug)]
pub(super) struct Recorder {
    ports: usize,
    /// Port shown in each row, ingress ports first. Egress port `p` has the number `ports + p`.
    rows: Vec<usize>,
    /// Row in which each port is shown; `None` if the port is not recorded.
    row_of: Vec<Option<usize>>,
    /// Finished bars of each row.
    done: Vec<Vec<Span>>,
    /// Unfinished bars of each row, which may extend into the next interval.
    open: Vec<Vec<Span>>,
    spans: usize,
}

impl Recorder {
    /// Creates a recorder for the `most` ingress ports and the `most` egress ports that carry the most bytes.
    pub(super) fn new(jobs: &[Job], fabric: &Fabric, most: usize) -> Self {
        let ports = fabric.ports;
        let mut loads = vec![0.0; 2 * ports];
        let coflows = jobs.iter().flat_map(Job::coflows);
        coflows.flat_map(Coflow::loads).for_each(|(port, bytes)| loads[*port] += bytes);
        let busiest = |side: std::ops::Range<usize>| {
            let mut side: Vec<usize> = side.collect();
            side.sort_by(|a, b| loads[*b].total_cmp(&loads[*a]));
            side.truncate(most);
            side.sort_unstable();
            side
        };
        let rows = [busiest(0..ports), busiest(ports..2 * ports)].concat();
        let mut row_of = vec![None; 2 * ports];
        rows.iter().enumerate().for_each(|(row, port)| row_of[*port] = Some(row));
        let empty = vec![Vec::new(); rows.len()];
        Self { ports, rows, row_of, done: empty.clone(), open: empty, spans: 0 }
    }

    pub(super) fn add(&mut self, state: &State<'_>, interval: Interval<'_>) {
        let Interval { begin, end, rates } = interval;
        if end <= begin || self.spans > SPANS_MAX {
            return;
        }
        let mut used = vec![0.0; self.rows.len()];
        let mut open = vec![Vec::new(); self.rows.len()];
        let mut shares = vec![0.0; state.ports];
        for (number, _) in rates {
            let stage = &state.stages[*number];
            shares.fill(0.0);
            state.add_port_shares(*number, &mut shares);
            for (port, _) in &stage.loads {
                // Links of racks have no rows.
                let row = self.row_of.get(*port).copied().flatten();
                let (Some(row), share) = (row, shares[*port]) else { continue };
                if share < SHARE_MIN {
                    continue;
                }
                let part = (used[row], used[row] + share);
                used[row] = part.1;
                let goes_on = |span: &&Span| {
                    let near = |a: f64, b: f64| (a - b).abs() < SHARE_MIN;
                    span.series == stage.job
                        && span.end == begin
                        && near(span.part.0, part.0)
                        && near(span.part.1, part.1)
                };
                let begin = self.open[row].iter().find(goes_on).map_or(begin, |span| span.begin);
                open[row].push(Span { begin, end, part, series: stage.job });
            }
        }
        for ((done, before), now) in self.done.iter_mut().zip(&self.open).zip(&open) {
            let is_over = |span: &&Span| {
                now.iter().all(|other| (other.begin, other.series) != (span.begin, span.series))
            };
            let over = before.iter().filter(is_over);
            let count = done.len();
            done.extend(over);
            self.spans += done.len() - count;
        }
        self.open = open;
    }

    /// Draws the chart. Returns `None` if it would have more than [`SPANS_MAX`] bars.
    pub(super) fn draw(mut self, policy: &str, jobs: usize) -> Option<String> {
        self.done.iter_mut().zip(self.open).for_each(|(done, open)| done.extend(open));
        let spans: usize = self.done.iter().map(Vec::len).sum();
        if spans > SPANS_MAX {
            return None;
        }
        let shown = if self.rows.len() < 2 * self.ports {
            format!("the {} busiest of {} ports a side", self.rows.len() / 2, self.ports)
        } else {
            format!("all {} ports a side", self.ports)
        };
        let name = |port: usize| {
            if port < self.ports { format!("in {port}") } else { format!("out {}", port - self.ports) }
        };
        let rows = self.rows.iter().zip(self.done);
        let chart = GanttChart {
            title: format!("Jobs on ports over time under {policy}; {shown}"),
            note: "Colours: jobs. Height of a bar: share of the rate of the port.".to_owned(),
            x: Axis { includes: vec![0.0], ..Axis::linear(Quantity::new("Time", "s")) },
            outage: None,
            series: (0..jobs).map(|job| format!("job {job}")).collect(),
            rows: rows
                .map(|(port, spans)| GanttRow { name: name(*port), spans, outages: Vec::new() })
                .collect(),
        };
        Some(chart.draw())
    }
}
