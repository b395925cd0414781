//! Hyper-parameters on the command line: `--set NAME=VALUE` for all of them, and flags for PPO's.

use anyhow::{Context as _, bail};
use clap::Args;
use iswitch_learn::algorithms::trainer::Algorithm;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Hyper-parameters that differ from the environment's preset.
#[derive(Args, Clone, Debug)]
#[command(
    next_help_heading = "Hyper-parameters (default: the environment's preset; sizes are over all workers)"
)]
pub struct HyperParameters {
    /// Environments of the job; the workers must divide it [default: at least 4 (A2C: 8, of images 16), and a multiple
    /// of the workers].
    #[arg(long, value_name = "N", conflicts_with = "resume")]
    environments: Option<usize>,
    /// Any hyper-parameter, by the name that --list-parameters shows: --set gamma=0.98. Can be repeated.
    #[arg(long = "set", value_name = "NAME=VALUE", conflicts_with = "resume")]
    settings: Vec<String>,
    /// Print all hyper-parameters with the values that this command would train with, as JSON, and train nothing.
    #[arg(long)]
    pub list_parameters: bool,
}

/// Flags of one algorithm.
pub trait OwnParameters: Args {
    /// Names and values of what was given.
    fn given(&self) -> Vec<(&'static str, Value)> {
        Vec::new()
    }
}

/// Most algorithms have none.
#[derive(Args, Clone, Debug)]
pub struct NoneOwn {}

impl OwnParameters for NoneOwn {}

/// Flags for PPO.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Hyper-parameters of PPO, as --set has them too")]
pub struct PpoParameters {
    /// Steps of a rollout.
    #[arg(long, value_name = "N", conflicts_with = "resume")]
    rollout_steps: Option<usize>,
    /// Samples of a minibatch.
    #[arg(long, value_name = "N", conflicts_with = "resume")]
    minibatch_size: Option<usize>,
    /// Passes over each rollout.
    #[arg(long, value_name = "N", conflicts_with = "resume")]
    epochs: Option<usize>,
    /// Learning rate of Adam at the start; it falls linearly to 0.
    #[arg(long, value_name = "X", conflicts_with = "resume")]
    learning_rate: Option<f32>,
    /// Discount factor.
    #[arg(long, value_name = "X", conflicts_with = "resume")]
    gamma: Option<f32>,
    /// Lambda of generalised advantage estimation.
    #[arg(long, value_name = "X", conflicts_with = "resume")]
    gae_lambda: Option<f32>,
    /// Range of the probability ratio.
    #[arg(long, value_name = "X", conflicts_with = "resume")]
    clip_range: Option<f32>,
    /// Weight of the entropy bonus.
    #[arg(long, value_name = "X", conflicts_with = "resume")]
    entropy_coefficient: Option<f32>,
}

impl OwnParameters for PpoParameters {
    fn given(&self) -> Vec<(&'static str, Value)> {
        let sizes = [
            ("rollout_steps", self.rollout_steps),
            ("minibatch_size", self.minibatch_size),
            ("epochs", self.epochs),
        ];
        let rates = [
            ("learning_rate", self.learning_rate),
            ("gamma", self.gamma),
            ("gae_lambda", self.gae_lambda),
            ("clip_range", self.clip_range),
            ("entropy_coefficient", self.entropy_coefficient),
        ];
        let sizes = sizes.into_iter().filter_map(|(name, value)| Some((name, Value::from(value?))));
        sizes.chain(rates.into_iter().filter_map(|(name, value)| Some((name, Value::from(value?))))).collect()
    }
}

impl HyperParameters {
    /// Whether the number of environments is given.
    pub fn environments_given(&self) -> bool {
        self.environments.is_some()
            || self.settings.iter().any(|setting| setting.starts_with("environments="))
    }

    /// The preset with what was given.
    pub fn apply<A: Algorithm>(&self, mut preset: A, own: &impl OwnParameters) -> anyhow::Result<A> {
        if self.environments.is_some() {
            *preset.common().environments = self.environments;
        }
        let config: A = apply(&preset, &self.settings, own.given())?;
        config.check()?;
        Ok(config)
    }
}

/// Hyper-parameters with what `--set` and flags of their own change.
pub fn apply<'a, C: Serialize + DeserializeOwned>(
    preset: &C,
    settings: &'a [String],
    mut given: Vec<(&'a str, Value)>,
) -> anyhow::Result<C> {
    let mut config = serde_json::to_value(preset)?;
    for setting in settings {
        let (name, value) =
            setting.split_once('=').with_context(|| format!("--set {setting}: expected NAME=VALUE"))?;
        given.push((name, serde_json::from_str(value).unwrap_or_else(|_| Value::from(value))));
    }
    for (name, value) in given {
        let setting = format!("--set {name}={value}");
        set(&mut config, name, value)?;
        // One by one, so that it can be said which one does not fit.
        C::deserialize(&config).context(setting)?;
    }
    serde_json::from_value(config).context("--set")
}

fn set(config: &mut Value, name: &str, value: Value) -> anyhow::Result<()> {
    let Some(parameters) = config.as_object_mut() else { bail!("hyper-parameters have no names") };
    if let Some(place) = parameters.get_mut(name) {
        *place = value;
        return Ok(());
    }
    let known: Vec<_> = parameters.keys().map(String::as_str).collect();
    bail!("--set {name}: no such hyper-parameter; there are {}", known.join(", "))
}
