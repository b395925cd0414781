//! Policy gradient of the paper's algorithm 1. N agents receive the same arrivals; the baseline of a decision is the
//! mean cost, over all agents, from that decision onwards.

use super::agent::{Decision, Exploration};
use super::episodes::{Task, agent_rng, costs_to_go, episode_jobs, own_jobs};
use super::lookahead::Lookahead;
use super::net::Advice;
use super::training::{Model, Step, Totals};
use crate::workload::Job;
use iswitch_learn::algorithms::exact::{add_fixed, from_fixed};
use iswitch_learn::group::Group;
use iswitch_study::StudyError;

/// Runs one iteration in which priorities are random.
pub(super) fn explore_actions(
    step: &mut Step<'_>,
    task: &Task,
    model: &mut Model,
) -> Result<[f64; 3], StudyError> {
    let config = step.config;
    let jobs = episode_jobs(config, &task.source, step.iteration);
    let mut agents = Vec::new();
    for agent in step.group.own(config.agents) {
        let exploration =
            Exploration { deviation: config.action_deviation, rng: agent_rng(config, step.iteration, agent) };
        let mut policy = model.policy().with_exploration(exploration).with_record();
        let costs = costs_to_go(&jobs, &task.job_times(&jobs, &mut policy)?);
        agents.push((policy.into_record(), costs));
    }
    let costs: Vec<&[f64]> = agents.iter().map(|(_, costs)| costs.as_slice()).collect();
    let (advantages, learnt) = advantages(&jobs, &costs, step.group)?;
    let mut numbers = model.weights.no_gradient();
    for ((decisions, _), advantages) in agents.iter().zip(&advantages) {
        let mut gradient = vec![0.0; model.weights.parameters.len()];
        let scale = 1.0 / (config.action_deviation.powi(2) * decisions.len() as f64);
        for (Decision { scene, offsets, .. }, advantage) in decisions.iter().zip(advantages) {
            // Gradient of the log-density of a normal distribution with respect to its mean, negated because Adam
            // minimises.
            let slope = |offset: &f32| (-advantage * f64::from(*offset) * scale) as f32;
            let deltas = Advice { priorities: offsets.iter().map(slope).collect(), ..Advice::default() };
            model.net.forward(&model.weights.parameters, scene, &mut Advice::default());
            model.net.backward(&model.weights.parameters, scene, &deltas, &mut gradient);
        }
        add_fixed(&mut numbers, gradient.into_iter().map(f64::from));
    }
    model.weights.step(&mut numbers, step.group, config.learning_rate)?;
    Ok(learnt)
}

/// Runs one iteration that trains the network to advise the search. Each agent has its own jobs.
pub(super) fn explore_moves(
    step: &mut Step<'_>,
    task: &Task,
    model: &mut Model,
) -> Result<[f64; 3], StudyError> {
    let config = step.config;
    let mut totals = Totals::default();
    let mut numbers = model.weights.no_gradient();
    for agent in step.group.own(config.agents) {
        let (decisions, times) = searched_episode(step, task, agent, model)?;
        let mut gradient = vec![0.0; model.weights.parameters.len()];
        let scale = -1.0 / (decisions.len() * config.agents) as f32;
        for Decision { scene, credits, .. } in &decisions {
            let scaled = |slopes: &[f32]| slopes.iter().map(|slope| slope * scale).collect();
            let deltas =
                Advice { priorities: Vec::new(), moved: scaled(&credits.moved), aims: scaled(&credits.aims) };
            model.net.forward(&model.weights.parameters, scene, &mut Advice::default());
            model.net.backward(&model.weights.parameters, scene, &deltas, &mut gradient);
        }
        add_fixed(&mut numbers, gradient.into_iter().map(f64::from));
        totals.add([times.len() as f64, decisions.len() as f64, times.iter().sum()]);
    }
    model.weights.step(&mut numbers, step.group, config.learning_rate)?;
    totals.sum(step.group)
}

/// Runs an agent's episode with the search, on the agent's own jobs. Returns the decisions and the completion times of
/// the jobs.
pub(super) fn searched_episode(
    step: &Step<'_>,
    task: &Task,
    agent: usize,
    model: &Model,
) -> Result<(Vec<Decision>, Vec<f64>), StudyError> {
    let (config, iteration) = (step.config, step.iteration);
    let jobs = own_jobs(config, &task.source, iteration, agent);
    let lookahead = Lookahead::new(config.evaluations, agent_rng(config, iteration, agent));
    let mut policy = model.policy().with_lookahead(lookahead).with_record();
    let times = task.job_times(&jobs, &mut policy)?;
    Ok((policy.into_record(), times))
}

/// Returns the advantage of each of this worker's agents at each decision, and the totals of the iteration. An
/// advantage is the mean cost over all agents from the decision onwards minus the agent's own cost, divided by the mean
/// cost from the first decision onwards.
fn advantages(
    jobs: &[Job],
    costs: &[&[f64]],
    group: &mut Group,
) -> Result<(Vec<Vec<f64>>, [f64; 3]), StudyError> {
    let decisions = costs.first().map_or(0, |costs| costs.len());
    let mut sums = vec![0_i128; decisions + 1];
    for costs in costs {
        add_fixed(&mut sums, costs.iter().copied());
    }
    // The number of agents is summed as well, because the agents of a lost worker are missing from the sums.
    sums[decisions] = costs.len() as i128;
    group.sum(&mut sums)?;
    let agents = sums[decisions] as f64;
    let baselines: Vec<f64> = sums[..decisions].iter().map(|sum| from_fixed(*sum) / agents).collect();
    // Episodes differ in length and load; dividing by the cost of the whole episode makes them comparable.
    let whole = baselines.first().copied().unwrap_or(0.0).max(1e-9);
    let less = |costs: &&[f64]| -> Vec<f64> {
        baselines.iter().zip(*costs).map(|(baseline, cost)| (baseline - cost) / whole).collect()
    };
    let advantages = costs.iter().map(less).collect();
    // The cost after the first decision is the total completion time of all jobs, because the first decision is at the
    // first arrival.
    let job_time = baselines.first().map_or(0.0, |mean| mean * agents);
    let learnt = [jobs.len() as f64 * agents, decisions as f64 * agents, job_time];
    Ok((advantages, learnt))
}
