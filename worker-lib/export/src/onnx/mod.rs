//! Export to the ONNX format. A single graph computes an action from an observation.
//!
//! All values are f32, because many inference engines do not support f64. The mean of an observation is therefore
//! represented as the sum of two constants: the nearest f32 and the remainder. The graph subtracts the nearest f32
//! first, and then the remainder. The result has no noticeable rounding error even if the mean is much larger than the
//! deviations from it.

mod graph;
mod memory;
mod proto;

use iswitch_learn::algorithms::policy_graph::{GraphLayer, Preprocessing};
use iswitch_learn::nn::{LAYER_NORM_EPSILON, Operation};
use prost::Message as _;

use crate::modules::{Module, modules};
use crate::policy::{ActionTransform, ExportedPolicy, VERSION};
pub(crate) use memory::state_parts;

use graph::{Element, Graph, float, int, ints};
use proto::{ModelProto, OperatorSetIdProto, StringStringEntryProto};

/// Version of the file format. ONNX Runtime 1.13 and later support it.
const IR_VERSION: i64 = 8;
/// Version of the operator set; the first version that includes layer normalisation.
const OPSET: i64 = 17;
/// Name of the graph's input.
const OBSERVATION: &str = "observation";
/// Name of the graph's first output.
const ACTION: &str = "action";

/// Returns the content of a file in the ONNX format.
pub(crate) fn file(policy: &ExportedPolicy) -> Vec<u8> {
    let mut graph = Graph::default();
    let shape = &policy.observation_shape;
    graph.input(OBSERVATION, Element::F32, shape, "Observations as the environment returns them.");
    let preprocessed = preprocess(&mut graph, &policy.graph.preprocessing);
    let remembered = match &policy.graph.memory {
        Some(memory) => memory::add(&mut graph, memory, &preprocessed),
        None => preprocessed,
    };
    let outputs = network(&mut graph, policy, &remembered);
    match &policy.action {
        ActionTransform::Discrete { n, start } => {
            let scores = policy.scores().unwrap_or("logits");
            graph.node(scores, "Identity", &[&outputs], vec![]);
            choose(&mut graph, scores, *start);
            graph.output(ACTION, Element::I64, &[], "Chosen actions, as the environment numbers them.");
            graph.output(
                scores,
                Element::F32,
                &[*n],
                "One value for each action; the policy takes the action with the largest value.",
            );
        }
        ActionTransform::Continuous { scale, offset, low, high } => {
            convert(&mut graph, &outputs, [scale, offset, low, high]);
            graph.output(ACTION, Element::F32, &[scale.len()], "Actions in the units of the environment.");
        }
    }
    memory::declare_outputs(&mut graph, policy.graph.memory.as_ref());
    let entry = |(key, value): (&str, String)| StringStringEntryProto {
        key: Some(key.to_owned()),
        value: Some(value),
    };
    let model = ModelProto {
        ir_version: Some(IR_VERSION),
        producer_name: Some("iswitch".to_owned()),
        producer_version: Some(VERSION.to_owned()),
        doc_string: Some(format!("Policy of {} for {}.", policy.algorithm.to_uppercase(), policy.env)),
        graph: Some(graph.finish("policy")),
        opset_import: vec![OperatorSetIdProto { domain: Some(String::new()), version: Some(OPSET) }],
        metadata_props: policy.facts().into_iter().map(entry).collect(),
    };
    model.encode_to_vec()
}

/// Adds the preprocessing of observations, and returns the name of its result.
fn preprocess(graph: &mut Graph, preprocessing: &Preprocessing) -> String {
    let (mean, std, limit) = match preprocessing {
        Preprocessing::None => return OBSERVATION.to_owned(),
        Preprocessing::Divide(by) => {
            let by = graph.floats("observation.maximum", &[], &[*by]);
            return graph.node("observation.scaled", "Div", &[OBSERVATION, &by], vec![]);
        }
        Preprocessing::Normalise { mean, std, limit } => (mean, std, *limit as f32),
    };
    let nearest: Vec<_> = mean.iter().map(|mean| *mean as f32).collect();
    let remainder: Vec<_> =
        mean.iter().zip(&nearest).map(|(mean, near)| (mean - f64::from(*near)) as f32).collect();
    let std: Vec<_> = std.iter().map(|std| *std as f32).collect();
    let nearest = graph.floats("observation.mean", &[mean.len()], &nearest);
    let remainder = graph.floats("observation.mean_remainder", &[mean.len()], &remainder);
    let std = graph.floats("observation.std", &[mean.len()], &std);
    let low = graph.floats("observation.minimum", &[], &[-limit]);
    let high = graph.floats("observation.maximum", &[], &[limit]);
    let shifted = graph.node("observation.shifted", "Sub", &[OBSERVATION, &nearest], vec![]);
    let centred = graph.node("observation.centred", "Sub", &[&shifted, &remainder], vec![]);
    let scaled = graph.node("observation.scaled", "Div", &[&centred, &std], vec![]);
    graph.node("observation.clipped", "Clip", &[&scaled, &low, &high], vec![])
}

/// Adds all layers of the network, and returns the name of their output.
fn network(graph: &mut Graph, policy: &ExportedPolicy, input: &str) -> String {
    let [(trunk, layers), streams @ ..] = &policy.sequences()[..] else { return input.to_owned() };
    let features = sequence(graph, trunk, layers, input);
    let [(value, of_value), (advantage, of_advantage)] = streams else { return features };
    let value = sequence(graph, value, of_value, &features);
    let advantage = sequence(graph, advantage, of_advantage, &features);
    let attributes = vec![ints("axes", &[1]), int("keepdims", 1)];
    let mean = graph.node("advantage.mean", "ReduceMean", &[&advantage], attributes);
    let sum = graph.node("duelling.sum", "Add", &[&value, &advantage], vec![]);
    graph.node("duelling.difference", "Sub", &[&sum, &mean], vec![])
}

fn sequence(graph: &mut Graph, sequence: &str, layers: &[GraphLayer], input: &str) -> String {
    let mut x = input.to_owned();
    for (i, module) in modules(layers).into_iter().enumerate() {
        let name = format!("{sequence}.{i}");
        x = match module {
            Module::Layer(layer) => add_layer(graph, &name, layer, &x),
            Module::Tanh => graph.node(&name, "Tanh", &[&x], vec![]),
            Module::Relu => graph.node(&name, "Relu", &[&x], vec![]),
            Module::Flatten => graph.node(&name, "Flatten", &[&x], vec![int("axis", 1)]),
        };
    }
    x
}

fn add_layer(graph: &mut Graph, name: &str, layer: &GraphLayer, x: &str) -> String {
    let weight = graph.floats(&format!("{name}.weight"), &layer.weight_shape(), &layer.weight);
    let bias = graph.floats(&format!("{name}.bias"), &[layer.bias.len()], &layer.bias);
    let (operator, attributes) = match layer.operation {
        Operation::Dense { .. } => ("Gemm", vec![int("transB", 1)]),
        Operation::Convolution(convolution) => {
            let twice = |size: usize| [size as i64; 2];
            let kernel = ints("kernel_shape", &twice(convolution.kernel));
            ("Conv", vec![kernel, ints("strides", &twice(convolution.stride))])
        }
        Operation::LayerNorm { .. } => {
            ("LayerNormalization", vec![int("axis", -1), float("epsilon", LAYER_NORM_EPSILON)])
        }
    };
    graph.node(name, operator, &[x, &weight, &bias], attributes)
}

/// Adds nodes that choose the action with the largest score, or the first such action if there are several.
fn choose(graph: &mut Graph, scores: &str, start: i64) {
    let attributes = || vec![int("axis", 1), int("keepdims", 0), int("select_last_index", 0)];
    if start == 0 {
        graph.node(ACTION, "ArgMax", &[scores], attributes());
        return;
    }
    let choice = graph.node("action.choice", "ArgMax", &[scores], attributes());
    let start = graph.integer("action.start", start);
    graph.node(ACTION, "Add", &[&choice, &start], vec![]);
}

/// Adds nodes that convert outputs to actions in the units of the environment, with a scale, an offset, a minimum and a
/// maximum.
fn convert(graph: &mut Graph, outputs: &str, numbers: [&[f32]; 4]) {
    let names = ["action.scale", "action.offset", "action.low", "action.high"];
    let mut constants =
        names.iter().zip(numbers).map(|(name, values)| graph.floats(name, &[values.len()], values));
    let constants: [String; 4] = std::array::from_fn(|_| constants.next().unwrap_or_default());
    let [scale, offset, low, high] = &constants;
    let scaled = graph.node("action.scaled", "Mul", &[outputs, scale], vec![]);
    let shifted = graph.node("action.shifted", "Add", &[&scaled, offset], vec![]);
    let raised = graph.node("action.raised", "Max", &[&shifted, low], vec![]);
    graph.node(ACTION, "Min", &[&raised, high], vec![]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_of_an_observation_keeps_its_precision() {
        let mean = 1_000_000.123_456_789_f64;
        let preprocessing = Preprocessing::Normalise { mean: vec![mean], std: vec![1e-4], limit: 10.0 };
        let mut graph = Graph::default();
        preprocess(&mut graph, &preprocessing);
        let constants: Vec<f32> = graph
            .finish("test")
            .initializer
            .iter()
            .map(|tensor| f32::from_le_bytes(tensor.raw_data.clone().unwrap().try_into().unwrap()))
            .collect();
        let [nearest, remainder, ..] = constants[..] else { panic!("{constants:?}") };
        assert!((f64::from(nearest) + f64::from(remainder) - mean).abs() < 1e-8, "{constants:?}");
        assert_eq!(constants[2..], [1e-4, -10.0, 10.0]);
    }

    #[test]
    fn attributes_with_the_value_zero_are_written() {
        // A protocol buffer omits a field that is zero unless the field is optional. Readers would use the operator's
        // default for an omitted attribute.
        let bytes = int("keepdims", 0).encode_to_vec();
        assert!(bytes.windows(2).any(|pair| pair == [3 << 3, 0]), "{bytes:?}");
    }
}
