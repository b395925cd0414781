//! Policies as they are named on the command line.

use anyhow::{Context as _, bail};
use iswitch::Loopback;
use iswitch_learn::algorithms::trainer::World;
use iswitch_routing::config::{Learner, RoutingConfig, ValueKind};
use iswitch_routing::network::Shape;
use iswitch_routing::policy::external::ExternalPolicy;
use iswitch_routing::policy::{Fill, Greedy, Policy, PolicySpec};
use iswitch_routing::rates::Rates;
use iswitch_routing::training::{RoutingStudy, Saved, Task, Training};
use iswitch_routing::value::Value;
use iswitch_study::contest::{Contestant, directory_name, plain, saved};
use iswitch_study::external::External;

/// Names of the policies that the command line accepts, for help and error messages.
pub(super) const POLICIES: &str = "rand, jsq, po2, drill:D:M, spray, maxweight, central-jsq, central-jsq-exits, \
    colouring, mlpi (a linear value function, trained before the first run with each set of arrival rates), or \
    the run directory of `iswitch route train`";

/// Name of the policy that is trained on the arrival rates.
const MLPI: &str = "mlpi";

/// Source of a policy.
#[derive(Debug)]
pub(super) enum PolicySource {
    /// Policy that needs no training.
    Plain(PolicySpec),
    /// Policy that is trained on the arrival rates of a run.
    Mlpi,
    /// Checkpoint of a trained policy, and the name of its run directory.
    Saved(Box<Saved>, String),
    /// External policy, which runs as a separate program.
    External(External),
}

impl Contestant for PolicySource {
    fn parse(text: &str) -> anyhow::Result<Self> {
        if text == MLPI {
            return Ok(Self::Mlpi);
        }
        if let Some(saved) = saved::<RoutingStudy>(text)? {
            return Ok(Self::Saved(Box::new(saved), directory_name(text)));
        }
        let is_own = |name: &str| name == MLPI || name.parse::<PolicySpec>().is_ok();
        match External::parse(text, is_own)? {
            Some(external) => Ok(Self::External(external)),
            None => plain(text, POLICIES).map(Self::Plain),
        }
    }

    fn name(&self) -> String {
        match self {
            Self::Plain(spec) => spec.to_string(),
            Self::Mlpi => MLPI.to_owned(),
            Self::Saved(_, name) => name.clone(),
            Self::External(external) => external.name().to_owned(),
        }
    }

    fn external_mut(&mut self) -> Option<&mut External> {
        match self {
            Self::External(external) => Some(external),
            Self::Plain(_) | Self::Mlpi | Self::Saved(..) => None,
        }
    }
}

impl PolicySource {
    /// Returns the size of the network for which the policy was trained, if it is a checkpoint.
    pub(super) fn shape(&self) -> Option<Shape> {
        match self {
            Self::Saved(saved, _) => saved.config().shape().ok(),
            Self::Plain(_) | Self::Mlpi | Self::External(_) => None,
        }
    }

    /// Creates a new instance of the policy for a network of size `shape`. `seed` is the seed of its random choices.
    pub(super) fn build(&self, shape: Shape, fill: Fill, seed: u64) -> anyhow::Result<Box<dyn Policy>> {
        Ok(match self {
            Self::Plain(spec) => spec.build(shape, fill, seed),
            Self::Saved(saved, _) => {
                Box::new(RoutingStudy::saved_policy(saved, shape, seed, super::threads(1))?)
            }
            Self::External(external) => Box::new(ExternalPolicy::start(external, shape, seed)?),
            Self::Mlpi => bail!(
                "policy mlpi is not trained; train a policy with `iswitch route train` and give its run directory"
            ),
        })
    }

    /// Creates a new instance of the policy for a network with these arrival rates. The `mlpi` policy is first trained
    /// on the rates, unless `latest` was already trained on the same rates.
    pub(super) fn build_for(
        &self,
        rates: &Rates,
        fill: Fill,
        seed: u64,
        latest: &mut LatestTraining,
    ) -> anyhow::Result<Box<dyn Policy>> {
        match self {
            Self::Mlpi => Ok(Box::new(latest.policy(rates, seed)?)),
            Self::Plain(_) | Self::Saved(..) | Self::External(_) => self.build(rates.shape(), fill, seed),
        }
    }
}

/// Result of the latest training of the `mlpi` policy. Runs with the same arrival rates share it.
#[derive(Default)]
pub(super) struct LatestTraining(Option<(Rates, Training)>);

impl LatestTraining {
    fn policy(&mut self, rates: &Rates, seed: u64) -> anyhow::Result<Greedy<Box<dyn Value>>> {
        let (_, training) = match self.0.take().filter(|(of, _)| of == rates) {
            Some(known) => self.0.insert(known),
            None => self.0.insert((rates.clone(), train(rates, seed)?)),
        };
        RoutingStudy::best_policy(training, seed).context("the training run has not tested any policy")
    }
}

fn train(rates: &Rates, seed: u64) -> anyhow::Result<Training> {
    let shape = rates.shape();
    let preset = RoutingConfig::preset(Learner::Mlpi, ValueKind::Linear, shape.stages(), shape.switches());
    let config = RoutingConfig { seed, ..preset };
    let aggregator = Box::new(Loopback::alone(Training::vector_len(&config)?));
    let task = Task { rates: rates.clone(), threads: 1 };
    let mut training = Training::new(config, task, World::ALONE, aggregator)?;
    while !training.is_finished() {
        training.advance()?;
    }
    Ok(training)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_with_the_same_rates_share_one_training() {
        let shape = Shape::new(3, 2).unwrap();
        let (first, second) =
            (Rates::uniform(shape, 0.5, 1).unwrap(), Rates::uniform(shape, 0.5, 2).unwrap());
        let mut latest = LatestTraining::default();
        // A training run takes its seed from the run that triggered it.
        for (rates, run, expected) in [(&first, 1, 1), (&first, 2, 1), (&second, 3, 3), (&second, 4, 3)] {
            PolicySource::Mlpi.build_for(rates, Fill::default(), run, &mut latest).unwrap();
            assert_eq!(latest.0.as_ref().map(|(_, training)| training.config().seed), Some(expected));
        }
    }
}
