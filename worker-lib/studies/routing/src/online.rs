//! Online learners: the methods of the paper's comparison that learn from the slots of the network itself (Monte Carlo
//! and n-step temporal difference).
//!
//! Once the discounted costs of a slot are known, the optimiser takes as many steps as there are environments, and
//! each step uses states of that slot. Throughout, the current value function routes the packets of the network
//! itself, except that some packets take random links. MLPI does not disturb the network in this way.

use rand::RngExt as _;

use super::config::{Learner, RoutingConfig};
use super::fit::Minibatch;
use super::lockstep::Lockstep;
use super::model::CnnModel;
use super::network::Queues;
use super::rates::Rates;
use super::training::{FitResult, Step, index};
use super::value::ConvolutionalValue;
use iswitch_learn::algorithms::streams::{Purpose, stream};
use iswitch_study::StudyError;

/// Runs one iteration. Returns `None` if the iteration was stopped early.
pub(super) fn use_network(
    step: &mut Step<'_>,
    rates: &Rates,
    model: &mut CnnModel,
) -> Result<Option<FitResult>, StudyError> {
    let (config, iteration) = (step.config, step.iteration);
    let CnnModel { value, adam, deviation, .. } = model;
    let own = step.group.own(config.environments);
    let indices: Vec<_> = own.map(|environment| index(config, iteration, environment)).collect();
    let mut lockstep =
        Lockstep::new(config, (value.clone(), rates), &indices, [Purpose::Actions, Purpose::Arrivals]);
    let mut draws: Vec<_> =
        indices.iter().map(|index| stream(config.seed, Purpose::Minibatches, *index)).collect();
    let costs = match config.learner {
        Learner::Td => config.td_slots,
        Learner::Mc | Learner::Mlpi => config.window,
    };
    let weights: Vec<_> = (0..=costs).map(|slot| config.discount.powi(slot as i32)).collect();
    // This scale gives targets of about 1: it is the discounted cost of one packet on each link in every slot.
    *deviation = rates.shape().links() as f64 * weights.iter().sum::<f64>();
    let horizon = costs + usize::from(config.learner == Learner::Td);
    let slots = config.slots_with_window();
    let mut minibatch = Minibatch::new(config, value.parameters().len());
    let mut state = Queues::empty(rates.shape());
    let mut states = 0_u64;
    for slot in 0..slots {
        if step.is_stopped() {
            return Ok(None);
        }
        step.show("using the network", slot as u64, slots as u64);
        lockstep.slot(config.epsilon, config.memory());
        let Some(ready) = slot.checked_sub(horizon) else { continue };
        let targets = targets(&mut lockstep, (config, &weights), ready, *deviation);
        for _ in 0..config.environments {
            minibatch.begin(lockstep.value_mut());
            for (at, (rng, target)) in draws.iter_mut().zip(&targets).enumerate() {
                for _ in 0..config.batch_each() {
                    let (trajectory, value) = lockstep.trajectory_and_value(at);
                    let which = rng.random_range(0..trajectory.states(ready));
                    trajectory.state(ready, which, &mut state);
                    minibatch.push(value, &state, *target);
                }
            }
            minibatch.finish(lockstep.value_mut(), adam, step.group)?;
            states += (config.batch_each() * config.environments) as u64;
        }
    }
    *value = lockstep.into_value();
    Ok(Some(FitResult { states, explained: None }))
}

/// Returns the target of each environment for the states of slot `ready`, in the units of the value network.
fn targets(
    lockstep: &mut Lockstep<ConvolutionalValue>,
    (config, weights): (&RoutingConfig, &[f64]),
    ready: usize,
    deviation: f64,
) -> Vec<f64> {
    let mut after = vec![0.0; lockstep.environments.len()];
    if config.learner == Learner::Td {
        let mut values = Vec::new();
        lockstep.value_mut().begin_batch();
        for at in 0..after.len() {
            let (trajectory, value) = lockstep.trajectory_and_value(at);
            value.push(trajectory.start(ready + weights.len()));
        }
        lockstep.value_mut().batch_values(&mut values);
        let beyond = config.discount.powi(weights.len() as i32);
        after.iter_mut().zip(&values).for_each(|(after, value)| *after = beyond * f64::from(*value));
    }
    let discounted = |at: usize| {
        let costs = lockstep.environments[at].trajectory.costs(ready, weights.len());
        costs.iter().zip(weights).map(|(cost, weight)| cost * weight).sum::<f64>()
    };
    (0..after.len()).map(|at| discounted(at) / deviation + after[at]).collect()
}
