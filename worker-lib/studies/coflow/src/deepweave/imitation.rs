//! Imitation: the network is trained to reproduce the orders of a search, which are better than the network's own.
//!
//! Agents follow the orders of the search, each on its own jobs, so the states that they visit are those of a policy
//! with a search. Because the search starts from the network's order, it finds fewer improvements as the network
//! improves (expert iteration; Anthony et al., 2017).

use super::agent::Decision;
use super::episodes::Task;
use super::net::Advice;
use super::reinforce::searched_episode;
use super::training::{Model, Step, Totals};
use iswitch_learn::algorithms::exact::add_fixed;
use iswitch_study::StudyError;

/// Runs one iteration: an episode of each agent, followed by optimiser steps. Each optimiser step uses a different part
/// of every agent's decisions.
pub(super) fn imitate(step: &mut Step<'_>, task: &Task, model: &mut Model) -> Result<[f64; 3], StudyError> {
    let config = step.config;
    let mut totals = Totals::default();
    let mut agents = Vec::new();
    for agent in step.group.own(config.agents) {
        let (decisions, times) = searched_episode(step, task, agent, model)?;
        let decisions = targets(decisions, model, config.offset_max as f32);
        totals.add([times.len() as f64, decisions.len() as f64, times.iter().sum()]);
        agents.push(decisions);
    }
    for part in 0..config.imitation_steps {
        let mut numbers = model.weights.no_gradient();
        for decisions in &agents {
            let mut gradient = vec![0.0; model.weights.parameters.len()];
            for decision in decisions.iter().skip(part).step_by(config.imitation_steps) {
                add_gradient(decision, model, &mut gradient);
            }
            add_fixed(&mut numbers, gradient.into_iter().map(f64::from));
        }
        model.weights.step(&mut numbers, step.group, config.learning_rate)?;
    }
    totals.sum(step.group)
}

/// Replaces the offsets in decisions with targets: the priorities that, according to the search, the network should
/// have assigned. Changes of more than `most` are clipped.
fn targets(mut decisions: Vec<Decision>, model: &mut Model, most: f32) -> Vec<Decision> {
    let mut advice = Advice::default();
    for Decision { scene, offsets, .. } in &mut decisions {
        model.net.forward(&model.weights.parameters, scene, &mut advice);
        let both = offsets.iter_mut().zip(&advice.priorities);
        both.for_each(|(offset, priority)| *offset = priority + offset.clamp(-most, most));
    }
    decisions
}

/// Adds, for one decision, the gradient of half the mean squared distance between priorities and targets to `gradient`.
fn add_gradient(decision: &Decision, model: &mut Model, gradient: &mut [f32]) {
    let Decision { scene, offsets: targets, .. } = decision;
    let mut advice = Advice::default();
    model.net.forward(&model.weights.parameters, scene, &mut advice);
    let count = scene.nodes() as f32;
    let distance = |(priority, target): (&f32, &f32)| (priority - target) / count;
    let priorities = advice.priorities.iter().zip(targets).map(distance).collect();
    let deltas = Advice { priorities, ..Advice::default() };
    model.net.backward(&model.weights.parameters, scene, &deltas, gradient);
}
