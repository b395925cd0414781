//! Gantt chart of the GPUs of a run: which job occupies which GPU over time, and when GPUs fail.

use super::DAY_S;
use iswitch_figure::{Axis, GanttChart, GanttRow, Quantity, Span};
use iswitch_placement::simulation::{Event, Scenario};
use iswitch_placement::state::State;

/// Maximum number of bars in a chart. A chart with more bars is unreadable, and its file is too large.
pub(super) const SPANS_MAX: usize = 20_000;

/// Recorder of a Gantt chart for the GPUs with the lowest ids.
#[derive(Clone, Debug)]
pub(super) struct Recorder {
    gpus: usize,
    jobs: usize,
    /// One row for each GPU in the chart.
    rows: Vec<Row>,
    spans: usize,
}

#[derive(Clone, Debug, Default)]
struct Row {
    /// Job that occupies the GPU, and the time at which it started, in days.
    job: Option<(usize, f64)>,
    failed_since: Option<f64>,
    spans: Vec<Span>,
    outages: Vec<(f64, f64)>,
}

impl Recorder {
    /// Creates a recorder for at most `most` GPUs of the scenario: those with the lowest ids.
    pub(super) fn new(scenario: &Scenario, most: usize) -> Self {
        let gpus = scenario.cluster().gpus();
        Self { gpus, jobs: scenario.jobs().len(), rows: vec![Row::default(); gpus.min(most)], spans: 0 }
    }

    pub(super) fn add(&mut self, state: &State<'_>, event: Event) {
        if self.spans > SPANS_MAX {
            return;
        }
        let time = state.time / DAY_S;
        match event {
            Event::Start(job) => {
                for gpu in state.gpus_of(job) {
                    if let Some(row) = self.rows.get_mut(*gpu) {
                        row.job = Some((job, time));
                    }
                }
            }
            Event::Hit { job, .. } | Event::Suspend(job) | Event::Complete(job) => {
                let rows = self.rows.iter_mut().filter(|row| row.job.is_some_and(|(other, _)| other == job));
                rows.for_each(|row| self.spans += row.release(time));
            }
            Event::Failure(gpu) => {
                if let Some(row) = self.rows.get_mut(gpu) {
                    row.failed_since = Some(time);
                }
            }
            Event::Repair(gpu) => {
                if let Some(row) = self.rows.get_mut(gpu) {
                    self.spans += row.repair(time);
                }
            }
        }
    }

    /// Closes all open bars at the end of the run.
    pub(super) fn end(&mut self, seconds: f64) {
        let time = seconds / DAY_S;
        self.rows.iter_mut().for_each(|row| self.spans += row.release(time) + row.repair(time));
    }

    /// Draws the chart. Returns `None` if it would have more than [`SPANS_MAX`] bars.
    pub(super) fn draw(self, policy: &str) -> Option<String> {
        if self.spans > SPANS_MAX {
            return None;
        }
        let shown = match self.rows.len() {
            shown if shown < self.gpus => format!("the first {shown} of {} GPUs", self.gpus),
            _ => format!("all {} GPUs", self.gpus),
        };
        let jobs = (0..self.jobs).map(|job| format!("job {job}"));
        let rows = self.rows.into_iter().enumerate();
        let row = |(gpu, row): (usize, Row)| GanttRow {
            name: format!("GPU {gpu}"),
            spans: row.spans,
            outages: row.outages,
        };
        let chart = GanttChart {
            title: format!("Jobs on GPUs over time under {policy}; {shown}"),
            note: "Colours: jobs. Black: failed GPU, from the failure (vertical line) to the repair."
                .to_owned(),
            x: Axis { includes: vec![0.0], ..Axis::linear(Quantity::new("Time", "days")) },
            outage: Some("GPU failed".to_owned()),
            series: jobs.collect(),
            rows: rows.map(row).collect(),
        };
        Some(chart.draw())
    }
}

impl Row {
    /// Closes the bar of the job that occupies the GPU, if there is one. Returns the number of bars added.
    fn release(&mut self, end: f64) -> usize {
        let Some((job, begin)) = self.job.take() else { return 0 };
        self.spans.push(Span { begin, end, part: (0.0, 1.0), series: job });
        1
    }

    /// Closes the bar of the GPU's failure, if there is one, at its repair or at the end of the run. Returns the number
    /// of bars added.
    fn repair(&mut self, end: f64) -> usize {
        let Some(begin) = self.failed_since.take() else { return 0 };
        self.outages.push((begin, end));
        1
    }
}
