//! Policy gradient of the shared network (Williams, Machine Learning 8, 1992). Each environment is simulated several
//! times, each time with its own failures; the baseline of a run is the mean reward of the environment's other runs.

use std::sync::Arc;

use super::config::PlacementConfig;
use super::episodes::Episode;
use super::shared_net::SharedNet;
use super::shared_placer::{Exploration, Score, SharedPlacer};
use super::training::{Step, Totals};
use crate::workload::Workload;
use iswitch_learn::algorithms::exact::{add_fixed, from_fixed, to_fixed};
use iswitch_learn::algorithms::streams::{Purpose, stream};
use iswitch_learn::group::Group;
use iswitch_study::StudyError;
use iswitch_study::Weights;

/// Simulated run that has finished.
struct FinishedRun {
    /// Negative logarithm of the makespan.
    reward: f64,
    /// Work that failures undid beyond what was expected, as a fraction of all GPU-seconds of the run. Its mean is 0
    /// under every policy, so it can be subtracted from rewards to reduce the influence of luck.
    luck: f64,
    score: Score,
}

/// Runs one iteration: simulates the worker's environments and updates the weights.
pub(super) fn reinforce(
    step: &mut Step<'_>,
    workload: &Workload,
    (net, weights): (&SharedNet, &mut Weights),
) -> Result<[f64; 3], StudyError> {
    let (config, iteration) = (step.config, step.iteration);
    let mut totals = Totals::default();
    let mut environments = Vec::new();
    for environment in step.group.own(config.environments) {
        let episode = Episode::of_training(config, workload, iteration, environment)?;
        environments.push(explore(config, &episode, (net, &weights.parameters), &mut totals)?);
    }
    let slope = if config.shaping { regress(&environments, step.group)? } else { 0.0 };
    let mut numbers = weights.no_gradient();
    for courses in &environments {
        add_gradient(config, courses, slope, &mut numbers);
    }
    weights.step(&mut numbers, step.group, config.learning_rate(iteration))?;
    totals.sum(step.group)
}

/// Simulates the runs of an environment.
fn explore(
    config: &PlacementConfig,
    episode: &Episode,
    (net, parameters): (&SharedNet, &[f32]),
    totals: &mut Totals,
) -> Result<Vec<FinishedRun>, StudyError> {
    let exploration = Exploration {
        order_temperature: config.order_temperature,
        pick_temperature: config.pick_temperature,
        save_deviation: config.save_deviation,
    };
    let parameters: Arc<[f32]> = parameters.into();
    let mut courses = Vec::with_capacity(config.courses);
    for number in 0..config.courses {
        let rng = stream(episode.draw, Purpose::Actions, number);
        let mut placer = SharedPlacer::new(net.clone(), Arc::clone(&parameters), config.suspends)
            .with_exploration(exploration, rng);
        let outcome = episode.run(&mut placer, Purpose::Failures, number)?;
        let mut rule = config.reference().build(&episode.scenario, episode.draw)?;
        // The failures in the rule's run are independent of those in the policy's run.
        let by_rule = episode.run(rule.as_mut(), Purpose::SelectionFailures, number)?;
        let score = placer.into_score();
        let choices: u64 = score.choices.iter().sum();
        totals.add([1.0, choices as f64, (by_rule.makespan / outcome.makespan).ln()]);
        let luck = (outcome.gpu_time.lost - outcome.expected_loss) / outcome.gpu_time.total();
        courses.push(FinishedRun { reward: -outcome.makespan.ln(), luck, score: score.mean(net) });
    }
    Ok(courses)
}

fn mean(courses: &[FinishedRun], of: impl Fn(&FinishedRun) -> f64) -> f64 {
    courses.iter().map(of).sum::<f64>() / courses.len() as f64
}

/// Returns the slope of a linear regression of the reward on luck (least squares over the simulated runs of all
/// workers, after subtracting the means of each environment).
fn regress(environments: &[Vec<FinishedRun>], group: &mut Group) -> Result<f64, StudyError> {
    let mut sums = [0_i128; 2];
    for courses in environments {
        let (reward, luck) = (mean(courses, |it| it.reward), mean(courses, |it| it.luck));
        for course in courses {
            let (luck, reward) = (course.luck - luck, course.reward - reward);
            add_fixed(&mut sums, [luck * reward, luck.powi(2)]);
        }
    }
    group.sum(&mut sums)?;
    let [product, square] = sums.map(from_fixed);
    Ok(if square > 0.0 { product / square } else { 0.0 })
}

/// Subtracts the policy gradient of an environment from `numbers`, because the optimiser minimises.
fn add_gradient(config: &PlacementConfig, courses: &[FinishedRun], slope: f64, numbers: &mut [i128]) {
    let shaped = |course: &FinishedRun| course.reward - slope * course.luck;
    let mean = mean(courses, shaped);
    // This factor turns the difference from the mean of all runs into the difference from the mean of the other runs.
    let others = courses.len() as f64 / (courses.len().max(2) - 1) as f64;
    let scale = 1.0 / (courses.len() * config.environments) as f64;
    for course in courses {
        let advantage = (shaped(course) - mean) * others * scale;
        let entropy = f64::from(config.entropy_weight) * scale;
        let both = course.score.log_probability.iter().zip(&course.score.entropy);
        for (number, (by_probability, by_entropy)) in numbers.iter_mut().zip(both) {
            let slope = advantage * f64::from(*by_probability) + entropy * f64::from(*by_entropy);
            *number -= to_fixed(slope);
        }
    }
}
