//! All policies on all draws.

use std::fmt::Write as _;

use iswitch_coflow::bound::{Bound, alone};
use iswitch_coflow::measure::{Measurement, is_met};
use iswitch_coflow::simulation::{Fabric, Outcome, simulate};
use iswitch_coflow::workload::Job;

use super::gantt::Recorder;
use super::source::PolicySource;
use super::workload::Workload;
use iswitch_cli::progress::Steps;

/// What policies came to.
pub(super) struct Runs {
    pub(super) policies: Vec<PolicyRuns>,
    /// A line for each job of each draw under each policy.
    pub(super) per_job: String,
    /// A line for each coflow.
    pub(super) per_coflow: String,
}

/// What one policy came to.
pub(super) struct PolicyRuns {
    pub(super) name: String,
    /// By draw.
    pub(super) measured: Vec<Measurement>,
    /// Jobs of a draw.
    pub(super) jobs: usize,
    /// Completion times of all draws together, in seconds.
    pub(super) cct: Vec<f64>,
    pub(super) jct: Vec<f64>,
    /// Ports in the first draw, if they were asked for.
    pub(super) gantt: Option<Recorder>,
}

const PER_JOB: &str = "draw,policy,job,arrival_s,coflows,alone_s,jct_s,deadline_s,deadline_met\n";
const PER_COFLOW: &str = "draw,policy,job,coflow,flows,bytes,bottleneck_s,cct_s\n";

impl Runs {
    /// Runs all; `gantt_ports` of each side are recorded.
    pub(super) fn of(
        sources: &[PolicySource],
        workload: &Workload,
        gantt_ports: Option<usize>,
        quiet: bool,
    ) -> anyhow::Result<Self> {
        let draws = workload.draws();
        let total = draws.clone().count() as u64 * sources.len() as u64;
        let mut progress = Steps::new("runs", total, quiet);
        let mut runs = Self {
            policies: sources.iter().map(|source| PolicyRuns::new(source.name())).collect(),
            per_job: PER_JOB.to_owned(),
            per_coflow: PER_COFLOW.to_owned(),
        };
        for draw in draws.clone() {
            let jobs = workload.jobs(draw)?;
            let fabric = workload.fabric();
            let bound = Bound::of(&jobs, fabric);
            for (at, source) in sources.iter().enumerate() {
                let name = source.name();
                let mut show = |text: &str| progress.show(&format!("draw {draw}, {name}: {text}"));
                let mut policy = source.build(&jobs, fabric, draw, &mut show)?;
                let is_first = draw == draws.start;
                let mut recorder =
                    gantt_ports.filter(|_| is_first).map(|most| Recorder::new(&jobs, fabric, most));
                let outcome = simulate(&jobs, fabric, policy.as_mut(), &mut |state, interval| {
                    if let Some(recorder) = &mut recorder {
                        recorder.add(state, interval);
                    }
                })?;
                runs.list(draw, &name, &jobs, fabric, &outcome);
                runs.policies[at].add(&jobs, bound, outcome, recorder);
                progress.advance(&format!("draw {draw}, {name}"));
            }
        }
        progress.finish();
        Ok(runs)
    }

    fn list(&mut self, draw: u64, policy: &str, jobs: &[Job], fabric: Fabric, outcome: &Outcome) {
        let mut cct = outcome.coflow_times.iter();
        for ((number, job), jct) in jobs.iter().enumerate().zip(&outcome.job_times) {
            let arrival = job.arrival;
            let deadline = job.deadline.map_or(String::new(), |deadline| deadline.to_string());
            let met = is_met(job, *jct).map_or(String::new(), |met| met.to_string());
            let (coflows, alone) = (job.coflows().len(), alone(job, fabric));
            let _ = writeln!(
                self.per_job,
                "{draw},{policy},{number},{arrival},{coflows},{alone},{jct},{deadline},{met}"
            );
            for ((at, coflow), cct) in job.coflows().iter().enumerate().zip(&mut cct) {
                let (flows, bytes) = (coflow.flows().len(), coflow.size());
                let bottleneck = coflow.bottleneck() / fabric.capacity;
                let _ = writeln!(
                    self.per_coflow,
                    "{draw},{policy},{number},{at},{flows},{bytes},{bottleneck},{cct}"
                );
            }
        }
    }
}

impl PolicyRuns {
    fn new(name: String) -> Self {
        Self { name, measured: Vec::new(), jobs: 0, cct: Vec::new(), jct: Vec::new(), gantt: None }
    }

    fn add(&mut self, jobs: &[Job], bound: Bound, outcome: Outcome, recorder: Option<Recorder>) {
        self.measured.push(Measurement::of(jobs, bound, &outcome));
        self.jobs = jobs.len();
        self.cct.extend(outcome.coflow_times);
        self.jct.extend(outcome.job_times);
        self.gantt = self.gantt.take().or(recorder);
    }
}
