//! Main loop of the simulation.

use super::account::{GpuTime, Outcome, ettr};
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

/// Minimum time, in seconds, after which a placer may request another decision without an event. It ensures that
/// simulated time advances.
const LOOK_AGAIN_MIN: f64 = 1.0;

/// Maximum number of events and placer decisions in a simulation. A simulation with this many events takes from several
/// minutes to an hour.
pub const EVENTS_MAX: u64 = 100_000_000;

/// Event of a job or a GPU. An observer receives it together with the state after the event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A job started on the GPUs that it holds in the given state.
    Start(usize),
    /// A failure of a GPU stopped a job. If a failure domain failed, other jobs that its failure stops may still appear
    /// as running in the state.
    Hit {
        /// Number of the job.
        job: usize,
        /// Id of the GPU.
        gpu: usize,
    },
    /// A placer suspended a job.
    Suspend(usize),
    /// A job completed.
    Complete(usize),
    /// A GPU failed.
    Failure(usize),
    /// A GPU was repaired.
    Repair(usize),
}

/// Callback that observes the events of a simulation.
pub type Observer<'o> = dyn FnMut(&State<'_>, Event) + Send + 'o;

/// Progress of the current round of placements.
#[derive(Clone, Copy, Debug)]
struct Round {
    /// Current position in the queue.
    at: usize,
    /// Number of GPUs that the job at the current position should get.
    size: usize,
    /// Reservation for the first job that did not fit, used by EASY backfilling.
    promised: Option<Reservation>,
}

/// Simulation that pauses whenever a job must be placed, for learners that make the decisions for many clusters at
/// once. [`simulate`] runs a whole simulation.
pub struct Simulation<'a, 'o> {
    pub(super) scenario: &'a Scenario,
    pub(super) state: State<'a>,
    pub(super) draw: FailureDraw<'a>,
    pub(super) calendar: Calendar,
    /// Number of jobs that have arrived.
    arrived: usize,
    /// Number of completed jobs.
    pub(super) complete: usize,
    round: Option<Round>,
    /// Number of failed GPUs.
    pub(super) failed: usize,
    /// Number of working GPUs held by jobs that wait for the repair of another GPU.
    pub(super) held: usize,
    pub(super) gpu_time: GpuTime,
    pub(super) expected_loss: f64,
    pub(super) failures: u64,
    pub(super) hits: u64,
    pub(super) suspensions: u64,
    placements: u64,
    /// Remaining number of events and placer decisions before the simulation fails.
    events_left: u64,
    pub(super) observer: Option<&'o mut Observer<'o>>,
}

/// Runs a scenario to its end; `seed` determines the failures.
///
/// # Errors
/// Fails if the placer fails, makes an invalid decision or starts no job although all GPUs are free, or if the number
/// of events and decisions exceeds [`EVENTS_MAX`].
pub fn simulate(scenario: &Scenario, placer: &mut dyn Placer, seed: u64) -> Result<Outcome, StudyError> {
    let draw = FailureDraw::new(scenario.failures(), seed, Purpose::Failures, 0);
    simulate_draw(scenario, placer, draw, None)
}

/// Runs a scenario to its end with the given failures and an optional observer.
///
/// # Errors
/// Returns the errors of [`simulate`].
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
    /// Creates a simulation at time 0, before the first job.
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
        (0..scenario.failures().components()).for_each(|component| simulation.expect_failure(component, 0.0));
        simulation
    }

    /// Returns the state that a placer sees.
    pub fn state(&self) -> &State<'a> {
        &self.state
    }

    /// Advances until a job must be placed, and returns its number and the number of GPUs that it should have; at least
    /// that many are free. The caller must then call [`start`](Self::start), [`pass`](Self::pass) or
    /// [`place`](Self::place). Returns `None` at the end of the simulation. This method calls only `suspend`, `order`,
    /// `size` and `look_again` of `placer`.
    ///
    /// # Errors
    /// Fails if the placer makes an invalid decision, no job runs because the placer has passed over every job although
    /// all GPUs are free, or the number of events and decisions exceeds [`EVENTS_MAX`].
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

    /// Asks a placer for the GPUs of the job that [`next`](Self::next) returned, and starts the job or passes over it.
    ///
    /// # Errors
    /// Returns the errors of [`Self::start`].
    pub fn place(&mut self, placer: &mut dyn Placer, (job, size): (usize, usize)) -> Result<(), StudyError> {
        let mut picks = Vec::with_capacity(size);
        placer.place(&self.state, job, size, &mut picks);
        check_failure(placer)?;
        if picks.is_empty() {
            self.pass();
            return Ok(());
        }
        self.start(&picks)
    }

    /// Starts the job that [`next`](Self::next) returned on the GPUs `picks`.
    ///
    /// # Errors
    /// Fails if the number of GPUs differs from the one that `next` returned, or a GPU is unknown, taken, failed or
    /// repeated.
    ///
    /// # Panics
    /// Panics if `next` has not returned a job to place.
    pub fn start(&mut self, picks: &[usize]) -> Result<(), StudyError> {
        let mut round = self.round.expect("`next` must have returned a job to place");
        let job = self.state.queue[round.at];
        if picks.len() != round.size {
            let field = format!("number of GPUs picked for job {job}");
            return Err(StudyError::field(field, picks.len(), round.size.to_string()));
        }
        for (number, gpu) in picks.iter().enumerate() {
            self.scenario.cluster().check_gpu(*gpu)?;
            if !self.state.gpus[*gpu].is_free() || picks[..number].contains(gpu) {
                let field = format!("GPU picked for job {job}");
                return Err(StudyError::field(field, gpu, "a free GPU"));
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

    /// Leaves the job that [`next`](Self::next) returned in the queue, as if too few GPUs were free for it.
    ///
    /// # Panics
    /// Panics if `next` has not returned a job to place.
    pub fn pass(&mut self) {
        let mut round = self.round.expect("`next` must have returned a job to place");
        self.round = self.skip(&mut round).then_some(round);
    }

    /// Lets the placer make all decisions for one moment, in the state that `prepare` sets up. Reports suspensions and
    /// starts to the observer. Returns the number of seconds after which the placer decides again even without an
    /// event, as [`Self::next`] would apply it; `None` if it decides only after events.
    ///
    /// # Errors
    /// Fails if the placer makes an invalid decision.
    pub(crate) fn decide(
        mut self,
        prepare: impl FnOnce(&mut State<'a>),
        placer: &mut dyn Placer,
    ) -> Result<Option<f64>, StudyError> {
        prepare(&mut self.state);
        self.begin_round(placer)?;
        while let Some(candidate) = self.candidate(placer)? {
            self.place(placer, candidate)?;
        }
        let look_again = placer.look_again(&self.state).filter(|seconds| seconds.is_finite());
        Ok(look_again.map(|seconds| seconds.max(LOOK_AGAIN_MIN)))
    }

    /// Returns the next job of this round that can be placed, and the number of GPUs that it should get.
    fn candidate(&mut self, placer: &mut dyn Placer) -> Result<Option<(usize, usize)>, StudyError> {
        let Some(mut round) = self.round.take() else { return Ok(None) };
        while let Some(job) = self.state.queue.get(round.at).copied().filter(|_| self.state.free > 0) {
            // The placer that sorted the queue may have written invalid or repeated jobs into it.
            if !matches!(self.state.progress.get(job).map(|it| &it.phase), Some(Phase::Waiting)) {
                return Err(StudyError::field("job in the queue", job, "a waiting job"));
            }
            round.size = placer.size(&self.state, job);
            check_failure(placer)?;
            if round.size == 0 {
                round.at += 1;
                continue;
            }
            self.check_size(job, round.size)?;
            let admitted = match round.promised {
                Some(promised) => promised.admit(&self.state, job, round.size),
                None => true,
            };
            if round.size + self.spares(job) <= self.state.free && admitted {
                self.round = Some(round);
                return Ok(Some((job, round.size)));
            }
            if !self.skip(&mut round) {
                break;
            }
        }
        Ok(None)
    }

    /// Skips the current job of the queue. Returns whether later jobs may start before it.
    fn skip(&self, round: &mut Round) -> bool {
        round.at += 1;
        match self.scenario.options().queueing {
            Queueing::Strict => false,
            Queueing::FirstFit => true,
            Queueing::Easy => {
                let gpus = round.size + self.spares(self.state.queue[round.at - 1]);
                round.promised.get_or_insert_with(|| Reservation::new(&self.state, gpus));
                true
            }
        }
    }

    /// Returns the number of free GPUs that a job must leave as spares: 0 if the job was stopped by a failure.
    fn spares(&self, job: usize) -> usize {
        if self.state.progress[job].failures == 0 { self.scenario.options().spares } else { 0 }
    }

    fn check_size(&self, job: usize, size: usize) -> Result<(), StudyError> {
        if self.state.job(job).can_have(size) {
            return Ok(());
        }
        let field = format!("number of GPUs wanted for job {job}");
        let job = self.state.job(job);
        let expected = job.scaling().map_or_else(
            || format!("{}, the number of GPUs of the job", job.gpus()),
            |scaling| format!("{} to {}, the limits of the job", scaling.least, scaling.most),
        );
        Err(StudyError::field(field, size, expected))
    }

    /// Suspends the jobs that the placer selects, and lets the placer sort the queue.
    fn begin_round(&mut self, placer: &mut dyn Placer) -> Result<(), StudyError> {
        if self.state.queue.is_empty() && self.state.active.is_empty() {
            return Ok(());
        }
        let mut suspended = Vec::new();
        placer.suspend(&self.state, &mut suspended);
        check_failure(placer)?;
        for job in suspended {
            if !matches!(self.state.progress.get(job).map(|it| &it.phase), Some(Phase::Running(_))) {
                return Err(StudyError::field("job to suspend", job, "a running job"));
            }
            self.suspend(job);
        }
        if self.state.queue.is_empty() || self.state.free == 0 {
            return Ok(());
        }
        let mut queue = std::mem::take(&mut self.state.queue);
        // Job numbers are in order of arrival, so a stopped job returns to its former position.
        queue.sort_unstable();
        placer.order(&self.state, &mut queue);
        check_failure(placer)?;
        self.state.queue = queue;
        self.round = Some(Round { at: 0, size: 0, promised: None });
        Ok(())
    }

    /// Fails if the simulation would wait forever because the placer starts no job.
    fn check_progress(&self, placer: &mut dyn Placer) -> Result<(), StudyError> {
        let is_idle = self.state.active.is_empty() && self.state.free == self.state.gpus.len();
        let is_last = self.arrived == self.state.progress.len();
        if is_idle && is_last && placer.look_again(&self.state).is_none() {
            let expected = "at least 1 while all GPUs are free";
            return Err(StudyError::field("number of jobs that the placer starts", 0, expected));
        }
        Ok(())
    }

    /// Advances to the time of the next event and handles all events of that time.
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
                Due::Repair(component) => self.repair(component),
                Due::Failure { component, until } => self.fail(component, f64::from_bits(until)),
            }
        }
        while jobs.get(self.arrived).is_some_and(|job| job.arrival() <= next) {
            self.wait(self.arrived);
            self.arrived += 1;
        }
        Ok(())
    }

    /// Counts an event or a decision. Fails if their number exceeds [`EVENTS_MAX`].
    fn count_event(&mut self) -> Result<(), StudyError> {
        let left = self.events_left.checked_sub(1).ok_or_else(|| {
            let field = format!("number of events in the simulation until {} s", self.state.time);
            let expected = format!(
                "at most {EVENTS_MAX}: lower the failure rates, or shorten the simulated time (smaller interarrival \
                 times or a shorter horizon)"
            );
            StudyError::field(field, format!("more than {EVENTS_MAX}"), expected)
        })?;
        self.events_left = left;
        Ok(())
    }

    /// Returns the outcome. The work of jobs that still run counts as useful.
    pub fn finish(mut self) -> Outcome {
        for job in std::mem::take(&mut self.state.active) {
            if matches!(self.state.progress[job].phase, Phase::Running(_)) {
                let (run, share) = self.take_run(job);
                self.gpu_time.useful += share.unsaved * run.gpus.len() as f64;
                let progress = &mut self.state.progress[job];
                progress.left = (progress.left - share.unsaved * run.speed).max(0.0);
            }
        }
        let ettr = ettr(self.scenario.jobs(), &self.state.progress, self.state.time);
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
            ettr,
        }
    }
}

fn check_failure(placer: &mut dyn Placer) -> Result<(), StudyError> {
    placer.failure().map_or(Ok(()), Err)
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
                Ok(None) => panic!("the simulation must end with an error"),
                Err(error) => break error.to_string(),
            }
        };
        assert!(error.starts_with("number of events in the simulation until "), "{error}");
    }
}
