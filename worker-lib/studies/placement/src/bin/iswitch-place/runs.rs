//! Simulated runs of all policies on all draws.

use iswitch_placement::simulation::{Event, GpuTime, Outcome, Scenario};
use iswitch_placement::state::State;
use iswitch_study::contest::{Contest, Series, Turn};
use iswitch_study::table::{OrEmpty, Output};

use super::decisions::Decisions;
use super::gantt::Recorder;
use super::source::PolicySource;
use super::workload::{Condition, Workload};

/// Results of all runs.
pub(super) struct Runs {
    /// Runs of each condition and policy, ordered by condition and then by policy.
    pub(super) policies: Vec<PolicyRuns>,
    /// Output table with one row for each job of each draw under each condition and policy.
    pub(super) per_job: Output,
}

/// Runs of one policy under one condition.
pub(super) type PolicyRuns = Series<Condition, Run>;

/// Result of one run.
pub(super) struct Run {
    pub(super) measured: Measured,
    /// Number of jobs in the draw.
    pub(super) jobs: usize,
    /// Recording for the Gantt chart. Present only for the first draw, and only if a chart was requested.
    pub(super) gantt: Option<Recorder>,
    /// Log of the decisions. Present only for the first draw, and only if the log was requested.
    pub(super) decisions: Option<Decisions>,
}

/// What to record during the first draw of each policy.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Recording {
    /// Maximum number of GPUs in the Gantt chart; `None` if no chart was requested.
    pub(super) gantt_gpus: Option<usize>,
    /// Whether to log all decisions.
    pub(super) decisions: bool,
}

/// Measurements of one run. Times are in seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    pub(super) makespan: f64,
    /// Mean completion time of the completed jobs. The percentile fields cover all jobs; a percentile is `None` if it
    /// falls on a job that did not complete.
    pub(super) jct_mean: Option<f64>,
    pub(super) jct_p50: Option<f64>,
    pub(super) jct_p95: Option<f64>,
    pub(super) jct_p99: Option<f64>,
    pub(super) failures: u64,
    pub(super) hits: u64,
    pub(super) suspensions: u64,
    pub(super) unfinished: usize,
    pub(super) gpu_time: GpuTime,
    pub(super) ettr: Option<f64>,
}

impl Measured {
    fn of(outcome: &Outcome) -> Self {
        Self {
            makespan: outcome.makespan,
            jct_mean: outcome.mean_completion_time(),
            jct_p50: outcome.completion_time_percentile(0.5),
            jct_p95: outcome.completion_time_percentile(0.95),
            jct_p99: outcome.completion_time_percentile(0.99),
            failures: outcome.failures,
            hits: outcome.hits,
            suspensions: outcome.suspensions,
            unfinished: outcome.unfinished(),
            gpu_time: outcome.gpu_time,
            ettr: outcome.ettr,
        }
    }
}

/// Time of a job's first start, in seconds, the number of its starts, and the number of failures that stopped it.
#[derive(Clone, Copy, Debug, Default)]
struct JobRecord {
    started: Option<f64>,
    runs: u32,
    failures: u32,
}

const PER_JOB: &str =
    "rate_factor,checkpoint,draw,policy,job,arrival_s,gpus,duration_s,started_s,jct_s,starts,hits";

impl Runs {
    /// Runs all policies on all draws, and records the first draw of each policy as requested.
    pub(super) fn of(
        contest: &Contest<PolicySource>,
        workload: &Workload,
        conditions: &[Condition],
        recording: Recording,
        quiet: bool,
    ) -> anyhow::Result<Self> {
        conditions.iter().try_for_each(|condition| workload.check(*condition))?;
        let mut per_job = Output::new(PER_JOB);
        let prepare = |condition: &Condition, draw| workload.scenario(draw, *condition);
        let policies = contest.run(conditions, workload.draws(), quiet, prepare, |turn, _| {
            let recording = if turn.is_first { recording } else { Recording::default() };
            run(&turn, recording, &mut per_job)
        })?;
        Ok(Self { policies, per_job })
    }
}

/// Runs one policy on one draw and adds a row for each job to `per_job`.
fn run(
    turn: &Turn<'_, PolicySource, Condition, Scenario>,
    recording: Recording,
    per_job: &mut Output,
) -> anyhow::Result<Run> {
    let scenario = turn.world;
    let mut gantt = recording.gantt_gpus.map(|gpus| Recorder::new(scenario, gpus));
    let mut decisions = recording.decisions.then(Decisions::new);
    let mut records = vec![JobRecord::default(); scenario.jobs().len()];
    let mut is_watched = false;
    let mut watch = |state: &State<'_>, event: Event| {
        is_watched = true;
        if let Event::Start(job) | Event::Hit { job, .. } = event {
            let progress = &state.progress[job];
            let (started, runs, failures) = (progress.started, progress.runs, progress.failures);
            records[job] = JobRecord { started, runs, failures };
        }
        if let Some(recorder) = &mut gantt {
            recorder.add(state, event);
        }
        if let Some(decisions) = &mut decisions {
            decisions.add(state, event);
        }
    };
    let outcome = turn.policy.run(scenario, turn.draw, &mut watch)?;
    let mut gantt = gantt.filter(|_| is_watched);
    if let Some(recorder) = &mut gantt {
        recorder.end(outcome.makespan);
    }
    list(turn, &outcome, is_watched.then_some(records.as_slice()), per_job);
    let decisions = decisions.filter(|_| is_watched);
    Ok(Run { measured: Measured::of(&outcome), jobs: scenario.jobs().len(), gantt, decisions })
}

fn list(
    turn: &Turn<'_, PolicySource, Condition, Scenario>,
    outcome: &Outcome,
    records: Option<&[JobRecord]>,
    per_job: &mut Output,
) {
    let Condition { rate_factor, saving } = turn.condition;
    for ((at, job), jct) in turn.world.jobs().iter().enumerate().zip(&outcome.completion_times) {
        let record = records.map(|records| records[at]);
        per_job.row(&[
            rate_factor,
            saving,
            &turn.draw,
            &turn.name,
            &at,
            &job.arrival(),
            &job.gpus(),
            &job.duration(),
            &OrEmpty(record.and_then(|record| record.started)),
            &OrEmpty(*jct),
            &OrEmpty(record.map(|record| record.runs)),
            &OrEmpty(record.map(|record| record.failures)),
        ]);
    }
}
