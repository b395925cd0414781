//! Export to the safetensors format: the tensors of a policy by name, with the policy's description as metadata.

use std::collections::HashMap;

use anyhow::Context as _;
use iswitch_learn::algorithms::policy_graph::{GraphMemory, Preprocessing};
use safetensors::tensor::{Dtype, TensorView, serialize};

use crate::description;
use crate::modules::{Module, modules};
use crate::policy::{ActionTransform, ExportedPolicy};

/// Metadata entry for the layout of the tensors, as key and value. Hugging Face libraries expect this entry.
const LAYOUT: (&str, &str) = ("format", "pt");
/// Metadata key of the policy's description.
const POLICY: &str = "policy";

/// A tensor and its name.
pub(crate) struct NamedTensor {
    pub(crate) name: String,
    pub(crate) shape: Vec<usize>,
    pub(crate) values: Values,
}

/// Values of a tensor, in row-major order.
pub(crate) enum Values {
    F32(Vec<f32>),
    F64(Vec<f64>),
    I64(Vec<i64>),
    Bool(Vec<bool>),
}

impl Values {
    fn dtype(&self) -> Dtype {
        match self {
            Self::F32(_) => Dtype::F32,
            Self::F64(_) => Dtype::F64,
            Self::I64(_) => Dtype::I64,
            Self::Bool(_) => Dtype::BOOL,
        }
    }

    fn bytes(&self) -> Vec<u8> {
        match self {
            Self::F32(values) => values.iter().flat_map(|x| x.to_le_bytes()).collect(),
            Self::F64(values) => values.iter().flat_map(|x| x.to_le_bytes()).collect(),
            Self::I64(values) => values.iter().flat_map(|x| x.to_le_bytes()).collect(),
            Self::Bool(values) => values.iter().copied().map(u8::from).collect(),
        }
    }
}

/// Returns the content of a file in the safetensors format.
///
/// # Errors
/// Fails if the policy cannot be described.
pub(crate) fn file(policy: &ExportedPolicy) -> anyhow::Result<Vec<u8>> {
    let metadata = [(LAYOUT.0, LAYOUT.1.to_owned()), (POLICY, description::one_line(policy)?)];
    to_bytes(&tensors(policy), &metadata)
}

/// Serialises tensors with metadata.
///
/// # Errors
/// Fails if the shape of a tensor does not match its values.
pub(crate) fn to_bytes(tensors: &[NamedTensor], metadata: &[(&str, String)]) -> anyhow::Result<Vec<u8>> {
    let bytes: Vec<_> = tensors.iter().map(|tensor| tensor.values.bytes()).collect();
    let views = tensors
        .iter()
        .zip(&bytes)
        .map(|(tensor, bytes)| {
            let view = TensorView::new(tensor.values.dtype(), tensor.shape.clone(), bytes)?;
            Ok((tensor.name.as_str(), view))
        })
        .collect::<anyhow::Result<Vec<_>>>()?;
    let metadata: HashMap<_, _> =
        metadata.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
    serialize(views, Some(metadata)).context("cannot write tensors")
}

fn tensors(policy: &ExportedPolicy) -> Vec<NamedTensor> {
    let mut tensors = Vec::new();
    let mut add = |name: String, shape: Vec<usize>, values| tensors.push(NamedTensor { name, shape, values });
    for (name, shape, values) in policy.graph.memory.iter().flat_map(GraphMemory::tensors) {
        add(format!("memory.{name}"), shape, Values::F32(values.to_vec()));
    }
    for (sequence, layers) in policy.sequences() {
        for (i, module) in modules(layers).into_iter().enumerate() {
            if let Module::Layer(layer) = module {
                let name = |kind: &str| format!("{sequence}.{i}.{kind}");
                add(name("weight"), layer.weight_shape(), Values::F32(layer.weight.clone()));
                add(name("bias"), vec![layer.bias.len()], Values::F32(layer.bias.clone()));
            }
        }
    }
    if let Preprocessing::Normalise { mean, std, .. } = &policy.graph.preprocessing {
        for (name, values) in [("mean", mean), ("std", std)] {
            add(format!("observation.{name}"), vec![values.len()], Values::F64(values.clone()));
        }
    }
    if let ActionTransform::Continuous { scale, offset, low, high } = &policy.action {
        for (name, values) in [("scale", scale), ("offset", offset), ("low", low), ("high", high)] {
            add(format!("action.{name}"), vec![values.len()], Values::F32(values.clone()));
        }
    }
    tensors
}
