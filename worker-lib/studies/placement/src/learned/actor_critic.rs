//! The patent's training method, with a value network, a policy network and a replay buffer.
//!
//! Samples in the replay buffer come from older policies. Each sample is weighted by the ratio of the current
//! probability of its action to the probability when the action was taken, up to a maximum ratio. Without such
//! weights, the samples would not yield a policy gradient; the patent does not specify how it weights samples.

use std::sync::Arc;

use super::config::{PlacementConfig, RandomReference};
use super::episodes::Episode;
use super::patent_net::PatentNet;
use super::patent_placer::PatentPlacer;
use super::replay::{Replay, Sample};
use super::score::{add_choice_gradient, add_entropy_gradient, log_probability};
use super::training::{Step, Totals};
use crate::policy::{ByRule, Order, Rule, best_of};
use crate::workload::Workload;
use iswitch_learn::algorithms::exact::add_fixed;
use iswitch_learn::algorithms::streams::{Purpose, stream};
use iswitch_learn::group::Group;
use iswitch_study::StudyError;
use iswitch_study::Weights;

/// Number of 64-bit words of an encoded sample that fit into one of the 128-bit integers that the workers sum.
const WORDS: usize = 2;

/// Runs one iteration: simulates the worker's environments, adds the samples of all workers to the replay buffer, and
/// updates the weights.
pub(super) fn learn(
    step: &mut Step<'_>,
    workload: &Workload,
    (net, weights, replay): (&mut PatentNet, &mut Weights, &mut Replay),
) -> Result<[f64; 3], StudyError> {
    let (config, iteration) = (step.config, step.iteration);
    let mut totals = Totals::default();
    let mut own = Vec::new();
    for environment in step.group.own(config.environments) {
        let episode = Episode::of_training(config, workload, iteration, environment)?;
        own.push(explore(config, &episode, (net, &weights.parameters), &mut totals)?);
    }
    let fresh = gather(config, &own, step.group)?;
    let batch = fresh.len();
    fresh.into_iter().for_each(|sample| replay.push(sample));
    for update in 0..config.updates {
        if batch == 0 {
            break;
        }
        let mut rng = stream(config.seed, Purpose::Minibatches, iteration as usize * config.updates + update);
        // All workers draw the same batch, and each environment processes its share of it.
        let samples = replay.draw(batch, &mut rng);
        let share = batch.div_ceil(config.environments);
        let mut numbers = weights.no_gradient();
        for environment in step.group.own(config.environments) {
            let some = samples.iter().copied().skip(environment * share).take(share).collect::<Vec<_>>();
            let gradient = gradient(config, net, &weights.parameters, &some, batch);
            add_fixed(&mut numbers, gradient.into_iter().map(f64::from));
        }
        weights.step(&mut numbers, step.group, config.learning_rate(iteration))?;
    }
    totals.sum(step.group)
}

/// Simulates the runs of an environment and returns their samples. The reward of a run is (T_Random - T_RL) / T_Random,
/// where T_Random is the makespan of random placement and T_RL that of the run.
fn explore(
    config: &PlacementConfig,
    episode: &Episode,
    (net, parameters): (&PatentNet, &[f32]),
    totals: &mut Totals,
) -> Result<Vec<Sample>, StudyError> {
    let parameters: Arc<[f32]> = parameters.into();
    let independent = match config.random_reference {
        RandomReference::Independent => Some(independent_reference(config, episode)?),
        RandomReference::Hindsight => None,
    };
    let mut all = Vec::new();
    for number in 0..config.courses {
        let rng = stream(episode.draw, Purpose::Actions, number);
        let mut placer = PatentPlacer::new(net.clone(), Arc::clone(&parameters)).with_exploration(rng);
        let makespan = episode.run(&mut placer, Purpose::Failures, number)?.makespan;
        let random = match independent {
            Some(random) => random,
            None => hindsight_reference(config, episode, number)?,
        };
        let reward = ((random - makespan) / random).clamp(config.reward_min, 1.0);
        let samples = placer.into_samples();
        totals.add([1.0, samples.len() as f64, reward]);
        all.extend(samples.into_iter().map(|sample| sample.with_reward(reward as f32)));
    }
    Ok(all)
}

/// Returns the mean makespan of the best of several random plans, measured on failures that are independent of those
/// used to choose the plan.
fn independent_reference(config: &PlacementConfig, episode: &Episode) -> Result<f64, StudyError> {
    let mut plan = best_of(&episode.scenario, config.random_placements, episode.draw)?;
    let mut sum = 0.0;
    for number in 0..config.courses {
        // The policy's runs use the numbers below `config.courses`.
        sum += episode.run(&mut plan, Purpose::Failures, config.courses + number)?.makespan;
    }
    Ok(sum / config.courses as f64)
}

/// Returns the lowest makespan of several random simulated runs, each with the same failures as run `course` of the
/// policy.
fn hindsight_reference(
    config: &PlacementConfig,
    episode: &Episode,
    course: usize,
) -> Result<f64, StudyError> {
    let mut least = f64::INFINITY;
    for number in 0..config.random_placements {
        // The policy's runs use the numbers below `config.courses`.
        let rng = stream(episode.draw, Purpose::Actions, config.courses + number);
        let mut placer = ByRule::new(Order::Arrival, Rule::Random(Box::new(rng)));
        least = least.min(episode.run(&mut placer, Purpose::Failures, course)?.makespan);
    }
    Ok(least)
}

/// Exchanges samples between the workers and returns the samples of all environments, in environment order.
fn gather(
    config: &PlacementConfig,
    own: &[Vec<Sample>],
    group: &mut Group,
) -> Result<Vec<Sample>, StudyError> {
    let range = group.own(config.environments);
    let mut counts = vec![0_i128; config.environments];
    counts[range.clone()].iter_mut().zip(own).for_each(|(count, samples)| *count = samples.len() as i128);
    group.sum(&mut counts)?;
    let counts: Vec<usize> = counts.into_iter().map(|count| count as usize).collect();
    let (before, all) = (counts[..range.start].iter().sum::<usize>(), counts.iter().sum::<usize>());
    let words = Sample::words(config.gpus);
    let numbers = words.div_ceil(WORDS);
    let mut sums = vec![0_i128; all * numbers];
    let places = sums[before * numbers..].chunks_exact_mut(numbers);
    for (place, sample) in places.zip(own.iter().flatten()) {
        let mut encoded = Vec::with_capacity(words);
        sample.encode(&mut encoded);
        for (number, pair) in place.iter_mut().zip(encoded.chunks(WORDS)) {
            let high = pair.get(1).copied().unwrap_or(0);
            *number = (u128::from(high) << 64 | u128::from(pair[0])) as i128;
        }
    }
    group.sum(&mut sums)?;
    let decode = |numbers: &[i128]| {
        let both = |number: &i128| [*number as u64, (*number as u128 >> 64) as u64];
        let decoded: Vec<u64> = numbers.iter().flat_map(both).take(words).collect();
        // If a worker was lost in the meantime, its part of the sums does not decode to samples.
        Sample::decode(&decoded, config.gpus)
    };
    Ok(sums.chunks_exact(numbers).filter_map(decode).collect())
}

/// Returns the contribution of `samples` to the gradient of a batch's loss, which the optimiser minimises: the sum over
/// `samples`, divided by `batch`, the number of samples in the whole batch.
fn gradient(
    config: &PlacementConfig,
    net: &mut PatentNet,
    parameters: &[f32],
    samples: &[&Sample],
    batch: usize,
) -> Vec<f32> {
    let gpus = net.gpus();
    let mut gradient = vec![0.0; parameters.len()];
    if samples.is_empty() {
        return gradient;
    }
    let mut rows = Vec::with_capacity(samples.len() * net.inputs());
    for sample in samples {
        net.push_state(sample.asked, sample.weeks, sample.taken(gpus), &mut rows);
    }
    let (logits, values) = (net.policy(parameters, &rows), net.value(parameters, &rows));
    let mut by_logits = vec![0.0; logits.len()];
    let mut by_values = Vec::with_capacity(values.len());
    let scale = 1.0 / batch as f64;
    for (at, (sample, value)) in samples.iter().zip(values).enumerate() {
        let error = f64::from(sample.reward - value);
        by_values.push((-2.0 * f64::from(config.value_weight) * error * scale) as f32);
        let row = at * gpus..(at + 1) * gpus;
        let free: Vec<usize> =
            sample.taken(gpus).enumerate().filter(|(_, is_taken)| !is_taken).map(|(gpu, _)| gpu).collect();
        let own: Vec<f64> = free.iter().map(|gpu| f64::from(logits[row.start + gpu])).collect();
        let Some(action) = free.iter().position(|gpu| *gpu == sample.action as usize) else { continue };
        let ratio = (log_probability(&own, action) - f64::from(sample.log_probability)).exp();
        let weight = ratio.min(f64::from(config.ratio_max)) * error * scale;
        let mut by_own = vec![0.0; own.len()];
        add_choice_gradient(&own, &[action], -weight, &mut by_own);
        add_entropy_gradient(&own, -f64::from(config.entropy_weight) * scale, &mut by_own);
        let by_row = &mut by_logits[row];
        free.iter().zip(by_own).for_each(|(gpu, by)| by_row[*gpu] = by as f32);
    }
    net.backward(parameters, &rows, (&by_logits, &by_values), &mut gradient);
    gradient
}
