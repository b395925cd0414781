//! Value functions: the value of a state is the expected discounted cost of all slots from that state onwards.

mod convolutional;
mod isotonic;
mod lengths;
mod linear;

pub use convolutional::{ConvolutionalOptions, ConvolutionalValue};
pub use lengths::LengthValue;
pub(super) use linear::change_queue;
pub use linear::{LENGTHS, LinearFit, LinearValue, features, features_len};

use super::policy::Lane;

/// Value function. To choose a link for a packet, a policy compares the values of the states after each possible
/// choice.
pub trait Value: Send {
    /// Appends, for each lane in `asked` and each of its idle links in order, the value of the intermediate state after
    /// the lane's packet has taken that link. Only the differences between the values of one lane matter.
    fn costs(&mut self, lanes: &[Lane], asked: &[usize], costs: &mut Vec<f32>);
}

/// Implements [`Value::costs`] for value functions that are sums over queues: `marginal` is the cost of one more packet
/// in the queue to which a link leads. The contribution of the queue that the packet leaves is the same for every link,
/// so it is omitted.
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
