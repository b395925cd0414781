//! Training loop of a worker: it computes and commits gradients (local gradient computing, LGC) and applies sums in
//! order (local weight update, LWU). At the end, each sum is compared with the committed vectors.

use std::cmp::Reverse;

use iswitch::pipeline::digest;
use iswitch::worker::asynchronous::{Submission, Sum};
use iswitch::worker::protocol;
use iswitch_protocol::Round;

use super::member::{Gradient, SimulatedWorker, initial_model, vector};
use super::upsets::begins_job;
use super::{Aggregate, Scenario, Simulation};
use crate::checker::{Rule, Violation, violated};

/// Maximum number of unconfirmed vectors that the checker searches for in one sum. The search is expensive, and few
/// sums contain more.
const MOST_UNCONFIRMED: usize = 3;

/// Number of aggregates whose sum equals the sum of committed vectors.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Checked {
    pub(super) all: u64,
    /// Number of aggregates that contain a vector whose sender received no confirmation.
    pub(super) unconfirmed: u64,
}

/// A vector whose sender does not know its fate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Undecided {
    pub(super) worker: usize,
    pub(super) number: u64,
    /// Epoch of the job to which the vector was committed.
    pub(super) epoch: u64,
}

impl Simulation<'_> {
    /// Performs LWU: applies sums in order, and checks that each sum, and the model to which it has been applied, is
    /// the same for all workers.
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

    /// Fetches the state that a worker lacks after missing sums.
    fn fetch_state(&mut self, worker: usize) {
        let Some(wanted) = self.workers[worker].awaits_state else { return };
        if let Some((next, model)) = self.state_for(worker, wanted) {
            let acting = &mut self.workers[worker];
            acting.has_lacked_state = true;
            (acting.model, acting.next, acting.awaits_state) = (model, Some(next), None);
            acting.is_ahead = next != wanted;
        }
    }

    /// Returns the model of a peer that has just applied the last aggregate before `wanted`. If all workers that could
    /// have had that model were killed, returns the model before a later aggregate or, if there is none, the worker's
    /// own model.
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
        if self.begins_with_job(worker, wanted) {
            return Some((wanted, initial_model(self.scenario)));
        }
        if let Some(later) = self.next_state_after(epoch, wanted) {
            return Some((later, self.model_before(epoch, later)?));
        }
        if (0..self.workers.len()).any(|other| self.may_have_state(other)) || self.orphan() != Some(worker) {
            return None;
        }
        self.note(|| format!("{worker} continues with its own state"));
        self.departures.orphans += 1;
        self.workers[worker].is_orphan = true;
        let model = self.workers[worker].model.clone();
        self.resumed_models.insert((epoch, wanted.get()), model.clone());
        Some((wanted, model))
    }

    /// Returns whether a worker has a state, can begin with the job's initial state, or can fetch the state of another
    /// worker.
    fn may_have_state(&self, worker: usize) -> bool {
        let other = &self.workers[worker];
        other.is_running
            && other.awaits_state.is_none_or(|wanted| {
                let is_known = self.model_before(other.epoch, wanted).is_some();
                is_known
                    || self.begins_with_job(worker, wanted)
                    || self.next_state_after(other.epoch, wanted).is_some()
            })
    }

    /// Returns whether the state that a worker lacks is the initial state of the job.
    fn begins_with_job(&self, worker: usize, wanted: Round) -> bool {
        let SimulatedWorker { protocol, epoch, .. } = &self.workers[worker];
        let membership = protocol.membership().filter(|membership| membership.boot == *epoch);
        membership.is_some_and(|membership| membership.start == wanted && begins_job(membership))
    }

    /// Returns the worker with the most updates among those that lack a state.
    fn orphan(&self) -> Option<usize> {
        let lacks_state = |worker: &usize| {
            let other = &self.workers[*worker];
            other.is_running && other.awaits_state.is_some()
        };
        let candidates = (0..self.workers.len()).filter(lacks_state);
        candidates.max_by_key(|worker| (self.workers[*worker].updates, Reverse(*worker)))
    }

    /// Returns the first aggregate, `wanted` or a later one, whose preceding state any worker has had.
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
            let detail = format!("worker {worker} received aggregate {number}, expected {:?}", acting.next);
            return violated(Rule::RoundOrder, detail);
        }
        let epoch = acting.epoch;
        self.check_incarnation(epoch)?;
        let acting = &mut self.workers[worker];
        acting.is_ahead = false;
        acting.is_orphan = false;
        acting.updates += 1;
        acting.updates_since_heal += 1;
        acting.next = Some(sum.aggregate.next());
        acting.model.iter_mut().zip(&sum.vector).for_each(|(x, sum)| *x = (*x + sum) % 1e6);
        acting.staleness.applied(number);
        acting.protocol.send_digest(sum.aggregate, digest(&acting.model));
        let known = self.aggregates.entry((acting.epoch, number)).or_default();
        match &known.sum {
            None => {
                known.model.clone_from(&acting.model);
                known.sum = Some((sum.vector.clone(), sum.contributions));
            }
            Some((vector, contributions)) => {
                let is_same = *vector == sum.vector && *contributions == sum.contributions;
                if !is_same || known.model != acting.model {
                    let detail = format!(
                        "worker {worker} and another worker differ in the sum or model of aggregate {number}"
                    );
                    return violated(Rule::Agreement, detail);
                }
            }
        }
        if known.sent != Some(sum.contributions) {
            let detail = format!(
                "worker {worker} received aggregate {number} with {} vectors, but the switch sent {:?}",
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
            _ => {
                return violated(
                    Rule::Lost,
                    format!("worker {worker}: a submission ended as {submission:?}"),
                );
            }
        };
        acting.staleness.admitted(acting.sequence, Some(aggregate.get()));
        acting.sequence += 1;
        let place = (acting.epoch, aggregate.get());
        self.aggregates.entry(place).or_default().vectors.push((worker, number));
        self.note(|| format!("{worker} learns that aggregate {aggregate} contains its vector {number}"));
        Ok(())
    }

    /// Performs LGC: computes a gradient, commits it if it is not too stale, and starts the next one.
    pub(super) fn compute(&mut self, worker: usize) -> Result<(), Violation> {
        let now = self.now;
        let acting = &mut self.workers[worker];
        if let Some(Gradient { number, done_at, made_at }) = acting.gradient {
            if now < done_at || !acting.protocol.is_ready() {
                return Ok(());
            }
            if acting.staleness.may_commit(made_at) {
                let staleness = acting.updates - made_at;
                let bound = u64::from(self.scenario.staleness_bound);
                if staleness > bound {
                    let detail = format!(
                        "worker {worker} submitted a gradient that is {staleness} updates old, expected at most {bound}"
                    );
                    return violated(Rule::Staleness, detail);
                }
                acting.staleness.committed(acting.sequence, made_at);
                acting.committed = Some(number);
                acting.protocol.submit(now, &vector(self.scenario, worker, number));
            }
        }
        let done_at = now.plus(acting.pace.compute);
        acting.gradient = Some(Gradient { number: acting.computed, done_at, made_at: acting.updates });
        acting.computed += 1;
        Ok(())
    }
}

impl Simulation<'_> {
    /// Checks that each sum consists of the vectors that are known to be in it and, possibly, of vectors whose senders
    /// do not know their fate.
    pub(super) fn check_sums(&self) -> Result<Checked, Violation> {
        let mut undecided = self.undecided.clone();
        for (worker, acting) in self.workers.iter().enumerate() {
            let under_way = acting.committed.map(|number| Undecided { worker, number, epoch: acting.epoch });
            undecided.extend(under_way);
        }
        let mut checked = Checked::default();
        for ((epoch, number), aggregate) in &self.aggregates {
            let Some((_, contributions)) = aggregate.sum else { continue };
            let Some(unconfirmed) = usize::from(contributions).checked_sub(aggregate.vectors.len()) else {
                let detail = format!(
                    "aggregate {number} reports {contributions} contributions, but the switch confirmed that it \
                     contains the vectors {:?}",
                    aggregate.vectors
                );
                return violated(Rule::Lost, detail);
            };
            if unconfirmed > MOST_UNCONFIRMED {
                continue;
            }
            let candidates: Vec<_> =
                undecided.iter().filter(|vector| vector.epoch == *epoch).copied().collect();
            let Some(found) =
                find(self.scenario, &rest_of(self.scenario, aggregate), &candidates, unconfirmed)
            else {
                let (rule, vectors) = (Rule::Sum, &aggregate.vectors);
                let detail = format!(
                    "aggregate {number} is not the sum of {vectors:?} and {unconfirmed} unconfirmed vectors"
                );
                return violated(rule, detail);
            };
            if let [only] = found[..] {
                // A vector is in only one aggregate, so a single match is no longer a candidate for other sums. Vectors
                // of a larger combination remain candidates, because other vectors may have the same sum.
                undecided.retain(|vector| *vector != only);
            }
            checked.all += 1;
            checked.unconfirmed += u64::from(unconfirmed > 0);
        }
        Ok(checked)
    }
}

/// Returns the sum of an aggregate minus the sum of the vectors whose senders received a confirmation.
fn rest_of(scenario: &Scenario, aggregate: &Aggregate) -> Vec<f32> {
    let (mut rest, _) = aggregate.sum.clone().unwrap_or_default();
    for (worker, number) in &aggregate.vectors {
        let own = vector(scenario, *worker, *number);
        rest.iter_mut().zip(own).for_each(|(sum, x)| *sum -= x);
    }
    rest
}

/// Returns `count` candidates whose sum equals `rest`.
fn find(scenario: &Scenario, rest: &[f32], candidates: &[Undecided], count: usize) -> Option<Vec<Undecided>> {
    if count == 0 {
        return rest.iter().all(|x| *x == 0.0).then(Vec::new);
    }
    candidates.iter().enumerate().find_map(|(at, candidate)| {
        let own = vector(scenario, candidate.worker, candidate.number);
        let left: Vec<_> = rest.iter().zip(&own).map(|(rest, x)| rest - x).collect();
        if left.iter().any(|x| *x < 0.0) {
            return None;
        }
        let mut found = find(scenario, &left, &candidates[at + 1..], count - 1)?;
        found.push(*candidate);
        Some(found)
    })
}
