//! Small neural networks on flat vectors.
//!
//! All parameters of a model are stored in one `[f32]`, and all gradients in another with the same layout. The gradient
//! vector *is* the payload of the packets, so an aggregation needs no gather or scatter step. The networks of the
//! iSwitch paper are so small that the per-operation overhead of a framework would dominate the step time; here, a
//! layer is one matrix product from the `gemm-f32` crate and a loop. The module contains dense layers, convolutions and
//! layer normalisation, from which the paper's four models are built ([`Network`]), and recurrent layers
//! ([`Recurrent`]).
//!
//! No operation allocates memory after construction: a [`Workspace`] holds the intermediate results of the largest
//! batch. Backward passes are hand-written and checked against finite differences and against numbers computed once in
//! float64 by an independent program.

mod activation;
mod adam;
mod categorical;
mod clip;
mod convolution;
mod gaussian;
mod init;
mod layer;
mod layer_norm;
mod matmul;
mod network;
mod recurrent;
mod rmsprop;
mod sgd;
mod squashed_gaussian;

pub use activation::{Activation, tanh};
pub use adam::Adam;
pub use categorical::Categorical;
pub use clip::clip_global_norm;
pub use convolution::{Convolution, Image};
pub use gaussian::DiagonalGaussian;
pub use init::{orthogonal, uniform_by_fan_in};
pub use layer::{Layer, Operation};
pub use layer_norm::LAYER_NORM_EPSILON;
pub use matmul::{MatrixMut, MatrixRef, matmul};
pub use network::{Network, Workspace};
pub use recurrent::{Cell, Recurrent, RecurrentWorkspace, Sequences};
pub use rmsprop::RmsProp;
pub use sgd::Sgd;
pub use squashed_gaussian::SquashedGaussian;
