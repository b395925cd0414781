//! The course of events.

use super::account::{GpuTime, Outcome};
use super::backfill::Reservation;
use super::calendar::{Calendar, Due};
use super::scenario::Scenario;
use crate::Job;
use crate::failure::FailureDraw;
use crate::options::Queueing;
use crate::policy::Placer;
use crate::state::{Phase, State};
use iswitch_learn::algorithms::streams::Purpose;
use iswitch_study::StudyError;

/// A placer looks again after so many seconds at least: time goes on.
const LOOK_AGAIN_MIN: f64 = 1.0;

/// Events and looks of the placer after which a simulation is given up: minutes to an hour of computing.
pub const EVENTS_MAX: u64 = 100_000_000;

/// What happened to a job or a GPU. The state given with it is that after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A job was started on the GPUs that it has now.
    Start(usize),
    /// A failure of a GPU stopped a job.
    Hit {
        /// Number of the job.
        job: usize,
        /// Id of the GPU.
        gpu: usize,
    },
    /// A placer suspended a job.
    Suspend(usize),
    /// A job is complete.
    Complete(usize),
    /// A GPU has failed.
    Failure(usize),
    /// A GPU is repaired.
    Repair(usize),
}

/// Someone who watches a simulation.
pub type Observer<'o> = dyn FnMut(&State<'_>, Event) + 'o;

/// Where in the queue the present round of placements is.
#[derive(Clone, Copy, Debug)]
struct Round {
    /// In the queue.
    at: usize,
    /// GPUs of the job that is to be placed.
    size: usize,
    promised: Option<Reservation>,
}

/// A cluster that stops whenever a job is to be placed: for learners that decide for many clusters at once.
/// [`simulate`] is the short way.
pub struct Simulation<'a, 'o> {
    pub(super) scenario: &'a Scenario,
    pub(super) state: State<'a>,
    pub(super) draw: FailureDraw<'a>,
    pub(super) calendar: Calendar,
    /// Jobs that have arrived.
    arrived: usize,
    /// Jobs that are complete.
    pub(super) complete: usize,
    round: Option<Round>,
    /// GPUs that are failed.
    pub(super) failed: usize,
    /// GPUs that work, of jobs that wait for the repair of others.
    pub(super) held: usize,
    pub(super) gpu_time: GpuTime,
    pub(super) expected_loss: f64,
    pub(super) failures: u64,
    pub(super) hits: u64,
    pub(super) suspensions: u64,
    placements: u64,
    /// Events and looks of the placer that are still allowed.
    events_left: u64,
    pub(super) observer: Option<&'o mut Observer<'o>>,
}

/// Runs a scenario to its end; `seed` decides when GPUs fail.
///
/// # Errors
/// If the placer picks GPUs that it cannot have, or none although all are free.
pub fn simulate(scenario: &Scenario, placer: &mut dyn Placer, seed: u64) -> Result<Outcome, StudyError> {
    let draw = FailureDraw::new(scenario.failures(), seed, Purpose::Failures, 0);
    simulate_draw(scenario, placer, draw, None)
}

/// The same with failures that were drawn, and someone to watch.
///
/// # Errors
/// As [`simulate`].
pub fn simulate_draw<'o>(
    scenario: &Scenario,
    placer: &mut dyn Placer,
    draw: FailureDraw<'_>,
    observer: Option<&'o mut Observer<'o>>,
) -> Result<Outcome, StudyError> {
    let mut simulation = Simulation::new(scenario, draw, observer);
    while let Some(candidate) = simulation.next(placer)? {
        simulation.place(placer, candidate)?;
    }
    Ok(simulation.finish())
}

impl<'a, 'o> Simulation<'a, 'o> {
    /// At time 0, before the first job.
    pub fn new(
        scenario: &'a Scenario,
        draw: FailureDraw<'a>,
        observer: Option<&'o mut Observer<'o>>,
    ) -> Self {
        let mut simulation = Self {
            scenario,
            state: State::new(scenario),
            draw,
            calendar: Calendar::default(),
            arrived: 0,
            complete: 0,
            round: None,
            failed: 0,
            held: 0,
            gpu_time: GpuTime::default(),
            expected_loss: 0.0,
            failures: 0,
            hits: 0,
            suspensions: 0,
            placements: 0,
            events_left: EVENTS_MAX,
            observer,
        };
        (0..scenario.cluster().gpus()).for_each(|gpu| simulation.expect_failure(gpu));
        simulation
    }

    /// What a placer sees.
    pub fn state(&self) -> &State<'a> {
        &self.state
    }

    /// Goes on until a job is to be placed: its number and how many GPUs it is to have; as many are free. Then it wants
    /// [`start`](Self::start), [`pass`](Self::pass) or [`place`](Self::place). None at the end. Of `placer` only the
    /// order of the queue, sizes and suspensions are asked.
    ///
    /// # Errors
    /// If the placer wants what cannot be, nothing runs because it has passed by all jobs with all GPUs free, or
    /// [`EVENTS_MAX`] is exceeded.
    pub fn next(&mut self, placer: &mut dyn Placer) -> Result<Option<(usize, usize)>, StudyError> {
        loop {
            if let Some(candidate) = self.candidate(placer)? {
                return Ok(Some(candidate));
            }
            if self.complete == self.state.progress.len() || self.state.time >= self.scenario.end() {
                return Ok(None);
            }
            self.check_progress(placer)?;
            self.advance(placer)?;
            self.begin_round(placer)?;
        }
    }

    /// Asks a placer for the GPUs of the job that [`next`](Self::next) has given, and does what it says.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn place(&mut self, placer: &mut dyn Placer, (job, size): (usize, usize)) -> Result<(), StudyError> {
        let mut picks = Vec::with_capacity(size);
        placer.place(&self.state, job, size, &mut picks);
        if picks.is_empty() {
            self.pass();
            return Ok(());
        }
        self.start(&picks)
    }

    /// Starts the job that [`next`](Self::next) has given on these GPUs.
    ///
    /// # Errors
    /// If they are not as many as it is to have, one is unknown, taken, failed or twice among them.
    ///
    /// # Panics
    /// If no job is to be placed.
    pub fn start(&mut self, picks: &[usize]) -> Result<(), StudyError> {
        let mut round = self.round.expect("a job is to be placed");
        let job = self.state.queue[round.at];
        if picks.len() != round.size {
            let field = format!("GPUs picked for job {job}");
            return Err(StudyError::field(field, picks.len(), round.size.to_string()));
        }
        for (number, gpu) in picks.iter().enumerate() {
            self.scenario.cluster().check_gpu(*gpu)?;
            if !self.state.gpus[*gpu].is_free() || picks[..number].contains(gpu) {
                let field = format!("GPU picked for job {job}");
                return Err(StudyError::field(field, gpu, "one that is free"));
            }
        }
        self.state.queue.remove(round.at);
        picks.iter().for_each(|gpu| self.state.gpus[*gpu].owner = Some(job));
        self.state.free -= picks.len();
        self.state.active.push(job);
        self.placements += 1;
        self.begin_run(job, picks.to_vec());
        if let Some(promised) = &mut round.promised {
            promised.take(&self.state, job, picks.len());
        }
        self.round = Some(round);
        Ok(())
    }

    /// Leaves the job that [`next`](Self::next) has given in the queue, as if there were not enough GPUs for it.
    ///
    /// # Panics
    /// If no job is to be placed.
    pub fn pass(&mut self) {
        let mut round = self.round.expect("a job is to be placed");
        self.round = self.skip(&mut round).then_some(round);
    }

    /// The next job of this round that is to be placed.
    fn candidate(&mut self, placer: &mut dyn Placer) -> Result<Option<(usize, usize)>, StudyError> {
        let Some(mut round) = self.round.take() else { return Ok(None) };
        while let Some(job) = self.state.queue.get(round.at).copied().filter(|_| self.state.free > 0) {
            // A placer that orders may have put one there twice.
            if !matches!(self.state.progress.get(job).map(|it| &it.phase), Some(Phase::Waiting)) {
                return Err(StudyError::field("job in the queue", job, "one that waits"));
            }
            round.size = placer.size(&self.state, job);
            if round.size == 0 {
                round.at += 1;
                continue;
            }
            self.check_size(job, round.size)?;
            let admitted = match round.promised {
                Some(promised) => promised.admit(&self.state, job, round.size),
                None => true,
            };
            if round.size <= self.state.free && admitted {
                self.round = Some(round);
                return Ok(Some((job, round.size)));
            }
            if !self.skip(&mut round) {
                break;
            }
        }
        Ok(None)
    }

    /// Goes to the next job of the queue, if jobs may go before this one.
    fn skip(&self, round: &mut Round) -> bool {
        round.at += 1;
        match self.scenario.options().queueing {
            Queueing::Strict => false,
            Queueing::FirstFit => true,
            Queueing::Easy => {
                round.promised.get_or_insert_with(|| Reservation::new(&self.state, round.size));
                true
            }
        }
    }

    fn check_size(&self, job: usize, size: usize) -> Result<(), StudyError> {
        if self.state.job(job).can_have(size) {
            return Ok(());
        }
        let field = format!("GPUs wanted for job {job}");
        Err(StudyError::field(field, size, "a number on which it can run"))
    }

    /// Suspends what the placer wants suspended and puts the queue in its order.
    fn begin_round(&mut self, placer: &mut dyn Placer) -> Result<(), StudyError> {
        if self.state.queue.is_empty() && self.state.active.is_empty() {
            return Ok(());
        }
        let mut suspended = Vec::new();
        placer.suspend(&self.state, &mut suspended);
        for job in suspended {
            if !matches!(self.state.progress.get(job).map(|it| &it.phase), Some(Phase::Running(_))) {
                return Err(StudyError::field("job to suspend", job, "one that runs"));
            }
            self.suspend(job);
        }
        if self.state.queue.is_empty() || self.state.free == 0 {
            return Ok(());
        }
        let mut queue = std::mem::take(&mut self.state.queue);
        // A job that was stopped is as old as it was.
        queue.sort_unstable();
        placer.order(&self.state, &mut queue);
        self.state.queue = queue;
        self.round = Some(Round { at: 0, size: 0, promised: None });
        Ok(())
    }

    /// Refuses to wait for ever.
    fn check_progress(&self, placer: &mut dyn Placer) -> Result<(), StudyError> {
        let is_idle = self.state.active.is_empty() && self.state.free == self.state.gpus.len();
        let is_last = self.arrived == self.state.progress.len();
        if is_idle && is_last && placer.look_again(&self.state).is_none() {
            let expected = "at least 1 while all GPUs are free";
            return Err(StudyError::field("jobs that the placer starts", 0, expected));
        }
        Ok(())
    }

    /// Goes to the next time at which something happens.
    fn advance(&mut self, placer: &mut dyn Placer) -> Result<(), StudyError> {
        self.count_event()?;
        let jobs = self.scenario.jobs();
        let arrival = jobs.get(self.arrived).map_or(f64::INFINITY, Job::arrival);
        let look_again = placer.look_again(&self.state).unwrap_or(f64::INFINITY).max(LOOK_AGAIN_MIN);
        let next = arrival.min(self.calendar.next_time()).min(self.state.time + look_again);
        let next = next.min(self.scenario.end());
        let step = next - self.state.time;
        self.gpu_time.idle += step * self.state.free as f64;
        self.gpu_time.failed += step * self.failed as f64;
        self.gpu_time.held += step * self.held as f64;
        self.state.time = next;
        if next == self.scenario.end() {
            return Ok(());
        }
        while let Some(due) = self.calendar.pop_until(next) {
            self.count_event()?;
            match due {
                Due::Complete { job, run } => self.complete_run(job, run),
                Due::Repair(gpu) => self.repair(gpu),
                Due::Failure { gpu, until } => self.fail(gpu, f64::from_bits(until)),
            }
        }
        while jobs.get(self.arrived).is_some_and(|job| job.arrival() <= next) {
            self.wait(self.arrived);
            self.arrived += 1;
        }
        Ok(())
    }

    /// Refuses to go on for ever.
    fn count_event(&mut self) -> Result<(), StudyError> {
        let left = self.events_left.checked_sub(1).ok_or_else(|| {
            let field = format!("events of the simulation until {} s", self.state.time);
            let expected = format!(
                "at most {EVENTS_MAX}: let jobs arrive closer together, GPUs fail less often, or the run end earlier"
            );
            StudyError::field(field, format!("more than {EVENTS_MAX}"), expected)
        })?;
        self.events_left = left;
        Ok(())
    }

    /// What came out. Work of jobs that still run counts as useful.
    pub fn finish(mut self) -> Outcome {
        for job in std::mem::take(&mut self.state.active) {
            if matches!(self.state.progress[job].phase, Phase::Running(_)) {
                let (run, share) = self.take_run(job);
                self.gpu_time.useful += share.unsaved * run.gpus.len() as f64;
            }
        }
        let jobs = self.scenario.jobs().iter().zip(&self.state.progress);
        let completion_times =
            jobs.map(|(job, progress)| Some(progress.completed? - job.arrival())).collect();
        Outcome {
            makespan: self.state.time,
            completion_times,
            failures: self.failures,
            hits: self.hits,
            suspensions: self.suspensions,
            placements: self.placements,
            gpu_time: self.gpu_time,
            expected_loss: self.expected_loss,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{ByRule, Order, Rule};
    use crate::{Cluster, Failures, Options};

    #[test]
    fn a_simulation_ends_with_an_error_after_too_many_events() {
        let cluster = Cluster::new([(2, 0)]).unwrap();
        let jobs = [0.0, 1e9].map(|arrival| Job::new(arrival, 1, 10.0).unwrap()).to_vec();
        let failures = Failures::poisson(vec![1000.0; 2]).unwrap();
        let scenario = Scenario::new(cluster, jobs, failures, Options::default()).unwrap();
        let draw = FailureDraw::new(scenario.failures(), 1, Purpose::Failures, 0);
        let mut simulation = Simulation::new(&scenario, draw, None);
        simulation.events_left = 1000;
        let mut placer = ByRule::new(Order::Arrival, Rule::FirstFit);
        let error = loop {
            match simulation.next(&mut placer) {
                Ok(Some(candidate)) => simulation.place(&mut placer, candidate).unwrap(),
                Ok(None) => panic!("it ended"),
                Err(error) => break error.to_string(),
            }
        };
        assert!(error.starts_with("events of the simulation until "), "{error}");
    }
}
