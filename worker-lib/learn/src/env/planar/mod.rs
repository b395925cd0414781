//! Robots that move in a vertical plane, simulated with this project's own dynamics. They need no external library.

mod engine;
mod half_cheetah;
mod hopper;
#[cfg(test)]
mod tests;
mod walker;

pub use half_cheetah::PlanarHalfCheetah;
pub use hopper::PlanarHopper;
pub use walker::PlanarWalker;

pub(super) use half_cheetah::ID as HALF_CHEETAH_ID;
pub(super) use hopper::ID as HOPPER_ID;
pub(super) use walker::ID as WALKER_ID;
