//! What a state is worth: the discounted cost from it on.

mod convolutional;
mod isotonic;
mod lengths;
mod linear;

pub use convolutional::{ConvolutionalOptions, ConvolutionalValue};
pub use lengths::LengthValue;
pub(super) use linear::change_queue;
pub use linear::{LENGTHS, LinearFit, LinearValue, features, features_len};

use super::policy::Lane;

/// Tells apart the states that a packet's links lead to.
pub trait Value: Send {
    /// For each lane that is asked about, and each of its idle links in order, appends what the intermediate state is
    /// worth in which the lane's packet has gone over that link. Only differences within a lane count.
    fn costs(&mut self, lanes: &[Lane], asked: &[usize], costs: &mut Vec<f32>);
}

/// For values that are sums over queues: what one more packet adds to each queue that an idle link leads to. Where the
/// packet comes from adds the same whatever the link.
fn separable(lanes: &[Lane], asked: &[usize], costs: &mut Vec<f32>, marginal: impl Fn(usize, u32) -> f32) {
    for lane in asked.iter().map(|at| &lanes[*at]) {
        let decision = lane.decision();
        let stage = decision.stage + 1;
        let len = |link: &u16| lane.now().len(stage, usize::from(*link), decision.class);
        costs.extend(lane.idle().iter().map(|link| marginal(stage, len(link))));
    }
}

impl Value for Box<dyn Value> {
    fn costs(&mut self, lanes: &[Lane], asked: &[usize], costs: &mut Vec<f32>) {
        self.as_mut().costs(lanes, asked, costs);
    }
}
