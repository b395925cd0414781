//! Events of a simulation: arrivals of jobs, and the ends of coflows and flows.

use super::{Allocation, Fabric, Outcome, Sending, Stage, State};
use crate::policy::{Policy, Sharing};
use crate::workload::{Coflow, Job};
use iswitch_study::StudyError;

/// State of a run, excluding the jobs, which the run borrows. The fields are those of [`State`] and [`Run`].
#[derive(Debug, Default)]
pub(super) struct Parts {
    pub(super) stages: Vec<Stage>,
    pub(super) first: Vec<usize>,
    pub(super) sendings: Vec<Option<Box<Sending>>>,
    /// Time, in seconds.
    pub(super) time: f64,
    pub(super) arrived: usize,
    pub(super) open: usize,
    pub(super) active: Vec<usize>,
    pub(super) waiting: Vec<usize>,
    pub(super) left: Vec<usize>,
    pub(super) allocation: Allocation,
}

impl Parts {
    /// Appends a job that has not arrived.
    pub(super) fn add(&mut self, job: &Job, fabric: &Fabric) {
        self.first.push(self.stages.len());
        self.stages.extend(Stage::of_job(self.left.len(), job, fabric));
        self.sendings.resize(self.stages.len(), None);
        self.waiting.extend(job.dependencies().iter().map(|of| of.starts_after.len()));
        self.left.push(job.coflows().len());
        self.open += 1;
    }
}

/// Run of jobs: simulated, or on a real cluster whose progress is reported.
pub(crate) struct Run<'a> {
    pub(crate) state: State<'a>,
    /// Number of jobs that have arrived.
    arrived: usize,
    /// Number of jobs that are not complete, whether or not they have arrived.
    pub(crate) open: usize,
    /// Coflows that are ready and not complete.
    active: Vec<usize>,
    /// For each coflow, the number of incomplete coflows that must complete before it can start.
    waiting: Vec<usize>,
    /// Number of coflows of each job that are not complete.
    left: Vec<usize>,
    /// Coflows that are not fully sent, in the order that the policy chose.
    pub(super) order: Vec<usize>,
    /// Coflows that are being sent, and for each of them the fraction of its bytes that is sent per second.
    pub(super) rates: Vec<(usize, f64)>,
    allocation: Allocation,
    decisions: u64,
}

impl<'a> Run<'a> {
    /// Creates the state at time 0, before the first arrival.
    pub(crate) fn new(jobs: &'a [Job], fabric: &Fabric) -> Result<Self, StudyError> {
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
            order: Vec::new(),
            rates: Vec::new(),
            allocation: Allocation::default(),
            decisions: 0,
            state,
        })
    }

    /// Continues a run with the same jobs and fabric, or with further jobs that have been added to the parts.
    pub(super) fn of_parts(jobs: &'a [Job], fabric: &Fabric, parts: Parts) -> Self {
        let Parts { stages, first, sendings, time, .. } = parts;
        let ports = fabric.resources();
        Self {
            state: State { jobs, stages, first, fabric: fabric.clone(), ports, time, sendings },
            arrived: parts.arrived,
            open: parts.open,
            active: parts.active,
            waiting: parts.waiting,
            left: parts.left,
            order: Vec::new(),
            rates: Vec::new(),
            allocation: parts.allocation,
            decisions: 0,
        }
    }

    /// Returns the state, excluding the jobs.
    pub(super) fn into_parts(self) -> Parts {
        let State { stages, first, sendings, time, .. } = self.state;
        Parts {
            stages,
            first,
            sendings,
            time,
            arrived: self.arrived,
            open: self.open,
            active: self.active,
            waiting: self.waiting,
            left: self.left,
            allocation: self.allocation,
        }
    }

    /// Returns the number of jobs that have arrived.
    pub(crate) fn arrived(&self) -> usize {
        self.arrived
    }

    /// Starts the jobs whose arrival time has been reached.
    pub(crate) fn arrive(&mut self) {
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
        let State { jobs, stages, sendings, time, fabric, .. } = &mut self.state;
        let Stage { job, index, .. } = stages[stage];
        stages[stage].ready = Some(*time);
        sendings[stage] = Some(Box::new(Sending::new(&jobs[job].coflows()[index], fabric)));
        self.active.push(stage);
    }

    /// Returns the coflows that are ready and not fully sent, in the order in which they became ready.
    pub(crate) fn ready(&self) -> impl Iterator<Item = usize> {
        self.active.iter().copied().filter(|stage| self.state.sendings[*stage].is_some())
    }

    /// Asks the policy for an order and computes rates.
    pub(super) fn allocate(&mut self, policy: &mut dyn Policy) {
        let mut order = std::mem::take(&mut self.order);
        order.clear();
        order.extend(self.ready());
        let sharing = policy.prioritise(&self.state, &mut order);
        self.send(order, sharing);
    }

    /// Computes rates for an order of the coflows that are ready and not fully sent.
    pub(crate) fn send(&mut self, order: Vec<usize>, sharing: Sharing) {
        self.decisions += 1;
        self.order = order;
        let State { stages, sendings, fabric, .. } = &mut self.state;
        self.allocation.share(sendings, &self.order, fabric, sharing);
        self.rates.clear();
        for stage in &self.order {
            let rate = sendings[*stage].as_ref().map_or(0.0, |sending| sending.rate());
            if rate > 0.0 {
                self.rates.push((*stage, rate / stages[*stage].size));
            }
        }
    }

    /// Returns the number of seconds, at most `limit`, until rates must be recomputed.
    pub(crate) fn next_event(&mut self, limit: f64) -> f64 {
        let State { jobs, sendings, time, .. } = &mut self.state;
        let next_arrival = jobs.get(self.arrived).map_or(f64::INFINITY, |job| job.arrival - *time);
        self.allocation.next_end(sendings, &self.order, next_arrival.min(limit)).max(0.0)
    }

    /// Sends at the current rates for a number of seconds, and completes the coflows that have ended.
    pub(crate) fn advance(&mut self, seconds: f64) {
        self.state.time += seconds;
        for number in &self.order {
            let (stage, sending) = (&mut self.state.stages[*number], &mut self.state.sendings[*number]);
            let Some(flows) = sending else { continue };
            flows.advance(seconds);
            if flows.is_sent() {
                *sending = None;
                (stage.left, stage.bottleneck_left) = (0.0, 0.0);
            } else {
                (stage.left, stage.bottleneck_left) = (flows.size() / stage.size, flows.length());
            }
        }
        self.complete_sent();
    }

    /// Completes the coflows that are fully sent and whose completion does not depend on any incomplete coflow, and
    /// makes the coflows that waited for them ready.
    pub(super) fn complete_sent(&mut self) {
        // The completion of a coflow that is fully sent can still depend on other coflows. If these complete in this
        // loop, so does the coflow.
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

    /// Returns the outcome; all jobs must be complete.
    pub(crate) fn finish(&self) -> Outcome {
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
