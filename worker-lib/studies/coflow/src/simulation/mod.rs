//! Simulation of a fabric over time. Flows are fluid. Rates change when a coflow becomes ready, when a coflow ends,
//! when the flows that have ended account for a noticeable part of the total rate, or at a time that a policy has
//! requested.
//!
//! Each flow has its own rate. With [`Sharing::Madd`](crate::policy::Sharing), the flows of a coflow are first sent at
//! rates in proportion to their remaining bytes, so that they end together (minimum allocation for desired duration;
//! Varys, section 5.3). Then the flows of all coflows, in the order that the policy chose, get the capacity that is
//! left at both of their ports (backfilling). No flow waits while both of its ports have free capacity.

mod fabric;
mod fabric_record;
mod fill;
mod fill_grid;
mod fill_links;
mod grid;
mod live;
mod run;
mod sending;
mod sharing;
mod table;

use serde::{Deserialize, Serialize};

use super::policy::Policy;
use super::workload::{Coflow, Job};
pub use fabric::{Fabric, GBIT_RANGE, Network, Rack};
use iswitch_study::StudyError;
pub(crate) use live::{Live, Schedule};
pub(crate) use run::Run;
pub(crate) use sending::Sending;
pub(crate) use sharing::Allocation;

/// Minimum share of a port that is allocated to a flow. Smaller shares would cause events without a noticeable effect.
const SHARE_MIN: f64 = 1e-6;
/// Remaining fraction of a coflow below which the coflow counts as fully sent.
const LEFT_MIN: f64 = 1e-9;

/// Model of the rates of flows.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, strum::Display, strum::EnumIter,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Rates {
    /// Each flow has its own rate, and no flow waits while both of its ports have free capacity.
    #[default]
    Backfill,
    /// All flows of a coflow are sent at rates in proportion to their remaining bytes, or none is sent. A coflow waits
    /// if any of its ports is busy, and capacity that it leaves at its ports is not used to send some of its flows
    /// faster.
    Blocking,
}

/// Coflow of a job in a simulation.
#[derive(Clone, Debug)]
pub struct Stage {
    /// Index of the coflow's job.
    pub job: usize,
    /// Index of the coflow within the job.
    pub index: usize,
    /// Resources of the fabric that the coflow uses, and the time that it needs at each of them at full rate, in
    /// seconds.
    pub loads: Vec<(usize, f64)>,
    /// Greatest of the loads, in seconds.
    pub bottleneck: f64,
    /// Longest remaining time of the coflow at any of its resources at full rate, in seconds.
    pub bottleneck_left: f64,
    /// Total size of all flows, as the time to send them at the fabric's capacity, in seconds.
    pub size: f64,
    /// Minimum time from the start of the coflow to the end of the job, which is the time along the longest path, in
    /// seconds.
    pub path: f64,
    /// Fraction of the coflow's bytes that remain to be sent, from 1 down to 0.
    pub left: f64,
    /// Time at which the coflow became ready, in seconds; `None` if it is not ready yet.
    pub ready: Option<f64>,
    /// Time at which the coflow completed, in seconds; `None` if it is not complete yet.
    pub complete: Option<f64>,
}

/// State of a simulation, as visible to policies.
#[derive(Clone, Debug)]
pub struct State<'a> {
    /// All jobs, including those that have not arrived, which policies must ignore.
    pub jobs: &'a [Job],
    /// All coflows of all jobs.
    pub stages: Vec<Stage>,
    /// Index of each job's first coflow; the job's other coflows follow it.
    pub first: Vec<usize>,
    /// Fabric on which the jobs run.
    pub fabric: Fabric,
    /// Number of resources of the fabric: ingress ports, egress ports and links of racks.
    pub ports: usize,
    /// Current time, in seconds.
    pub time: f64,
    /// Flows of the coflows that are ready and not fully sent.
    pub(crate) sendings: Vec<Option<Box<Sending>>>,
}

impl Stage {
    /// Creates a coflow that is not ready. `path` is in seconds.
    pub(crate) fn new((job, index): (usize, usize), coflow: &Coflow, path: f64, fabric: &Fabric) -> Self {
        let bottleneck = fabric.isolated(coflow);
        Self {
            job,
            index,
            loads: fabric.times(coflow),
            bottleneck,
            bottleneck_left: bottleneck,
            size: coflow.size() / fabric.capacity,
            path,
            left: 1.0,
            ready: None,
            complete: None,
        }
    }

    /// Creates all coflows of a job, in the order in which the job lists them.
    pub(crate) fn of_job<'f>(
        number: usize,
        job: &'f Job,
        fabric: &'f Fabric,
    ) -> impl Iterator<Item = Self> + 'f {
        let coflows = job.coflows().iter().enumerate().zip(fabric.paths(job));
        coflows.map(move |((index, coflow), path)| Self::new((number, index), coflow, path, fabric))
    }
}

impl<'a> State<'a> {
    fn new(jobs: &'a [Job], fabric: &Fabric) -> Self {
        let mut stages = Vec::new();
        let mut first = Vec::new();
        for (number, job) in jobs.iter().enumerate() {
            first.push(stages.len());
            stages.extend(Stage::of_job(number, job, fabric));
        }
        let sendings = vec![None; stages.len()];
        let ports = fabric.resources();
        Self { jobs, stages, first, fabric: fabric.clone(), ports, time: 0.0, sendings }
    }

    /// Returns the resources that a coflow uses, and the time that it still needs at each of them at full rate, in
    /// seconds. All times are 0 once the coflow is fully sent.
    pub fn needs(&self, stage: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
        let sending = self.sendings[stage].as_ref();
        let rest = if sending.is_none() { self.stages[stage].loads.as_slice() } else { &[] };
        let left = self.stages[stage].left;
        let of_sending = sending.into_iter().flat_map(|sending| sending.times());
        of_sending.chain(rest.iter().map(move |(port, load)| (*port, load * left)))
    }

    /// Returns the incomplete flows of a coflow that is ready: for each flow its ingress port, its egress port and its
    /// remaining bytes, sorted by ingress port. Returns an empty list if the coflow is not ready or is fully sent.
    pub fn flows_left(&self, stage: usize) -> Vec<(usize, usize, f64)> {
        let Some(sending) = &self.sendings[stage] else { return Vec::new() };
        let flows = sending.flows_left().into_iter();
        let (ports, bytes) = (self.fabric.ports, self.fabric.capacity);
        flows.map(|(from, to, seconds)| (from, to - ports, seconds * bytes)).collect()
    }

    /// Adds to `shares` (`[ports]`) the share of each resource's capacity that a coflow uses at the start of the
    /// current interval.
    pub fn add_port_shares(&self, stage: usize, shares: &mut [f64]) {
        if let Some(sending) = &self.sendings[stage] {
            sending.add_shares(shares);
        }
    }

    /// Returns all coflows of a job.
    pub fn of_job(&self, job: usize) -> &[Stage] {
        let first = self.first[job];
        &self.stages[first..first + self.jobs[job].coflows().len()]
    }

    /// Returns the remaining critical path of a job: the minimum number of seconds that it still needs.
    pub fn path_left(&self, job: usize) -> f64 {
        let open = self.of_job(job).iter().filter(|stage| stage.left > 0.0);
        open.map(|stage| stage.path - stage.bottleneck + stage.bottleneck_left).fold(0.0, f64::max)
    }

    /// Adds to `loads` (`[ports]`) the number of seconds that a job still needs at full rate at each resource.
    pub fn add_job_loads(&self, job: usize, loads: &mut [f64]) {
        let first = self.first[job];
        for stage in first..first + self.jobs[job].coflows().len() {
            self.needs(stage).for_each(|(port, seconds)| loads[port] += seconds);
        }
    }
}

/// Time interval in which rates are not recomputed. If a flow ends within the interval, its rate becomes 0; the rates
/// of all such flows add up to at most 1 % of the total rate.
#[derive(Clone, Copy, Debug)]
pub struct Interval<'a> {
    /// Start of the interval, in seconds.
    pub begin: f64,
    /// End of the interval, in seconds.
    pub end: f64,
    /// Coflows that are sent, and for each of them the fraction of its bytes that is sent per second at the start of
    /// the interval.
    pub rates: &'a [(usize, f64)],
}

/// Result of a simulation.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Completion time of each coflow, in seconds from the time at which the coflow became ready.
    pub coflow_times: Vec<f64>,
    /// Completion time of each job, in seconds from its arrival.
    pub job_times: Vec<f64>,
    /// Time at which the last job completed, in seconds.
    pub makespan: f64,
    /// Number of times that rates were recomputed.
    pub decisions: u64,
}

/// Simulates jobs, which must be sorted by arrival, until all are complete.
///
/// # Errors
/// Fails if the jobs are not sorted, if a coflow was created for a fabric whose number of ports differs from that of
/// `fabric`, or if the policy fails.
pub fn simulate(
    jobs: &[Job],
    fabric: &Fabric,
    policy: &mut dyn Policy,
    on_interval: &mut dyn FnMut(&State<'_>, Interval<'_>),
) -> Result<Outcome, StudyError> {
    check_arrivals(jobs)?;
    let mut run = Run::new(jobs, fabric)?;
    run.arrive();
    while run.open > 0 {
        run.allocate(policy);
        policy.failure().map_or(Ok(()), Err)?;
        let look_again = policy.look_again(&run.state, &run.rates).unwrap_or(f64::INFINITY);
        let step = run.next_event(look_again);
        debug_assert!(
            step.is_finite(),
            "while a job is incomplete, an arrival or the end of a coflow must follow"
        );
        on_interval(
            &run.state,
            Interval { begin: run.state.time, end: run.state.time + step, rates: &run.rates },
        );
        run.advance(step);
        run.arrive();
    }
    Ok(run.finish())
}

/// Checks that jobs are sorted by arrival.
///
/// # Errors
/// Names the first job that arrives before the preceding one.
pub(crate) fn check_arrivals(jobs: &[Job]) -> Result<(), StudyError> {
    let Some(at) = jobs.windows(2).position(|pair| pair[1].arrival < pair[0].arrival) else { return Ok(()) };
    let (later, earlier) = (jobs[at].arrival, jobs[at + 1].arrival);
    Err(StudyError::field(format!("arrival of job {}", at + 1), earlier, format!("at least {later}")))
}
