//! Message passing along the edges of job graphs. The attribute of a node is computed from its own features and from
//! the attributes of the nodes that depend on it.
//!
//! `attr_i = x_i + g(sum of f(attr_u))`, where the sum is over the coflows u that depend on coflow i (section 4.3 of
//! the paper; Decima, section 5.1). The non-linear function g after the sum is necessary: with f alone, the longest
//! path could not be computed.

use super::scene::Scene;
use iswitch_learn::part::Part;

/// Widths of the two hidden layers of f and g.
const HIDDEN: [usize; 2] = [16, 8];

/// Message passing with the two functions f and g.
#[derive(Clone, Debug)]
pub(super) struct Graph {
    message: Part,
    update: Part,
    /// Messages of the most recent forward pass, with shape `[nodes, width]`. The fields `sums` and `attributes` have
    /// the same shape.
    messages: Vec<f32>,
    sums: Vec<f32>,
    attributes: Vec<f32>,
    level: Vec<f32>,
}

impl Graph {
    /// Creates message passing for attributes of `width` numbers, with parameters that begin at index `start`.
    pub(super) fn new(width: usize, start: usize) -> Self {
        let widths = [width, HIDDEN[0], HIDDEN[1], width];
        let message = Part::new("f", &widths, start);
        let update = Part::new("g", &widths, message.end());
        Self {
            message,
            update,
            messages: Vec::new(),
            sums: Vec::new(),
            attributes: Vec::new(),
            level: Vec::new(),
        }
    }

    pub(super) fn end(&self) -> usize {
        self.update.end()
    }

    pub(super) fn parts(&self) -> [&Part; 2] {
        [&self.message, &self.update]
    }

    /// Returns the attributes (`[nodes, width]`) of the scene's nodes, given the features of each node, `own` (`[nodes,
    /// width]`).
    pub(super) fn forward(&mut self, parameters: &[f32], scene: &Scene, own: &[f32]) -> &[f32] {
        let Self { message, update, messages, sums, attributes, level } = self;
        let width = message.inputs();
        attributes.clear();
        attributes.extend_from_slice(own);
        sums.clear();
        sums.resize(own.len(), 0.0);
        messages.clear();
        for (height, nodes) in scene.levels.iter().enumerate() {
            let span = nodes.start * width..nodes.end * width;
            if height > 0 {
                for node in nodes.clone() {
                    for child in &scene.children[node] {
                        let sum = &mut sums[node * width..(node + 1) * width];
                        sum.iter_mut().zip(&messages[child * width..]).for_each(|(sum, part)| *sum += part);
                    }
                }
                update.forward(parameters, &sums[span.clone()], level);
                attributes[span.clone()].iter_mut().zip(&*level).for_each(|(attr, part)| *attr += part);
            }
            message.forward(parameters, &attributes[span], level);
            messages.extend_from_slice(level);
        }
        attributes
    }

    /// Adds the gradient of the loss with respect to the parameters to `gradient`. `deltas` must contain the gradient
    /// with respect to the attributes, and is overwritten with the gradient with respect to the features. Must be
    /// called after [`Self::forward`].
    pub(super) fn backward(
        &mut self,
        parameters: &[f32],
        scene: &Scene,
        deltas: &mut [f32],
        gradient: &mut [f32],
    ) {
        let Self { message, update, sums, attributes, level, .. } = self;
        let width = message.inputs();
        let mut by_message = vec![0.0; deltas.len()];
        for (height, nodes) in scene.levels.iter().enumerate().rev() {
            let span = nodes.start * width..nodes.end * width;
            // No node uses the messages of the nodes of the maximum height, so these messages have no gradient.
            if height + 1 < scene.levels.len() {
                let (input, by_message) = (&attributes[span.clone()], &by_message[span.clone()]);
                message.backward(parameters, input, by_message, gradient, level);
                deltas[span.clone()].iter_mut().zip(&*level).for_each(|(delta, part)| *delta += part);
            }
            if height > 0 {
                update.backward(parameters, &sums[span.clone()], &deltas[span], gradient, level);
                for (at, node) in nodes.clone().enumerate() {
                    for child in &scene.children[node] {
                        let by_child = by_message[child * width..].iter_mut();
                        by_child
                            .zip(&level[at * width..(at + 1) * width])
                            .for_each(|(sum, part)| *sum += part);
                    }
                }
            }
        }
    }
}
