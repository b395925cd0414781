//! `iswitch coflow train`: trains a network that assigns priorities to coflows.

use std::path::Path;

use clap::{Args, ValueEnum};
use iswitch_coflow::deepweave::config::DeepWeaveConfig;
use iswitch_coflow::deepweave::episodes::Task;
use iswitch_coflow::deepweave::net::NetKind;
use iswitch_coflow::deepweave::training::{DeepWeaveStudy, Iteration, Saved, Training};
use iswitch_study::files::write;
use iswitch_study::train::{self, TrainingArgs};
use serde::Serialize;

use super::plots;
use super::workload::SourceArgs;

/// Arguments of `iswitch coflow train`.
#[derive(Args)]
pub(crate) struct TrainArgs {
    #[command(flatten)]
    source: SourceArgs,
    /// Kind of network to train [default: node]
    #[arg(long, value_enum, conflicts_with = "resume")]
    network: Option<NetworkName>,
    #[command(flatten)]
    training: TrainingArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum NetworkName {
    /// Network with one head per coflow, for jobs of any size
    ///
    /// Its priorities adjust the order of the policy job-sebf.
    Node,
    /// The paper's network: one head for all coflows of a job
    ///
    /// The hyper-parameter coflows_max is the maximum number of coflows per job.
    Paper,
}

impl TrainArgs {
    fn network(&self) -> NetKind {
        match self.network.unwrap_or(NetworkName::Node) {
            NetworkName::Node => NetKind::Node,
            NetworkName::Paper => NetKind::Paper,
        }
    }
}

impl train::Command for TrainArgs {
    type Study = DeepWeaveStudy;
    type Input = ();
    type Outcome = Outcome;

    const NAME: &'static str = "coflow";
    const CHARTS: &'static [&'static str] = &["coflow/gain", "coflow/job_time", "coflow/jobs"];
    const RESUMED_WITH: &'static str =
        ", with the same --trace, --dags, --ports, --capacity, --rates and --fabric";

    fn common(&self) -> &TrainingArgs {
        &self.training
    }

    fn kind(&self) -> String {
        self.network().to_string()
    }

    fn input(&self, _: Option<&Saved>) -> anyhow::Result<()> {
        Ok(())
    }

    fn preset(&self, (): &()) -> anyhow::Result<DeepWeaveConfig> {
        Ok(DeepWeaveConfig::preset(self.network()))
    }

    fn task(&self, (): (), _: &DeepWeaveConfig, _: usize) -> anyhow::Result<Task> {
        self.source.task()
    }

    fn charts(record: &Iteration) -> Vec<Option<f64>> {
        vec![record.gain, record.job_time, Some(record.jobs as f64)]
    }

    fn describe(record: &Iteration, best: Option<&Iteration>) -> String {
        let best = best.and_then(|best| best.gain);
        let best = best.map_or(String::new(), |gain| format!(", best test {gain:.4}"));
        let time = record.job_time.map_or(String::new(), |time| format!(", mean JCT {time:.0} s"));
        format!("iteration {}{time}{best}, {:.1} s", record.iteration, record.seconds)
    }

    fn outcome(training: &Training) -> Outcome {
        let (config, history) = (training.config(), training.history());
        Outcome {
            network: config.network,
            parameters: config.net().parameter_count(),
            iterations: history.last().map_or(0, |record| record.iteration),
            jobs: history.iter().map(|record| record.jobs).sum(),
            best_iteration: training.best().map(|record| record.iteration),
            gain: training.best().and_then(|record| record.gain),
        }
    }

    fn draw(training: &Training, out: &Path) -> anyhow::Result<()> {
        write(&out.join("gain.svg"), &plots::learning(training.history()))
    }
}

/// Result of a training run. The JSON keys are part of the public interface and must not change.
#[derive(Debug, Serialize)]
pub(crate) struct Outcome {
    network: NetKind,
    parameters: usize,
    iterations: u64,
    jobs: u64,
    best_iteration: Option<u64>,
    /// Mean job completion time of JobSEBF divided by that of the best network, as measured in the test that selected
    /// this network.
    gain: Option<f64>,
}

impl train::Outcome for Outcome {
    fn text(&self, seconds: f64) -> Option<String> {
        let Self { parameters, iterations, jobs, .. } = self;
        let (gain, best) = self.gain.zip(self.best_iteration)?;
        Some(format!(
            "{parameters} parameters, {iterations} iterations, {jobs} jobs, {seconds:.1} s\n\
             best network (iteration {best}): in the test, the mean JCT of job-sebf is {gain:.4} times the network's"
        ))
    }
}
