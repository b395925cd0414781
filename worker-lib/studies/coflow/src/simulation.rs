//! A fabric over time: fluid flows whose rates change where a coflow becomes ready, ends, or a policy wants to look
//! again.
//!
//! All flows of a coflow go at rates in proportion to what is left of them, so that they end together: what minimum
//! allocation for desired duration (MADD; Varys, section 5.2) does for the coflow before which nothing comes, and what
//! Algorithm 2 of DeepWeave does when ingress and egress ports are looked at jointly. What is left of a coflow is thus
//! one number, from 1 to 0.

use super::policy::{Policy, Sharing};
use super::workload::{Coflow, Job};
use iswitch_study::StudyError;

/// Shares below this of what the coflow's busiest port could carry are not given: they would only make events.
pub(super) const SHARE_MIN: f64 = 1e-6;
/// What is left of a coflow below this is nothing.
pub(super) const LEFT_MIN: f64 = 1e-9;

/// A non-blocking switch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fabric {
    /// Ingress ports, and as many egress ports.
    pub ports: usize,
    /// Of each port, bytes a second.
    pub capacity: f64,
}

/// A coflow of a job, as the simulation numbers them.
#[derive(Clone, Debug)]
pub struct Stage {
    /// Number of its job.
    pub job: usize,
    /// Number within the job.
    pub index: usize,
    /// Seconds of full rate that it needs at each port where it has flows.
    pub loads: Vec<(usize, f64)>,
    /// The greatest of these.
    pub bottleneck: f64,
    /// Seconds of full rate of all its flows.
    pub size: f64,
    /// Seconds that it and what follows it need at least.
    pub path: f64,
    /// What is left of it, from 1 to 0.
    pub left: f64,
    /// When it became ready.
    pub ready: Option<f64>,
    /// When it was complete.
    pub complete: Option<f64>,
}

/// What policies see.
#[derive(Clone, Debug)]
pub struct State<'a> {
    /// All jobs; those that have not arrived are not to be looked at.
    pub jobs: &'a [Job],
    /// All coflows of all jobs.
    pub stages: Vec<Stage>,
    /// Numbers of each job's first coflow; the others follow.
    pub first: Vec<usize>,
    /// Ports of both sides.
    pub ports: usize,
    /// In seconds.
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

    /// All coflows of a job.
    pub fn of_job(&self, job: usize) -> &[Stage] {
        let first = self.first[job];
        &self.stages[first..first + self.jobs[job].coflows().len()]
    }

    /// Seconds that a job needs at least from now on: its longest way, what is done taken off.
    pub fn path_left(&self, job: usize) -> f64 {
        let open = self.of_job(job).iter().filter(|stage| stage.left > 0.0);
        open.map(|stage| stage.path - (1.0 - stage.left) * stage.bottleneck).fold(0.0, f64::max)
    }

    /// Seconds of full rate that a job still needs at each port, added to `loads` (`[ports]`).
    pub fn add_job_loads(&self, job: usize, loads: &mut [f64]) {
        for stage in self.of_job(job) {
            stage.loads.iter().for_each(|(port, seconds)| loads[*port] += seconds * stage.left);
        }
    }
}

/// A time in which rates did not change.
#[derive(Clone, Copy, Debug)]
pub struct Interval<'a> {
    /// In seconds.
    pub begin: f64,
    /// In seconds.
    pub end: f64,
    /// Coflows and the share of them that was sent a second.
    pub rates: &'a [(usize, f64)],
}

/// What came out.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Completion time of each coflow, from when it was ready, in seconds.
    pub coflow_times: Vec<f64>,
    /// Completion time of each job, from its arrival, in seconds.
    pub job_times: Vec<f64>,
    /// When the last one was complete, in seconds.
    pub makespan: f64,
    /// Times that rates were computed.
    pub decisions: u64,
}

/// Runs jobs, sorted by arrival, to their end.
///
/// # Errors
/// If jobs are not sorted or are for a fabric of another size.
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
        debug_assert!(step.is_finite(), "something is always under way");
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
    /// Jobs that have arrived.
    arrived: usize,
    /// Jobs that are not complete, arrived or not.
    open: usize,
    /// Coflows that are ready and not complete.
    active: Vec<usize>,
    /// What each coflow still waits for, to start and to be complete.
    waiting: Vec<usize>,
    /// Coflows of each job that are not complete.
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

    /// Jobs whose time has come.
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

    /// Asks the policy and gives rates.
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

    /// Each coflow gets what those before it leave.
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

    /// Coflows at a port have equal shares of it; each goes as fast as its worst port lets it.
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

    /// Seconds to the first end of a coflow at these rates.
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
        // One that is sent may still wait for others to be complete, whose end comes in the same loop.
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
        let done = |stage: &Stage| stage.complete.expect("all jobs are complete");
        let coflow_times = self
            .state
            .stages
            .iter()
            .map(|stage| done(stage) - stage.ready.expect("it was complete"))
            .collect();
        let end_of = |job: usize| self.state.of_job(job).iter().map(done).fold(0.0, f64::max);
        let jobs = self.state.jobs.iter().enumerate();
        let job_times = jobs.map(|(number, job)| end_of(number) - job.arrival).collect();
        Outcome { coflow_times, job_times, makespan: self.state.time, decisions: self.decisions }
    }
}
