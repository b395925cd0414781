//! Policies as the command line names them.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use iswitch::Loopback;
use iswitch_learn::algorithms::checkpoint::MODEL_FILE;
use iswitch_learn::algorithms::trainer::Place;
use iswitch_routing::config::{Learner, RoutingConfig, ValueKind};
use iswitch_routing::network::Shape;
use iswitch_routing::policy::{Fill, Greedy, Policy, PolicySpec};
use iswitch_routing::rates::Rates;
use iswitch_routing::trained::Saved;
use iswitch_routing::training::{Training, vector_len};
use iswitch_routing::value::Value;

/// Help for arguments that name policies.
pub(super) const POLICIES: &str = "rand, jsq, po2, drill:D:M, spray, maxweight, central-jsq, central-jsq-exits, \
    colouring, mlpi (trained with a linear value on the network's own rates before the run), or the run directory of \
    `iswitch route train`";

/// Where a policy comes from.
#[derive(Debug)]
pub(super) enum PolicySource {
    /// One that needs no training.
    Plain(PolicySpec),
    /// One that is trained on the rates of each run.
    Mlpi,
    /// One that was trained, and the directory.
    Saved(Box<Saved>, PathBuf),
}

impl PolicySource {
    pub(super) fn parse(text: &str) -> anyhow::Result<Self> {
        let path = Path::new(text);
        if text == "mlpi" {
            return Ok(Self::Mlpi);
        }
        if path.join(MODEL_FILE).exists() {
            return Ok(Self::Saved(Box::new(Saved::read(path)?), path.to_owned()));
        }
        match text.parse() {
            Ok(spec) => Ok(Self::Plain(spec)),
            Err(_) if path.is_dir() => {
                bail!("policy is {text}, which holds no {MODEL_FILE}: train into it first")
            }
            Err(_) => bail!("policy is {text}, expected {POLICIES}"),
        }
    }

    pub(super) fn name(&self) -> String {
        match self {
            Self::Plain(spec) => spec.to_string(),
            Self::Mlpi => "mlpi".to_owned(),
            Self::Saved(_, path) => {
                path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
            }
        }
    }

    /// The size that it was trained for.
    pub(super) fn shape(&self) -> Option<Shape> {
        match self {
            Self::Saved(saved, _) => saved.config().shape().ok(),
            Self::Plain(_) | Self::Mlpi => None,
        }
    }

    /// A fresh policy for a network of this size. `seed` is of its draws.
    pub(super) fn build(&self, shape: Shape, fill: Fill, seed: u64) -> anyhow::Result<Box<dyn Policy>> {
        Ok(match self {
            Self::Plain(spec) => spec.build(shape, fill, seed),
            Self::Saved(saved, _) => Box::new(saved.policy(shape, seed, super::threads(1))?),
            Self::Mlpi => bail!(
                "policy mlpi is trained on a network's rates: give a directory of `iswitch route train`"
            ),
        })
    }

    /// A fresh policy for a network with these rates, on which it is trained first if need be.
    pub(super) fn build_for(&self, rates: &Rates, fill: Fill, seed: u64) -> anyhow::Result<Box<dyn Policy>> {
        match self {
            Self::Mlpi => Ok(Box::new(train(rates, seed)?)),
            Self::Plain(_) | Self::Saved(..) => self.build(rates.shape(), fill, seed),
        }
    }
}

fn train(rates: &Rates, seed: u64) -> anyhow::Result<Greedy<Box<dyn Value>>> {
    let shape = rates.shape();
    let preset = RoutingConfig::preset(Learner::Mlpi, ValueKind::Linear, shape.stages(), shape.switches());
    let config = RoutingConfig { seed, ..preset };
    let aggregator = Box::new(Loopback::alone(vector_len(&config)?));
    let mut training = Training::new(config, rates.clone(), Place::ALONE, 1, aggregator)?;
    while !training.is_finished() {
        training.advance(&mut |_| {})?;
    }
    training.best_policy(seed).context("nothing was trained")
}
