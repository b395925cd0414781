//! Handlers for the events of jobs and GPUs.

use super::account::{Share, checkpoints, unsaved_integral};
use super::calendar::Due;
use super::engine::{Event, Simulation};
use crate::options::AfterFailure;
use crate::state::{Phase, Run};

impl Simulation<'_, '_> {
    pub(super) fn observe(&mut self, event: Event) {
        if let Some(observer) = &mut self.observer {
            observer(&self.state, event);
        }
    }

    pub(super) fn wait(&mut self, job: usize) {
        self.state.progress[job].phase = Phase::Waiting;
        self.state.queue.push(job);
    }

    /// Schedules the next failure of a component that has been working since `since`.
    pub(super) fn expect_failure(&mut self, component: usize, since: f64) {
        let repair = self.scenario.options().repair;
        if let Some((begin, end)) = self.draw.next(component, since, repair) {
            self.calendar.insert(begin, Due::Failure { component, until: end.to_bits() });
        }
    }

    pub(super) fn begin_run(&mut self, job: usize, gpus: Vec<usize>) {
        let rate = self.state.rate_of(&gpus);
        let (interval, cost) = self.scenario.options().checkpoint.interval(rate);
        let speed = self.state.speed(job, &gpus);
        let overhead = self.state.overhead(job);
        let time = self.state.time;
        let progress = &mut self.state.progress[job];
        let work = progress.left / speed;
        let end = time + overhead + work + checkpoints(work, interval) * cost;
        progress.runs += 1;
        progress.started.get_or_insert(time);
        self.calendar.insert(end, Due::Complete { job, run: progress.runs });
        progress.phase = Phase::Running(Run { gpus, begin: time, overhead, speed, interval, cost, end });
        self.observe(Event::Start(job));
    }

    /// Ends a job's run; returns the run and a breakdown of its time. The job keeps its GPUs, and its phase becomes
    /// `Waiting`.
    pub(super) fn take_run(&mut self, job: usize) -> (Run, Share) {
        let rate = self.state.rate_of(self.state.gpus_of(job));
        let progress = &mut self.state.progress[job];
        let Phase::Running(run) = std::mem::replace(&mut progress.phase, Phase::Waiting) else {
            unreachable!("job {job} must be running")
        };
        let elapsed = self.state.time - run.begin;
        let work = progress.left / run.speed;
        let share = Share::of(&run, work, elapsed);
        self.expected_loss += rate * unsaved_integral(&run, work, elapsed) * run.gpus.len() as f64;
        progress.service += elapsed * run.gpus.len() as f64;
        self.gpu_time.overhead += share.overhead * run.gpus.len() as f64;
        self.gpu_time.useful += share.saved * run.gpus.len() as f64;
        progress.left = (progress.left - share.saved * run.speed).max(0.0);
        (run, share)
    }

    pub(super) fn complete_run(&mut self, job: usize, number: u32) {
        let progress = &self.state.progress[job];
        if progress.runs != number || !matches!(progress.phase, Phase::Running(_)) {
            return;
        }
        let (run, share) = self.take_run(job);
        self.gpu_time.useful += share.unsaved * run.gpus.len() as f64;
        self.release(job, &run.gpus);
        let progress = &mut self.state.progress[job];
        progress.phase = Phase::Complete;
        progress.left = 0.0;
        progress.completed = Some(self.state.time);
        self.complete += 1;
        self.observe(Event::Complete(job));
    }

    pub(super) fn suspend(&mut self, job: usize) {
        let (run, share) = self.take_run(job);
        self.gpu_time.useful += share.unsaved * run.gpus.len() as f64;
        let progress = &mut self.state.progress[job];
        progress.left = (progress.left - share.unsaved * run.speed).max(0.0);
        self.release(job, &run.gpus);
        self.suspensions += 1;
        self.wait(job);
        self.observe(Event::Suspend(job));
    }

    fn release(&mut self, job: usize, gpus: &[usize]) {
        for gpu in gpus {
            let gpu = &mut self.state.gpus[*gpu];
            gpu.owner = None;
            self.state.free += usize::from(gpu.is_free());
        }
        self.state.active.retain(|other| *other != job);
    }

    pub(super) fn fail(&mut self, component: usize, until: f64) {
        self.failures += 1;
        self.state.seen[component] += 1;
        self.calendar.insert(until, Due::Repair(component));
        let mut hit = Vec::new();
        for gpu in self.scenario.failures().gpus_of(component) {
            let state = &mut self.state.gpus[gpu];
            state.failures += 1;
            state.down += 1;
            self.state.free -= usize::from(state.is_free());
            let worked = state.failed_until.is_none();
            state.failed_until = Some(state.failed_until.map_or(until, |other| other.max(until)));
            let owner = state.owner;
            if worked {
                self.failed += 1;
                self.observe(Event::Failure(gpu));
                match owner {
                    Some(job) if self.state.is_running(job) => hit.push((job, gpu)),
                    Some(_) => self.held -= 1,
                    None => {}
                }
            }
        }
        // A job that holds several of the GPUs is stopped only once.
        hit.sort_unstable();
        hit.dedup_by_key(|(job, _)| *job);
        hit.into_iter().for_each(|(job, gpu)| self.hit(job, gpu));
    }

    fn hit(&mut self, job: usize, gpu: usize) {
        let (run, share) = self.take_run(job);
        self.gpu_time.lost += share.unsaved * run.gpus.len() as f64;
        self.state.progress[job].failures += 1;
        self.hits += 1;
        match self.scenario.options().after_failure {
            AfterFailure::PlaceAgain => {
                self.release(job, &run.gpus);
                self.wait(job);
            }
            AfterFailure::WaitForRepair => {
                // The failed GPUs count as failed, not as held.
                let works = |gpu: &&usize| self.state.gpus[**gpu].failed_until.is_none();
                self.held += run.gpus.iter().filter(works).count();
                self.state.progress[job].phase = Phase::Stopped(run.gpus);
            }
        }
        self.observe(Event::Hit { job, gpu });
    }

    pub(super) fn repair(&mut self, component: usize) {
        let time = self.state.time;
        self.expect_failure(component, time);
        let mut owners = Vec::new();
        for gpu in self.scenario.failures().gpus_of(component) {
            let state = &mut self.state.gpus[gpu];
            state.down -= 1;
            if state.down > 0 {
                continue;
            }
            state.failed_until = None;
            state.up_since = time;
            let owner = state.owner;
            self.failed -= 1;
            self.state.free += usize::from(owner.is_none());
            self.held += usize::from(owner.is_some());
            self.observe(Event::Repair(gpu));
            owners.extend(owner);
        }
        owners.dedup();
        owners.into_iter().for_each(|job| self.resume(job));
    }

    /// Resumes a stopped job if all of its GPUs work again.
    fn resume(&mut self, job: usize) {
        let Phase::Stopped(gpus) = &self.state.progress[job].phase else { return };
        if gpus.iter().all(|gpu| self.state.gpus[*gpu].failed_until.is_none()) {
            let gpus = gpus.clone();
            self.held -= gpus.len();
            self.begin_run(job, gpus);
        }
    }
}
