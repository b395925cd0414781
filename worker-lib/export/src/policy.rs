//! Policy to export, with the properties that the formats need.

use anyhow::{Context as _, bail};
use iswitch_learn::algorithms::policy_graph::{GraphLayer, GraphMemory, Outputs, PolicyGraph, Preprocessing};
use iswitch_learn::algorithms::trained::Trained;
use iswitch_learn::algorithms::trainer::Policy;
use iswitch_learn::env::{ActionSpace, Environment, is_bounded};
use iswitch_learn::nn::Operation;

/// Version of the program.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Trained policy, with information about its training.
pub(crate) struct ExportedPolicy {
    /// Name of the algorithm, such as `ppo`.
    pub(crate) algorithm: String,
    /// Id of the environment.
    pub(crate) env: String,
    /// Number of environment steps during training.
    pub(crate) steps: u64,
    /// Mean return of the last 100 episodes of training, if any episode has ended.
    pub(crate) mean_return: Option<f64>,
    /// Hyper-parameters used for training.
    pub(crate) hyper_parameters: serde_json::Value,
    /// Shape of an observation: `[dim]`, or `[channels, height, width]` if the first layer is a convolution.
    pub(crate) observation_shape: Vec<usize>,
    pub(crate) graph: PolicyGraph,
    pub(crate) action: ActionTransform,
}

/// Conversion of the network's outputs to an action in the environment's units.
pub(crate) enum ActionTransform {
    /// The index of the largest output, plus `start`. In case of a tie, the first of the largest outputs counts.
    Discrete {
        /// Number of choices.
        n: usize,
        /// Number that the environment assigns to the first choice.
        start: i64,
    },
    /// `clip(output * scale + offset, low, high)` for each dimension.
    Continuous {
        /// Factor of each dimension.
        scale: Vec<f32>,
        /// Offset of each dimension.
        offset: Vec<f32>,
        /// Minimum of each dimension; negative infinity if the dimension is unbounded.
        low: Vec<f32>,
        /// Maximum of each dimension; infinity if the dimension is unbounded.
        high: Vec<f32>,
    },
}

impl ActionTransform {
    fn of(space: ActionSpace) -> Self {
        let bounds = match space {
            ActionSpace::Discrete { n, start } => return Self::Discrete { n, start },
            ActionSpace::Continuous { bounds } => bounds,
        };
        let of_each = |bounded: fn(f64, f64) -> f64, unbounded: f32| -> Vec<f32> {
            let one = |bounds: &[f32; 2]| {
                let [low, high] = bounds.map(f64::from);
                if is_bounded(*bounds) { bounded(low, high) as f32 } else { unbounded }
            };
            bounds.iter().map(one).collect()
        };
        Self::Continuous {
            scale: of_each(|low, high| 0.5 * (high - low), 1.0),
            offset: of_each(|low, high| 0.5 * (low + high), 0.0),
            low: of_each(|low, _| low, f32::NEG_INFINITY),
            high: of_each(|_, high| high, f32::INFINITY),
        }
    }
}

impl ExportedPolicy {
    /// Collects the policy of a run and the policy's properties.
    ///
    /// # Errors
    /// Fails if a parameter is not a finite number, or if the hyper-parameters cannot be represented as JSON.
    pub(crate) fn new(trained: &Trained, policy: &dyn Policy, env: &dyn Environment) -> anyhow::Result<Self> {
        let graph = policy.graph();
        let observation_shape = match graph.layers.first().map(|layer| layer.operation) {
            Some(Operation::Convolution(convolution)) => {
                let image = convolution.input;
                vec![image.channels, image.height, image.width]
            }
            _ => vec![env.spec().observation_dim],
        };
        let exported = Self {
            algorithm: trained.algorithm.clone(),
            env: trained.env.clone(),
            steps: trained.steps,
            mean_return: trained.mean_return,
            hyper_parameters: serde_json::from_str(&trained.config).context("invalid hyper-parameters")?,
            observation_shape,
            graph,
            action: ActionTransform::of(env.action_space()),
        };
        exported.check_numbers()?;
        Ok(exported)
    }

    /// Returns the layer sequences of the policy, with their names.
    pub(crate) fn sequences(&self) -> Vec<(&'static str, &[GraphLayer])> {
        let mut sequences = vec![("layers", &self.graph.layers[..])];
        if let Some([value, advantage]) = &self.graph.streams {
            sequences.extend([("value", &value[..]), ("advantage", &advantage[..])]);
        }
        sequences
    }

    /// Returns the number of weights and biases.
    pub(crate) fn parameter_count(&self) -> usize {
        let layers = self.sequences().into_iter().flat_map(|(_, layers)| layers);
        let of_memory = self.graph.memory.as_ref().map_or(0, |memory| memory.layer.parameter_count());
        of_memory + layers.map(|layer| layer.weight.len() + layer.bias.len()).sum::<usize>()
    }

    /// Returns the name of the outputs from which a discrete action is chosen; `None` for continuous actions.
    pub(crate) fn scores(&self) -> Option<&'static str> {
        match self.graph.outputs {
            Outputs::QValues => Some("q_values"),
            Outputs::Logits => Some("logits"),
            Outputs::Action => None,
        }
    }

    /// Returns properties of the policy's training, each with its name.
    pub(crate) fn facts(&self) -> Vec<(&'static str, String)> {
        let mut facts = vec![
            ("algorithm", self.algorithm.clone()),
            ("env", self.env.clone()),
            ("steps", self.steps.to_string()),
            ("hyper_parameters", self.hyper_parameters.to_string()),
            ("iswitch_version", VERSION.to_owned()),
        ];
        facts.extend(self.mean_return.map(|mean| ("mean_return", mean.to_string())));
        facts
    }

    fn check_numbers(&self) -> anyhow::Result<()> {
        for (name, _, values) in self.graph.memory.iter().flat_map(GraphMemory::tensors) {
            if let Some(number) = values.iter().find(|number| !number.is_finite()) {
                bail!(
                    "memory, {name}: a parameter is {number}, expected a finite number; training has diverged"
                );
            }
        }
        for (name, layers) in self.sequences() {
            for (i, layer) in layers.iter().enumerate() {
                let numbers = layer.weight.iter().chain(&layer.bias);
                if let Some(number) = numbers.copied().find(|number| !number.is_finite()) {
                    bail!(
                        "{name}, layer {i}: a parameter is {number}, expected a finite number; training has \
                         diverged"
                    );
                }
            }
        }
        if let Preprocessing::Normalise { mean, std, .. } = &self.graph.preprocessing
            && let Some(number) = mean.iter().chain(std).find(|number| !number.is_finite())
        {
            bail!(
                "a statistic of the observations is {number}, expected a finite number; training has diverged"
            );
        }
        Ok(())
    }
}
