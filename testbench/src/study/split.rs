//! Time of each phase of an iteration in this project's own algorithms, as in the paper's figure 4. The times are
//! measured in one process with one thread, with the paper's networks.

use std::time::{Duration, Instant};

use iswitch::Loopback;
use iswitch_learn::algorithms::TrainError;
use iswitch_learn::algorithms::a2c::A2cConfig;
use iswitch_learn::algorithms::ddpg::DdpgConfig;
use iswitch_learn::algorithms::dqn::DqnConfig;
use iswitch_learn::algorithms::environments::EnvFactory;
use iswitch_learn::algorithms::phases::Phase;
use iswitch_learn::algorithms::ppo::PpoConfig;
use iswitch_learn::algorithms::trainer::{Algorithm, Mode, Trainer, World};
use iswitch_learn::env;
use serde_json::{Value, json};
use strum::VariantArray as _;

use super::images::Images;
use super::paper::{MODELS, Model};
use super::stopwatch::{Seconds, Stopwatch};
use crate::contest::{Contest, Markdown, Progress, Spread};

/// Capacity of the replay buffer in transitions: large enough for sampling, but small enough that the images do not
/// take gigabytes of memory.
const BUFFER: usize = 4_000;
/// Number of environment steps before learning begins.
const LEARNING_STARTS: u64 = 500;

/// Times of one turn of one algorithm.
#[derive(Clone, Copy, Debug)]
pub struct SplitRun {
    /// Time of each phase, and time outside all phases, in seconds.
    pub seconds: Seconds,
    /// Number of gradients computed in the turn.
    pub iterations: u64,
}

impl SplitRun {
    fn us(&self, phase: usize) -> f64 {
        1e6 * self.seconds[phase] / self.iterations.max(1) as f64
    }

    fn total_us(&self) -> f64 {
        (0..self.seconds.len()).map(|phase| self.us(phase)).sum()
    }

    /// Returns the time of all phases except aggregation, which takes no time in a single process, in microseconds.
    fn compute_us(&self) -> f64 {
        let aggregation = Phase::VARIANTS.iter().position(|phase| *phase == Phase::Aggregation);
        self.total_us() - aggregation.map_or(0.0, |phase| self.us(phase))
    }
}

/// Measurements of one algorithm.
#[derive(Clone, Debug)]
pub struct Split {
    /// Model of the paper whose network is used.
    pub model: Model,
    /// Name of the environment.
    pub env: String,
    /// Number of floats in the vector to sum.
    pub floats: usize,
    /// Number of workers among which the batch is divided. The times are those of one of these workers.
    pub workers: usize,
    /// Runs, one for each turn.
    pub runs: Vec<SplitRun>,
}

impl Split {
    /// Combines the turns of two measurements.
    fn joined(mut self, later: Self) -> Self {
        self.runs.extend(later.runs);
        self
    }

    /// Returns the local computation time of an iteration.
    pub fn compute(&self) -> Duration {
        Duration::from_secs_f64(Spread::of(self.runs.iter().map(SplitRun::compute_us)).median * 1e-6)
    }

    /// Returns the measurements as JSON.
    pub fn json(&self) -> Value {
        let of = |at: usize| Spread::of(self.runs.iter().map(|run| run.us(at))).json();
        let phases: serde_json::Map<_, _> = Phase::VARIANTS
            .iter()
            .map(|phase| phase.name())
            .chain(["other"])
            .enumerate()
            .map(|(at, name)| (name.to_owned(), of(at)))
            .collect();
        json!({
            "part": "split", "model": self.model.name, "environment": self.env, "floats": self.floats,
            "workers": self.workers, "us": phases,
            "compute_us": Spread::of(self.runs.iter().map(SplitRun::compute_us)).json(),
            "iterations": self.runs.iter().map(|run| run.iterations).collect::<Vec<_>>(),
        })
    }
}

/// Measures all four algorithms, for `seconds` seconds in each turn.
///
/// # Errors
/// Fails if an environment fails.
pub fn measure(
    workers: usize,
    turns: usize,
    seconds: f64,
    progress: &Progress,
) -> Result<Vec<Split>, TrainError> {
    let contest = Contest::new(MODELS, turns);
    let standings = contest.try_hold(progress, |model, _| measure_model(*model, workers, seconds))?;
    Ok(standings.rows.into_iter().filter_map(|row| row.runs.into_iter().reduce(Split::joined)).collect())
}

fn measure_model(model: Model, workers: usize, seconds: f64) -> Result<Split, TrainError> {
    let images: &EnvFactory =
        &|count| Ok((0..count).map(|_| Box::new(Images::default()) as Box<dyn env::Environment>).collect());
    match model.name {
        "PPO" => {
            let id = first_that_works(["Hopper-v5", "PlanarHopper-v0"]);
            measure_config(model, PpoConfig::preset(id), (workers, seconds), &|count| {
                env::make_vector(id, count)
            })
        }
        "DDPG" => {
            let id = first_that_works(["HalfCheetah-v5", "Pendulum-v1"]);
            let config = DdpgConfig { learning_starts: LEARNING_STARTS, ..DdpgConfig::preset(id) };
            measure_config(model, config, (workers, seconds), &|count| env::make_vector(id, count))
        }
        "A2C" => measure_config(model, A2cConfig::preset("images"), (workers, seconds), images),
        _ => {
            let config = DqnConfig {
                buffer_size: BUFFER,
                learning_starts: LEARNING_STARTS,
                ..DqnConfig::preset("images")
            };
            measure_config(model, config, (workers, seconds), images)
        }
    }
}

/// Returns the first environment if it can be created, and otherwise the second one. The first one needs a library that
/// may be missing.
fn first_that_works([first, second]: [&'static str; 2]) -> &'static str {
    if env::make(first).is_ok() { first } else { second }
}

fn measure_config<A: Algorithm>(
    model: Model,
    config: A,
    (workers, seconds): (usize, f64),
    factory: &EnvFactory,
) -> Result<Split, TrainError> {
    let spec = factory(1)?[0].spec().clone();
    let aggregator = Box::new(Loopback::alone(config.vector_shape(&spec, Mode::Synchronous)?.len()));
    let mut trainer = config.trainer(World { rank: 0, size: workers }, factory, aggregator)?;
    let stopwatch = Stopwatch::default();
    let run = stopwatch.hearing(|| time(trainer.as_mut(), &stopwatch, seconds))?;
    let floats = trainer.aggregator().gradient_len();
    Ok(Split { model, env: spec.id.to_string(), floats, workers, runs: vec![run] })
}

fn time(trainer: &mut dyn Trainer, stopwatch: &Stopwatch, seconds: f64) -> Result<SplitRun, TrainError> {
    trainer.advance()?;
    let before = trainer.progress().iterations;
    stopwatch.restart();
    let begin = Instant::now();
    while begin.elapsed().as_secs_f64() < seconds && !trainer.progress().finished {
        trainer.advance()?;
    }
    Ok(SplitRun { seconds: stopwatch.seconds(), iterations: trainer.progress().iterations - before })
}

/// Returns the measurements of all algorithms as Markdown.
pub fn text(splits: &[Split]) -> String {
    let workers = splits.first().map_or(0, |split| split.workers);
    let measured = || Phase::VARIANTS.iter().enumerate().filter(|(_, phase)| **phase != Phase::Aggregation);
    let heads = ["", "environment", "floats in the vector"].into_iter();
    let heads = heads.chain(measured().map(|(_, phase)| phase.name()));
    let mut rows = Markdown::new(heads.chain(["other", "all except aggregation"]));
    for split in splits {
        let median = |at: usize| Spread::of(split.runs.iter().map(|run| run.us(at))).median;
        let name = [split.model.name.to_owned(), split.env.clone(), split.floats.to_string()];
        let phases = measured().map(|(at, _)| at).chain([Phase::VARIANTS.len()]);
        let all = Spread::of(split.runs.iter().map(SplitRun::compute_us));
        let cells = phases.map(|at| format!("{:.1}", median(at))).chain([all.text(0)]);
        rows.row(name.into_iter().chain(cells));
    }
    format!(
        "### Measured iteration time per worker in microseconds: this project's own algorithms, single-threaded, \
         world size {workers}\n\n{}",
        rows.text()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_add_up_to_iterations() {
        let split = measure_model(Model::named("PPO").unwrap(), 4, 0.05).unwrap();
        let run = split.runs[0];
        assert!(run.iterations > 0 && run.seconds.iter().sum::<f64>() >= 0.05, "{run:?}");
        for phase in
            [Phase::Act, Phase::Environment, Phase::Sample, Phase::Forward, Phase::Backward, Phase::Update]
        {
            let at = Phase::VARIANTS.iter().position(|other| *other == phase).unwrap();
            assert!(run.seconds[at] > 0.0, "{phase:?} must take time: {run:?}");
        }
        assert!(split.compute() > Duration::ZERO && run.compute_us() <= run.total_us());
        let text = text(&[split]);
        assert!(
            text.contains("| act | environment | sample | forward | backward | update | other |"),
            "{text}"
        );
    }

    #[test]
    fn image_observations_train_the_networks_of_the_paper() {
        for (name, floats) in [("DQN", 1_687_206), ("A2C", 866_439)] {
            let split = measure_model(Model::named(name).unwrap(), 4, 0.0).unwrap();
            assert!((floats..floats + 20).contains(&split.floats), "{split:?}");
        }
    }
}
