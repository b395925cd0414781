//! Simulation of a fabric over time. Flows are fluid; rates change when a coflow becomes ready, when a coflow ends, or
//! at a time that a policy has requested.
//!
//! All flows of a coflow are sent at rates proportional to their remaining bytes, so they end together. For the first
//! coflow in the order, this is minimum allocation for desired duration (MADD; Varys, section 5.2). It is also the
//! result of Algorithm 2 of DeepWeave if ingress and egress ports are considered jointly. The remaining part of a
//! coflow is therefore a single number between 1 and 0.

use super::policy::{Policy, Sharing};
use super::workload::{Coflow, Job};
use iswitch_study::StudyError;

/// Minimum share of a coflow's busiest port that is allocated. Smaller shares would only add events.
pub(super) const SHARE_MIN: f64 = 1e-6;
/// Remaining part of a coflow below which the coflow counts as fully sent.
pub(super) const LEFT_MIN: f64 = 1e-9;

/// Non-blocking fabric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fabric {
    /// Number of ingress ports, and of egress ports.
    pub ports: usize,
    /// Capacity of each port, in bytes per second.
    pub capacity: f64,
}

/// Coflow of a job in a simulation.
#[derive(Clone, Debug)]
pub struct Stage {
    /// Number of the coflow's job.
    pub job: usize,
    /// Number of the coflow within the job.
    pub index: usize,
    /// Seconds that the coflow needs at full rate, at each port where it has flows.
    pub loads: Vec<(usize, f64)>,
    /// Greatest of the loads, in seconds.
    pub bottleneck: f64,
    /// Size of all flows together, in seconds at the full rate of one port.
    pub size: f64,
    /// Minimum time from the start of the coflow to the end of the job, along the longest path, in seconds.
    pub path: f64,
    /// Remaining part of the coflow, from 1 to 0.
    pub left: f64,
    /// Time at which the coflow became ready, in seconds.
    pub ready: Option<f64>,
    /// Time at which the coflow was complete, in seconds.
    pub complete: Option<f64>,
}

/// State of a simulation, which policies see.
#[derive(Clone, Debug)]
pub struct State<'a> {
    /// All jobs. Policies must ignore jobs that have not arrived.
    pub jobs: &'a [Job],
    /// All coflows of all jobs.
    pub stages: Vec<Stage>,
    /// Number of each job's first coflow; the others follow it.
    pub first: Vec<usize>,
    /// Number of ingress and egress ports together.
    pub ports: usize,
    /// Current time, in seconds.
    pub time: f64,
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
                    size: seconds(coflow.size()),
                    path: seconds(path),
                    left: 1.0,
                    ready: None,
                    complete: None,
                });
            }
        }
        Self { jobs, stages, first, ports: 2 * fabric.ports, time: 0.0 }
    }

    /// Returns all coflows of a job.
    pub fn of_job(&self, job: usize) -> &[Stage] {
        let first = self.first[job];
        &self.stages[first..first + self.jobs[job].coflows().len()]
    }

    /// Returns the remaining critical path of a job: the minimum number of seconds that it still needs.
    pub fn path_left(&self, job: usize) -> f64 {
        let open = self.of_job(job).iter().filter(|stage| stage.left > 0.0);
        open.map(|stage| stage.path - (1.0 - stage.left) * stage.bottleneck).fold(0.0, f64::max)
    }

    /// Adds to `loads` (`[ports]`) the number of seconds that a job still needs at full rate at each port.
    pub fn add_job_loads(&self, job: usize, loads: &mut [f64]) {
        for stage in self.of_job(job) {
            stage.loads.iter().for_each(|(port, seconds)| loads[*port] += seconds * stage.left);
        }
    }
}

/// Time interval in which rates did not change.
#[derive(Clone, Copy, Debug)]
pub struct Interval<'a> {
    /// Begin of the interval, in seconds.
    pub begin: f64,
    /// End of the interval, in seconds.
    pub end: f64,
    /// Coflows that were sent, each with the fraction of it that was sent per second.
    pub rates: &'a [(usize, f64)],
}

/// Result of a simulation.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Completion time of each coflow, in seconds from the moment at which it was ready.
    pub coflow_times: Vec<f64>,
    /// Completion time of each job, in seconds from its arrival.
    pub job_times: Vec<f64>,
    /// Time at which the last job was complete, in seconds.
    pub makespan: f64,
    /// Number of times that rates were computed.
    pub decisions: u64,
}

/// Simulates jobs, which must be sorted by arrival, until all are complete.
///
/// # Errors
/// Fails if the jobs are not sorted, or if a coflow is for a fabric of another size.
pub fn simulate(
    jobs: &[Job],
    fabric: Fabric,
    policy: &mut dyn Policy,
    on_interval: &mut dyn FnMut(&State<'_>, Interval<'_>),
) -> Result<Outcome, StudyError> {
    if let Some(at) = jobs.windows(2).position(|pair| pair[1].arrival < pair[0].arrival) {
        let (later, earlier) = (jobs[at].arrival, jobs[at + 1].arrival);
        return Err(StudyError::field(
            format!("arrival of job {}", at + 1),
            earlier,
            format!("at least {later}"),
        ));
    }
    let mut run = Run::new(jobs, fabric)?;
    run.arrive();
    while run.open > 0 {
        run.allocate(policy);
        let next_arrival = jobs.get(run.arrived).map_or(f64::INFINITY, |job| job.arrival - run.state.time);
        let next_end = run.next_end();
        let look_again = policy.look_again(&run.state, &run.rates).unwrap_or(f64::INFINITY);
        let step = next_arrival.min(next_end).min(look_again).max(0.0);
        debug_assert!(
            step.is_finite(),
            "while a job is open, an arrival or the end of a coflow must be ahead"
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

struct Run<'a> {
    state: State<'a>,
    /// Number of jobs that have arrived.
    arrived: usize,
    /// Number of jobs that are not complete, whether or not they have arrived.
    open: usize,
    /// Coflows that are ready and not complete.
    active: Vec<usize>,
    /// Number of incomplete coflows that must be complete before each coflow starts.
    waiting: Vec<usize>,
    /// Number of coflows of each job that are not complete.
    left: Vec<usize>,
    rates: Vec<(usize, f64)>,
    free: Vec<f64>,
    decisions: u64,
}

impl<'a> Run<'a> {
    fn new(jobs: &'a [Job], fabric: Fabric) -> Result<Self, StudyError> {
        let state = State::new(jobs, fabric);
        let coflows = jobs.iter().flat_map(Job::coflows);
        if let Some(ports) = coflows.map(Coflow::ports).find(|ports| *ports != fabric.ports) {
            return Err(StudyError::field("ports of a coflow's fabric", ports, fabric.ports.to_string()));
        }
        let waits = jobs.iter().flat_map(|job| job.dependencies().iter().map(|of| of.starts_after.len()));
        Ok(Self {
            arrived: 0,
            open: jobs.len(),
            active: Vec::new(),
            waiting: waits.collect(),
            left: jobs.iter().map(|job| job.coflows().len()).collect(),
            rates: Vec::new(),
            free: vec![0.0; state.ports],
            decisions: 0,
            state,
        })
    }

    /// Starts the jobs whose arrival time has been reached.
    fn arrive(&mut self) {
        while let Some(job) = self.state.jobs.get(self.arrived).filter(|job| job.arrival <= self.state.time) {
            let first = self.state.first[self.arrived];
            for stage in first..first + job.coflows().len() {
                if self.waiting[stage] == 0 {
                    self.make_ready(stage);
                }
            }
            self.arrived += 1;
        }
    }

    fn make_ready(&mut self, stage: usize) {
        self.state.stages[stage].ready = Some(self.state.time);
        self.active.push(stage);
    }

    /// Asks the policy for an order and allocates rates.
    fn allocate(&mut self, policy: &mut dyn Policy) {
        self.decisions += 1;
        self.rates.clear();
        let mut order: Vec<usize> =
            self.active.iter().copied().filter(|stage| self.state.stages[*stage].left > 0.0).collect();
        match policy.prioritise(&self.state, &mut order) {
            Sharing::InOrder => self.share_in_order(&order),
            Sharing::Equal => self.share_equally(&order),
        }
    }

    /// Allocates to each coflow the bandwidth that the coflows before it leave free.
    fn share_in_order(&mut self, order: &[usize]) {
        self.free.fill(1.0);
        for number in order {
            let stage = &self.state.stages[*number];
            let rate =
                stage.loads.iter().map(|(port, load)| self.free[*port] / load).fold(f64::INFINITY, f64::min);
            if rate * stage.bottleneck < SHARE_MIN {
                continue;
            }
            self.rates.push((*number, rate));
            let used = stage.loads.iter();
            used.for_each(|(port, load)| self.free[*port] = (self.free[*port] - rate * load).max(0.0));
        }
    }

    /// Allocates equal shares of each port to its coflows. The rate of a coflow is that at its most congested port.
    fn share_equally(&mut self, order: &[usize]) {
        self.free.fill(0.0);
        for number in order {
            self.state.stages[*number].loads.iter().for_each(|(port, _)| self.free[*port] += 1.0);
        }
        for number in order {
            let loads = &self.state.stages[*number].loads;
            let rate = loads
                .iter()
                .map(|(port, load)| 1.0 / (self.free[*port] * load))
                .fold(f64::INFINITY, f64::min);
            self.rates.push((*number, rate));
        }
    }

    /// Returns the number of seconds until a coflow is fully sent at the current rates.
    fn next_end(&self) -> f64 {
        let ends = self.rates.iter().map(|(stage, rate)| self.state.stages[*stage].left / rate);
        ends.fold(f64::INFINITY, f64::min)
    }

    fn advance(&mut self, seconds: f64) {
        self.state.time += seconds;
        for (stage, rate) in &self.rates {
            let left = &mut self.state.stages[*stage].left;
            *left -= rate * seconds;
            if *left < LEFT_MIN {
                *left = 0.0;
            }
        }
        // A coflow that is fully sent may still depend on others for its completion. If these complete in this loop, so
        // does the coflow.
        while let Some(at) = self.active.iter().position(|stage| self.is_over(*stage)) {
            let stage = self.active.remove(at);
            self.complete(stage);
        }
    }

    fn is_over(&self, stage: usize) -> bool {
        let Stage { left, job, index, .. } = self.state.stages[stage];
        let first = self.state.first[job];
        let others = &self.state.jobs[job].dependencies()[index].finishes_after;
        left == 0.0 && others.iter().all(|other| self.state.stages[first + other].complete.is_some())
    }

    fn complete(&mut self, stage: usize) {
        self.state.stages[stage].complete = Some(self.state.time);
        let Stage { job, index, .. } = self.state.stages[stage];
        self.left[job] -= 1;
        if self.left[job] == 0 {
            self.open -= 1;
        }
        let jobs = self.state.jobs;
        for follower in jobs[job].followers(index) {
            let follower = self.state.first[job] + follower;
            self.waiting[follower] -= 1;
            if self.waiting[follower] == 0 {
                self.make_ready(follower);
            }
        }
    }

    fn finish(self) -> Outcome {
        let done = |stage: &Stage| stage.complete.expect("every coflow is complete");
        let coflow_times = self
            .state
            .stages
            .iter()
            .map(|stage| done(stage) - stage.ready.expect("a complete coflow was ready"))
            .collect();
        let end_of = |job: usize| self.state.of_job(job).iter().map(done).fold(0.0, f64::max);
        let jobs = self.state.jobs.iter().enumerate();
        let job_times = jobs.map(|(number, job)| end_of(number) - job.arrival).collect();
        Outcome { coflow_times, job_times, makespan: self.state.time, decisions: self.decisions }
    }
}
