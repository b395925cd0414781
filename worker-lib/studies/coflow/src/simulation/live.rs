//! Jobs of a real cluster: a run whose progress is reported instead of simulated. Arrivals, dependencies, the order of
//! coflows and their rates are computed by the same code as in a simulation.

use super::run::Parts;
use super::{Fabric, Run, Sending, Stage};
use crate::policy::Policy;
use crate::workload::{Coflow, Flow, Job};
use iswitch_study::StudyError;

/// Jobs of a cluster, and the bytes that their flows still have to send.
#[derive(Debug)]
pub(crate) struct Live {
    fabric: Fabric,
    /// Jobs in the order of their registration. Complete jobs remain until [`Self::forget`] is called.
    jobs: Vec<Job>,
    /// Number of bytes that each flow of each coflow still has to send, in the order of the coflow's flows.
    left: Vec<Vec<f64>>,
    /// Total number of flows of `jobs`.
    flows: usize,
    parts: Parts,
}

/// Order and rates of the coflows that are ready.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Schedule {
    /// Coflows, highest priority first, and the rate of each of their flows, in bits per second.
    pub(crate) coflows: Vec<(usize, Vec<f64>)>,
    /// Number of seconds after which rates must be computed again even if nothing is reported; infinite if no coflow is
    /// ready.
    pub(crate) valid_s: f64,
}

impl Live {
    /// Creates a cluster without jobs, at time 0.
    pub(crate) fn new(fabric: Fabric) -> Self {
        Self { fabric, jobs: Vec::new(), left: Vec::new(), flows: 0, parts: Parts::default() }
    }

    /// Returns the fabric.
    pub(crate) fn fabric(&self) -> &Fabric {
        &self.fabric
    }

    /// Returns the current time, in seconds.
    pub(crate) fn time(&self) -> f64 {
        self.parts.time
    }

    /// Sets the current time, in seconds, which must not be lower than before.
    pub(crate) fn set_time(&mut self, seconds: f64) {
        self.parts.time = seconds;
    }

    /// Returns a job, complete or not.
    pub(crate) fn job(&self, job: usize) -> &Job {
        &self.jobs[job]
    }

    /// Returns the index of a coflow, given its job and its index within the job.
    pub(crate) fn coflow(&self, job: usize, index: usize) -> usize {
        self.parts.first[job] + index
    }

    /// Returns the state of a coflow.
    pub(crate) fn stage(&self, coflow: usize) -> &Stage {
        &self.parts.stages[coflow]
    }

    /// Returns the number of bytes that each flow of a coflow still has to send.
    pub(crate) fn left(&self, coflow: usize) -> &[f64] {
        &self.left[coflow]
    }

    /// Returns the number of incomplete coflows of a job.
    pub(crate) fn incomplete_of(&self, job: usize) -> usize {
        self.parts.left[job]
    }

    /// Returns the numbers of coflows and of flows, including those of complete jobs that have not been forgotten.
    pub(crate) fn size(&self) -> (usize, usize) {
        (self.left.len(), self.flows)
    }

    /// Returns the number of incomplete coflows.
    pub(crate) fn incomplete(&self) -> usize {
        self.parts.left.iter().sum()
    }

    /// Adds a job that arrives now, and returns its index.
    ///
    /// # Errors
    /// Fails if a coflow was created for a fabric whose number of ports differs from that of this fabric.
    pub(crate) fn register(&mut self, mut job: Job) -> Result<usize, StudyError> {
        let ports = self.fabric.ports;
        if let Some(other) = job.coflows().iter().map(Coflow::ports).find(|other| *other != ports) {
            return Err(StudyError::field("ports of a coflow's fabric", other, ports.to_string()));
        }
        job.arrival = self.parts.time;
        self.parts.add(&job, &self.fabric);
        let sizes = |coflow: &Coflow| coflow.flows().iter().map(|flow| flow.size).collect();
        self.left.extend(job.coflows().iter().map(sizes));
        self.flows += job.coflows().iter().map(|coflow| coflow.flows().len()).sum::<usize>();
        self.jobs.push(job);
        self.with(Run::arrive);
        Ok(self.jobs.len() - 1)
    }

    /// Sets the number of bytes that the flows of ready coflows still have to send, with the shape of [`Self::left`],
    /// and completes the coflows that are fully sent.
    pub(crate) fn report(&mut self, reports: Vec<(usize, Vec<f64>)>) {
        for (coflow, left) in reports {
            self.left[coflow] = left;
            self.send_rest(coflow);
        }
        self.with(Run::complete_sent);
    }

    /// Recreates the sending state of a ready coflow from the remaining bytes of its flows.
    fn send_rest(&mut self, number: usize) {
        let Parts { stages, sendings, .. } = &mut self.parts;
        let stage = &mut stages[number];
        let coflow = &self.jobs[stage.job].coflows()[stage.index];
        let flows = coflow.flows().iter().zip(&self.left[number]).filter(|(_, left)| **left > 0.0);
        let flows: Vec<Flow> = flows.map(|(flow, left)| Flow { size: *left, ..*flow }).collect();
        if let Ok(rest) = Coflow::new(coflow.ports(), flows) {
            let sending = Sending::new(&rest, &self.fabric);
            (stage.left, stage.bottleneck_left) = (sending.size() / stage.size, sending.length());
            sendings[number] = Some(Box::new(sending));
        } else {
            // The coflow is invalid only if no flow has bytes left, because all other properties are those of the
            // original flows.
            (stage.left, stage.bottleneck_left) = (0.0, 0.0);
            sendings[number] = None;
        }
    }

    /// Ends a job: its coflows count as complete, and none of them is sent any more.
    pub(crate) fn remove(&mut self, job: usize) {
        let first = self.parts.first[job];
        let coflows = first..first + self.jobs[job].coflows().len();
        for coflow in coflows.clone() {
            let stage = &mut self.parts.stages[coflow];
            (stage.left, stage.bottleneck_left) = (0.0, 0.0);
            stage.complete.get_or_insert(self.parts.time);
            self.parts.sendings[coflow] = None;
        }
        self.parts.active.retain(|coflow| !coflows.contains(coflow));
        if std::mem::take(&mut self.parts.left[job]) > 0 {
            self.parts.open -= 1;
        }
    }

    /// Asks the policy for the order of the coflows that are ready, and computes their rates.
    pub(crate) fn schedule(&mut self, policy: &mut dyn Policy) -> Schedule {
        if self.parts.active.iter().all(|coflow| self.parts.sendings[*coflow].is_none()) {
            return Schedule { coflows: Vec::new(), valid_s: f64::INFINITY };
        }
        let (order, valid_s) = self.with(|run| {
            run.allocate(policy);
            let look_again = policy.look_again(&run.state, &run.rates).unwrap_or(f64::INFINITY);
            let valid_s = run.next_event(look_again);
            (std::mem::take(&mut run.order), valid_s)
        });
        let rates = |coflow: usize| (coflow, self.flow_rates(coflow));
        Schedule { coflows: order.into_iter().map(rates).collect(), valid_s }
    }

    /// Returns the rate of each flow of a coflow, in bits per second, in the order of the coflow's flows.
    fn flow_rates(&self, number: usize) -> Vec<f64> {
        let Stage { job, index, .. } = self.parts.stages[number];
        let flows = self.jobs[job].coflows()[index].flows();
        let left = &self.left[number];
        let mut rates = vec![0.0; flows.len()];
        let Some(sending) = &self.parts.sendings[number] else { return rates };
        // `sending` contains only the incomplete flows, sorted by their keys.
        let mut incomplete: Vec<usize> = (0..flows.len()).filter(|flow| left[*flow] > 0.0).collect();
        incomplete.sort_by_key(|flow| sending.key(&flows[*flow]));
        for (flow, rate) in incomplete.into_iter().zip(sending.flow_rates()) {
            rates[flow] = rate * self.fabric.capacity * 8.0;
        }
        rates
    }

    /// Forgets all complete jobs. Returns the new index of each job, or `None` for a job that was forgotten.
    pub(crate) fn forget(&mut self) -> Vec<Option<usize>> {
        let old = std::mem::take(&mut self.parts);
        let mut new = Parts { time: old.time, ..Parts::default() };
        let (jobs, mut left) = (std::mem::take(&mut self.jobs), std::mem::take(&mut self.left));
        let mut job_of = vec![None; jobs.len()];
        let mut coflow_of = vec![None; left.len()];
        for (number, job) in jobs.into_iter().enumerate().filter(|(number, _)| old.left[*number] > 0) {
            job_of[number] = Some(self.jobs.len());
            new.first.push(new.stages.len());
            new.left.push(old.left[number]);
            let first = old.first[number];
            for coflow in first..first + job.coflows().len() {
                coflow_of[coflow] = Some(new.stages.len());
                new.stages.push(Stage { job: self.jobs.len(), ..old.stages[coflow].clone() });
                new.sendings.push(old.sendings[coflow].clone());
                new.waiting.push(old.waiting[coflow]);
                self.left.push(std::mem::take(&mut left[coflow]));
            }
            self.jobs.push(job);
        }
        new.active = old.active.iter().filter_map(|coflow| coflow_of[*coflow]).collect();
        self.flows = self.left.iter().map(Vec::len).sum();
        (new.open, new.arrived) = (self.jobs.len(), self.jobs.len());
        self.parts = new;
        job_of
    }

    /// Calls `act` with the run of the jobs.
    fn with<'s, T>(&'s mut self, act: impl FnOnce(&mut Run<'s>) -> T) -> T {
        let mut run = Run::of_parts(&self.jobs, &self.fabric, std::mem::take(&mut self.parts));
        let result = act(&mut run);
        self.parts = run.into_parts();
        result
    }
}
