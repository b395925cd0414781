//! Value function whose greedy policy joins the shortest queue.

use super::{Value, separable};
use crate::policy::Lane;

/// Value function that is half the sum of the squared queue lengths. The marginal cost of a packet is therefore the
/// length of the queue that it joins, up to a constant.
#[derive(Clone, Copy, Debug)]
pub struct LengthValue;

impl Value for LengthValue {
    fn costs(&mut self, lanes: &[Lane], asked: &[usize], costs: &mut Vec<f32>) {
        separable(lanes, asked, costs, |_, len| len as f32);
    }
}
