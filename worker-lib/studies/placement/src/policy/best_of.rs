//! Random placements, and the best of several of them.

use rand::RngExt as _;

use super::{ByRule, Order, Placer, Rule};
use crate::failure::FailureDraw;
use crate::simulation::{Outcome, Scenario, simulate_draw};
use crate::state::State;
use iswitch_learn::algorithms::streams::{Purpose, stream};
use iswitch_study::StudyError;

/// Number of draws of failures on which each plan is evaluated.
pub const SELECTION_DRAWS: usize = 8;

/// Random placement that can be repeated under different failures. Each job has a separate random order of all GPUs and
/// gets the first free GPUs in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    seed: u64,
}

impl Plan {
    /// Returns the plan determined by a seed.
    pub fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// Returns the rank of a GPU for a job; a job prefers GPUs with lower ranks.
    fn rank(self, job: usize, gpu: usize) -> u64 {
        let pair = (job as u64) << 32 | gpu as u64;
        mix(mix(self.seed) ^ pair)
    }
}

/// The finaliser of splitmix64 (Steele, Lea, Flood, OOPSLA 2014).
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

impl Placer for Plan {
    fn place(&mut self, state: &State<'_>, job: usize, size: usize, picks: &mut Vec<usize>) {
        let mut free: Vec<_> = state.free_gpus().map(|gpu| (self.rank(job, gpu), gpu)).collect();
        free.sort_unstable();
        picks.extend(free.into_iter().take(size).map(|(_, gpu)| gpu));
    }
}

/// Returns the plan with the lowest mean makespan among `count` random plans. The mean is taken over
/// [`SELECTION_DRAWS`] draws of failures. These draws are independent of those of
/// [`simulate`](crate::simulation::simulate) with any seed, so the makespan that `simulate` reports for the plan is
/// not biased by the selection. The result corresponds to the patent's baseline T_Random, but requires no knowledge
/// of future failures.
///
/// # Errors
/// Returns the errors of [`simulate_draw`].
pub fn best_of(scenario: &Scenario, count: usize, seed: u64) -> Result<Plan, StudyError> {
    let mut seeds = stream(seed, Purpose::Actions, 0);
    let mut best: Option<(f64, Plan)> = None;
    for _ in 0..count.max(1) {
        let mut plan = Plan::new(seeds.random());
        let mut sum = 0.0;
        for number in 0..SELECTION_DRAWS {
            let draw = FailureDraw::new(scenario.failures(), seed, Purpose::SelectionFailures, number);
            sum += simulate_draw(scenario, &mut plan, draw, None)?.makespan;
        }
        if best.is_none_or(|(least, _)| sum < least) {
            best = Some((sum, plan));
        }
    }
    Ok(best.expect("at least one plan must have been tried").1)
}

/// Returns the outcome with the lowest makespan among `count` random simulated runs **on the same failures on which
/// they are compared**: a minimum in hindsight that a policy without foresight cannot be expected to reach. This is the
/// baseline T_Random as the patent's text defines it.
///
/// # Errors
/// Returns the errors of [`simulate_draw`].
pub fn hindsight(scenario: &Scenario, count: usize, seed: u64) -> Result<Outcome, StudyError> {
    let mut best: Option<Outcome> = None;
    for number in 0..count.max(1) {
        let rule = Rule::Random(Box::new(stream(seed, Purpose::Actions, number)));
        let draw = FailureDraw::new(scenario.failures(), seed, Purpose::Failures, 0);
        let outcome = simulate_draw(scenario, &mut ByRule::new(Order::Arrival, rule), draw, None)?;
        if best.as_ref().is_none_or(|best| outcome.makespan < best.makespan) {
            best = Some(outcome);
        }
    }
    Ok(best.expect("at least one run must have been tried"))
}
