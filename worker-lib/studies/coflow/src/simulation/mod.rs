//! Simulation of a fabric over time. Flows are fluid. Rates change when a coflow becomes ready, when a coflow or a
//! number of flows end, or at a time that a policy has requested.
//!
//! Each flow has its own rate. With [`Sharing::Madd`](crate::policy::Sharing), the flows of a coflow are first sent at
//! rates in proportion to their remaining bytes, so that they end together (minimum allocation for desired duration;
//! Varys, section 5.3). Then the flows of all coflows, in the same order, get the capacity that is left at both of
//! their ports (backfilling). No flow waits while both of its ports have free capacity.

mod fill;
mod run;
mod sending;
mod sharing;
mod table;

use serde::{Deserialize, Serialize};

use super::policy::Policy;
use super::workload::Job;
use iswitch_study::StudyError;
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
    /// if any of its ports is busy, and the remaining capacity of the ports at which it is sent is not used.
    Blocking,
}

/// Non-blocking fabric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fabric {
    /// Number of ingress ports, equal to the number of egress ports.
    pub ports: usize,
    /// Capacity of each port, in bytes per second.
    pub capacity: f64,
    /// Model of the rates of flows.
    pub rates: Rates,
}

impl Fabric {
    /// Creates a fabric with per-flow rates and backfilling. `capacity` is in bytes per second.
    pub const fn new(ports: usize, capacity: f64) -> Self {
        Self { ports, capacity, rates: Rates::Backfill }
    }
}

/// Coflow of a job in a simulation.
#[derive(Clone, Debug)]
pub struct Stage {
    /// Index of the coflow's job.
    pub job: usize,
    /// Index of the coflow within the job.
    pub index: usize,
    /// Ports at which the coflow has flows, and the time that it needs at each of them at full rate, in seconds.
    pub loads: Vec<(usize, f64)>,
    /// Greatest of the loads, in seconds.
    pub bottleneck: f64,
    /// Remaining time at the port at which the coflow has the most left to send, in seconds.
    pub bottleneck_left: f64,
    /// Total size of all flows, as the time to send them at the full rate of one port, in seconds.
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
    /// Number of ingress and egress ports together.
    pub ports: usize,
    /// Current time, in seconds.
    pub time: f64,
    /// Flows of the coflows that are ready and not fully sent.
    pub(crate) sendings: Vec<Option<Box<Sending>>>,
}

impl<'a> State<'a> {
    fn new(jobs: &'a [Job], fabric: Fabric) -> Self {
        let mut stages = Vec::new();
        let mut first = Vec::new();
        for (number, job) in jobs.iter().enumerate() {
            first.push(stages.len());
            for ((index, coflow), path) in job.coflows().iter().enumerate().zip(job.paths()) {
                let seconds = |bytes: f64| bytes / fabric.capacity;
                stages.push(Stage {
                    job: number,
                    index,
                    loads: coflow.loads().iter().map(|(port, bytes)| (*port, seconds(*bytes))).collect(),
                    bottleneck: seconds(coflow.bottleneck()),
                    bottleneck_left: seconds(coflow.bottleneck()),
                    size: seconds(coflow.size()),
                    path: seconds(path),
                    left: 1.0,
                    ready: None,
                    complete: None,
                });
            }
        }
        let sendings = vec![None; stages.len()];
        Self { jobs, stages, first, fabric, ports: 2 * fabric.ports, time: 0.0, sendings }
    }

    /// Returns the ports at which a coflow has flows, and the time that it still needs at each of them at full rate, in
    /// seconds. All times are 0 once the coflow is fully sent.
    pub fn needs(&self, stage: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
        let sending = self.sendings[stage].as_ref();
        let rest = if sending.is_none() { self.stages[stage].loads.as_slice() } else { &[] };
        let left = self.stages[stage].left;
        let of_sending = sending.into_iter().flat_map(|sending| sending.needs());
        of_sending.chain(rest.iter().map(move |(port, load)| (*port, load * left)))
    }

    /// Adds to `shares` (`[ports]`) the share of each port's capacity that a coflow uses at the start of the current
    /// interval.
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

    /// Adds to `loads` (`[ports]`) the number of seconds that a job still needs at full rate at each port.
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
/// Fails if the jobs are not sorted, or if a coflow was created for a fabric with another number of ports.
pub fn simulate(
    jobs: &[Job],
    fabric: Fabric,
    policy: &mut dyn Policy,
    on_interval: &mut dyn FnMut(&State<'_>, Interval<'_>),
) -> Result<Outcome, StudyError> {
    check_arrivals(jobs)?;
    let mut run = Run::new(jobs, fabric)?;
    run.arrive();
    while run.open > 0 {
        run.allocate(policy);
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
