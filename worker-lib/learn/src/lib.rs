//! Distributed reinforcement learning on top of the gradient aggregation of [`iswitch`]: neural networks ([`nn`]),
//! environments ([`mod@env`]), and the [`algorithms`] with their training loops.

pub mod algorithms;
pub mod env;
pub mod group;
pub mod nn;
pub mod part;
