//! Hyper-parameters on the command line: `--set NAME=VALUE` for every algorithm, and separate options for PPO.

use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use iswitch_learn::algorithms::trainer::Algorithm;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::number;

/// Hyper-parameters that replace those of the environment's preset.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Hyper-parameters (defaults: the environment's preset; sizes are totals)")]
pub struct HyperParameters {
    /// Number of environments in the job, a multiple of the number of workers
    ///
    /// The default is a minimum, rounded up to a multiple of the number of workers. The minimum is 16 for PPO on the
    /// planar Hopper, 8 for A2C (16 if the observations are images), and 4 otherwise.
    #[arg(long, value_name = "N", conflicts_with = "resume", value_parser = number::whole::<usize>)]
    environments: Option<usize>,
    /// Set any hyper-parameter, such as gamma=0.98
    ///
    /// Use --list-parameters to list the names. This option is repeatable.
    #[arg(long = "set", value_name = "NAME=VALUE", conflicts_with = "resume")]
    settings: Vec<String>,
    /// Print the configuration file for this command and exit without training
    ///
    /// The file lists all hyper-parameters, with their descriptions and the values that this command would train with.
    /// Pass the file to --config to train with it. With --json, the hyper-parameters are printed as one JSON object.
    #[arg(long)]
    pub list_parameters: bool,
}

/// Options of one algorithm.
pub trait OwnParameters: Args {
    /// Returns the names and values of the options that the user has given.
    fn given(&self) -> Vec<(&'static str, Value)> {
        Vec::new()
    }
}

/// Empty set of options, for an algorithm that has no options of its own.
#[derive(Args, Clone, Debug)]
pub struct NoneOwn {}

impl OwnParameters for NoneOwn {}

/// Options of PPO.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Hyper-parameters of PPO (also available through --set)")]
pub struct PpoParameters {
    /// Number of steps in a rollout, in total across all environments
    #[arg(long, value_name = "N", conflicts_with = "resume", value_parser = number::whole::<usize>)]
    rollout_steps: Option<usize>,
    /// Number of samples in a minibatch
    #[arg(long, value_name = "N", conflicts_with = "resume", value_parser = number::whole::<usize>)]
    minibatch_size: Option<usize>,
    /// Number of passes over each rollout
    #[arg(long, value_name = "N", conflicts_with = "resume", value_parser = number::whole::<usize>)]
    epochs: Option<usize>,
    /// Initial Adam learning rate, which decreases linearly to 0
    #[arg(
        long,
        visible_alias = "lr",
        value_name = "X",
        conflicts_with = "resume",
        allow_negative_numbers = true
    )]
    learning_rate: Option<f32>,
    /// Discount factor; constant unless --set gamma_final=X is also given
    #[arg(long, value_name = "X", conflicts_with = "resume", allow_negative_numbers = true)]
    gamma: Option<f32>,
    /// Lambda of generalised advantage estimation (GAE)
    #[arg(long, value_name = "X", conflicts_with = "resume", allow_negative_numbers = true)]
    gae_lambda: Option<f32>,
    /// Clip range of the probability ratio
    #[arg(long, value_name = "X", conflicts_with = "resume", allow_negative_numbers = true)]
    clip_range: Option<f32>,
    /// Coefficient of the entropy bonus
    #[arg(long, value_name = "X", conflicts_with = "resume", allow_negative_numbers = true)]
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
    /// Returns whether the user has given the number of environments with `--environments` or `--set`.
    pub fn environments_given(&self) -> bool {
        self.environments.is_some()
            || self.settings.iter().any(|setting| setting.starts_with("environments="))
    }

    /// Returns a copy of the hyper-parameters with additional `--set` settings.
    #[must_use]
    pub fn with_settings(&self, settings: &[String]) -> Self {
        Self { settings: [&self.settings, settings].concat(), ..self.clone() }
    }

    /// Applies the hyper-parameters that the user has given to the preset, and checks the result.
    pub fn apply<A: Algorithm>(&self, mut preset: A, own: &impl OwnParameters) -> anyhow::Result<A> {
        if self.environments.is_some() {
            *preset.common().environments = self.environments;
        }
        let config: A = apply(&preset, &self.settings, own.given())?;
        config.check()?;
        Ok(config)
    }
}

/// Applies the `--set` settings and the values `given`, which come from the algorithm's own options, to the preset. If
/// the discount factor is given, but its final value is not, the discount factor is constant, even if that of the
/// preset increases during training.
pub fn apply<'a, C: Serialize + DeserializeOwned>(
    preset: &C,
    settings: &'a [String],
    mut given: Vec<(&'a str, Value)>,
) -> anyhow::Result<C> {
    let mut config = serde_json::to_value(preset)?;
    for setting in settings {
        let (name, value) =
            setting.split_once('=').with_context(|| format!("--set {setting}: expected NAME=VALUE"))?;
        given.push((name, number::value(value)));
    }
    let is_given = |wanted| given.iter().any(|(name, _)| *name == wanted);
    if config.get("gamma_final").is_some() && is_given("gamma") && !is_given("gamma_final") {
        given.push(("gamma_final", Value::Null));
    }
    for (name, value) in given {
        let setting = format!("--set {name}={value}");
        set(&mut config, name, value).map_err(|error| anyhow!("--set {error}"))?;
        // Deserialise after each setting, so that an error can be attributed to the setting that caused it.
        C::deserialize(&config).context(setting)?;
    }
    serde_json::from_value(config).context("--set")
}

/// Sets a hyper-parameter. The hyper-parameter must exist.
pub(crate) fn set(config: &mut Value, name: &str, value: Value) -> anyhow::Result<()> {
    let Some(parameters) = config.as_object_mut() else { bail!("hyper-parameters are not a JSON object") };
    if let Some(place) = parameters.get_mut(name) {
        *place = value;
        return Ok(());
    }
    let known: Vec<_> = parameters.keys().map(String::as_str).collect();
    bail!("{name}: no such hyper-parameter; expected one of {}", known.join(", "))
}

#[cfg(test)]
mod tests {
    use iswitch_learn::algorithms::ppo::PpoConfig;

    use super::*;

    fn gammas(settings: &[&str]) -> (f32, Option<f32>) {
        let settings: Vec<_> = settings.iter().map(|setting| (*setting).to_owned()).collect();
        let preset = PpoConfig { gamma: 0.9, gamma_final: Some(0.99), ..PpoConfig::preset("CartPole-v1") };
        let config = apply(&preset, &settings, Vec::new()).unwrap();
        (config.gamma, config.gamma_final)
    }

    #[test]
    fn a_discount_factor_that_is_given_alone_is_constant() {
        assert_eq!(gammas(&[]), (0.9, Some(0.99)));
        assert_eq!(gammas(&["gamma=0.95"]), (0.95, None));
        assert_eq!(gammas(&["gamma_final=0.98"]), (0.9, Some(0.98)));
        assert_eq!(gammas(&["gamma=0.95", "gamma_final=0.98"]), (0.95, Some(0.98)));
    }
}
