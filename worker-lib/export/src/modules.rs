//! Layers of a policy as modules of PyTorch's `nn.Sequential`, in which each activation is a separate module.

use iswitch_learn::algorithms::policy_graph::GraphLayer;
use iswitch_learn::nn::{Activation, Operation};

/// Module of an `nn.Sequential`.
#[derive(Clone, Copy)]
pub(crate) enum Module<'a> {
    /// Layer without its activation.
    Layer(&'a GraphLayer),
    /// Hyperbolic tangent.
    Tanh,
    /// `max(0, x)`.
    Relu,
    /// Conversion of an image, `[channels, height, width]`, to a flat vector.
    Flatten,
}

/// Converts a sequence of layers to modules. An image is flattened after the last convolution.
pub(crate) fn modules(layers: &[GraphLayer]) -> Vec<Module<'_>> {
    let is_convolution = |layer: Option<&GraphLayer>| {
        matches!(layer, Some(GraphLayer { operation: Operation::Convolution(_), .. }))
    };
    let mut modules = Vec::new();
    for (i, layer) in layers.iter().enumerate() {
        modules.push(Module::Layer(layer));
        match layer.activation {
            Activation::Identity => {}
            Activation::Tanh => modules.push(Module::Tanh),
            Activation::Relu => modules.push(Module::Relu),
        }
        if is_convolution(Some(layer)) && !is_convolution(layers.get(i + 1)) {
            modules.push(Module::Flatten);
        }
    }
    modules
}
