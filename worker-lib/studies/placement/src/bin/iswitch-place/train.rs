//! `iswitch place train`: training of a placement network.

use std::path::Path;

use clap::{Args, ValueEnum};
use iswitch_placement::learned::config::{Network, PlacementConfig};
use iswitch_placement::learned::training::{Iteration, PlacementStudy, Saved, Training};
use iswitch_placement::workload::Workload;
use iswitch_study::files::write;
use iswitch_study::train::{self, TrainingArgs};
use serde::Serialize;

use super::plots;
use super::rules::Saving;
use super::workload::{Condition, ScenarioArgs};

/// Arguments of `iswitch place train`.
///
/// By default, the hyper-parameters determine the failure-rate factor and the checkpoint setting of each environment.
/// `--rate-factor` and `--checkpoint` each set one value for all environments instead.
#[derive(Args)]
pub(crate) struct TrainArgs {
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// Network to train [default: shared]
    #[arg(long, value_enum, conflicts_with = "resume")]
    network: Option<NetworkName>,
    /// Train a policy that never suspends jobs
    ///
    /// This option is for schedulers that cannot suspend a job and resume it later. The shared network then decides
    /// only the order of the queue and the choice of GPUs.
    #[arg(long, conflicts_with = "resume")]
    no_suspend: bool,
    #[command(flatten)]
    training: TrainingArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum NetworkName {
    /// Scores jobs and GPUs to adjust the `saving` policy; works on any cluster
    Shared,
    /// The patent's network, which identifies GPUs by index; for one cluster only
    Patent,
}

impl TrainArgs {
    fn network(&self) -> Network {
        match self.network.unwrap_or(NetworkName::Shared) {
            NetworkName::Shared => Network::Shared,
            NetworkName::Patent => Network::Patent,
        }
    }
}

impl train::Command for TrainArgs {
    type Study = PlacementStudy;
    type Input = Workload;
    type Outcome = Outcome;

    const NAME: &'static str = "place";
    const CHARTS: &'static [&'static str] = &["placement/gain", "placement/reward", "placement/choices"];
    const RESUMED_WITH: &'static str = ", with the same files";

    fn common(&self) -> &TrainingArgs {
        &self.training
    }

    fn kind(&self) -> String {
        self.network().to_string()
    }

    fn input(&self, _: Option<&Saved>) -> anyhow::Result<Workload> {
        self.scenario.load()
    }

    /// Returns the default hyper-parameters, except that the options may override the failure-rate factor and the
    /// checkpoint setting.
    fn preset(&self, workload: &Workload) -> anyhow::Result<PlacementConfig> {
        let mut preset = PlacementConfig::preset(self.network(), workload.cluster.gpus());
        preset.suspends &= !self.no_suspend;
        let Condition { rate_factor, saving } = self.scenario.condition();
        if rate_factor != 1.0 {
            (preset.factor_min, preset.factor_max) = (rate_factor, rate_factor);
        }
        preset.checkpoint_cost = self.scenario.cost().checkpoint_cost;
        match saving {
            Saving::None => preset.checkpoint_intervals = vec![0.0],
            Saving::Every(seconds) => preset.checkpoint_intervals = vec![seconds],
            Saving::YoungDaly => preset.young_daly = true,
        }
        Ok(preset)
    }

    fn task(&self, workload: Workload, config: &PlacementConfig, _: usize) -> anyhow::Result<Workload> {
        config.check_gpus(workload.cluster.gpus())?;
        Ok(workload)
    }

    fn charts(record: &Iteration) -> Vec<Option<f64>> {
        vec![record.gain, record.reward, Some(record.choices as f64)]
    }

    fn describe(record: &Iteration, best: Option<&Iteration>) -> String {
        let best = best.and_then(|best| best.gain);
        let best = best.map_or(String::new(), |gain| format!(", best test {gain:.4}"));
        let reward = record.reward.map_or(String::new(), |reward| format!(", reward {reward:.4}"));
        format!("iteration {}{reward}{best}, {:.1} s", record.iteration, record.seconds)
    }

    fn outcome(training: &Training) -> Outcome {
        let (config, history) = (training.config(), training.history());
        Outcome {
            network: config.network,
            parameters: config.parameter_count(),
            iterations: history.last().map_or(0, |record| record.iteration),
            courses: history.iter().map(|record| record.courses).sum(),
            best_iteration: training.best().map(|record| record.iteration),
            reference: config.reference().to_string(),
            gain: training.best().and_then(|record| record.gain),
        }
    }

    fn draw(training: &Training, out: &Path) -> anyhow::Result<()> {
        let reference = training.config().reference().to_string();
        write(&out.join("gain.svg"), &plots::learning(training.history(), &reference))
    }
}

/// Result of a training run. The JSON keys are part of the public interface and must not change.
#[derive(Debug, Serialize)]
pub(crate) struct Outcome {
    network: Network,
    parameters: usize,
    iterations: u64,
    courses: u64,
    best_iteration: Option<u64>,
    /// Name of the policy to which the network was compared.
    reference: String,
    /// Makespan of the reference policy divided by that of the best network, as measured in the test that selected this
    /// network.
    gain: Option<f64>,
}

impl train::Outcome for Outcome {
    fn text(&self, seconds: f64) -> Option<String> {
        let Self { parameters, iterations, courses, reference, .. } = self;
        let (gain, best) = self.gain.zip(self.best_iteration)?;
        Some(format!(
            "{parameters} parameters, {iterations} iterations, {courses} simulated runs, {seconds:.1} s\n\
             best network (iteration {best}): in the test, the makespan of {reference} is {gain:.4} times the network's"
        ))
    }
}
