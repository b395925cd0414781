//! Distributed reinforcement learning on the gradient aggregation of [`iswitch`]: networks ([`nn`]), environments
//! ([`mod@env`]), and the [`algorithms`] with the loops that train them.

pub mod algorithms;
pub mod env;
pub mod group;
pub mod nn;
pub mod part;
