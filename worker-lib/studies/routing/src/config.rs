//! Hyper-parameters of the learners.

use serde::{Deserialize, Serialize};

use super::network::Shape;
use super::trajectory::Memory;
use super::value::ConvolutionalOptions;
use iswitch_study::{Hyperparameters, StudyError, common_hyperparameters};

/// Method that estimates the value of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::Display)]
#[strum(serialize_all = "lowercase")]
#[serde(rename_all = "lowercase")]
pub enum Learner {
    /// Maximum-likelihood policy iteration: costs are obtained by simulation, with arrival rates that are estimated
    /// from a few observed slots.
    Mlpi,
    /// Monte Carlo: discounted costs of the slots that follow a state in the network itself.
    Mc,
    /// Temporal difference: costs of `td_slots` slots in the network itself, plus the value of the state after these
    /// slots.
    Td,
}

/// Kind of value function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ValueKind {
    /// Linear function of the number of queues of each length: [`LinearValue`](super::value::LinearValue).
    Linear,
    /// The paper's convolutional network, whose input is all queue lengths:
    /// [`ConvolutionalValue`](super::value::ConvolutionalValue).
    Cnn,
}

/// Hyper-parameters of a training run. `observed_slots`, `slots` and `batch_size` are totals over all environments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoutingConfig {
    /// Method that estimates the value of a policy.
    pub learner: Learner,
    /// Kind of value function.
    pub value: ValueKind,
    /// Number of stages of the network (S).
    pub stages: usize,
    /// Number of switches per stage (N).
    pub switches: usize,
    /// Seed of all random streams except that of the arrival rates.
    pub seed: u64,
    /// Number of policy iterations.
    pub iterations: u64,
    /// Number of networks that are simulated side by side and divided among the workers. Each iteration begins with
    /// empty networks.
    pub environments: usize,
    /// Number of slots per iteration in which arrivals at the network are counted (T). Used only by MLPI.
    pub observed_slots: u64,
    /// Number of slots per iteration whose states are training data (K): simulated slots with MLPI, slots of the
    /// network itself with the other learners.
    pub slots: u64,
    /// Number of slots after a state whose costs are attributed to that state (W).
    pub window: usize,
    /// Discount factor per slot.
    pub discount: f64,
    /// Probability that a packet takes a random link during training. Tests use no random links.
    pub epsilon: f64,
    /// Whether the value function sees the last stage without the packets that leave in the current slot.
    pub exits_first: bool,
    /// Whether the lower bound on the number of packets, for the same arrivals, is subtracted from the cost of each
    /// slot.
    pub control_variate: bool,
    /// Whether the fit uses the data of all iterations so far. Used only by the linear value function.
    pub pool_data: bool,
    /// Whether an iteration continues from the policy with the best test result so far. Otherwise, it continues from
    /// the most recent policy, as in the paper. The best policy is kept in both cases.
    pub continue_best: bool,
    /// Number of passes over the states of an iteration. Used only by MLPI with the convolutional network.
    pub epochs: u64,
    /// Number of states in a minibatch. Used only with the convolutional network.
    pub batch_size: usize,
    /// Adam learning rate. Used only with the convolutional network.
    pub learning_rate: f32,
    /// Coefficient of L2 regularisation. Used only with the convolutional network.
    pub l2: f32,
    /// Number of slots whose costs are added to the value of the state after them. Used only by temporal difference.
    pub td_slots: usize,
    /// Layer sizes of the convolutional network.
    pub network: ConvolutionalOptions,
    /// Number of slots per environment in the test after each iteration. The test starts from an empty network.
    pub test_slots: u64,
}

impl RoutingConfig {
    /// Returns hyper-parameters that are known to work. With these values, a linear value function is trained in
    /// seconds. For the paper's network, these are the hyper-parameters of the paper (tables 1 and 2, section 4.3).
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

    /// Returns the size of the network.
    ///
    /// # Errors
    /// Fails if the number of stages or switches is out of range.
    pub fn shape(&self) -> Result<Shape, StudyError> {
        Shape::new(self.stages, self.switches)
    }

    /// Returns the number of slots, per environment and iteration, whose states are training data.
    pub(super) fn slots_each(&self) -> usize {
        (self.slots as usize).div_ceil(self.environments)
    }

    /// Returns [`Self::slots_each`] plus the number of further slots that serve only to complete the costs of earlier
    /// slots.
    pub(super) fn slots_with_window(&self) -> usize {
        self.slots_each() + self.window
    }

    /// Returns the options that determine how slots are recorded.
    pub(super) fn memory(&self) -> Memory {
        Memory { exits_first: self.exits_first, control_variate: self.control_variate }
    }

    /// Returns the number of states that each environment contributes to a minibatch.
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
        let (unit, positive) = ("0 to 1", "a number >= 0");
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
            return Err(StudyError::field("value", "linear", format!("cnn, because learner is {learner}")));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_settings_are_reported_by_name() {
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
            "value is linear, expected cnn, because learner is td"
        );
    }
}
