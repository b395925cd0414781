//! Runs of all policies on all draws.

use iswitch_coflow::bound::{Bound, alone};
use iswitch_coflow::measure::{Measurement, is_met};
use iswitch_coflow::simulation::{Fabric, Outcome, simulate};
use iswitch_coflow::workload::Job;
use iswitch_study::contest::{Contest, Series, Turn};
use iswitch_study::table::{OrEmpty, Output};

use super::gantt::Recorder;
use super::source::PolicySource;
use super::workload::Workload;

/// Results of all policies.
pub(super) struct Runs {
    pub(super) policies: Vec<PolicyRuns>,
    pub(super) lists: Lists,
}

/// Runs of one policy.
pub(super) type PolicyRuns = Series<&'static str, Run>;

/// Result of one run.
pub(super) struct Run {
    pub(super) measured: Measurement,
    /// Number of jobs in the draw.
    pub(super) jobs: usize,
    /// Coflow completion times, in seconds.
    pub(super) cct: Vec<f64>,
    /// Job completion times, in seconds.
    pub(super) jct: Vec<f64>,
    /// Recording of the ports for the Gantt chart. Present only in the first draw, and only if figures are written.
    pub(super) gantt: Option<Recorder>,
}

/// The per-job and per-coflow results of all runs, as CSV tables.
pub(super) struct Lists {
    /// Table with one line for each job, draw and policy.
    pub(super) per_job: Output,
    /// Table with one line for each coflow, draw and policy.
    pub(super) per_coflow: Output,
}

/// Jobs of a draw, with their fabric and lower bounds.
struct World {
    jobs: Vec<Job>,
    fabric: Fabric,
    bound: Bound,
}

impl Runs {
    /// Runs all policies on all draws. In the first draw, records `gantt_ports` ingress ports and the same number of
    /// egress ports.
    pub(super) fn of(
        contest: &Contest<PolicySource>,
        workload: &Workload,
        gantt_ports: Option<usize>,
        quiet: bool,
    ) -> anyhow::Result<Self> {
        for policy in contest.policies() {
            if let Some(warning) = policy.warning(workload.fabric())? {
                eprintln!("{warning}");
            }
        }
        let mut lists = Lists::new();
        let prepare = |_: &_, draw| {
            let (jobs, fabric) = (workload.jobs(draw)?, workload.fabric().clone());
            Ok(World { bound: Bound::of(&jobs, &fabric), jobs, fabric })
        };
        let policies = contest.run(&[""], workload.draws(), quiet, prepare, |turn, show| {
            let gantt_ports = gantt_ports.filter(|_| turn.is_first);
            let (run, outcome) = run(&turn, gantt_ports, show)?;
            lists.add(turn.draw, turn.name, turn.world, &outcome);
            Ok(run)
        })?;
        Ok(Self { policies, lists })
    }
}

fn run(
    turn: &Turn<'_, PolicySource, &'static str, World>,
    gantt_ports: Option<usize>,
    show: &mut dyn FnMut(&str),
) -> anyhow::Result<(Run, Outcome)> {
    let World { jobs, fabric, bound } = turn.world;
    let mut policy = turn.policy.build(jobs, fabric, turn.draw, show)?;
    let mut gantt = gantt_ports.map(|most| Recorder::new(jobs, fabric, most));
    let outcome = simulate(jobs, fabric, policy.as_mut(), &mut |state, interval| {
        if let Some(recorder) = &mut gantt {
            recorder.add(state, interval);
        }
    })?;
    let (cct, jct) = (outcome.coflow_times.clone(), outcome.job_times.clone());
    let measured = Measurement::of(jobs, *bound, &outcome);
    Ok((Run { measured, jobs: jobs.len(), cct, jct, gantt }, outcome))
}

impl Lists {
    fn new() -> Self {
        Self {
            per_job: Output::new("draw,policy,job,arrival_s,coflows,alone_s,jct_s,deadline_s,deadline_met"),
            per_coflow: Output::new("draw,policy,job,coflow,flows,bytes,bottleneck_s,cct_s"),
        }
    }

    fn add(&mut self, draw: u64, policy: &str, world: &World, outcome: &Outcome) {
        let World { jobs, fabric, .. } = world;
        let mut cct = outcome.coflow_times.iter();
        for ((number, job), jct) in jobs.iter().enumerate().zip(&outcome.job_times) {
            let (deadline, met) = (OrEmpty(job.deadline), OrEmpty(is_met(job, *jct)));
            let (coflows, alone) = (job.coflows().len(), alone(job, fabric));
            self.per_job.row(&[
                &draw,
                &policy,
                &number,
                &job.arrival,
                &coflows,
                &alone,
                jct,
                &deadline,
                &met,
            ]);
            for ((at, coflow), cct) in job.coflows().iter().enumerate().zip(&mut cct) {
                let (flows, bytes) = (coflow.flows().len(), coflow.size());
                let bottleneck = fabric.isolated(coflow);
                self.per_coflow.row(&[&draw, &policy, &number, &at, &flows, &bytes, &bottleneck, cct]);
            }
        }
    }
}
