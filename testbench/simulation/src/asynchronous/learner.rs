//! The training loop of a worker: it computes and commits gradients (LGC), and applies sums in order (LWU).

use std::cmp::Reverse;

use iswitch::pipeline::digest;
use iswitch::worker::asynchronous::{Submission, Sum};
use iswitch::worker::protocol;
use iswitch_protocol::Round;

use super::Simulation;
use super::member::{Gradient, initial_model, vector};
use crate::checker::{Rule, Violation, violated};

/// A vector whose fate is unknown to its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Undecided {
    pub(super) worker: usize,
    pub(super) number: u64,
    /// Epoch of the job that it was committed to.
    pub(super) epoch: u64,
}

impl Simulation<'_> {
    /// LWU: sums in order, each the same for all, and the same model after it.
    pub(super) fn apply_sums(&mut self, worker: usize) -> Result<(), Violation> {
        self.fetch_state(worker);
        loop {
            while self.workers[worker].awaits_state.is_none()
                && let Some(sum) = self.workers[worker].protocol.take_sum()
            {
                self.apply(worker, sum)?;
            }
            let acting = &mut self.workers[worker];
            if let Some(divergence) = acting.protocol.take_divergence() {
                return violated(Rule::Agreement, format!("worker {worker}: {divergence:?}"));
            }
            match acting.protocol.take_failure() {
                None => return Ok(()),
                Some(protocol::Failure::Missed(next)) => {
                    acting.missed += 1;
                    acting.awaits_state = Some(next);
                    self.fetch_state(worker);
                }
                Some(failure) => {
                    return violated(Rule::Refusal, format!("worker {worker} failed: {failure:?}"));
                }
            }
        }
    }

    /// The state that a worker lacks which has missed sums.
    fn fetch_state(&mut self, worker: usize) {
        let Some(wanted) = self.workers[worker].awaits_state else { return };
        if let Some((next, model)) = self.state_for(worker, wanted) {
            let acting = &mut self.workers[worker];
            (acting.model, acting.next, acting.awaits_state) = (model, Some(next), None);
            acting.is_ahead = next != wanted;
        }
    }

    /// The model of a peer that has just applied the last aggregate before that one. If the workers that could have
    /// had it were killed, the model before a later aggregate; if there is none either, the worker's own.
    fn state_for(&mut self, worker: usize, wanted: Round) -> Option<(Round, Vec<f32>)> {
        let acting = &self.workers[worker];
        let epoch = acting.epoch;
        if let Some(model) = self.model_before(epoch, wanted) {
            return Some((wanted, model));
        }
        let membership = acting.protocol.membership().filter(|membership| membership.boot == epoch)?;
        if self.departures.crashes == 0 || wanted.is_before(membership.start) {
            return None;
        }
        if membership.start == wanted && super::upsets::begins_job(membership) {
            return Some((wanted, initial_model(self.scenario)));
        }
        if let Some(later) = self.next_state_after(epoch, wanted) {
            return Some((later, self.model_before(epoch, later)?));
        }
        if (0..self.workers.len()).any(|other| self.may_have_state(other)) || self.orphan() != Some(worker) {
            return None;
        }
        self.note(|| format!("{worker} goes on with its own state"));
        self.departures.orphans += 1;
        let model = self.workers[worker].model.clone();
        self.resumed_models.insert((epoch, wanted.get()), model.clone());
        Some((wanted, model))
    }

    /// Whether a worker has a state, may still begin with the job, or can fetch the state of another worker.
    fn may_have_state(&self, worker: usize) -> bool {
        let other = &self.workers[worker];
        other.is_running
            && other.awaits_state.is_none_or(|wanted| {
                let is_known = self.model_before(other.epoch, wanted).is_some();
                is_known || self.next_state_after(other.epoch, wanted).is_some()
            })
    }

    /// The worker that has come furthest among those that lack a state.
    fn orphan(&self) -> Option<usize> {
        let lacks_state = |worker: &usize| {
            let other = &self.workers[*worker];
            other.is_running && other.awaits_state.is_some()
        };
        let candidates = (0..self.workers.len()).filter(lacks_state);
        candidates.max_by_key(|worker| (self.workers[*worker].updates, Reverse(*worker)))
    }

    /// The first aggregate from that one on for which any worker has had the state before it.
    fn next_state_after(&self, epoch: u64, wanted: Round) -> Option<Round> {
        let own = (epoch, 0)..=(epoch, u32::MAX);
        let applied = self.aggregates.range(own.clone()).filter(|(_, known)| known.sum.is_some());
        let applied = applied.map(|((_, number), _)| Round::new(*number).next());
        let resumed = self.resumed_models.range(own).map(|((_, number), _)| Round::new(*number));
        let later = applied.chain(resumed).filter(|next| !next.is_before(wanted));
        later.min_by_key(|next| next.distance_from(wanted))
    }

    fn apply(&mut self, worker: usize, sum: Sum) -> Result<(), Violation> {
        let number = sum.aggregate.get();
        let acting = &mut self.workers[worker];
        if acting.is_ahead && acting.next.is_some_and(|next| sum.aggregate.is_before(next)) {
            acting.protocol.recycle(sum.vector);
            return Ok(());
        }
        if acting.next.is_some_and(|next| next != sum.aggregate) {
            let detail = format!("worker {worker} was given {number}, expected {:?}", acting.next);
            return violated(Rule::RoundOrder, detail);
        }
        acting.is_ahead = false;
        acting.updates += 1;
        acting.updates_since_heal += 1;
        acting.next = Some(sum.aggregate.next());
        acting.model.iter_mut().zip(&sum.vector).for_each(|(x, sum)| *x = (*x + sum) % 1e6);
        acting.staleness.applied(number);
        acting.protocol.tell_digest(sum.aggregate, digest(&acting.model));
        let known = self.aggregates.entry((acting.epoch, number)).or_default();
        match &known.sum {
            None => {
                known.model.clone_from(&acting.model);
                known.sum = Some((sum.vector.clone(), sum.contributions));
            }
            Some((vector, contributions)) => {
                let is_same = *vector == sum.vector && *contributions == sum.contributions;
                if !is_same || known.model != acting.model {
                    let detail = format!("worker {worker} has another sum or model for aggregate {number}");
                    return violated(Rule::Agreement, detail);
                }
            }
        }
        if known.sent != Some(sum.contributions) {
            let detail = format!(
                "worker {worker} was given {number} of {} vectors, and the switch sent {:?}",
                sum.contributions, known.sent
            );
            return violated(Rule::Agreement, detail);
        }
        acting.protocol.recycle(sum.vector);
        self.note(|| format!("{worker} applies {number}"));
        Ok(())
    }

    pub(super) fn note_submission(&mut self, worker: usize) -> Result<(), Violation> {
        let may_lose = self.is_disturbed();
        let acting = &mut self.workers[worker];
        let Some(submission) = acting.protocol.take_submission() else { return Ok(()) };
        let committed = acting.committed.take();
        let (number, aggregate) = match (committed, submission) {
            (Some(number), Submission::Admitted(aggregate)) => (number, aggregate),
            (Some(number), Submission::Lost) if may_lose => {
                self.undecided.push(Undecided { worker, number, epoch: acting.epoch });
                acting.staleness.admitted(acting.sequence, None);
                acting.sequence += 1;
                return Ok(());
            }
            _ => return violated(Rule::Lost, format!("worker {worker} was told {submission:?}")),
        };
        acting.staleness.admitted(acting.sequence, Some(aggregate.get()));
        acting.sequence += 1;
        let place = (acting.epoch, aggregate.get());
        self.aggregates.entry(place).or_default().vectors.push((worker, number));
        self.note(|| format!("{worker} is told that {aggregate} has its vector {number}"));
        Ok(())
    }

    /// LGC: computes, commits what is not too stale, begins anew.
    pub(super) fn compute(&mut self, worker: usize) -> Result<(), Violation> {
        let now = self.now;
        let acting = &mut self.workers[worker];
        if let Some(Gradient { number, done_at, made_at }) = acting.gradient {
            if now < done_at || !acting.protocol.is_ready() {
                return Ok(());
            }
            if acting.staleness.may_commit(made_at) {
                let staleness = acting.updates - made_at;
                if staleness > u64::from(self.scenario.staleness_bound) {
                    let detail =
                        format!("worker {worker} commits a gradient that is {staleness} updates old");
                    return violated(Rule::Staleness, detail);
                }
                acting.staleness.committed(acting.sequence, made_at);
                acting.committed = Some(number);
                acting.protocol.submit(now, &vector(self.scenario.gradient_len, worker, number));
            }
        }
        let done_at = now.plus(acting.pace.compute);
        acting.gradient = Some(Gradient { number: acting.computed, done_at, made_at: acting.updates });
        acting.computed += 1;
        Ok(())
    }
}
