//! All policies on all draws.

use std::fmt::Write as _;

use iswitch_placement::simulation::{Event, GpuTime, Outcome, Scenario};
use iswitch_placement::state::State;

use super::gantt::Recorder;
use super::source::PolicySource;
use super::workload::{Condition, Workload};
use iswitch_cli::progress::Steps;

/// What policies came to.
pub(super) struct Runs {
    /// By condition, then by policy.
    pub(super) policies: Vec<PolicyRuns>,
    /// A line for each job of each draw under each condition and policy.
    pub(super) per_job: String,
}

/// What one policy came to under one condition.
pub(super) struct PolicyRuns {
    pub(super) name: String,
    pub(super) condition: Condition,
    /// By draw.
    pub(super) measured: Vec<Measured>,
    /// Jobs of a draw.
    pub(super) jobs: usize,
    /// GPUs in the first draw, if they were asked for.
    pub(super) gantt: Option<Recorder>,
}

/// What one run came to. Times in seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    pub(super) makespan: f64,
    /// Completion times: mean and percentiles. None where the job was not complete.
    pub(super) jct_mean: Option<f64>,
    pub(super) jct_p50: Option<f64>,
    pub(super) jct_p95: Option<f64>,
    pub(super) jct_p99: Option<f64>,
    pub(super) failures: u64,
    pub(super) hits: u64,
    pub(super) suspensions: u64,
    pub(super) unfinished: usize,
    pub(super) gpu_time: GpuTime,
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
        }
    }
}

/// What has become of a job.
#[derive(Clone, Copy, Debug, Default)]
struct JobRecord {
    started: Option<f64>,
    runs: u32,
    failures: u32,
}

const PER_JOB: &str =
    "rate_factor,checkpoint,draw,policy,job,arrival_s,gpus,duration_s,started_s,jct_s,starts,hits\n";

impl Runs {
    /// Runs all. The first draw of each policy is recorded for a picture of so many GPUs, if there is to be one.
    pub(super) fn of(
        sources: &[PolicySource],
        workload: &Workload,
        conditions: &[Condition],
        gantt_gpus: Option<usize>,
        quiet: bool,
    ) -> anyhow::Result<Self> {
        conditions.iter().try_for_each(|condition| workload.check(*condition))?;
        let draws = workload.draws();
        let total = draws.end.saturating_sub(draws.start) * (conditions.len() * sources.len()) as u64;
        let mut progress = Steps::new("runs", total, quiet);
        let mut runs = Self { policies: Vec::new(), per_job: PER_JOB.to_owned() };
        for condition in conditions.iter().copied() {
            let mut policies: Vec<_> =
                sources.iter().map(|it| PolicyRuns::new(it.name(), condition)).collect();
            for draw in draws.clone() {
                let scenario = workload.scenario(draw, condition)?;
                for (source, policy) in sources.iter().zip(&mut policies) {
                    let gantt_gpus = gantt_gpus.filter(|_| draw == draws.start);
                    runs.per_job += &policy.run(source, &scenario, draw, gantt_gpus)?;
                    let Condition { rate_factor, saving } = condition;
                    progress.advance(&format!(
                        "rates x {rate_factor}, checkpoint {saving}, draw {draw}, {}",
                        policy.name
                    ));
                }
            }
            runs.policies.extend(policies);
        }
        progress.finish();
        Ok(runs)
    }
}

impl PolicyRuns {
    fn new(name: String, condition: Condition) -> Self {
        Self { name, condition, measured: Vec::new(), jobs: 0, gantt: None }
    }

    /// Runs one draw; returns a line for each job.
    fn run(
        &mut self,
        source: &PolicySource,
        scenario: &Scenario,
        draw: u64,
        gantt_gpus: Option<usize>,
    ) -> anyhow::Result<String> {
        let mut recorder = gantt_gpus.map(|gpus| Recorder::new(scenario, gpus));
        let mut records = vec![JobRecord::default(); scenario.jobs().len()];
        let mut is_watched = false;
        let mut watch = |state: &State<'_>, event: Event| {
            is_watched = true;
            if let Event::Start(job) | Event::Hit { job, .. } = event {
                let progress = &state.progress[job];
                let (started, runs, failures) = (progress.started, progress.runs, progress.failures);
                records[job] = JobRecord { started, runs, failures };
            }
            if let Some(recorder) = &mut recorder {
                recorder.add(state, event);
            }
        };
        let outcome = source.run(scenario, draw, &mut watch)?;
        if is_watched && let Some(mut recorder) = recorder {
            recorder.end(outcome.makespan);
            self.gantt = Some(recorder);
        }
        self.jobs = scenario.jobs().len();
        self.measured.push(Measured::of(&outcome));
        Ok(self.list(draw, scenario, &outcome, is_watched.then_some(records.as_slice())))
    }

    fn list(
        &self,
        draw: u64,
        scenario: &Scenario,
        outcome: &Outcome,
        records: Option<&[JobRecord]>,
    ) -> String {
        let Condition { rate_factor, saving } = self.condition;
        let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
        let mut text = String::new();
        for ((at, job), jct) in scenario.jobs().iter().enumerate().zip(&outcome.completion_times) {
            let (arrival, gpus, duration) = (job.arrival(), job.gpus(), job.duration());
            let _ =
                write!(text, "{rate_factor},{saving},{draw},{},{at},{arrival},{gpus},{duration}", self.name);
            let record = records.map(|records| records[at]);
            let started = record.and_then(|record| record.started);
            let counts =
                record.map_or(",".to_owned(), |record| format!("{},{}", record.runs, record.failures));
            let _ = writeln!(text, ",{},{},{counts}", number(started), number(*jct));
        }
        text
    }
}
