//! Description of a policy as JSON. Files in the JSON format also contain the numbers: the weights, the biases and the
//! constants of the conversions.

use std::collections::BTreeMap;

use anyhow::Context as _;
use iswitch_learn::algorithms::policy_graph::{GraphMemory, Preprocessing};
use iswitch_learn::nn::{LAYER_NORM_EPSILON, Operation};
use serde::Serialize;

use crate::modules::{Module, modules};
use crate::policy::{ActionTransform, ExportedPolicy, VERSION};

/// Name and version of the format. Programs that know only version 1 would ignore the memory of a recurrent policy.
const FORMAT: &str = "iswitch-policy-1";
const RECURRENT_FORMAT: &str = "iswitch-policy-2";

#[derive(Serialize)]
struct Description<'a> {
    format: &'static str,
    iswitch_version: &'static str,
    algorithm: &'a str,
    env: &'a str,
    steps: u64,
    mean_return: Option<f64>,
    hyper_parameters: &'a serde_json::Value,
    observation: Observation,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<Memory>,
    layers: Vec<Entry>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Vec<Entry>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    advantage: Option<Vec<Entry>>,
    action: Action,
}

#[derive(Serialize)]
struct Observation {
    shape: Vec<usize>,
    preprocessing: Steps,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Steps {
    None,
    Divide {
        by: f32,
    },
    Normalise {
        limit: f64,
        #[serde(skip_serializing_if = "Option::is_none")]
        mean: Option<Vec<f64>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        std: Option<Vec<f64>>,
    },
}

/// Recurrent layer before the other layers. Its parameters are absent from a description that does not include numbers.
#[derive(Serialize)]
struct Memory {
    r#type: &'static str,
    inputs: usize,
    width: usize,
    #[serde(flatten)]
    parameters: BTreeMap<&'static str, Nested>,
}

impl Memory {
    fn new(memory: &GraphMemory, with_numbers: bool) -> Self {
        let tensors = memory.tensors().into_iter().filter(|_| with_numbers);
        Self {
            r#type: memory.layer.cell().name(),
            inputs: memory.layer.inputs(),
            width: memory.layer.width(),
            parameters: tensors.map(|(name, shape, values)| (name, Nested::new(&shape, values))).collect(),
        }
    }
}

/// Parameters of a layer. They are absent from a description that does not include numbers.
#[derive(Serialize)]
struct Parameters {
    #[serde(skip_serializing_if = "Option::is_none")]
    weight: Option<Nested>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bias: Option<Vec<f32>>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Entry {
    Linear {
        inputs: usize,
        outputs: usize,
        #[serde(flatten)]
        parameters: Parameters,
    },
    #[serde(rename = "conv2d")]
    Convolution {
        in_channels: usize,
        out_channels: usize,
        kernel: usize,
        stride: usize,
        #[serde(flatten)]
        parameters: Parameters,
    },
    LayerNorm {
        len: usize,
        epsilon: f32,
        #[serde(flatten)]
        parameters: Parameters,
    },
    Tanh,
    Relu,
    Flatten,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Action {
    Discrete {
        n: usize,
        start: i64,
        scores: &'static str,
    },
    Continuous {
        dim: usize,
        #[serde(flatten)]
        numbers: Option<Scaling>,
    },
}

/// Numbers used to convert a continuous action. A bound is null if the action's dimension is unbounded.
#[derive(Serialize)]
struct Scaling {
    scale: Vec<f32>,
    offset: Vec<f32>,
    low: Vec<Option<f32>>,
    high: Vec<Option<f32>>,
}

/// Array of numbers, or of arrays that represent the rows of a tensor.
#[derive(Serialize)]
#[serde(untagged)]
enum Nested {
    Numbers(Vec<f32>),
    Rows(Vec<Nested>),
}

impl Nested {
    fn new(shape: &[usize], values: &[f32]) -> Self {
        match shape {
            [] | [_] => Self::Numbers(values.to_vec()),
            [rows, rest @ ..] => {
                let row = values.len() / rows;
                Self::Rows(values.chunks_exact(row).map(|values| Self::new(rest, values)).collect())
            }
        }
    }
}

/// Returns the content of a file in the JSON format.
pub(crate) fn file(policy: &ExportedPolicy) -> anyhow::Result<Vec<u8>> {
    let mut bytes =
        serde_json::to_vec(&describe(policy, true)).context("cannot write the description of the policy")?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// Returns the description without numbers, formatted on several lines.
pub(crate) fn config(policy: &ExportedPolicy) -> anyhow::Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec_pretty(&describe(policy, false))
        .context("cannot write the description of the policy")?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// Returns the description without numbers on one line.
pub(crate) fn one_line(policy: &ExportedPolicy) -> anyhow::Result<String> {
    serde_json::to_string(&describe(policy, false)).context("cannot write the description of the policy")
}

fn describe(policy: &ExportedPolicy, with_numbers: bool) -> Description<'_> {
    let mut sequences = policy.sequences().into_iter().map(|(_, layers)| {
        modules(layers).into_iter().map(|module| entry(module, with_numbers)).collect::<Vec<_>>()
    });
    Description {
        format: if policy.graph.memory.is_some() { RECURRENT_FORMAT } else { FORMAT },
        iswitch_version: VERSION,
        algorithm: &policy.algorithm,
        env: &policy.env,
        steps: policy.steps,
        mean_return: policy.mean_return,
        hyper_parameters: &policy.hyper_parameters,
        observation: observation(policy, with_numbers),
        memory: policy.graph.memory.as_ref().map(|memory| Memory::new(memory, with_numbers)),
        layers: sequences.next().unwrap_or_default(),
        value: sequences.next(),
        advantage: sequences.next(),
        action: action(policy, with_numbers),
    }
}

fn observation(policy: &ExportedPolicy, with_numbers: bool) -> Observation {
    let preprocessing = match &policy.graph.preprocessing {
        Preprocessing::None => Steps::None,
        Preprocessing::Divide(by) => Steps::Divide { by: *by },
        Preprocessing::Normalise { mean, std, limit } => Steps::Normalise {
            limit: *limit,
            mean: with_numbers.then(|| mean.clone()),
            std: with_numbers.then(|| std.clone()),
        },
    };
    Observation { shape: policy.observation_shape.clone(), preprocessing }
}

fn entry(module: Module<'_>, with_numbers: bool) -> Entry {
    let layer = match module {
        Module::Layer(layer) => layer,
        Module::Tanh => return Entry::Tanh,
        Module::Relu => return Entry::Relu,
        Module::Flatten => return Entry::Flatten,
    };
    let parameters = Parameters {
        weight: with_numbers.then(|| Nested::new(&layer.weight_shape(), &layer.weight)),
        bias: with_numbers.then(|| layer.bias.clone()),
    };
    match layer.operation {
        Operation::Dense { inputs, outputs } => Entry::Linear { inputs, outputs, parameters },
        Operation::Convolution(convolution) => Entry::Convolution {
            in_channels: convolution.input.channels,
            out_channels: convolution.channels,
            kernel: convolution.kernel,
            stride: convolution.stride,
            parameters,
        },
        Operation::LayerNorm { len } => Entry::LayerNorm { len, epsilon: LAYER_NORM_EPSILON, parameters },
    }
}

fn action(policy: &ExportedPolicy, with_numbers: bool) -> Action {
    match &policy.action {
        ActionTransform::Discrete { n, start } => {
            Action::Discrete { n: *n, start: *start, scores: policy.scores().unwrap_or("logits") }
        }
        ActionTransform::Continuous { scale, offset, low, high } => {
            let bounds = |bounds: &[f32]| bounds.iter().map(|x| x.is_finite().then_some(*x)).collect();
            let numbers = with_numbers.then(|| Scaling {
                scale: scale.clone(),
                offset: offset.clone(),
                low: bounds(low),
                high: bounds(high),
            });
            Action::Continuous { dim: scale.len(), numbers }
        }
    }
}
