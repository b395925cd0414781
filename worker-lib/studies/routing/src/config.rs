//! Hyper-parameters of the learners.

use serde::{Deserialize, Serialize};

use super::network::Shape;
use super::trajectory::Memory;
use super::value::ConvolutionalOptions;
use iswitch_study::{Hyperparameters, StudyError, common_hyperparameters};

/// How the value of a policy is estimated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::Display)]
#[strum(serialize_all = "lowercase")]
#[serde(rename_all = "lowercase")]
pub enum Learner {
    /// Maximum likelihood: from simulated slots, with arrival rates that were estimated in few observed ones.
    Mlpi,
    /// Monte Carlo: from the discounted costs that follow in the network itself.
    Mc,
    /// Temporal difference: from the costs of `td_slots` slots in the network itself, and the value then.
    Td,
}

/// What a value is a function of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ValueKind {
    /// Numbers of queues of each length: [`LinearValue`](super::value::LinearValue).
    Linear,
    /// All lengths, through the paper's network: [`ConvolutionalValue`](super::value::ConvolutionalValue).
    Cnn,
}

/// Hyper-parameters of a training. Numbers of slots and the batch size are over all environments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoutingConfig {
    /// How the value of a policy is estimated.
    pub learner: Learner,
    /// What it is a function of.
    pub value: ValueKind,
    /// Stages of the network.
    pub stages: usize,
    /// Switches of a stage (N).
    pub switches: usize,
    /// Seed of all random streams but the rates'.
    pub seed: u64,
    /// Policy iterations.
    pub iterations: u64,
    /// Networks that are simulated side by side; the workers divide them. Each iteration begins with empty ones.
    pub environments: usize,
    /// Slots in which arrivals at the network are counted in an iteration (T). Only of MLPI.
    pub observed_slots: u64,
    /// Slots whose states are learnt from in an iteration (K): simulated ones of MLPI, the network's own of others.
    pub slots: u64,
    /// Slots after a state whose costs count (W).
    pub window: usize,
    /// Weight of the next slot's cost.
    pub discount: f64,
    /// Probability of a random link, but for tests.
    pub epsilon: f64,
    /// Values see the last stage without the packets that leave in the slot.
    pub exits_first: bool,
    /// Costs are what the network holds beyond what it would under any policy.
    pub control_variate: bool,
    /// Fit the data of all iterations so far. Only of the linear value.
    pub pool_data: bool,
    /// Go on from the policy with the best test so far. Else from the last one, as in the paper; the best one is kept
    /// in any case.
    pub continue_best: bool,
    /// Passes over the states of an iteration. Only of MLPI with a CNN.
    pub epochs: u64,
    /// States of a minibatch. This and what follows: only of a CNN.
    pub batch_size: usize,
    /// Of Adam.
    pub learning_rate: f32,
    /// Weight of the squared weights in the loss.
    pub l2: f32,
    /// Slots before the value takes over. Only of TD.
    pub td_slots: usize,
    /// Sizes of the network.
    pub network: ConvolutionalOptions,
    /// Slots of the test after each iteration, from an empty network, in each environment.
    pub test_slots: u64,
}

impl RoutingConfig {
    /// What is known to work: a linear value that is learnt in seconds, or the paper's network with the paper's
    /// hyper-parameters (tables 1 and 2, section 4.3).
    pub fn preset(learner: Learner, value: ValueKind, stages: usize, switches: usize) -> Self {
        let is_linear = value == ValueKind::Linear;
        Self {
            learner,
            value,
            stages,
            switches,
            seed: 1,
            iterations: 8,
            environments: 4,
            observed_slots: 20,
            slots: 3200,
            window: if is_linear { 60 } else { 500 },
            discount: if is_linear { 0.9 } else { 0.99 },
            epsilon: 0.4,
            exits_first: is_linear,
            control_variate: is_linear,
            pool_data: true,
            continue_best: is_linear,
            epochs: 10,
            batch_size: 256,
            learning_rate: 3e-4,
            l2: 1e-4,
            td_slots: 100,
            network: ConvolutionalOptions::paper(switches),
            test_slots: 200,
        }
    }

    /// The network's size.
    ///
    /// # Errors
    /// If there is no such network.
    pub fn shape(&self) -> Result<Shape, StudyError> {
        Shape::new(self.stages, self.switches)
    }

    /// Slots of each environment in an iteration that states are learnt from.
    pub(super) fn slots_each(&self) -> usize {
        (self.slots as usize).div_ceil(self.environments)
    }

    /// These, and those after them that only complete the costs of others.
    pub(super) fn slots_with_window(&self) -> usize {
        self.slots_each() + self.window
    }

    /// How slots are remembered.
    pub(super) fn memory(&self) -> Memory {
        Memory { exits_first: self.exits_first, control_variate: self.control_variate }
    }

    /// States of each environment in a minibatch.
    pub(super) fn batch_each(&self) -> usize {
        (self.batch_size / self.environments).max(1)
    }
}

impl Hyperparameters for RoutingConfig {
    common_hyperparameters!(environments);

    fn check(&self) -> Result<(), StudyError> {
        self.shape()?;
        let counts = [
            ("environments", self.environments as u64),
            ("observed_slots", self.observed_slots),
            ("slots", self.slots),
            ("epochs", self.epochs),
            ("batch_size", self.batch_size as u64),
            ("td_slots", self.td_slots as u64),
            ("test_slots", self.test_slots),
        ];
        if let Some((name, value)) = counts.into_iter().find(|(_, value)| *value == 0) {
            return Err(StudyError::field(name, value, "at least 1"));
        }
        let (unit, positive) = ("0 to 1", "a number of at least 0");
        let numbers = [
            ("discount", self.discount, (0.0..=1.0).contains(&self.discount), unit),
            ("epsilon", self.epsilon, (0.0..=1.0).contains(&self.epsilon), unit),
            ("learning_rate", self.learning_rate.into(), self.learning_rate >= 0.0, positive),
            ("l2", self.l2.into(), self.l2 >= 0.0, positive),
        ];
        if let Some((name, value, _, expected)) = numbers.into_iter().find(|(_, _, fits, _)| !fits) {
            return Err(StudyError::field(name, value, expected));
        }
        if self.learner != Learner::Mlpi && self.value == ValueKind::Linear {
            let learner = self.learner.to_string();
            return Err(StudyError::field("value", "linear", format!("cnn, as learner is {learner}")));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_is_named() {
        let text = |change: fn(&mut RoutingConfig)| {
            let mut config = RoutingConfig::preset(Learner::Mlpi, ValueKind::Linear, 3, 16);
            change(&mut config);
            config.check().map_or_else(|error| error.to_string(), |()| "fine".to_owned())
        };
        assert_eq!(text(|_| {}), "fine");
        assert_eq!(text(|config| config.switches = 0), "switches is 0, expected 1 to 256");
        assert_eq!(text(|config| config.slots = 0), "slots is 0, expected at least 1");
        assert_eq!(text(|config| config.epsilon = 1.5), "epsilon is 1.5, expected 0 to 1");
        assert_eq!(
            text(|config| config.learner = Learner::Td),
            "value is linear, expected cnn, as learner is td"
        );
    }
}
