//! `iswitch route train`: trains a routing policy.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use iswitch_learn::algorithms::streams::{Purpose, stream};
use iswitch_routing::config::{Learner, RoutingConfig, ValueKind};
use iswitch_routing::measure::measure;
use iswitch_routing::policy::{Fill, PolicySpec};
use iswitch_routing::rates::{Arrivals, Rates};
use iswitch_routing::training::{Iteration, RoutingStudy, Saved, Task, Training};
use iswitch_study::files::write;
use iswitch_study::train::{self, TrainingArgs};
use serde::Serialize;

use super::network::{LOAD, STAGES, SWITCHES};
use super::plots;

/// Arguments of `iswitch route train`.
#[derive(Args)]
pub(crate) struct TrainArgs {
    /// Method that estimates the value of a policy [default: mlpi]
    #[arg(long, value_enum, conflicts_with = "resume")]
    learner: Option<LearnerName>,
    /// Type of the value function [default: linear with mlpi, otherwise cnn]
    #[arg(long, value_enum, conflicts_with = "resume")]
    value: Option<ValueName>,
    /// Number of stages of the network [default: 3]
    #[arg(long, value_name = "S", conflicts_with = "resume")]
    stages: Option<usize>,
    /// Number of switches per stage, also the number of classes [default: 16]
    #[arg(long, value_name = "N", conflicts_with_all = ["resume", "rates"])]
    switches: Option<usize>,
    /// Load, above 0 and below 1 [default: 0.6]
    ///
    /// The load is the sum of all arrival rates, divided by the number of links between two stages.
    #[arg(long, value_name = "RHO", conflicts_with_all = ["resume", "rates"])]
    load: Option<f64>,
    /// Number of the draw of arrival rates [default: 1]
    ///
    /// Arrival rates are drawn uniformly from 0 to 1 and rescaled to the load.
    #[arg(long, value_name = "N", conflicts_with_all = ["resume", "rates"])]
    draw: Option<u64>,
    /// CSV file of arrival rates
    ///
    /// The file has one line for each of the N switches of the first stage. Each line has N numbers, one for each
    /// class.
    #[arg(long, value_name = "FILE", conflicts_with = "resume")]
    rates: Option<PathBuf>,
    /// Number of threads for the matrix products of each worker
    ///
    /// Only the value function cnn has matrix products. The default is the number of cores divided by the number of
    /// workers.
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    #[command(flatten)]
    training: TrainingArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LearnerName {
    /// Costs of a simulation with maximum-likelihood estimates of the arrival rates
    ///
    /// The arrival rates are estimated from the arrivals in a few slots of the network.
    Mlpi,
    /// Costs of the subsequent slots of the network itself (Monte Carlo)
    Mc,
    /// Costs of 100 slots plus the value of the state after them (temporal difference)
    Td,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ValueName {
    /// Linear function of the number of queues of each length; trains in seconds
    Linear,
    /// The paper's convolutional network over all queue lengths; trains in hours
    Cnn,
}

impl TrainArgs {
    fn learner(&self) -> Learner {
        match self.learner.unwrap_or(LearnerName::Mlpi) {
            LearnerName::Mlpi => Learner::Mlpi,
            LearnerName::Mc => Learner::Mc,
            LearnerName::Td => Learner::Td,
        }
    }

    fn value(&self) -> ValueKind {
        match self.value {
            Some(ValueName::Linear) => ValueKind::Linear,
            None if self.learner() == Learner::Mlpi => ValueKind::Linear,
            Some(ValueName::Cnn) | None => ValueKind::Cnn,
        }
    }
}

impl train::Command for TrainArgs {
    type Study = RoutingStudy;
    /// Arrival rates from a file or from the resumed run, if either is given.
    type Input = Option<Rates>;
    type Outcome = Outcome;

    const NAME: &'static str = "route";
    const CHARTS: &'static [&'static str] = &[
        "route/queued",
        "route/delay",
        "route/bound_queued",
        "route/bound_delay",
        "route/explained",
        "route/network_slots",
    ];
    const RESUMED_WITH: &'static str = "";

    fn common(&self) -> &TrainingArgs {
        &self.training
    }

    fn kind(&self) -> String {
        self.learner().to_string()
    }

    fn input(&self, saved: Option<&Saved>) -> anyhow::Result<Option<Rates>> {
        if let Some(saved) = saved {
            return Ok(Some(RoutingStudy::saved_rates(saved)?));
        }
        let stages = self.stages.unwrap_or(STAGES);
        Ok(self.rates.as_ref().map(|path| Rates::read(path, stages)).transpose()?)
    }

    fn preset(&self, rates: &Option<Rates>) -> anyhow::Result<RoutingConfig> {
        let stages = self.stages.unwrap_or(STAGES);
        let switches = rates.as_ref().map(|rates| rates.shape().switches());
        let switches = switches.or(self.switches).unwrap_or(SWITCHES);
        Ok(RoutingConfig::preset(self.learner(), self.value(), stages, switches))
    }

    fn task(&self, rates: Option<Rates>, config: &RoutingConfig, workers: usize) -> anyhow::Result<Task> {
        let drawn = || Rates::uniform(config.shape()?, self.load.unwrap_or(LOAD), self.draw.unwrap_or(1));
        let threads = self.threads.unwrap_or_else(|| super::threads(workers));
        Ok(Task { rates: rates.map_or_else(drawn, Ok)?, threads })
    }

    fn charts(record: &Iteration) -> Vec<Option<f64>> {
        let Iteration { queued, delay, bound_queued, bound_delay, explained, network_slots, .. } = *record;
        let slots = network_slots as f64;
        vec![Some(queued), Some(delay), Some(bound_queued), Some(bound_delay), explained, Some(slots)]
    }

    fn describe(record: &Iteration, _: Option<&Iteration>) -> String {
        let Iteration { iteration, queued, bound_queued, delay, seconds, .. } = record;
        format!(
            "iteration {iteration}: queued {queued:.1} packets (bound {bound_queued:.1}), delay {delay:.3} slots, \
             {seconds:.1} s"
        )
    }

    fn outcome(training: &Training) -> Outcome {
        let (config, rates) = (training.config(), training.study().rates());
        let (last, best) = (training.history().last(), training.best());
        Outcome {
            learner: config.learner,
            value: config.value,
            stages: rates.shape().stages(),
            switches: rates.shape().switches(),
            load: rates.load(),
            iterations: last.map_or(0, |record| record.iteration),
            network_slots: last.map_or(0, |record| record.network_slots),
            simulated_slots: last.map_or(0, |record| record.simulated_slots),
            best_iteration: best.map(|record| record.iteration),
            queued: best.map(|record| record.queued),
            delay: best.map(|record| record.delay),
            bound_queued: best.map(|record| record.bound_queued),
            bound_delay: best.map(|record| record.bound_delay),
        }
    }

    fn draw(training: &Training, out: &Path) -> anyhow::Result<()> {
        draw(training, out)
    }
}

/// Returns the mean number of queued packets and the mean delay of each policy that does not learn, on the same
/// arrivals as the tests during training.
fn baselines(training: &Training) -> anyhow::Result<Vec<(PolicySpec, f64, f64)>> {
    let (config, rates) = (training.config(), training.study().rates());
    let of = |spec: PolicySpec| {
        let (mut queued, mut delay) = (0.0, 0.0);
        for environment in 0..config.environments {
            let mut policy = spec.build(rates.shape(), Fill::Random, environment as u64);
            let mut arrivals = Arrivals::new(rates, stream(config.seed, Purpose::Evaluation, environment));
            let run = measure(policy.as_mut(), rates, &mut arrivals, config.test_slots, &mut |_, _, _| {})?;
            queued += run.queued / config.environments as f64;
            delay += run.delay / config.environments as f64;
        }
        Ok((spec, queued, delay))
    };
    [PolicySpec::Random, PolicySpec::JoinShortestQueue, PolicySpec::PowerOfTwo].into_iter().map(of).collect()
}

/// Draws figures 2 to 5 of the paper for this run.
fn draw(training: &Training, out: &Path) -> anyhow::Result<()> {
    let Some(last) = training.history().last() else { return Ok(()) };
    let baselines = baselines(training)?;
    let of = format!(
        "{} switches, load {:.2}",
        training.study().rates().shape().switches(),
        training.study().rates().load()
    );
    let learner = training.config().learner.to_string().to_uppercase();
    let runs = [(learner, training.history())];
    let reference = |of: fn(&(PolicySpec, f64, f64)) -> f64, bound: f64| -> Vec<_> {
        let policies = baselines.iter().map(|it| (it.0.to_string(), of(it)));
        policies.chain([("bound".to_owned(), bound)]).collect()
    };
    let title = format!("Queued packets by policy iteration, {of}");
    let queued = plots::learning(
        title,
        plots::packets(),
        &runs,
        |it| it.queued,
        reference(|it| it.1, last.bound_queued),
    );
    write(&out.join("queued.svg"), &queued)?;
    let title = format!("Delay by policy iteration, {of}");
    let delay =
        plots::learning(title, plots::delay(), &runs, |it| it.delay, reference(|it| it.2, last.bound_delay));
    write(&out.join("delay.svg"), &delay)
}

/// Result of a training run. The JSON keys are part of the public interface and must not change.
#[derive(Debug, Serialize)]
pub(crate) struct Outcome {
    learner: Learner,
    value: ValueKind,
    stages: usize,
    switches: usize,
    load: f64,
    iterations: u64,
    network_slots: u64,
    simulated_slots: u64,
    best_iteration: Option<u64>,
    queued: Option<f64>,
    delay: Option<f64>,
    bound_queued: Option<f64>,
    bound_delay: Option<f64>,
}

impl train::Outcome for Outcome {
    fn text(&self, seconds: f64) -> Option<String> {
        let (queued, bound) = self.queued.zip(self.bound_queued)?;
        Some(format!(
            "{} stages of {} switches, load {:.2}, {} iterations with {} slots of the network and {} simulated slots, \
             {seconds:.1} s\n\
             best policy (iteration {}): {queued:.1} packets queued, {:.1} % above the bound; delay {:.3} slots",
            self.stages,
            self.switches,
            self.load,
            self.iterations,
            self.network_slots,
            self.simulated_slots,
            self.best_iteration.unwrap_or(0),
            (queued / bound - 1.0) * 100.0,
            self.delay.unwrap_or(0.0),
        ))
    }
}
