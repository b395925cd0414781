//! The policy gradient of algorithm 1: N agents have the same arrivals, and at the same times the mean of what they all
//! came to is the baseline of each.

use super::CoflowError;
use super::agent::{Decision, Exploration};
use super::config::DeepWeaveConfig;
use super::episodes::{Task, agent_rng, costs_to_go, episode_jobs, own_jobs};
use super::lookahead::Lookahead;
use super::net::Advice;
use super::training::{Learnt, Model, Totals};
use crate::workload::Job;
use iswitch_learn::algorithms::exact::{add_fixed, from_fixed};
use iswitch_learn::group::Group;

/// One iteration with random priorities.
pub(super) fn explore_actions(
    config: &DeepWeaveConfig,
    task: &Task,
    iteration: u64,
    model: &mut Model,
    group: &mut Group,
) -> Result<Learnt, CoflowError> {
    let jobs = episode_jobs(config, &task.source, iteration);
    let mut agents = Vec::new();
    for agent in group.own(config.agents) {
        let exploration =
            Exploration { deviation: config.action_deviation, rng: agent_rng(config, iteration, agent) };
        let mut policy = model.policy().with_exploration(exploration).with_record();
        let costs = costs_to_go(&jobs, &task.job_times(&jobs, &mut policy)?);
        agents.push((policy.into_record(), costs));
    }
    let costs: Vec<&[f64]> = agents.iter().map(|(_, costs)| costs.as_slice()).collect();
    let (advantages, learnt) = advantages(&jobs, &costs, group)?;
    let mut numbers = vec![0_i128; model.parameters.len()];
    for ((decisions, _), advantages) in agents.iter().zip(&advantages) {
        let mut gradient = vec![0.0; model.parameters.len()];
        let scale = 1.0 / (config.action_deviation.powi(2) * decisions.len() as f64);
        for (Decision { scene, offsets, .. }, advantage) in decisions.iter().zip(advantages) {
            // Of the logarithm of a normal density, by its mean; Adam descends.
            let slope = |offset: &f32| (-advantage * f64::from(*offset) * scale) as f32;
            let deltas = Advice { priorities: offsets.iter().map(slope).collect(), ..Advice::default() };
            model.net.forward(&model.parameters, scene, &mut Advice::default());
            model.net.backward(&model.parameters, scene, &deltas, &mut gradient);
        }
        add_fixed(&mut numbers, gradient.into_iter().map(f64::from));
    }
    model.step(&mut numbers, group, config.learning_rate)?;
    Ok(learnt)
}

/// One iteration in which a search learns where to look; each agent has jobs of its own.
pub(super) fn explore_moves(
    config: &DeepWeaveConfig,
    task: &Task,
    iteration: u64,
    model: &mut Model,
    group: &mut Group,
) -> Result<Learnt, CoflowError> {
    let mut totals = Totals::default();
    let mut numbers = vec![0_i128; model.parameters.len()];
    for agent in group.own(config.agents) {
        let (decisions, times) = searched_episode(config, task, (iteration, agent), model)?;
        let mut gradient = vec![0.0; model.parameters.len()];
        let scale = -1.0 / (decisions.len() * config.agents) as f32;
        for Decision { scene, credits, .. } in &decisions {
            let scaled = |slopes: &[f32]| slopes.iter().map(|slope| slope * scale).collect();
            let deltas =
                Advice { priorities: Vec::new(), moved: scaled(&credits.moved), aims: scaled(&credits.aims) };
            model.net.forward(&model.parameters, scene, &mut Advice::default());
            model.net.backward(&model.parameters, scene, &deltas, &mut gradient);
        }
        add_fixed(&mut numbers, gradient.into_iter().map(f64::from));
        totals.add(decisions.len(), &times);
    }
    model.step(&mut numbers, group, config.learning_rate)?;
    totals.sum(group)
}

/// An agent's episode with the search on jobs of its own: its decisions, and the jobs' completion times.
pub(super) fn searched_episode(
    config: &DeepWeaveConfig,
    task: &Task,
    (iteration, agent): (u64, usize),
    model: &Model,
) -> Result<(Vec<Decision>, Vec<f64>), CoflowError> {
    let jobs = own_jobs(config, &task.source, iteration, agent);
    let lookahead = Lookahead::new(config.evaluations, agent_rng(config, iteration, agent));
    let mut policy = model.policy().with_lookahead(lookahead).with_record();
    let times = task.job_times(&jobs, &mut policy)?;
    Ok((policy.into_record(), times))
}

/// How much less each of this worker's agents has spent from each decision on than the mean of all agents, in parts of
/// that mean at the first decision.
fn advantages(
    jobs: &[Job],
    costs: &[&[f64]],
    group: &mut Group,
) -> Result<(Vec<Vec<f64>>, Learnt), CoflowError> {
    let decisions = costs.first().map_or(0, |costs| costs.len());
    let mut sums = vec![0_i128; decisions + 1];
    for costs in costs {
        add_fixed(&mut sums, costs.iter().copied());
    }
    // Those of a worker that was lost are not among them.
    sums[decisions] = costs.len() as i128;
    group.sum(&mut sums)?;
    let agents = sums[decisions] as f64;
    let baselines: Vec<f64> = sums[..decisions].iter().map(|sum| from_fixed(*sum) / agents).collect();
    // Episodes differ in length and load: in parts of what all of it costs they are alike.
    let whole = baselines.first().copied().unwrap_or(0.0).max(1e-9);
    let less = |costs: &&[f64]| -> Vec<f64> {
        baselines.iter().zip(*costs).map(|(baseline, cost)| (baseline - cost) / whole).collect()
    };
    let advantages = costs.iter().map(less).collect();
    let learnt = Learnt {
        jobs: jobs.len() as u64 * agents as u64,
        decisions: decisions as u64 * agents as u64,
        // Nobody has spent anything before the first decision.
        job_time: baselines.first().map_or(0.0, |mean| mean * agents),
    };
    Ok((advantages, learnt))
}
