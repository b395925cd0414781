//! Network with one head per coflow, for jobs with any number of coflows. The input of a head describes the coflow, its
//! job and the fabric.

use rand_chacha::ChaCha8Rng;

use super::graph::Graph;
use super::net::Advice;
use super::scene::{FEATURES, Scene};
use iswitch_learn::algorithms::actor_critic::NamedTensor;
use iswitch_learn::part::{Part, tensors};

/// Number of elements of an attribute, and of the summary of a job.
const WIDTH: usize = 8;
/// Number of inputs of the head: a coflow's features, its attribute and the summary of its job.
const SEEN: usize = FEATURES + 2 * WIDTH;
const HIDDEN: usize = 16;
const HEAD_HIDDEN: usize = 32;
/// Number of outputs per coflow: its priority, the logit of moving it in a search, and the logit of moving another
/// coflow next to it.
const RESULTS: usize = 3;

/// Network whose output for a coflow is the sum of two terms: a linear function of the coflow's features, and a head
/// whose inputs are the coflow's features, its attribute and the summary of its job. Both terms are initially 0.
#[derive(Clone, Debug)]
pub struct NodeNet {
    own: Part,
    graph: Graph,
    job: Part,
    head: Part,
    linear: Part,
    /// Outputs of `own` in the most recent forward pass, with shape `[nodes, WIDTH]`.
    features: Vec<f32>,
    /// Inputs of `job` in the most recent forward pass, with shape `[nodes, FEATURES + WIDTH]`.
    described: Vec<f32>,
    /// Inputs of `head` in the most recent forward pass, with shape `[nodes, FEATURES + 2 WIDTH]`.
    seen: Vec<f32>,
    /// Number of coflows of each job.
    counts: Vec<f32>,
}

impl NodeNet {
    pub(super) fn new() -> Self {
        let own = Part::new("own", &[FEATURES, HIDDEN, WIDTH], 0);
        let graph = Graph::new(WIDTH, own.end());
        let job = Part::new("f_job", &[FEATURES + WIDTH, HIDDEN, WIDTH], graph.end());
        let head = Part::new("head", &[SEEN, HEAD_HIDDEN, RESULTS], job.end());
        let linear = Part::new("linear", &[FEATURES, RESULTS], head.end());
        let empty = Vec::new;
        Self {
            own,
            graph,
            job,
            head,
            linear,
            features: empty(),
            described: empty(),
            seen: empty(),
            counts: empty(),
        }
    }

    pub(super) fn parameter_count(&self) -> usize {
        self.linear.end()
    }

    pub(super) fn initial_parameters(&self, rng: &mut ChaCha8Rng) -> Vec<f32> {
        let mut parameters = vec![0.0; self.parameter_count()];
        let [message, update] = self.graph.parts();
        for part in [&self.own, message, update, &self.job] {
            part.initialise(&mut parameters, false, rng);
        }
        for part in [&self.head, &self.linear] {
            part.initialise(&mut parameters, true, rng);
        }
        parameters
    }

    pub(super) fn tensors(&self) -> Vec<NamedTensor> {
        let [message, update] = self.graph.parts();
        tensors([&self.own, message, update, &self.job, &self.head, &self.linear])
    }

    pub(super) fn forward(&mut self, parameters: &[f32], scene: &Scene, advice: &mut Advice) {
        self.own.forward(parameters, &scene.features, &mut self.features);
        let attributes = self.graph.forward(parameters, scene, &self.features);
        self.described.clear();
        let rows = scene.features.chunks_exact(FEATURES).zip(attributes.chunks_exact(WIDTH));
        for (features, attribute) in rows.clone() {
            self.described.extend_from_slice(features);
            self.described.extend_from_slice(attribute);
        }
        let mut summaries = Vec::new();
        self.job.forward(parameters, &self.described, &mut summaries);
        let means = self.means(scene, &summaries);
        self.seen.clear();
        for (described, job) in self.described.chunks_exact(FEATURES + WIDTH).zip(&scene.job_of) {
            self.seen.extend_from_slice(described);
            self.seen.extend_from_slice(&means[job * WIDTH..(job + 1) * WIDTH]);
        }
        let (mut linear, mut results) = (Vec::new(), Vec::new());
        self.linear.forward(parameters, &scene.features, &mut linear);
        self.head.forward(parameters, &self.seen, &mut results);
        results.iter_mut().zip(&linear).for_each(|(sum, part)| *sum += part);
        let Advice { priorities, moved, aims } = advice;
        for (at, column) in [priorities, moved, aims].into_iter().enumerate() {
            column.clear();
            column.extend(results.iter().skip(at).step_by(RESULTS));
        }
    }

    /// Returns the mean of the summaries over the coflows of each job, with shape `[jobs, WIDTH]`. A mean, unlike a
    /// sum, does not grow with the number of coflows.
    fn means(&mut self, scene: &Scene, summaries: &[f32]) -> Vec<f32> {
        self.counts.clear();
        self.counts.resize(scene.jobs.len(), 0.0);
        scene.job_of.iter().for_each(|job| self.counts[*job] += 1.0);
        let mut means = vec![0.0; scene.jobs.len() * WIDTH];
        for (summary, job) in summaries.chunks_exact(WIDTH).zip(&scene.job_of) {
            let mean = &mut means[job * WIDTH..(job + 1) * WIDTH];
            mean.iter_mut().zip(summary).for_each(|(mean, x)| *mean += x / self.counts[*job]);
        }
        means
    }

    pub(super) fn backward(
        &mut self,
        parameters: &[f32],
        scene: &Scene,
        deltas: &Advice,
        gradient: &mut [f32],
    ) {
        let mut by_result = vec![0.0; scene.nodes() * RESULTS];
        for (at, column) in [&deltas.priorities, &deltas.moved, &deltas.aims].into_iter().enumerate() {
            by_result.iter_mut().skip(at).step_by(RESULTS).zip(column).for_each(|(delta, by)| *delta = *by);
        }
        let (mut by_features, mut by_seen, mut by_described) = (Vec::new(), Vec::new(), Vec::new());
        self.linear.backward(parameters, &scene.features, &by_result, gradient, &mut by_features);
        self.head.backward(parameters, &self.seen, &by_result, gradient, &mut by_seen);
        let mut by_mean = vec![0.0; scene.jobs.len() * WIDTH];
        for (row, job) in by_seen.chunks_exact(SEEN).zip(&scene.job_of) {
            let sums = by_mean[job * WIDTH..(job + 1) * WIDTH].iter_mut();
            sums.zip(&row[FEATURES + WIDTH..]).for_each(|(sum, slope)| *sum += slope / self.counts[*job]);
        }
        let by_summary: Vec<f32> = scene
            .job_of
            .iter()
            .flat_map(|job| by_mean[job * WIDTH..(job + 1) * WIDTH].iter().copied())
            .collect();
        self.job.backward(parameters, &self.described, &by_summary, gradient, &mut by_described);
        let rows = by_seen.chunks_exact(SEEN).zip(by_described.chunks_exact(FEATURES + WIDTH));
        let mut by_attribute: Vec<f32> = rows
            .flat_map(|(seen, described)| {
                let both = seen[FEATURES..FEATURES + WIDTH].iter().zip(&described[FEATURES..]);
                both.map(|(a, b)| a + b)
            })
            .collect();
        self.graph.backward(parameters, scene, &mut by_attribute, gradient);
        self.own.backward(parameters, &scene.features, &by_attribute, gradient, &mut by_features);
    }
}
